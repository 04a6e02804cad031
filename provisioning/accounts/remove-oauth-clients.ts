/** Removes OAuth clients that nobody uses: anybody may register them, and most are tried once. */

import type { OauthClient } from '../../entities/accounts/oauth-client.ts';
import type { Database } from '../../entities/database/database.ts';
import type { Queryable, Transaction } from '../../entities/database/transaction.ts';
import { SYSTEM } from '../../entities/history/audit.ts';
import { record } from '../../entities/history/record.ts';
import { lockAccount } from '../../entities/payments/ledger.ts';
import { Conflict, done, hop, type NewTask, type Process } from '../tasks/tasks.ts';

export const OAUTH_CLIENT_LANE = 'oauth-clients';
export const OAUTH_CLIENT_PROCESS = 'oauth-client';

/** As long as a refresh token lives without use, so that a client that is removed has no token that is good. */
const UNUSED_SECONDS = 30 * 24 * 3600;
/** How often a client is looked at that is kept for its account's money or servers. */
const LOOK_AGAIN_SECONDS = 24 * 3600;

export const removalTask = ({ id, accountId }: Pick<OauthClient, 'id' | 'accountId'>): NewTask => ({
  lane: OAUTH_CLIENT_LANE,
  process: OAUTH_CLIENT_PROCESS,
  subject: id,
  accountId,
  step: 'remove',
  afterSeconds: UNUSED_SECONDS,
});

export const oauthClientProcess = (db: Database): Process => ({
  lane: OAUTH_CLIENT_LANE,
  steps: {
    remove: async ({ subject, accountId }) => {
      const unusedSeconds = await unusedFor(db, subject);
      if (unusedSeconds === undefined) return done();
      const left = UNUSED_SECONDS - unusedSeconds;
      if (left > 0) return hop('remove', { afterSeconds: left });
      if (!(await isPoor(db, accountId))) return hop('remove', { afterSeconds: LOOK_AGAIN_SECONDS });
      return done({ commit: (tx) => remove(tx, accountId, subject) });
    },
  },
});

const USED_AT = 'greatest(created_at, last_used_at)';

/** Seconds since it last got a token, or was registered; undefined if there is no such client. */
async function unusedFor(db: Queryable, id: string): Promise<number | undefined> {
  const [found] = await db.query<{ seconds: number }>(
    `select extract(epoch from now() - ${USED_AT})::float as seconds from oauth_client where id = $1`,
    [id],
  );
  return found?.seconds;
}

/** Whether the account has no money, and nothing that costs any. */
async function isPoor(db: Queryable, accountId: string): Promise<boolean> {
  const kept = await db.query(
    `select 1 from balance where account_id = $1 and available_micros + held_micros > 0
      union all select 1 from server where account_id = $1 and status not in ('FAILED', 'DELETED')`,
    [accountId],
  );
  return kept.length === 0;
}

/** @throws Conflict if it was used, or its account got money, meanwhile */
async function remove(tx: Transaction, accountId: string, id: string): Promise<void> {
  await lockAccount(tx, accountId);
  if (!(await isPoor(tx, accountId))) throw new Conflict();
  const removed = await tx.query(
    `delete from oauth_client where id = $1 and ${USED_AT} <= now() - make_interval(secs => $2) returning id`,
    [id, UNUSED_SECONDS],
  );
  if (!removed.length) throw new Conflict();
  await record(tx, accountId, id, { type: 'oauth_client.removed', actor: SYSTEM });
}
