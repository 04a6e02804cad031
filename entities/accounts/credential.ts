/** Credentials: sessions (an access token and its refresh token) and API keys. The tables hold only digests. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, entity, nullable, type Row, type RowOf } from '../database/table.ts';
import type { Lifecycle } from '../history/lifecycle.ts';
import type { AccountLimits } from './limits.ts';

/** A scope of a credential. `full` includes all scopes; `servers` and `billing` each include `read`. */
export const SCOPES = ['read', 'servers', 'billing', 'full'] as const;
export type Scope = (typeof SCOPES)[number];
/** A scope, or `public` for a root field without one, or `operator`. */
export type RequiredScope = Scope | 'public' | 'operator';

const HELD: ReadonlyMap<string, readonly RequiredScope[]> = new Map([
  ['read', ['read']],
  ['servers', ['read', 'servers']],
  ['billing', ['read', 'billing']],
  ['full', ['read', 'servers', 'billing', 'full']],
  ['operator', ['read', 'servers', 'billing', 'full', 'operator']],
]);

/** Returns the scopes of a scope string such as "servers billing", with all included scopes. */
export const expandScopes = (scope: string): ReadonlySet<RequiredScope> =>
  new Set<RequiredScope>(['public', ...scope.split(' ').flatMap((one) => HELD.get(one) ?? [])]);

export const ACCESS_TOKEN_SECONDS = 24 * 3600;
export const REFRESH_TOKEN_SECONDS = 30 * 24 * 3600;
export const REFRESH_FAMILY_SECONDS = 90 * 24 * 3600;

export const Session = entity('session', {
  id: column.key(),
  accountId: column.text(),
  /** The id of the first session after a login. Rotation hands it on to each next session. */
  familyId: column.text(),
  /** `register`, `login` or `oauth:<client id>`. */
  source: column.text(),
  userAgent: nullable(column.text()),
  scope: column.text(),
  accessDigest: column.bytes(),
  refreshDigest: nullable(column.bytes()),
  expiresAt: column.timestamp(),
  refreshExpiresAt: column.timestamp(),
  familyExpiresAt: column.timestamp(),
  createdAt: column.now(),
  lastUsedAt: nullable(column.timestamp()),
  revokedAt: nullable(column.timestamp()),
  /** When the client spent its refresh token, which also revoked the session. */
  rotatedAt: nullable(column.timestamp()),
});
export type Session = RowOf<typeof Session>;

/** A condition: a session is open while one of its tokens is good. */
export const IS_OPEN = `revoked_at is null
  and (expires_at > now() or (refresh_digest is not null and refresh_expires_at > now()))`;

/**
 * A condition: an OAuth client is the way into its account, as the password is elsewhere. The account has no password, and
 * the client depends on no other credential.
 */
export const isWayInSql = (client: string): string => `(${client}.limited_by is null
  and exists (select from account where account.id = ${client}.account_id and password_hash is null))`;
/** A condition: a session is a login, of a person or of such a client. */
export const isLoginSql = (session: string): string => `(${session}.source not like 'oauth:%' or exists (
    select from oauth_client as way where way.id = substr(${session}.source, 7) and ${isWayInSql('way')}))`;
/** When the login of a session was. A refresh makes it no newer. */
const beginSql = (session: string) => `(select created_at from session as first where first.id = ${session}.family_id)`;

/** A page of the open sessions of the account $1, newest first, before the id $2, at most $3. */
export const LIST_OPEN_SESSIONS = statement(Session.columns, { replans: true })`
  select ${columnsOf(Session)} from session
    where account_id = $1 and ($2::text is null or id < $2) and ${IS_OPEN} order by id desc limit $3`;
/** The changes of how an account logs in. The event of each has its name after `account.`. */
export const LOGIN_CHANGES = [
  'password_changed',
  'password_reset',
  'recovered',
  'totp_enabled',
  'totp_disabled',
  'totp_reset',
] as const;
/** A change of the login since the sessions began whose access tokens have the digests $1. */
export const FIND_LOGIN_CHANGE = statement({ id: column.key() })`
  select event.id from session join event on event.account_id = session.account_id and subject = session.account_id
    where access_digest = any($1) and event.created_at > session.created_at
      and type in (${LOGIN_CHANGES.map((change) => `'account.${change}'`).join(', ')}) limit 1`;
