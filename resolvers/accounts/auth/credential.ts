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
  type Limits,
  NOTE_USE,
} from '../../../entities/accounts/credential.ts';
import { onBehalfOfStranger } from '../../../entities/caller.ts';
import type { Change } from '../../../entities/database/bus.ts';
import type { Database } from '../../../entities/database/database.ts';
import { ApiError } from '../../../entities/errors.ts';
import { allowedBy } from '../../../entities/networks.ts';
import { FIND_OPERATOR, type Operator, USE_SESSION } from '../../../entities/operator.ts';
import { credentialKind, digest } from '../../../entities/secrets.ts';
import type { Viewer } from '../../context.ts';
import type { SecurityLog } from '../security-log.ts';

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
  readonly #security: SecurityLog;
  /** By the SHA-256 of the credential, so that no credential stays in memory. */
  readonly #cache = new Map<string, Cached>();

  constructor(db: Database, operatorToken: string, security: SecurityLog) {
    this.#db = db;
    this.#security = security;
    this.#operatorDigest = digest(operatorToken);
    db.bus.listen((change) => this.#forget(change), { kind: 'credential' });
  }

  /**
   * Returns the viewer of an Authorization header (RFC 6750), or null without one. Checks the address, and never keeps it.
   * Tokens and sessions of operators are valid on the internal listener alone.
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
    const kind = credentialKind(credential);
    if (kind === 'op' && listener === 'internal') return this.#findOperator(credential, address);
    if (kind === 'os' && listener === 'internal') return this.#findSession(credential, address);
    const { viewer, allows, unnoted } = await this.#find(credential, address);
    if (!allows(address)) {
      this.#refused(viewer, address, 'network_refused');
      throw new ApiError('ip_not_allowed');
    }
    if (unnoted && viewer.kind !== 'operator') await NOTE_USE[viewer.kind].all(this.#db, [viewer.credentialId]);
    return viewer;
  }

  /** Tells the owner of a credential. */
  #refused(
    { accountId, kind, credentialId: id, name }: Viewer,
    address: string | null,
    what: 'refused' | 'network_refused',
  ) {
    if (!accountId || kind === 'operator') return;
    const noun = kind === 'api_key' ? 'api_key' : 'session';
    const actor = { type: kind, id, name, requestId: null };
    this.#security.note({ type: `${noun}.${what}`, account: accountId, address, resource: { type: noun, id }, actor });
  }

  /** @throws ApiError invalid_, expired_ or revoked_credential, or rate_limited if too many strangers wait */
  async #find(credential: string, address: string | null): Promise<Omit<Cached, 'validUntil'> & { unnoted?: boolean }> {
    const cacheKey = hash('sha256', credential, 'base64');
    const cached = this.#cache.get(cacheKey);
    if (cached && cached.validUntil > Date.now() && this.#db.bus.connected) return cached;
    this.#cache.delete(cacheKey);
    const kind = credentialKind(credential);
    if (kind !== 'live' && kind !== 'at') throw this.#unknown();
    const revocations = this.#db.bus.changesOf(['credential']);
    const key = [digest(credential)];
    // Until it is found, a credential may be a guess.
    const found: FoundCredential | undefined = await onBehalfOfStranger(address, () =>
      kind === 'live' ? FIND_API_KEY.first(this.#db, key) : FIND_SESSION.first(this.#db, key),
    );
    if (!found) throw this.#unknown();
    const viewer = viewerOf(kind, found);
    const isExpired = found.status === 'EXPIRED' || (found.expiresAt && found.expiresAt.getTime() <= Date.now());
    // Clients may use an expired or refreshed token by mistake. The use of a token that somebody ended is suspicious.
    if (kind === 'live' ? found.revokedAt || isExpired : found.revokedAt && !found.isRotated)
      this.#refused(viewer, address, 'refused');
    if (found.revokedAt) throw new ApiError('revoked_credential');
    if (isExpired) throw new ApiError('expired_credential');
    const known = { viewer, allows: allowedBy(found.ipAllowlist) };
    // A revocation during the read may have made this row out of date.
    if (revocations === this.#db.bus.changesOf(['credential'])) this.#remember(cacheKey, known);
    return { ...known, unnoted: found.ipAllowlist.length > 0 };
  }

  #unknown(): ApiError {
    this.#security.count('unknown credentials');
    return new ApiError('invalid_credential');
  }

  /** @throws ApiError invalid_, expired_ or revoked_credential */
  async #findOperator(credential: string, address: string | null): Promise<Viewer> {
    const key = digest(credential);
    if (timingSafeEqual(key, this.#operatorDigest)) return FIRST_OWNER;
    const found = await onBehalfOfStranger(address, () => FIND_OPERATOR.first(this.#db, [key]));
    if (!found) throw this.#unknown();
    const isEnded = found.state === 'ENDED';
    if (!isEnded && !found.isOver) return operatorOf(found);
    this.#security.operator('operator.refused', found.id, address);
    throw new ApiError(isEnded ? 'revoked_credential' : 'expired_credential');
  }

  /** @throws ApiError invalid_ or expired_credential */
  async #findSession(credential: string, address: string | null): Promise<Viewer> {
    const found = await onBehalfOfStranger(address, () => USE_SESSION.first(this.#db, [digest(credential)]));
    if (!found) throw this.#unknown();
    if (found.isOver) {
      this.#security.count('ended sessions of operators');
      throw new ApiError('expired_credential', 'The session has expired. Sign in again.');
    }
    return inSession(found, { id: found.sessionId, expiresAt: found.sessionExpiresAt });
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
export const concerns = ({ accountId, id }: Change, viewer: Viewer): boolean =>
  id === null
    ? !accountId || accountId === viewer.accountId
    : id === viewer.credentialId || id === (viewer.session ?? null);

const viewerOf = (kind: 'live' | 'at', found: FoundCredential): Viewer => ({
  accountId: found.accountId,
  kind: kind === 'live' ? 'api_key' : 'access_token',
  credentialId: found.credentialId,
  name: found.name,
  scopes: expandScopes(found.scope),
  expiresAt: found.expiresAt,
  isLogin: found.isLogin,
  holder: found.holder,
  limits: limitsOf(found),
  family: found.family,
  suspendedFor: found.suspendedFor,
  accountLimits: found.accountLimits,
});

/** The limits of the holder, or undefined if it has none. */
function limitsOf(found: FoundCredential): Limits | undefined {
  const { ipAllowlist, spendLimitMicros, holderExpiresAt: expiresAt, limitedBy } = found;
  const isLimited = ipAllowlist.length || spendLimitMicros !== null || expiresAt || limitedBy;
  return isLimited ? { ipAllowlist, spendLimitMicros, expiresAt, limitedBy } : undefined;
}

/** The viewer of the token in DATA_DIR. */
export const FIRST_OWNER: Viewer = {
  accountId: null,
  kind: 'operator',
  credentialId: 'operator',
  name: 'operator',
  scopes: expandScopes('operator'),
  role: 'OWNER',
  expiresAt: null,
};

const operatorOf = ({ id, name, role, expiresAt }: Operator): Viewer => ({
  ...FIRST_OWNER,
  ...{ credentialId: id, name, role, expiresAt },
});

/** The viewer of an operator who has signed in. */
export const inSession = (
  { id, name, role }: Pick<Operator, 'id' | 'name' | 'role'>,
  session: { id: string; expiresAt: Date },
): Viewer => ({
  ...FIRST_OWNER,
  ...{ credentialId: id, name, role, session: session.id, expiresAt: session.expiresAt },
});

/** The time of the last use, for people. Its precision of a minute must not put it before the creation. */
export const shownUse = ({ lastUsedAt, createdAt }: { lastUsedAt: Date | null; createdAt: Date }): Date | null =>
  lastUsedAt && lastUsedAt < createdAt ? createdAt : lastUsedAt;
