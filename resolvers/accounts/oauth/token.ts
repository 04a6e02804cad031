/** The token endpoint (RFC 6749, section 3.2): clients exchange their secret for access tokens, and renew them. */
import { Session } from '../../../entities/accounts/credential.ts';
import { GRANT_TYPES, type OauthClient } from '../../../entities/accounts/oauth-client.ts';
import { ApiError, apiErrorOf } from '../../../entities/errors.ts';
import { digest } from '../../../entities/secrets.ts';
import type { Context } from '../../context.ts';
import { refresh } from '../auth/refresh.ts';
import { openSession, type SessionSource, type TokenPair } from '../auth/session.ts';
import { authenticateClient, type ClientCredentials } from './client.ts';
import { narrowedScope, readScope } from './scope.ts';

export interface TokenRequest extends ClientCredentials {
  grantType: string;
  refreshToken?: string | null | undefined;
  scope?: string | null | undefined;
  /** RFC 8707. */
  resource?: string[] | null | undefined;
}

export type IssuedToken = Pick<TokenPair, 'accessToken' | 'expiresIn' | 'scope'> & {
  /** Only for clients that registered the grant. */
  refreshToken: string | null;
};

/** How a session names the client that it belongs to. */
export const sourceOf = ({ id }: Pick<OauthClient, 'id'>): SessionSource => `oauth:${id}`;

/** What the tokens of this service are good for: the API and the MCP endpoint, as they are reached from outside. */
export const resourcesOf = ({ publicUrl }: Context): string[] => [
  publicUrl,
  `${publicUrl}/mcp`,
  `${publicUrl}/mcp/secure`,
];

/**
 * @throws ApiError invalid_client, invalid_request, unsupported_grant_type, invalid_scope, invalid_target, invalid_grant
 * or session_limit_reached
 */
export async function issueOauthToken(context: Context, request: TokenRequest): Promise<IssuedToken> {
  const client = await authenticateClient(context, request);
  const { grantType, resource } = request;
  if (!(GRANT_TYPES as readonly string[]).includes(grantType)) throw new ApiError('unsupported_grant_type');
  if (!client.grantTypes.includes(grantType))
    throw new ApiError('unsupported_grant_type', `The client is not registered for ${grantType}.`);
  const known = resourcesOf(context);
  if (resource?.some((one) => !known.includes(one.replace(/\/$/, ''))))
    throw new ApiError('invalid_target', `The resource is ${known.join(' or ')}.`);
  return grantType === 'refresh_token' ? renewed(context, client, request) : granted(context, client, request);
}

async function granted(context: Context, client: OauthClient, { scope }: TokenRequest): Promise<IssuedToken> {
  const { id, accountId, grantTypes } = client;
  const renewable = grantTypes.includes('refresh_token');
  const narrowed = narrowedScope(client.scope, scope);
  const tokens = await context.db.transaction(async (tx) => {
    const opened = await openSession(context, tx, accountId, sourceOf(client), narrowed);
    // A refresh token that nobody gets must not keep the session open.
    if (!renewable) await tx.query(WITHOUT_REFRESH, [opened.tokenId]);
    // It may have been deleted meanwhile.
    if (!(await tx.query(NOTE_USE, [id])).length) throw new ApiError('invalid_client');
    return opened;
  });
  return { ...tokens, refreshToken: renewable ? tokens.refreshToken : null };
}

/** With the precision of a minute. */
const NOTE_USE = `update oauth_client set last_used_at = date_trunc('minute', now()) where id = $1 returning id`;

const WITHOUT_REFRESH = `
  update session set refresh_digest = null, refresh_expires_at = expires_at, family_expires_at = expires_at where id = $1`;

/** RFC 6749, section 6. What is wrong with the refresh token is told in the detail; the code is OAuth's one for all. */
async function renewed(context: Context, client: OauthClient, request: TokenRequest): Promise<IssuedToken> {
  const { refreshToken, scope } = request;
  if (!refreshToken) throw new ApiError('invalid_request', 'refresh_token is required.');
  const source = sourceOf(client);
  if (scope) await requireSameScope(context, scope, refreshToken, source);
  try {
    const { tokens } = await refresh(context, refreshToken, { source });
    await context.db.query(NOTE_USE, [client.id]);
    return tokens;
  } catch (error) {
    const refused = apiErrorOf(error);
    throw refused?.extensions.status === 401 ? new ApiError('invalid_grant', refused.message) : error;
  }
}

/** A refresh cannot narrow the scope: the pair keeps it. @throws ApiError invalid_scope */
async function requireSameScope(context: Context, scope: string, refreshToken: string, source: string): Promise<void> {
  const sorted = (scopes: string) => scopes.split(' ').sort().join(' ');
  const asked = sorted(readScope(scope, 'invalid_scope'));
  const refreshDigest = digest(refreshToken);
  const session = await context.db.source.manager.findOneBy(Session, { refreshDigest, source });
  if (session && asked !== sorted(session.scope))
    throw new ApiError('invalid_scope', 'A refresh keeps the scope. Leave it out, or ask for a token of another.');
}
