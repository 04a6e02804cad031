/** Lists and ends the open sessions of an account. */
import {
  END_SESSIONS,
  FIND_OPEN_SESSIONS,
  LIST_OPEN_SESSIONS,
  type LOGIN_CHANGES,
  MAY_END_SESSION,
  type Session,
} from '../../../entities/accounts/credential.ts';
import { PendingLogin } from '../../../entities/accounts/totp.ts';
import { remove } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import type { Actor } from '../../../entities/history/audit.ts';
import { record, recordAll } from '../../../entities/history/record.ts';
import { isId } from '../../../entities/ids.ts';
import { accountOf, actorOf, type Context } from '../../context.ts';
import { found } from '../../errors.ts';
import { afterCursor, type Page, type PageRequest, pageFrom } from '../../pages.ts';
import { lockOwnAccount } from '../account.ts';

export async function listSessions(context: Context, request: PageRequest): Promise<Page<Session>> {
  const parameters = [accountOf(context), afterCursor(request, {}), request.limit + 1];
  const rows = await LIST_OPEN_SESSIONS.all(context.db, parameters);
  return pageFrom(rows, request, {});
}

/**
 * Ends a session and its refresh token at once, and the session that replaced it after a refresh. An API key or a token of an
 * OAuth client ends no login, and a login ends no newer one. Tokens of the client that is the way in are logins. So a
 * thief cannot end each next login of the owner.
 * @throws ApiError not_found, or insufficient_scope for such a login
 */
export async function revokeSession(context: Context, id: string): Promise<{ tokenId: string }> {
  if (!isId('tok', id)) throw new ApiError('not_found');
  await context.db.transaction(async (tx) => {
    const accountId = await lockOwnAccount(tx, context, 'while suspended');
    await refuseNewerLogin(tx, context, accountId, id);
    if (!(await endSessions(tx, accountId, [id], 'revoked', actorOf(context)))) throw new ApiError('not_found');
  });
  return { tokenId: id };
}

/** @throws ApiError not_found or insufficient_scope */
async function refuseNewerLogin(tx: Transaction, { viewer }: Context, accountId: string, id: string): Promise<void> {
  const own = viewer?.isLogin ? viewer.credentialId : null;
  if (found(await MAY_END_SESSION.first(tx, [own, id, accountId])).allowed) return;
  const reason = own ? 'This login is newer than yours.' : 'An API key or a token of an OAuth client ends no login.';
  throw new ApiError(
    'insufficient_scope',
    `${reason} Log in by {Login}, and end it with the new access token. An account without a password logs in by its OAuth client at {IssueOauthToken}.`,
  );
}

type LoginChange = (typeof LOGIN_CHANGES)[number];

/**
 * Records a change of how the account logs in. Ends the pending logins and all other sessions of the account, but no API
 * keys. The caller holds the lock of the account.
 * @returns how many sessions ended
 */
export async function recordLoginChange(
  context: Context,
  tx: Transaction,
  accountId: string,
  change: LoginChange,
  more: Record<string, unknown> = {},
): Promise<number> {
  await remove(tx, PendingLogin, { accountId });
  const open = await FIND_OPEN_SESSIONS.all(tx, [accountId]);
  const ids = open.map(({ id }) => id).filter((id) => id !== context.viewer?.credentialId);
  const sessionsRevoked = await endSessions(tx, accountId, ids, change, actorOf(context));
  const happening = { type: `account.${change}`, actor: actorOf(context) } as const;
  await record(tx, accountId, accountId, { ...happening, data: { ...more, sessionsRevoked } });
  return sessionsRevoked;
}

/** Ends the open sessions in the families of these. @returns how many ended */
export async function endSessions(
  tx: Transaction,
  accountId: string,
  ids: readonly string[],
  reason: 'revoked' | 'session_limit' | 'secret_rotated' | LoginChange,
  actor: Actor,
): Promise<number> {
  const ended = await END_SESSIONS.all(tx, [accountId, ids]);
  const happening = { type: 'session.revoked', actor, data: { reason } } as const;
  await recordAll(
    tx,
    ended.map(({ id: subject }) => ({ accountId, subject, ...happening })),
  );
  tx.changedAll(ended.map(({ id }) => ({ kind: 'credential', accountId, id }) as const));
  return ended.length;
}
