/** Sessions: pairs of tokens, of which the table holds only digests. */
import { type Account, READ_LIMITS } from '../../../entities/accounts/account.ts';
import {
  ACCESS_TOKEN_SECONDS,
  FIND_OPEN_SESSIONS,
  INSERT_SESSION,
  REFRESH_FAMILY_SECONDS,
  REFRESH_TOKEN_SECONDS,
  Session,
} from '../../../entities/accounts/credential.ts';
import { find } from '../../../entities/database/table.ts';
import type { Queryable, Transaction } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import { SECONDS_TO_AN_HOUR_OLD_SESSION } from '../../../entities/history/audit.ts';
import { record } from '../../../entities/history/record.ts';
import { idFloor, newId } from '../../../entities/ids.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { IS_ACTIVE_PAYER } from '../../../entities/payments/payer.ts';
import { digest, mintCredential } from '../../../entities/secrets.ts';
import { actorOf, type Context } from '../../context.ts';
import { limitReached } from '../../errors.ts';
import { endSessions } from './sessions.ts';

/** A pair of tokens. The service shows it once, and cannot read it again. */
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

/** The origin of a session; `oauth:` precedes the id of the client. */
export type SessionSource = 'register' | 'login' | 'recovery' | `oauth:${string}`;

/** Finds the session of an access token or a refresh token. */
export const findSession = (db: Queryable, kind: 'at' | 'rt', token: string): Promise<Session | undefined> =>
  find(db, Session, { [kind === 'at' ? 'accessDigest' : 'refreshDigest']: digest(token) });

interface Opening {
  scope?: string;
  endsBy?: Date | null;
  isLogin?: boolean;
}

/**
 * Opens a session. At the limit of the account or of the client, the session that was unused for longest ends. A login may
 * end any session, and an OAuth client only its own.
 * @param isLogin whether the session is a login; by default, those of OAuth clients are none
 * @throws ApiError session_limit_reached if there is no session to end, or rate_limited for an account that never paid or is suspended
 */
export async function openSession(
  context: Context,
  tx: Transaction,
  accountId: string,
  source: SessionSource,
  { scope = 'full', endsBy, isLogin = !isOfClient(source) }: Opening = {},
): Promise<TokenPair> {
  await lockAccount(tx, accountId);
  await refuseHaste(context, tx, accountId, source, isLogin);
  await makeRoom(context, tx, accountId, source, isLogin);
  const tokens = await insertSession(context, tx, { accountId, source, scope, endsBy });
  const actor = { type: 'access_token', id: tokens.tokenId, name: source, requestId: context.requestId } as const;
  await record(tx, accountId, tokens.tokenId, { type: 'session.created', actor });
  return tokens;
}

const isOfClient = (source: SessionSource): boolean => source.startsWith('oauth:');
/** A bit more than an hour, because the clocks of processes differ. */
const HASTE_MS = 62 * 60_000;

/**
 * Each session leaves entries that stay, and a registration is free. All OAuth clients count together, apart from logins. So
 * no client keeps the owner out.
 */
async function refuseHaste(
  { limits }: Context,
  tx: Transaction,
  accountId: string,
  source: SessionSource,
  isLogin: boolean,
): Promise<void> {
  const most = limits.unpaidSessionsPerHour;
  const client = isLogin ? source : 'oauth:%';
  // A thief of the password logs in, but recovers nothing. So logins keep the owner from no recovery.
  const group = source === 'recovery' ? source : isOfClient(source) ? client : null;
  const counted = [accountId, group, most, idFloor('aud', Date.now() - HASTE_MS)];
  const seconds = (await SECONDS_TO_AN_HOUR_OLD_SESSION.first(tx, counted))?.seconds ?? 0;
  if (seconds <= 0 || (await IS_ACTIVE_PAYER.first(tx, [accountId]))!.active) return;
  const detail = `An account that never paid or is suspended opens ${most} sessions in an hour. Use one of them, pay, or wait.`;
  throw new ApiError('rate_limited', detail, { retryAfter: Math.ceil(seconds) });
}

/** The most sessions of one OAuth client, so that it cannot take all those of the account. */
const CLIENT_SESSIONS_MAX = 25;

async function makeRoom(
  context: Context,
  tx: Transaction,
  accountId: string,
  source: SessionSource,
  isLogin: boolean,
): Promise<void> {
  const open = await FIND_OPEN_SESSIONS.all(tx, [accountId]);
  const own = open.filter((session) => session.source === source);
  const above = isOfClient(source) ? own.length + 1 - CLIENT_SESSIONS_MAX : 0;
  const endable = isLogin && above <= 0 ? open : own;
  // A login has no viewer yet, so the context lacks the limits of the account.
  const { sessions } = { ...context.limits, ...(await READ_LIMITS.first(tx, [accountId]))?.limits };
  const tooMany = Math.max(above, open.length + 1 - sessions);
  if (tooMany <= 0) return;
  if (endable.length < tooMany) throw limitReached('session_limit_reached', sessions);
  const ids = endable.slice(0, tooMany).map(({ id }) => id);
  await endSessions(tx, accountId, ids, 'session_limit', actorOf(context));
}

interface NewSession {
  accountId: string;
  source: string;
  scope: string;
  /** When the session and all later ones of its family end at the latest. */
  endsBy?: Date | null | undefined;
  /** The session whose refresh token the client spent for this one. */
  rotated?: Pick<Session, 'familyId' | 'familyExpiresAt'>;
}

/** Writes a session. The caller has checked the limit, or rotates another session. */
export async function insertSession(
  { userAgent }: Context,
  tx: Transaction,
  { accountId, source, scope, endsBy = null, rotated }: NewSession,
): Promise<TokenPair> {
  const id = newId('tok');
  const accessToken = mintCredential('at');
  const refreshToken = mintCredential('rt');
  const inserted = await INSERT_SESSION.first(tx, [
    ...[id, accountId, rotated?.familyId ?? id, source, userAgent?.slice(0, 200) ?? null, scope],
    ...[digest(accessToken), digest(refreshToken), rotated?.familyExpiresAt ?? null],
    ...[ACCESS_TOKEN_SECONDS, REFRESH_TOKEN_SECONDS, REFRESH_FAMILY_SECONDS, endsBy],
  ]);
  return { tokenId: id, accessToken, refreshToken, scope, ...inserted! };
}