/** The open sessions of the account $1, those first that were unused for longest. */
export const FIND_OPEN_SESSIONS = statement({ id: column.key(), source: column.text(), isLogin: column.boolean() })`
  select id, source, ${isLoginSql('session')} as is_login from session where account_id = $1 and ${IS_OPEN} order by greatest(created_at, last_used_at), id`;
/**
 * Writes a session, and returns the seconds of its tokens. $1 to $8 are columns. $9 is the end of its family; null for a new
 * family. $10 to $12 are the most seconds of the access token, the refresh token and a new family. $13 is the latest
 * end of a new family, or null.
 */
export const INSERT_SESSION = statement({ expiresIn: column.int(), refreshExpiresIn: column.int() })`
  insert into session (id, account_id, family_id, source, user_agent, scope, access_digest, refresh_digest,
      family_expires_at, expires_at, refresh_expires_at)
    select $1, $2, $3, $4, $5, $6, $7::bytea, $8::bytea, ends,
      least(ends, now() + make_interval(secs => $10)), least(ends, now() + make_interval(secs => $11))
    from (select coalesce($9::timestamptz, least($13::timestamptz, now() + make_interval(secs => $12))) as ends) as family
    returning floor(extract(epoch from expires_at - created_at))::int as expires_in,
      floor(extract(epoch from refresh_expires_at - created_at))::int as refresh_expires_in`;
/** The session $1, and whether its refresh token has expired. */
export const READ_SESSION = statement({ ...Session.columns, isOver: column.boolean() })`
  select ${columnsOf(Session)}, refresh_expires_at <= now() as is_over from session where id = $1`;
/** Ends the session $1, whose refresh token was spent. Its row stays to detect a second use, and needs no header for that. */
export const ROTATE_SESSION = statement({})`
  update session set rotated_at = now(), revoked_at = now(), user_agent = null where id = $1`;
/**
 * Whether the login $1 may end the session $2 of the account $3. It may end all that are no logins, and logins that are not
 * newer. Null as $1: the caller has no login.
 */
export const MAY_END_SESSION = statement({ allowed: column.boolean() })`
  select not ${isLoginSql('session')} or coalesce(${beginSql('session')} <=
      (select ${beginSql('own')} from session as own where id = $1 and account_id = $3), false) as allowed
    from session where id = $2 and account_id = $3`;
/** Ends the open sessions of the account $1 in the families of the sessions $2. A refresh replaces a session. */
export const END_SESSIONS = statement({ id: column.key() })`
  update session set revoked_at = now() where account_id = $1 and ${IS_OPEN}
    and family_id in (select family_id from session where account_id = $1 and id = any($2::text[])) returning id`;
/** Ends the family $1 of the account $2. */
export const END_FAMILY = statement({ id: column.key() })`
  update session set revoked_at = now() where family_id = $1 and account_id = $2 and revoked_at is null returning id`;
/** Removes the refresh token of the session $1. */
export const DROP_REFRESH_TOKEN = statement({})`
  update session set refresh_digest = null, refresh_expires_at = expires_at, family_expires_at = expires_at where id = $1`;

/** The limits of an API key or an OAuth client. The credentials that it creates have them, too. */
export const LIMITS = {
  /** Networks in the form `address/bits`; none: all networks. */
  ipAllowlist: column.textArray(),
  /** Micro-USD in a calendar month (UTC). */
  spendLimitMicros: nullable(column.bigint()),
  expiresAt: nullable(column.timestamp()),
  /** The OAuth client or the API key with limits that created it. It ends with that one, and spends within its limit. */
  limitedBy: nullable(column.text()),
};
export type Limits = Row<typeof LIMITS>;

export const ApiKey = entity('api_key', {
  id: column.key(),
  accountId: column.text(),
  name: column.text(),
  scope: column.text(),
  /** The first 13 characters, to recognise the key by. */
  prefix: column.text(),
  digest: column.bytes(),
  status: column.oneOf('ACTIVE', 'EXPIRED', 'REVOKED'),
  ...LIMITS,
  createdAt: column.now(),
  lastUsedAt: nullable(column.timestamp()),
  revokedAt: nullable(column.timestamp()),
});
export type ApiKey = RowOf<typeof ApiKey>;

