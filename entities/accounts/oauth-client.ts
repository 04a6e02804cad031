/** OAuth clients (RFC 7591). A machine exchanges the client's secret for access tokens; the table holds its digest. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { entity, nullable, type RowOf } from '../database/table.ts';
import { DEPOSIT_ADDRESS_SECONDS } from '../payments/top-up.ts';
import { isWayInSql, LIMITS } from './credential.ts';

export const GRANT_TYPES = ['client_credentials', 'refresh_token'] as const;
export const AUTH_METHODS = ['client_secret_basic', 'client_secret_post'] as const;

/** Information that the client gives about itself. The service stores and shows it, and decides nothing by it. */
export interface ClientMetadata {
  clientName?: string | null | undefined;
  clientUri?: string | null | undefined;
  logoUri?: string | null | undefined;
  contacts?: string[] | null | undefined;
  softwareId?: string | null | undefined;
  softwareVersion?: string | null | undefined;
}

export const OauthClient = entity('oauth_client', {
  id: column.key(),
  accountId: column.text(),
  secretDigest: column.bytes(),
  /** The widest scope that its tokens can have. */
  scope: column.text(),
  grantTypes: column.textArray(),
  /** As registered; every client may use both methods. */
  authMethod: column.oneOf(...AUTH_METHODS),
  /** Stored, but unused: the service redirects no browser. */
  redirectUris: column.textArray(),
  metadata: column.json<ClientMetadata>(),
  ...LIMITS,
  createdAt: column.now(),
  /** When the client last got a token, with the precision of a minute. */
  lastUsedAt: nullable(column.timestamp()),
});
export type OauthClient = RowOf<typeof OauthClient>;

/** A deleted client. Uses of it stand in the log of its owner. */
export const EndedClient = entity('ended_client', {
  id: column.key(),
  accountId: column.text(),
  endedAt: column.now(),
});

/** Notes that the client $1 with the secret of the digest $2 gets a token. No row: it may get none any more. */
export const NOTE_CLIENT_USE = statement({ isWayIn: column.boolean() })`
  update oauth_client set last_used_at = date_trunc('minute', now())
    where id = $1 and secret_digest = $2 and (expires_at is null or expires_at > now())
    returning ${isWayInSql('oauth_client')} as is_way_in`;

/** Replaces the secret of the client $1 by the digest $2. $3 the digest before, or null for any. No row: it is another. */
export const REPLACE_SECRET = statement({ id: column.key() })`
  update oauth_client set secret_digest = $2::bytea
    where id = $1 and ($3::bytea is null or secret_digest = $3) returning id`;
/** Whether the account $1 has a password, or a client beside $2 that depends on no other credential. */
export const HAS_OTHER_WAY_IN = statement({ other: column.boolean() })`
  select exists (select from account where id = $1 and password_hash is not null)
    or exists (select from oauth_client where account_id = $1 and id <> $2 and limited_by is null) as other`;
/** The clients that are ways into the account $1, which has no password. */
export const FIND_WAYS_IN = statement({ id: column.key() })`
  select id from oauth_client where account_id = $1 and ${isWayInSql('oauth_client')}`;
/** The clients that are the only ways into their accounts. */
export const LIST_WAYS_IN = statement({ id: column.key() })`
  select id from oauth_client where ${isWayInSql('oauth_client')} order by id`;

const USED_AT = 'greatest(created_at, last_used_at)';
/**
 * Seconds since the client $1 last got a token, or was registered. It is untried if a stranger registered it, which made its
 * account, and it never got a token.
 */
export const FIND_UNUSED_SECONDS = statement({ seconds: column.real(), untried: column.boolean() })`
  select extract(epoch from now() - ${USED_AT})::float as seconds, last_used_at is null and exists (
    select from account where account.id = account_id and kind = 'AGENT' and account.created_at = oauth_client.created_at) as untried
  from oauth_client where id = $1`;
/**
 * Whether the account $1 needs its client $2. It does with money, with payments that may come or go, and with servers that
 * exist. The operator may give it unmatched payments, and a chain may bring reversed ones back. Credentials
 * that depend on the client need it, too.
 */
export const IS_NEEDED = statement({ needed: column.boolean() })`
  select exists (select from balance where account_id = $1 and available_micros + held_micros + withheld_micros > 0)
    or exists (select from server where account_id = $1 and status not in ('FAILED', 'DELETED'))
    or exists (select from top_up where account_id = $1 and created_at > now() - interval '${DEPOSIT_ADDRESS_SECONDS} seconds')
    or exists (select from payment where account_id = $1
      and status in ('OBSERVED', 'CONFIRMING', 'CREDITED', 'ASSIGNED', 'UNMATCHED', 'REVERSED'))
    or exists (select from api_key where account_id = $1 and limited_by = $2 and status = 'ACTIVE')
    or exists (select from oauth_client where account_id = $1 and limited_by = $2) as needed`;
/** Locks the client $1, if it was unused for $2 seconds. Its next use then waits, and fails once the client is deleted. */
export const LOCK_UNUSED_CLIENT = statement({ id: column.key() })`
  select id from oauth_client where id = $1 and ${USED_AT} <= now() - make_interval(secs => $2) for update`;
