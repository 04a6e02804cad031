/** Records the expiry of API keys, and deletes expired SSH keys. A key stops working by the clock, even if no worker runs. */
import { API_KEY_LIFECYCLE, type ApiKey, FIND_EXPIRY_SECONDS } from '../../entities/accounts/credential.ts';
import { DELETE_EXPIRED_SSH_KEY, FIND_SSH_KEY_SECONDS, type SshKey } from '../../entities/accounts/ssh-key.ts';
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
export const SSH_KEY_PROCESS = 'ssh-key';

export type ExpiringKey = Pick<ApiKey, 'id' | 'accountId' | 'createdAt'> & { expiresAt: Date };

export const expiryTask = ({ id, accountId, createdAt, expiresAt }: ExpiringKey): NewTask => ({
  lane: API_KEY_LANE,
  process: API_KEY_PROCESS,
  subject: id,
  accountId,
  step: 'expire',
  afterSeconds: Math.max(0, (expiresAt.getTime() - createdAt.getTime()) / 1000),
});

/** The task has no time: the process finds that, also if another credential has added the key again. */
export const sshKeyTask = ({ id, accountId }: Pick<SshKey, 'id' | 'accountId'>): NewTask => ({
  lane: API_KEY_LANE,
  process: SSH_KEY_PROCESS,
  subject: id,
  accountId,
  step: 'expire',
});

const expiring =
  (find: typeof FIND_EXPIRY_SECONDS, expire: typeof expireApiKey) =>
  (db: Database): Process => ({
    lane: API_KEY_LANE,
    steps: {
      expire: async ({ subject, accountId }) => {
        // The operator may wake the task early.
        const seconds = (await find.first(db, [subject]))?.seconds ?? 0;
        return seconds > 0 ? nap(seconds) : done({ commit: (tx) => expire(tx, accountId, subject) });
      },
    },
  });

/** Moves an active key; a revoked key stays revoked. */
async function expireApiKey(tx: Transaction, accountId: string, id: string): Promise<void> {
  await lockAccount(tx, accountId);
  if (!(await transition(tx, API_KEY_LIFECYCLE, id, 'EXPIRED'))) return;
  await record(tx, accountId, id, { type: 'api_key.expired', actor: SYSTEM });
  tx.changed({ kind: 'credential', accountId, id });
}

/** Deletes an expired SSH key. One without an expiry stays. */
async function expireSshKey(tx: Transaction, accountId: string, id: string): Promise<void> {
  await lockAccount(tx, accountId);
  if (await DELETE_EXPIRED_SSH_KEY.first(tx, [id]))
    await record(tx, accountId, id, { type: 'ssh_key.deleted', actor: SYSTEM });
}

export const apiKeyProcess = expiring(FIND_EXPIRY_SECONDS, expireApiKey);
export const sshKeyProcess = expiring(FIND_SSH_KEY_SECONDS, expireSshKey);
