/** Records the expiry of API keys. The key stops working by the clock, even if no worker runs. */
import { API_KEY_LIFECYCLE, type ApiKey, FIND_EXPIRY_SECONDS } from '../../entities/accounts/credential.ts';
import type { Database } from '../../entities/database/database.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { SYSTEM } from '../../entities/history/audit.ts';
import { record } from '../../entities/history/record.ts';
import { transition } from '../../entities/history/transition.ts';
import { lockAccount } from '../../entities/payments/ledger.ts';
import type { NewTask } from '../../entities/tasks/start.ts';
import { done, nap, type Process } from '../tasks/tasks.ts';

export const API_KEY_LANE = 'api-keys';
export const API_KEY_PROCESS = 'api-key';

export type ExpiringKey = Pick<ApiKey, 'id' | 'accountId' | 'createdAt'> & { expiresAt: Date };

export const expiryTask = ({ id, accountId, createdAt, expiresAt }: ExpiringKey): NewTask => ({
  lane: API_KEY_LANE,
  process: API_KEY_PROCESS,
  subject: id,
  accountId,
  step: 'expire',
  afterSeconds: Math.max(0, (expiresAt.getTime() - createdAt.getTime()) / 1000),
});

export const apiKeyProcess = (db: Database): Process => ({
  lane: API_KEY_LANE,
  steps: {
    expire: async ({ subject, accountId }) => {
      // The operator may wake the task early.
      const seconds = (await FIND_EXPIRY_SECONDS.first(db, [subject]))?.seconds ?? 0;
      return seconds > 0 ? nap(seconds) : done({ commit: (tx) => expire(tx, accountId, subject) });
    },
  },
});

/** Moves an active key; a revoked key stays revoked. */
async function expire(tx: Transaction, accountId: string, id: string): Promise<void> {
  await lockAccount(tx, accountId);
  if (!(await transition(tx, API_KEY_LIFECYCLE, id, 'EXPIRED'))) return;
  await record(tx, accountId, id, { type: 'api_key.expired', actor: SYSTEM });
  tx.changed({ kind: 'credential', accountId, id });
}
