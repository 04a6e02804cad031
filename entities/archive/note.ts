/** The event of a backup. Without a young one, a matter is open. */
import type { Transaction } from '../database/transaction.ts';
import { type Actor, OPERATOR_ACCOUNT } from '../history/audit.ts';
import { record } from '../history/record.ts';

/** Notes a backup of the database. @param data what is known of an archive @returns the id of the event */
export const noteBackup = (
  tx: Transaction,
  actor: Actor,
  data?: { archive: string; bytes: number; rows: number },
): Promise<string> => record(tx, OPERATOR_ACCOUNT, 'database', { type: 'backup.noted', actor, ...(data && { data }) });