export const API_KEY_LIFECYCLE: Lifecycle<ApiKey, ApiKey['status']> = {
  table: ApiKey,
  key: 'id',
  state: 'status',
  transitions: { ACTIVE: ['REVOKED', 'EXPIRED'], REVOKED: [], EXPIRED: [] },
};

/** The status by the clock: the worker records an expiry a moment later. */
const STATUS_NOW = `case when status = 'ACTIVE' and expires_at <= now() then 'EXPIRED' else status end`;

/** The API key $1 of the account $2. */
export const FIND_OWN_API_KEY = statement(ApiKey.columns)`
  select ${columnsOf(ApiKey, 'api_key', ['status'])}, ${STATUS_NOW} as status from api_key where id = $1 and account_id = $2`;
/** The seconds until the API key $1 expires. */
export const FIND_EXPIRY_SECONDS = statement({ seconds: nullable(column.real()) })`
  select extract(epoch from expires_at - now())::float8 as seconds from api_key where id = $1`;
/** How many active keys the account $1 has. */
export const COUNT_ACTIVE_API_KEYS = statement({ keys: column.int() })`
  select count(*)::int as keys from api_key
    where account_id = $1 and status = 'ACTIVE' and ${STATUS_NOW} = 'ACTIVE'`;
/** Keys of the account $1 (null: all) with ids below $2, by a condition; the newest $4. */
const keysWith = (condition: string) => `
  (select * from api_key where ($1::text is null or account_id = $1) and ($2::text is null or id < $2) and ${condition}
    order by id desc limit $4)`;
/**
 * A page of API keys, newest first. $1 account (null: all), $2 id of the page before, $3 statuses (null: all), $4 limit. Each
 * part has one stored status, so that an index finds it. An account has only a few keys that the worker has not recorded yet.
 */
export const LIST_API_KEYS = statement(ApiKey.columns, { replans: true })`
  select ${columnsOf(ApiKey, 'api_key', ['status'])}, ${STATUS_NOW} as status from (
    ${keysWith(`($3::text[] is null or (status = any($3) and ${STATUS_NOW} = status))`)}
    union all ${keysWith(`'EXPIRED' = any($3) and status = 'ACTIVE' and expires_at <= now()`)}) as api_key
  order by id desc limit $4`;

/** A use counts with the precision of a minute. */
const NOT_NOTED = (row: string) => `(${row}.last_used_at is null or ${row}.last_used_at < date_trunc('minute', now()))`;
/**
 * CTEs that find a credential by its digest $1, and note its use. A refused use does not count. The caller must note that of
 * a credential with networks, after it has checked the address.
 */
const used = (table: string, digest: string, also = 'true') => `
  with found as (select * from ${table} where ${digest} = $1),
    used as (
      update ${table} set last_used_at = date_trunc('minute', now()) from found
      where ${table}.id = found.id and found.revoked_at is null and (found.expires_at is null or found.expires_at > now())
        and ${also} and ${NOT_NOTED('found')})`;
const CREDENTIAL = {
  accountId: column.text(),
  credentialId: column.key(),
  /** The name of an API key, or the source of a session. */
  name: column.text(),
  scope: column.text(),
  expiresAt: nullable(column.timestamp()),
  revokedAt: nullable(column.timestamp()),
  /** Whether it is a login. */
  isLogin: column.boolean(),
  /** The API key itself, or the OAuth client of a token; null for a token of a person. The limits are those of the holder. */
  holder: nullable(column.text()),
  ipAllowlist: column.textArray(),
  spendLimitMicros: nullable(column.bigint()),
  /** When the holder expires; its tokens expire earlier. */
  holderExpiresAt: nullable(column.timestamp()),
  limitedBy: nullable(column.text()),
  /** The name under which its calls count: all tokens of a refresh family have one. */
  family: column.text(),
  /** Why its account is suspended; null: it is not. */
  suspendedFor: nullable(column.text()),
  /** The own limits of its account. */
  accountLimits: column.json<Partial<AccountLimits>>(),
};
/** Whether a refresh ended the session. */
const ROTATION = { isRotated: column.boolean() };
/** The stored state of an API key. */
const STATUS = { status: ApiKey.columns.status };
/** A credential, as a request finds it. */
export type FoundCredential = Row<typeof CREDENTIAL> & Partial<Row<typeof ROTATION> & Row<typeof STATUS>>;

