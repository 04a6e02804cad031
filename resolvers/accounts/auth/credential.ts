/**
 * From a credential to a viewer. Valid ones are cached, so a request costs no query; a revocation drops them in this
 * process at once, and in the others through the bus.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import { expandScopes } from '../../../entities/accounts/credential.ts';
import type { Change } from '../../../entities/database/bus.ts';
import type { Database } from '../../../entities/database/database.ts';
import { ApiError } from '../../../entities/errors.ts';
import { credentialKind, digest } from '../../../entities/secrets.ts';
import type { Viewer } from '../../context.ts';
import { networkCheck } from './networks.ts';

/** How long a cached credential is believed without a look at the database. */
const CACHE_SECONDS = 30;
const CACHE_MAX = 10_000;

interface Cached {
  viewer: Viewer;
  /** Whether it may be used from an address. */
  allows: (address: string | null) => boolean;
  /** Milliseconds since the epoch. */
  believedUntil: number;
}

interface Found {
  accountId: string;
  credentialId: string;
  name: string | null;
  scope: string;
  expiresAt: Date | null;
  revokedAt: Date | null;
  suspendedFor: string | null;
  /** Of API keys only, as the limit is. */
  ipAllowlist?: string[];
  spendLimitMicros?: bigint | null;
}

export class Authenticator {
  readonly #db: Database;
  readonly #operatorDigest: Buffer;
  /** By SHA-256, so that no credential stays in memory. */
  readonly #cache = new Map<string, Cached>();
  #revocations = 0;

  constructor(db: Database, operatorToken: string) {
    this.#db = db;
    this.#operatorDigest = digest(operatorToken);
    db.bus.listen((change) => {
      if (change.kind !== 'credential') return;
      this.#revocations++;
      this.#forget(change);
    });
  }

  /**
   * The viewer of an Authorization header (RFC 6750), or null without one. The address is looked at, and never kept.
   * @throws ApiError invalid_, expired_ or revoked_credential, or ip_not_allowed
   */
  async fromHeader(authorization: string | undefined, address: string | null): Promise<Viewer | null> {
    if (authorization === undefined) return null;
    const credential = /^Bearer +([^\s]+) *$/i.exec(authorization)?.[1];
    if (!credential)
      throw new ApiError('invalid_credential', 'Send the credential as "Authorization: Bearer <credential>".');
    const { viewer, allows } = await this.#find(credential);
    if (!allows(address)) throw new ApiError('ip_not_allowed');
    return viewer;
  }

  /** @throws ApiError invalid_, expired_ or revoked_credential */
  async #find(credential: string): Promise<Omit<Cached, 'believedUntil'>> {
    const cacheKey = hash('sha256', credential, 'base64');
    const cached = this.#cache.get(cacheKey);
    if (cached && cached.believedUntil > Date.now() && this.#db.bus.connected) return cached;
    this.#cache.delete(cacheKey);
    const kind = credentialKind(credential);
    if (kind === 'op' && timingSafeEqual(digest(credential), this.#operatorDigest))
      return { viewer: OPERATOR, allows: () => true };
    if (kind !== 'live' && kind !== 'at') throw new ApiError('invalid_credential');
    const revocations = this.#revocations;
    const [found] = await this.#db.query<Found>(kind === 'live' ? FIND_API_KEY : FIND_SESSION, [digest(credential)]);
    if (!found) throw new ApiError('invalid_credential');
    if (found.revokedAt) throw new ApiError('revoked_credential');
    if (found.expiresAt && found.expiresAt.getTime() <= Date.now()) throw new ApiError('expired_credential');
    const known = { viewer: viewerOf(kind, found), allows: networkCheck(found.ipAllowlist ?? []) };
    // What was read before a revocation came may be out of date.
    if (revocations === this.#revocations) this.#remember(cacheKey, known);
    return known;
  }

  #remember(cacheKey: string, known: Omit<Cached, 'believedUntil'>) {
    if (this.#cache.size >= CACHE_MAX) this.#cache.delete(this.#cache.keys().next().value!);
    const believedUntil = Date.now() + CACHE_SECONDS * 1000;
    const { expiresAt } = known.viewer;
    this.#cache.set(cacheKey, {
      ...known,
      believedUntil: Math.min(believedUntil, expiresAt?.getTime() ?? believedUntil),
    });
  }

  #forget(change: Change) {
    for (const [credential, { viewer }] of this.#cache) if (concerns(change, viewer)) this.#cache.delete(credential);
  }
}

/** Whether a change is of that credential: without an id it is of all of its account, without that too of any. */
const concerns = ({ accountId, id }: Change, viewer: Viewer): boolean =>
  id === null ? !accountId || accountId === viewer.accountId : id === viewer.credentialId;

const viewerOf = (kind: 'live' | 'at', found: Found): Viewer => ({
  accountId: found.accountId,
  kind: kind === 'live' ? 'api_key' : 'access_token',
  credentialId: found.credentialId,
  name: found.name,
  scopes: expandScopes(found.scope),
  expiresAt: found.expiresAt,
  spendLimitMicros: found.spendLimitMicros ?? null,
  suspendedFor: found.suspendedFor,
});

const OPERATOR: Viewer = {
  accountId: null,
  kind: 'operator',
  credentialId: 'operator',
  name: 'operator',
  scopes: expandScopes('operator'),
  expiresAt: null,
  spendLimitMicros: null,
};

/**
 * Calls back when a credential is revoked or expires, or its account is suspended or resumed, for whatever is kept open in its name; also when revocations may
 * have been missed, so that its holder must show it again.
 * @returns what ends the watch
 */
export function onCredentialEnd(db: Database, viewer: Viewer, ended: () => void): () => void {
  const { expiresAt } = viewer;
  const forget = db.bus.listen((change) => {
    if (change.kind === 'credential' && concerns(change, viewer)) ended();
  });
  const left = expiresAt ? Math.max(0, expiresAt.getTime() - Date.now()) : TIMER_MAX_MS;
  const timer = setTimeout(() => expiresAt && ended(), Math.min(left, TIMER_MAX_MS)).unref();
  return () => {
    forget();
    clearTimeout(timer);
  };
}
/** The longest that a timer of Node can run. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** Finds the row and notes its use, with the precision of a minute. */
const used = (table: string, column: string) => `
  with found as (select * from ${table} where ${column} = $1),
    used as (
      update ${table} set last_used_at = date_trunc('minute', now()) from found
      where ${table}.id = found.id and found.revoked_at is null
        and (found.last_used_at is null or found.last_used_at < date_trunc('minute', now())))`;
const SUSPENDED_FOR = `(select suspended_for from account where account.id = found.account_id) as suspended_for`;
export const FIND_API_KEY = `${used('api_key', 'digest')}
  select account_id, id as credential_id, name, scope, expires_at, revoked_at,
    ip_allowlist, spend_limit_micros, ${SUSPENDED_FOR} from found`;
const FIND_SESSION = `${used('session', 'access_digest')}
  select account_id, id as credential_id, source as name, scope, expires_at, revoked_at, ${SUSPENDED_FOR} from found`;
