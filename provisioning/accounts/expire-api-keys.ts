/** Tells of an API key's expiry when its time has come. Its doors close by the clock, whether a worker runs or not. */

import type { ApiKey } from '../../entities/accounts/credential.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { SYSTEM } from '../../entities/history/audit.ts';
import { record } from '../../entities/history/record.ts';
import { lockAccount } from '../../entities/payments/ledger.ts';
import { done, type NewTask, type Process } from '../tasks/tasks.ts';

export const API_KEY_LANE = 'api-keys';
export const API_KEY_PROCESS = 'api-key';

export type ExpiringKey = Pick<ApiKey, 'id' | 'accountId'> & { expiresAt: Date };

export const expiryTask = ({ id, accountId, expiresAt }: ExpiringKey): NewTask => ({
  lane: API_KEY_LANE,
  process: API_KEY_PROCESS,
  subject: id,
  accountId,
  step: 'expire',
  afterSeconds: Math.max(0, (expiresAt.getTime() - Date.now()) / 1000),
});

export const apiKeyProcess: Process = {
  lane: API_KEY_LANE,
  steps: {
    expire: async ({ subject, accountId }) => done({ commit: (tx) => expire(tx, accountId, subject) }),
  },
};

/** A key that was revoked before stays so. */
async function expire(tx: Transaction, accountId: string, id: string): Promise<void> {
  await lockAccount(tx, accountId);
  const expired = await tx.query(
    `update api_key set status = 'EXPIRED' where id = $1 and account_id = $2 and status = 'ACTIVE' returning id`,
    [id, accountId],
  );
  if (!expired.length) return;
  await record(tx, accountId, id, { type: 'api_key.expired', actor: SYSTEM });
  tx.changed({ kind: 'credential', accountId, id });
}
