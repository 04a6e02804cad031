/** How many of each thing an account may have, and the lock under which they are counted. */
import type { Transaction } from '../entities/database.ts';

export interface AccountLimits {
  apiKeys: number;
  servers: number;
  sshKeys: number;
  webhooks: number;
  agentEntries: number;
  pendingTopups: number;
  sessions: number;
  oauthClients: number;
}

/** Whoever counts before adding holds the account's row, so thirty at once are counted one after the other. */
export const lockAccount = (tx: Transaction, accountId: string): Promise<unknown> =>
  tx.query('select from balance where account_id = $1 for update', [accountId]);
