/** Token introspection (RFC 7662). Every holder of a token may ask: an attacker cannot guess 190 bits. */
import { ApiKey, type Session } from '../../../entities/accounts/credential.ts';
import { OauthClient } from '../../../entities/accounts/oauth-client.ts';
import { find } from '../../../entities/database/table.ts';
import { ApiError } from '../../../entities/errors.ts';
import { allowedBy } from '../../../entities/networks.ts';
import { credentialKind, digest } from '../../../entities/secrets.ts';
import type { Context } from '../../context.ts';
import { findSession } from '../auth/session.ts';
import { bearerOf } from './client.ts';
import { resourcesOf } from './token.ts';

/** The claims of a token. A token that is not valid has only `active`. */
export interface Introspection {
  active: boolean;
  scope?: string;
  clientId?: string | undefined;
  tokenType?: string | undefined;
  exp?: Date | null;
  iat?: Date;
  sub?: string;
  aud?: string[];
  iss?: string;
  jti?: string;
}

export interface IntrospectionRequest {
  /** Has priority over the header, which then belongs to the caller. */
  token?: string | null | undefined;
  authorization?: string | null | undefined;
}

/** @throws ApiError invalid_request without a token, or ip_not_allowed for a header from a network that its token refuses */
export async function introspectOauthToken(
  context: Context,
  { token, authorization }: IntrospectionRequest,
): Promise<Introspection> {
  const credential = token ?? bearerOf(authorization);
  if (!credential) throw new ApiError('invalid_request', 'Send the token as a Bearer credential, or as token.');
  const found = await claimsOf(context, credential);
  if (!found) return { active: false };
  if (!allowedBy(await networksOf(context, found))(context.address)) {
    noteNetwork(context, credential, found);
    // As the parameter, the token is no credential of the caller. A server may ask about the token of its client.
    if (!token) throw new ApiError('ip_not_allowed');
  }
  return { active: true, aud: resourcesOf(context), iss: context.publicUrl, ...found };
}

async function claimsOf(context: Context, credential: string) {
  const { db } = context;
  const kind = credentialKind(credential);
  if (kind === 'live') {
    const key = await find(db, ApiKey, { digest: digest(credential) });
    if (key?.status !== 'ACTIVE' || isPast(key.expiresAt)) {
      if (key) noteEnded(context, 'api_key', key);
      return undefined;
    }
    return { ...claims(key), tokenType: 'Bearer', exp: key.expiresAt };
  }
  if (kind !== 'at' && kind !== 'rt') return undefined;
  const session = await findSession(db, kind, credential);
  if (!session || session.revokedAt) {
    // Clients may ask about a refreshed token by mistake.
    if (session && !session.rotatedAt) noteEnded(context, 'session', session);
    return undefined;
  }
  const refreshUntil = Math.min(session.refreshExpiresAt.getTime(), session.familyExpiresAt.getTime());
  const exp = kind === 'at' ? session.expiresAt : new Date(refreshUntil);
  if (isPast(exp)) return undefined;
  const clientId = /^oauth:(.*)$/.exec(session.source)?.[1];
  return { ...claims(session), clientId, tokenType: kind === 'at' ? 'Bearer' : undefined, exp };
}

/** The networks of an API key, or of the client of a session; none: all networks. */
async function networksOf({ db }: Context, { jti: id, clientId }: { jti: string; clientId?: string | undefined }) {
  const holder = clientId ? await find(db, OauthClient, { id: clientId }) : await find(db, ApiKey, { id });
  return holder?.ipAllowlist ?? [];
}

/** Tells the owner, because a thief may test a stolen credential by its introspection. */
function noteNetwork({ security, address }: Context, credential: string, { sub: account, jti: id }: Claims): void {
  const type = credentialKind(credential) === 'live' ? 'api_key' : 'session';
  security.note({ type: `${type}.network_refused`, account, address, resource: { type, id } });
}

/** Tells the owner, as of the use of an ended credential. */
const noteEnded = (
  { security, address }: Context,
  type: 'api_key' | 'session',
  { accountId: account, id }: Pick<Session, 'accountId' | 'id'>,
): void => security.note({ type: `${type}.refused`, account, address, resource: { type, id } });

type Claims = ReturnType<typeof claims>;
const claims = ({ id, accountId, scope, createdAt }: Pick<Session, 'id' | 'accountId' | 'scope' | 'createdAt'>) => ({
  scope,
  iat: createdAt,
  sub: accountId,
  jti: id,
});

const isPast = (time: Date | null): boolean => time !== null && time.getTime() <= Date.now();
