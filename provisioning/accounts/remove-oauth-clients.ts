/** Removes unused OAuth clients. Strangers may register clients, and try most of them only once. */
import {
  FIND_UNUSED_SECONDS,
  IS_NEEDED,
  LOCK_UNUSED_CLIENT,
  type OauthClient,
} from '../../entities/accounts/oauth-client.ts';
import { revokeCredentials } from '../../entities/accounts/revoke.ts';
import type { Database } from '../../entities/database/database.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { SYSTEM } from '../../entities/history/audit.ts';
import { lockAccount } from '../../entities/payments/ledger.ts';
import type { NewTask } from '../../entities/tasks/start.ts';
import { Conflict, done, hop, type Process } from '../tasks/tasks.ts';

export const OAUTH_CLIENT_LANE = 'oauth-clients';
export const OAUTH_CLIENT_PROCESS = 'oauth-client';

/** The lifetime of an unused refresh token, so a removed client has no valid token. */
const UNUSED_SECONDS = 30 * 24 * 3600;
/** The lifetime of a client that a stranger registered and never used. */
const UNTRIED_SECONDS = 24 * 3600;
/** Seconds between two checks of an unused client that is needed. */
const LOOK_AGAIN_SECONDS = 24 * 3600;

export const removalTask = ({ id, accountId }: Pick<OauthClient, 'id' | 'accountId'>): NewTask => ({
  lane: OAUTH_CLIENT_LANE,
  process: OAUTH_CLIENT_PROCESS,
  subject: id,
  accountId,
  step: 'remove',
  afterSeconds: UNTRIED_SECONDS,
});

export const oauthClientProcess = (db: Database): Process => ({
  lane: OAUTH_CLIENT_LANE,
  steps: {
    remove: async ({ subject, accountId }) => {
      const unused = await FIND_UNUSED_SECONDS.first(db, [subject]);
      if (!unused) return done();
      const most = unused.untried ? UNTRIED_SECONDS : UNUSED_SECONDS;
      const left = most - unused.seconds;
      if (left > 0) return hop('remove', { afterSeconds: left });
      if ((await IS_NEEDED.first(db, [accountId, subject]))!.needed)
        return hop('remove', { afterSeconds: LOOK_AGAIN_SECONDS });
      return done({ commit: (tx) => remove(tx, { accountId, id: subject }, most) });
    },
  },
});

/** @throws Conflict if the client was used or became needed since the check */
async function remove(
  tx: Transaction,
  { accountId, id }: Pick<OauthClient, 'id' | 'accountId'>,
  seconds: number,
): Promise<void> {
  await lockAccount(tx, accountId);
  if ((await IS_NEEDED.first(tx, [accountId, id]))!.needed) throw new Conflict();
  if (!(await LOCK_UNUSED_CLIENT.first(tx, [id, seconds]))) throw new Conflict();
  await revokeCredentials(tx, accountId, [id], SYSTEM);
}
