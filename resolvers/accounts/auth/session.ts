/** Sessions: a pair of tokens, of which only digests are kept. */

import type { Account } from '../../../entities/accounts/account.ts';
import {
  ACCESS_TOKEN_SECONDS,
  REFRESH_FAMILY_SECONDS,
  REFRESH_TOKEN_SECONDS,
  Session,
} from '../../../entities/accounts/credential.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import { record } from '../../../entities/history/record.ts';
import { newId } from '../../../entities/ids.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { digest, mintCredential } from '../../../entities/secrets.ts';
import type { Context } from '../../context.ts';
import { endSessions, OPEN_SESSION } from './sessions.ts';

/** Shown once; afterwards nobody can read the tokens again. */
export interface TokenPair {
  tokenId: string;
  accessToken: string;
  expiresIn: number;
  refreshToken: string;
  refreshExpiresIn: number;
  scope: string;
}

export interface LoggedIn {
  account: Account;
  tokens: TokenPair;
}

/** What a session comes from; `oauth:` is followed by the id of the client. */
export type SessionSource = 'register' | 'login' | `oauth:${string}`;

/**
 * Opens a session. Where the account has as many as it may have, the one that was unused for longest ends: a login may
 * end any, an OAuth client only its own.
 * @throws ApiError session_limit_reached if none may be ended
 */
export async function openSession(
  context: Context,
  tx: Transaction,
  accountId: string,
  source: SessionSource,
  scope = 'full',
): Promise<TokenPair> {
  await lockAccount(tx, accountId);
  await makeRoom(context, tx, accountId, source);
  const tokens = await insertSession(context, tx, { accountId, source, scope });
  const actor = { type: 'access_token', id: tokens.tokenId, name: source, requestId: context.requestId } as const;
  await record(tx, accountId, tokens.tokenId, { type: 'session.created', actor });
  return tokens;
}

async function makeRoom(context: Context, tx: Transaction, accountId: string, source: SessionSource): Promise<void> {
  const open = await tx.query<{ id: string; source: string }>(
    `select id, source from session where account_id = $1 and ${OPEN_SESSION} order by greatest(created_at, last_used_at), id`,
    [accountId],
  );
  const tooMany = open.length + 1 - context.limits.sessions;
  if (tooMany <= 0) return;
  const endable = open.filter((session) => !source.startsWith('oauth:') || session.source === source);
  if (endable.length < tooMany) throw new ApiError('session_limit_reached');
  const ids = endable.slice(0, tooMany).map(({ id }) => id);
  await endSessions(context, tx, accountId, ids, 'session_limit');
}

interface NewSession {
  accountId: string;
  source: string;
  scope: string;
  /** The session whose refresh token was spent for this one. */
  rotated?: Pick<Session, 'familyId' | 'familyExpiresAt'>;
}

/** Writes the session; that there is room, or that another was rotated away, is the caller's to know. */
export async function insertSession(
  { userAgent }: Context,
  tx: Transaction,
  { accountId, source, scope, rotated }: NewSession,
): Promise<TokenPair> {
  const id = newId('tok');
  const accessToken = mintCredential('at');
  const refreshToken = mintCredential('rt');
  const now = Date.now();
  const familyEnds = rotated?.familyExpiresAt.getTime() ?? now + REFRESH_FAMILY_SECONDS * 1000;
  const ends = (seconds: number) => new Date(Math.min(now + seconds * 1000, familyEnds));
  const [expiresAt, refreshExpiresAt] = [ends(ACCESS_TOKEN_SECONDS), ends(REFRESH_TOKEN_SECONDS)];
  const secondsUntil = (time: Date) => Math.floor((time.getTime() - now) / 1000);
  await tx.manager.insert(Session, {
    id,
    accountId,
    familyId: rotated?.familyId ?? id,
    source,
    userAgent: userAgent?.slice(0, 200) ?? null,
    scope,
    accessDigest: digest(accessToken),
    refreshDigest: digest(refreshToken),
    expiresAt,
    refreshExpiresAt,
    familyExpiresAt: new Date(familyEnds),
  });
  return {
    tokenId: id,
    accessToken,
    expiresIn: secondsUntil(expiresAt),
    refreshToken,
    refreshExpiresIn: secondsUntil(refreshExpiresAt),
    scope,
  };
}
