/**
 * Authentication: from a credential to a viewer. The cache of valid credentials saves a query for each request. A
 * revocation clears them from this process at once, and from the others through the bus.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import {
  expandScopes,
  FIND_API_KEY,
  FIND_SESSION,
  type FoundCredential,
} from '../../../entities/accounts/credential.ts';
import type { Change } from '../../../entities/database/bus.ts';
import type { Database } from '../../../entities/database/database.ts';
import type { Statement } from '../../../entities/database/statement.ts';
import { ApiError } from '../../../entities/errors.ts';
import { credentialKind, digest } from '../../../entities/secrets.ts';
import type { Viewer } from '../../context.ts';
import { networkCheck } from './networks.ts';

/** Seconds until a cached credential is read again from the database. */
const CACHE_SECONDS = 30;
const CACHE_MAX = 10_000;

interface Cached {
  viewer: Viewer;
  /** Whether a caller may use the credential from an address. */
  allows: (address: string | null) => boolean;
  /** When the entry expires, in milliseconds since the epoch. */
  validUntil: number;
}

export class Authenticator {
  readonly #db: Database;
  readonly #operatorDigest: Buffer;
  /** By the SHA-256 of the credential, so that no credential stays in memory. */
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
   * Returns the viewer of an Authorization header (RFC 6750), or null without one. Checks the address, and never keeps it.
   * The operator's token is valid on the internal listener alone.
   * @throws ApiError invalid_, expired_ or revoked_credential, or ip_not_allowed
   */
  async fromHeader(
    authorization: string | undefined,
    address: string | null,
    listener: 'public' | 'internal',
  ): Promise<Viewer | null> {
    if (authorization === undefined) return null;
    const credential = /^Bearer +([^\s]+) *$/i.exec(authorization)?.[1];
    if (!credential)
      throw new ApiError('invalid_credential', 'Send the credential as "Authorization: Bearer <credential>".');
    if (listener === 'internal' && this.#isOperator(credential)) return OPERATOR;
    const { viewer, allows } = await this.#find(credential);
    if (!allows(address)) throw new ApiError('ip_not_allowed');
    return viewer;
  }

  /** @throws ApiError invalid_, expired_ or revoked_credential */
  async #find(credential: string): Promise<Omit<Cached, 'validUntil'>> {
    const cacheKey = hash('sha256', credential, 'base64');
    const cached = this.#cache.get(cacheKey);
    if (cached && cached.validUntil > Date.now() && this.#db.bus.connected) return cached;
    this.#cache.delete(cacheKey);
    const kind = credentialKind(credential);
    if (kind !== 'live' && kind !== 'at') throw new ApiError('invalid_credential');
    const revocations = this.#revocations;
    const statement: Statement<FoundCredential> = kind === 'live' ? FIND_API_KEY : FIND_SESSION;
    const found = await statement.first(this.#db, [digest(credential)]);
    if (!found) throw new ApiError('invalid_credential');
    if (found.revokedAt) throw new ApiError('revoked_credential');
    if (found.expiresAt && found.expiresAt.getTime() <= Date.now()) throw new ApiError('expired_credential');
    const known = { viewer: viewerOf(kind, found), allows: networkCheck(found.ipAllowlist ?? []) };
    // A revocation during the read may have made this row out of date.
    if (revocations === this.#revocations) this.#remember(cacheKey, known);
    return known;
  }

  #isOperator(credential: string): boolean {
    return credentialKind(credential) === 'op' && timingSafeEqual(digest(credential), this.#operatorDigest);
  }

  #remember(cacheKey: string, known: Omit<Cached, 'validUntil'>) {
    if (this.#cache.size >= CACHE_MAX) this.#cache.delete(this.#cache.keys().next().value!);
    const expiresAt = known.viewer.expiresAt?.getTime() ?? Infinity;
    const validUntil = Math.min(Date.now() + CACHE_SECONDS * 1000, expiresAt);
    this.#cache.set(cacheKey, { ...known, validUntil });
  }

  #forget(change: Change) {
    for (const [credential, { viewer }] of this.#cache) if (concerns(change, viewer)) this.#cache.delete(credential);
  }
}

/**
 * Whether a change affects a credential. A change without an id affects all credentials of its account; one without an
 * account, too, affects every credential.
 */
const concerns = ({ accountId, id }: Change, viewer: Viewer): boolean =>
  id === null ? !accountId || accountId === viewer.accountId : id === viewer.credentialId;

const viewerOf = (kind: 'live' | 'at', found: FoundCredential): Viewer => ({
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

/** The longest delay of a timer of Node. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/**
 * Calls back when a credential is revoked or expires, or when its account is suspended or resumed. Also calls back when the
 * bus may have missed a revocation. Timers wait 24 days at most, so a later expiry calls back early. The credential may
 * still be valid then, and the caller must authenticate again. Calls may repeat.
 * @returns a function that ends the watch
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