const OF_ACCOUNT = `account.suspended_for, account.limits as account_limits`;
const ITS_ACCOUNT = 'join account on account.id = found.account_id';

/** The API key with the digest $1. */
export const FIND_API_KEY = statement({ ...CREDENTIAL, ...STATUS })`
  ${used('api_key', 'digest', `found.status = 'ACTIVE' and cardinality(found.ip_allowlist) = 0`)}
  select account_id, found.id as credential_id, name, scope, expires_at, revoked_at, status, false as is_login, found.id as holder, ip_allowlist,
    spend_limit_micros, expires_at as holder_expires_at, limited_by, found.id as family, ${OF_ACCOUNT} from found ${ITS_ACCOUNT}`;
const noteUse = (table: string) => statement({})`
  update ${table} set last_used_at = date_trunc('minute', now()) where id = $1 and ${NOT_NOTED(table)}`;
/** Note a use of the API key or the session $1. */
export const NOTE_USE = { api_key: noteUse('api_key'), access_token: noteUse('session') };
/** Whether the OAuth client of a session has no networks. */
const FROM_ANYWHERE = `not exists (
        select from oauth_client where id = substr(found.source, 7) and cardinality(ip_allowlist) > 0)`;
/** The session whose access token has the digest $1. */
export const FIND_SESSION = statement({ ...CREDENTIAL, ...ROTATION })`
  ${used('session', 'access_digest', FROM_ANYWHERE)}
  select found.account_id, found.id as credential_id, source as name, found.scope, found.expires_at, revoked_at,
    ${isLoginSql('found')} as is_login, client.id as holder, coalesce(client.ip_allowlist, '{}') as ip_allowlist, client.spend_limit_micros,
    client.expires_at as holder_expires_at, client.limited_by, family_id as family, ${OF_ACCOUNT},
    rotated_at is not null as is_rotated
  from found ${ITS_ACCOUNT} left join oauth_client client on source like 'oauth:%' and client.id = substr(source, 7)`;
/** The account of the session $1, and whether its login is younger than $2 seconds. A login begins the family of a session. */
export const FIND_LOGIN = statement({
  accountId: column.text(),
  /** The name under which attempts at the second factor count. */
  name: column.text(),
  totpEnabled: column.boolean(),
  isRecent: column.boolean(),
})`
  select account.id as account_id, coalesce(email, account.id) as name, totp_enabled,
    family_expires_at > now() + make_interval(secs => ${REFRESH_FAMILY_SECONDS} - $2::float8) as is_recent
  from session join account on account.id = session.account_id where session.id = $1`;
/** A condition: the API key or session of the id still works. */
export const isOpenCredentialSql = (id: string): string => `(
  exists (select from api_key where id = ${id} and status = 'ACTIVE')
    or exists (select from session where id = ${id} and revoked_at is null))`;
/** Whether the API key or session $1 still works, and why the account $2 is suspended; null: it is not. */
export const READ_STANDING = statement({ open: column.boolean(), suspendedFor: nullable(column.text()) })`
  select ${isOpenCredentialSql('$1::text')} as open, (select suspended_for from account where id = $2) as suspended_for`;

/** How long the service can still look up an ended credential. */
export const ENDED_CREDENTIAL_DAYS = 30;
/** Deletes credentials that ended long ago. $1 their ids are smaller, $2 at most so many. */
const deleteEnded = (table: string, endedAt: string, also = 'true') =>
  statement({ id: column.key() })`
  delete from ${table} where id in (
      select id from ${table} where id < $1 and ${endedAt} < now() - interval '${ENDED_CREDENTIAL_DAYS} days' and ${also}
      order by id limit $2) returning id`;
/** Keeps a spent refresh token while its family lives, because a second use ends the family. */
export const DELETE_ENDED_SESSIONS = deleteEnded(
  'session',
  'least(revoked_at, greatest(expires_at, refresh_expires_at))',
  `(rotated_at is null or family_expires_at < now()
      or not exists (select from session as one where one.family_id = session.family_id and ${IS_OPEN}))`,
);
export const DELETE_ENDED_API_KEYS = deleteEnded('api_key', 'least(revoked_at, expires_at)');
export const DELETE_ENDED_CLIENTS = deleteEnded('ended_client', 'ended_at');
