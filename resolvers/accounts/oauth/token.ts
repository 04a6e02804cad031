/** The token endpoint (RFC 6749, section 3.2): clients exchange their secret for access tokens, and renew them. */
import { DROP_REFRESH_TOKEN } from '../../../entities/accounts/credential.ts';
import { GRANT_TYPES, type OauthClient } from '../../../entities/accounts/oauth-client.ts';
import { ApiError, apiErrorOf } from '../../../entities/errors.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import type { Context } from '../../context.ts';
import { refresh } from '../auth/refresh.ts';
import { findSession, openSession, type TokenPair } from '../auth/session.ts';
import { authenticateClient, type ClientCredentials, noteClientUse, sourceOf } from './client.ts';
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

/** The resources of the tokens: the public addresses of the API and of the MCP endpoint. */
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
    throw new ApiError('unsupported_grant_type', `The client is not registered for the grant type ${grantType}.`);
  const known = resourcesOf(context);
  if (resource?.some((one) => !known.includes(one.replace(/\/$/, ''))))
    throw new ApiError('invalid_target', `Use one of these as resource: ${known.join(', ')}.`);
  return grantType === 'refresh_token' ? renewed(context, client, request) : granted(context, client, request);
}

async function granted(context: Context, client: OauthClient, { scope }: TokenRequest): Promise<IssuedToken> {
  const { accountId, grantTypes } = client;
  const renewable = grantTypes.includes('refresh_token');
  const narrowed = narrowedScope(client.scope, scope);
  const tokens = await context.db.transaction(async (tx) => {
    // Under the lock of the account no request deletes the client, or replaces its secret.
    await lockAccount(tx, accountId);
    const isLogin = await noteClientUse(context, tx, client);
    const opened = await openSession(context, tx, accountId, sourceOf(client), {
      scope: narrowed,
      endsBy: client.expiresAt,
      isLogin,
    });
    // The client does not get the refresh token, so that token must not keep the session open.
    if (!renewable) await DROP_REFRESH_TOKEN.all(tx, [opened.tokenId]);
    return opened;
  });
  return { ...tokens, refreshToken: renewable ? tokens.refreshToken : null };
}

const REUSED = 'The refresh token was used before, so the service ended all tokens that came from it.';

/** Refreshes a token (RFC 6749, section 6). OAuth has one code for all refusals, so the detail names the fault. */
async function renewed(context: Context, client: OauthClient, request: TokenRequest): Promise<IssuedToken> {
  const { refreshToken, scope } = request;
  if (!refreshToken) throw new ApiError('invalid_request', 'refresh_token is required.');
  if (scope) await requireSameScope(context, scope, refreshToken, sourceOf(client));
  try {
    return (await refresh(context, refreshToken, client)).tokens;
  } catch (error) {
    const refused = apiErrorOf(error);
    if (refused?.extensions.status !== 401 || refused.code === 'invalid_client') throw error;
    const reason = refused.code === 'refresh_token_reused' ? REUSED : refused.message;
    throw new ApiError('invalid_grant', `${reason} Request a new one by the grant type client_credentials.`);
  }
}

/** Checks that a refresh keeps the scope. @throws ApiError invalid_scope */
async function requireSameScope(context: Context, scope: string, refreshToken: string, source: string): Promise<void> {
  const sorted = (scopes: string) => scopes.split(' ').sort().join(' ');
  const asked = sorted(readScope(scope, 'invalid_scope'));
  const session = await findSession(context.db, 'rt', refreshToken);
  if (session?.source === source && asked !== sorted(session.scope))
    throw new ApiError('invalid_scope', 'A refresh keeps the scope. Leave the scope out, or request a new token.');
}
