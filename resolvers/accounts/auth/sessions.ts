/** The open sessions of an account: listed, and ended. */

import { Session } from '../../../entities/accounts/credential.ts';
import { PendingLogin } from '../../../entities/accounts/totp.ts';
import { columnsOf } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import { record } from '../../../entities/history/record.ts';
import { isId } from '../../../entities/ids.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { accountOf, actorOf, type Context } from '../../context.ts';
import { afterCursor, type Page, type PageRequest, pageFrom } from '../../pages.ts';

/** A condition: a session is open as long as one of its tokens is good; hidden ones could not be ended. */
export const OPEN_SESSION = `revoked_at is null
  and (expires_at > now() or (refresh_digest is not null and refresh_expires_at > now()))`;

export async function listSessions(context: Context, request: PageRequest): Promise<Page<Session>> {
  const rows = await context.db.query<Session>(
    `select ${columnsOf(Session)} from session
    where account_id = $1 and ($2::text is null or id < $2) and ${OPEN_SESSION} order by id desc limit $3`,
    [accountOf(context), afterCursor(request, {}), request.limit + 1],
  );
  return pageFrom(rows, request, {});
}

/** Ends a session, which works at once; its refresh token dies, too. @throws ApiError not_found */
export async function revokeSession(context: Context, id: string): Promise<{ tokenId: string }> {
  const accountId = accountOf(context);
  if (!isId('tok', id)) throw new ApiError('not_found');
  await context.db.transaction(async (tx) => {
    await lockAccount(tx, accountId);
    if (!(await endSessions(context, tx, accountId, [id], 'revoked'))) throw new ApiError('not_found');
  });
  return { tokenId: id };
}

/** A change of how the account logs in; its event has the same name. */
type LoginChange = 'password_changed' | 'totp_enabled' | 'totp_disabled';

/**
 * Tells of a change of how the account logs in, and ends what came of the former way: pending logins, and all sessions
 * but the one that calls. API keys stay. To be called under the lock of the account.
 * @returns how many sessions ended
 */
export async function recordLoginChange(
  context: Context,
  tx: Transaction,
  accountId: string,
  change: LoginChange,
): Promise<number> {
  await tx.manager.delete(PendingLogin, { accountId });
  const others = await tx.query<{ id: string }>(
    `select id from session where account_id = $1 and id <> $2 and ${OPEN_SESSION}`,
    [accountId, context.viewer?.credentialId],
  );
  const ids = others.map(({ id }) => id);
  const sessionsRevoked = await endSessions(context, tx, accountId, ids, change);
  const happening = { type: `account.${change}`, actor: actorOf(context) } as const;
  await record(tx, accountId, accountId, { ...happening, data: { sessionsRevoked } });
  return sessionsRevoked;
}

/** Ends those of the sessions that are open. @returns how many were */
export async function endSessions(
  context: Context,
  tx: Transaction,
  accountId: string,
  ids: readonly string[],
  reason: 'revoked' | 'session_limit' | 'client_deleted' | LoginChange,
): Promise<number> {
  const ended = await tx.query<{ id: string }>(
    `update session set revoked_at = now() where account_id = $1 and id = any($2::text[]) and ${OPEN_SESSION} returning id`,
    [accountId, ids],
  );
  for (const { id } of ended) {
    const happening = { type: 'session.revoked', actor: actorOf(context) } as const;
    await record(tx, accountId, id, { ...happening, data: { reason } });
    tx.changed({ kind: 'credential', accountId, id });
  }
  return ended.length;
}
