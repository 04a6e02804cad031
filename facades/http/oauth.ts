/** Metadata for OAuth clients (RFC 8414, RFC 9728), and the member `error` of their refusals. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../../schema/index.ts';
import type { AdmitPublic } from '../rate-limit/admission.ts';
import type { ErrorResponse } from './errors.ts';
import { cached, etagOf } from './rest.ts';

const SCOPES = ['read', 'servers', 'billing', 'full'];
const AUTH_METHODS = ['client_secret_basic', 'client_secret_post'];
/** The path of the metadata of the resource at a path (RFC 9728, section 3.1). */
export const resourceMetadataPath = (path: string): string => `/.well-known/oauth-protected-resource${path}`;

/** Each of the two MCP paths is a resource of its own. */
const METADATA: Readonly<Record<string, (publicUrl: string) => object>> = {
  '/.well-known/oauth-authorization-server': authorizationServer,
  ...Object.fromEntries(
    ['', '/mcp', '/mcp/secure'].map((path) => [
      resourceMetadataPath(path),
      (publicUrl: string) => protectedResource(publicUrl, path),
    ]),
  ),
};
const AUTHORIZE = '/v1/oauth/authorize';

/** The paths without an operation document, with their methods. */
export const OAUTH_PATHS: readonly (readonly [path: string, methods: readonly string[]])[] = [
  ...Object.keys(METADATA).map((path) => [path, ['GET']] as const),
  [AUTHORIZE, ['GET', 'POST']],
];

export function oauth(app: FastifyInstance, publicUrl: string, onRequest: AdmitPublic): void {
  for (const [path, metadata] of Object.entries(METADATA)) {
    const text = JSON.stringify(metadata(publicUrl));
    const etag = etagOf(text);
    app.get(path, { onRequest }, async (request, reply) => cached(request, reply, text, 'public, max-age=60', etag));
  }
  const refuse = async (request: FastifyRequest, reply: FastifyReply) => {
    await onRequest(request, reply);
    throw new ApiError('browser_authorization_unavailable');
  };
  app.route({ method: ['GET', 'POST'], url: AUTHORIZE, onRequest: refuse, handler: () => {} });
}

/** RFC 8414. The official MCP clients require an `authorization_endpoint`, so it names one that refuses. */
function authorizationServer(publicUrl: string) {
  return {
    issuer: publicUrl,
    authorization_endpoint: publicUrl + AUTHORIZE,
    token_endpoint: `${publicUrl}/v1/oauth/token`,
    registration_endpoint: `${publicUrl}/v1/oauth/register`,
    revocation_endpoint: `${publicUrl}/v1/oauth/revoke`,
    introspection_endpoint: `${publicUrl}/v1/oauth/introspect`,
    scopes_supported: SCOPES,
    response_types_supported: [],
    grant_types_supported: ['client_credentials', 'refresh_token'],
    token_endpoint_auth_methods_supported: AUTH_METHODS,
    revocation_endpoint_auth_methods_supported: AUTH_METHODS,
    introspection_endpoint_auth_methods_supported: [...AUTH_METHODS, 'none'],
    service_documentation: `${publicUrl}/docs`,
  };
}

/** RFC 9728. It names no scopes, because MCP clients request all scopes that it names. */
function protectedResource(publicUrl: string, path: string) {
  return {
    resource: publicUrl + path,
    authorization_servers: [publicUrl],
    bearer_methods_supported: ['header'],
  };
}

/** Codes of the catalogue that RFC 6749, 6750, 7591 and 8707 also define. */
const SHARED: ReadonlySet<unknown> = new Set([
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'invalid_scope',
  'invalid_target',
  'invalid_client_metadata',
  'unsupported_grant_type',
  'insufficient_scope',
]);
const BY_STATUS: ReadonlyMap<number, string> = new Map([
  [401, 'invalid_token'],
  [429, 'temporarily_unavailable'],
  [500, 'server_error'],
  [503, 'temporarily_unavailable'],
]);

/** Adds `error` and `error_description` for OAuth clients. The description has only the characters that OAuth allows. */
export function oauthError({ status, body }: ErrorResponse): ErrorResponse['body'] {
  const { code, detail } = body as { code: string; detail: string };
  const error = SHARED.has(code) ? code : (BY_STATUS.get(status) ?? 'invalid_request');
  const description = detail.replaceAll('"', "'").replace(/[^\x20-\x7e]|\\/g, '?');
  return { ...body, error, error_description: description };
}
