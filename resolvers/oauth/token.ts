/** The token endpoint (RFC 6749, section 3.2): clients exchange their secret for access tokens. */
import {
  ACCESS_TOKEN_SECONDS,
  REFRESH_FAMILY_SECONDS,
  REFRESH_TOKEN_SECONDS,
  Session,
} from '../../entities/credential.ts';
import { ApiError } from '../../entities/errors.ts';
import { newId } from '../../entities/ids.ts';
import { GRANT_TYPES, type OauthClient } from '../../entities/oauth-client.ts';
import { record } from '../../entities/record.ts';
import { digest, mintCredential } from '../../entities/secrets.ts';
import type { Context } from '../context.ts';
import { lockAccount } from '../limits.ts';
import { authenticateClient, type ClientCredentials } from './client.ts';
import { narrowedScope } from './scope.ts';

export interface TokenRequest extends ClientCredentials {
  grantType: string;
  scope?: string | null | undefined;
  /** RFC 8707. */
  resource?: string[] | null | undefined;
}

export interface IssuedToken {
  accessToken: string;
  expiresIn: number;
  /** Only for clients that registered the grant. */
  refreshToken: string | null;
  scope: string;
}

/** How a session names the client that it belongs to. */
export const sourceOf = ({ id }: Pick<OauthClient, 'id'>): `oauth:${string}` => `oauth:${id}`;

/** What the tokens of this service are good for: the API and the MCP endpoint, as they are reached from outside. */
export const resourcesOf = ({ publicUrl }: Context): string[] => [publicUrl, `${publicUrl}/mcp`];

/**
 * @throws ApiError invalid_client, unsupported_grant_type, invalid_scope, invalid_target or session_limit_reached
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
  return openClientSession(context, client, narrowedScope(client.scope, request.scope));
}

async function openClientSession(context: Context, client: OauthClient, scope: string): Promise<IssuedToken> {
  const { db, limits, requestId, userAgent } = context;
  const { id: clientId, accountId } = client;
  const [id, source] = [newId('tok'), sourceOf(client)];
  const accessToken = mintCredential('at');
  const refreshToken = client.grantTypes.includes('refresh_token') ? mintCredential('rt') : null;
  const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000);
  await db.transaction(async (tx) => {
    await lockAccount(tx, accountId);
    const [open] = await tx.query<{ sessions: number }>(COUNT_SESSIONS, [accountId]);
    if (open!.sessions >= limits.sessions) throw new ApiError('session_limit_reached');
    await tx.manager.insert(Session, {
      id,
      accountId,
      familyId: id,
      source,
      userAgent: userAgent?.slice(0, 200) ?? null,
      scope,
      accessDigest: digest(accessToken),
      refreshDigest: refreshToken === null ? null : digest(refreshToken),
      expiresAt: inSeconds(ACCESS_TOKEN_SECONDS),
      refreshExpiresAt: inSeconds(refreshToken ? REFRESH_TOKEN_SECONDS : ACCESS_TOKEN_SECONDS),
      familyExpiresAt: inSeconds(refreshToken ? REFRESH_FAMILY_SECONDS : ACCESS_TOKEN_SECONDS),
    });
    await tx.query(`update oauth_client set last_used_at = date_trunc('minute', now()) where id = $1`, [clientId]);
    const actor = { type: 'access_token', id, name: source, requestId } as const;
    await record(tx, accountId, id, { type: 'session.created', resource: 'session', actor });
  });
  return { accessToken, expiresIn: ACCESS_TOKEN_SECONDS, refreshToken, scope };
}

/** Sessions that still open a door, or can be renewed. */
const COUNT_SESSIONS = `
  select count(*)::int as sessions from session
  where account_id = $1 and revoked_at is null and greatest(expires_at, refresh_expires_at) > now()`;
