/** What opens doors: sessions (an access token and its refresh token) and API keys. Only digests are stored. */
import {
  bigint,
  bytes,
  entity,
  key,
  now,
  nullable,
  oneOf,
  type RowOf,
  text,
  textArray,
  timestamp,
} from '../database/table.ts';

/** A scope that a credential can have. `full` holds all; `servers` and `billing` hold `read`, not one another. */
export const SCOPES = ['read', 'servers', 'billing', 'full'] as const;
export type Scope = (typeof SCOPES)[number];
/** What a root field asks for: a scope, nothing, or to be the operator. */
export type RequiredScope = Scope | 'public' | 'operator';

const HELD: ReadonlyMap<string, readonly RequiredScope[]> = new Map([
  ['read', ['read']],
  ['servers', ['read', 'servers']],
  ['billing', ['read', 'billing']],
  ['full', ['read', 'servers', 'billing', 'full']],
  ['operator', ['read', 'servers', 'billing', 'full', 'operator']],
]);

/** The scopes that a scope string such as "servers billing" holds, those included by others among them. */
export const expandScopes = (scope: string): ReadonlySet<RequiredScope> =>
  new Set<RequiredScope>(['public', ...scope.split(' ').flatMap((one) => HELD.get(one) ?? [])]);

export const ACCESS_TOKEN_SECONDS = 24 * 3600;
export const REFRESH_TOKEN_SECONDS = 30 * 24 * 3600;
export const REFRESH_FAMILY_SECONDS = 90 * 24 * 3600;

export const Session = entity(
  'session',
  {
    id: key(),
    accountId: text(),
    /** Shared by all sessions that rotation made of one login: the id of the first. */
    familyId: text(),
    /** `register`, `login` or `oauth:<client id>`. */
    source: text(),
    userAgent: nullable(text()),
    scope: text(),
    accessDigest: bytes(),
    refreshDigest: nullable(bytes()),
    expiresAt: timestamp(),
    refreshExpiresAt: timestamp(),
    familyExpiresAt: timestamp(),
    createdAt: now(),
    lastUsedAt: nullable(timestamp()),
    revokedAt: nullable(timestamp()),
    /** When its refresh token was spent; it is revoked at that moment, too. */
    rotatedAt: nullable(timestamp()),
  },
  [
    { name: 'session_access', columns: ['accessDigest'], unique: true },
    { name: 'session_refresh', columns: ['refreshDigest'], unique: true },
    { name: 'session_account', columns: ['accountId', 'id'] },
    { name: 'session_family', columns: ['familyId'] },
  ],
);
export type Session = RowOf<typeof Session>;

export const ApiKey = entity(
  'api_key',
  {
    id: key(),
    accountId: text(),
    name: text(),
    scope: text(),
    /** The first 13 characters, to recognise the key by. */
    prefix: text(),
    digest: bytes(),
    status: oneOf('ACTIVE', 'EXPIRED', 'REVOKED'),
    ipAllowlist: textArray(),
    /** Micro-USD in a calendar month (UTC). */
    spendLimitMicros: nullable(bigint()),
    createdAt: now(),
    lastUsedAt: nullable(timestamp()),
    expiresAt: nullable(timestamp()),
    revokedAt: nullable(timestamp()),
  },
  [
    { name: 'api_key_digest', columns: ['digest'], unique: true },
    { name: 'api_key_account', columns: ['accountId', 'id'] },
  ],
);
export type ApiKey = RowOf<typeof ApiKey>;
