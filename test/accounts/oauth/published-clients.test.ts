/** Published OAuth clients, unchanged: oauth4webapi, openid-client, and the clients of the official MCP SDKs. */
import {
  auth,
  Client,
  ClientCredentialsProvider,
  registerClient,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { auth as oldAuth, registerClient as oldRegister } from '@modelcontextprotocol/sdk/client/auth.js';
import { ClientCredentialsProvider as OldProvider } from '@modelcontextprotocol/sdk/client/auth-extensions.js';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as oauth from 'oauth4webapi';
import * as openid from 'openid-client';
import { describe, expect, it } from 'vitest';
import { startFreehold } from '../../setup/freehold.ts';
import { checkedFetch } from '../../setup/openapi.ts';
import { restClient } from '../../setup/spawn.ts';

const { publicUrl, newAccount } = await startFreehold({ ROLES: 'api' });
const issuer = new URL(publicUrl);
const insecure = { [oauth.allowInsecureRequests]: true, [oauth.customFetch]: checkedFetch };
const METADATA = { client_name: 'A client', grant_types: ['client_credentials'], scope: 'servers billing' };
const RENEWABLE = { ...METADATA, grant_types: ['client_credentials', 'refresh_token'] };
const kindOf = async (token: string) => (await restClient(publicUrl, token)('GET', '/v1/account')).body.kind;

describe('oauth4webapi', () => {
  const discover = async () =>
    oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...insecure }));
  const register = async (as: oauth.AuthorizationServer, metadata: object, more: object = {}) =>
    oauth.processDynamicClientRegistrationResponse(
      await oauth.dynamicClientRegistrationRequest(as, metadata, { ...insecure, ...more }),
    );

  it.each([
    ['client_secret_basic', oauth.ClientSecretBasic],
    ['client_secret_post', oauth.ClientSecretPost],
  ])('discovers, registers, gets a token, introspects it and revokes it, by %s', async (_, authentication) => {
    const as = await discover();
    const client = await register(as, METADATA);
    const proof = authentication(client.client_secret as string);
    const parameters = new URLSearchParams({ scope: 'servers', resource: publicUrl });
    const response = await oauth.clientCredentialsGrantRequest(as, client, proof, parameters, insecure);
    const token = await oauth.processClientCredentialsResponse(as, client, response);
    expect(token).toMatchObject({ token_type: 'bearer', expires_in: 86_400, scope: 'servers' });
    expect(await kindOf(token.access_token)).toBe('agent');
    const introspect = async () =>
      oauth.processIntrospectionResponse(
        as,
        client,
        await oauth.introspectionRequest(as, client, proof, token.access_token, insecure),
      );
    expect(await introspect()).toMatchObject({ active: true, client_id: client.client_id, iss: as.issuer });
    await oauth.processRevocationResponse(
      await oauth.revocationRequest(as, client, proof, token.access_token, insecure),
    );
    expect(await introspect()).toEqual({ active: false });
  });

  it('renews its token', async () => {
    const as = await discover();
    const client = await register(as, RENEWABLE);
    const proof = oauth.ClientSecretBasic(client.client_secret as string);
    const response = await oauth.clientCredentialsGrantRequest(as, client, proof, {}, insecure);
    const { refresh_token } = await oauth.processClientCredentialsResponse(as, client, response);
    const renew = async () =>
      oauth.processRefreshTokenResponse(
        as,
        client,
        await oauth.refreshTokenGrantRequest(as, client, proof, refresh_token!, insecure),
      );
    expect(await kindOf((await renew()).access_token)).toBe('agent');
    await expect(renew()).rejects.toMatchObject({ error: 'invalid_grant' });
  });

  it('registers with an initial access token', async () => {
    const { accessToken } = await newAccount();
    const as = await discover();
    const client = await register(as, METADATA, { initialAccessToken: accessToken });
    const proof = oauth.ClientSecretBasic(client.client_secret as string);
    const response = await oauth.clientCredentialsGrantRequest(as, client, proof, {}, insecure);
    const token = await oauth.processClientCredentialsResponse(as, client, response);
    expect(await kindOf(token.access_token)).toBe('person');
  });

  it('registers a client with limits as further members, whose secret and tokens expire', async () => {
    const as = await discover();
    const expires_at = new Date(Date.now() + 600_000).toISOString();
    const limits = { expires_at, spend_limit_usd: 5, ip_allowlist: ['127.0.0.0/8', '::1/128'] };
    const client = await register(as, { ...RENEWABLE, ...limits });
    expect(client).toMatchObject({ ...limits, client_secret_expires_at: Math.floor(Date.parse(expires_at) / 1000) });
    const proof = oauth.ClientSecretPost(client.client_secret as string);
    const response = await oauth.clientCredentialsGrantRequest(as, client, proof, {}, insecure);
    const token = await oauth.processClientCredentialsResponse(as, client, response);
    expect(token.expires_in).toBeLessThanOrEqual(600);
    const request = await oauth.refreshTokenGrantRequest(as, client, proof, token.refresh_token!, insecure);
    const renewed = await oauth.processRefreshTokenResponse(as, client, request);
    expect(renewed.expires_in).toBeLessThanOrEqual(600);
    expect(await kindOf(renewed.access_token)).toBe('agent');
  });

  it('reads the errors', async () => {
    const as = await discover();
    const refusal = (work: Promise<unknown>) =>
      work.then(
        () => undefined,
        (error) => error,
      );
    expect(await refusal(register(as, { grant_types: ['authorization_code'] }))).toMatchObject({
      error: 'invalid_client_metadata',
      error_description: expect.stringContaining('client_credentials'),
    });
    const client = await register(as, METADATA);
    const ask = async (secret: string, scope: string) =>
      oauth.processClientCredentialsResponse(
        as,
        client,
        await oauth.clientCredentialsGrantRequest(as, client, oauth.ClientSecretBasic(secret), { scope }, insecure),
      );
    expect(await refusal(ask(client.client_secret as string, 'full'))).toMatchObject({ error: 'invalid_scope' });
    expect(await refusal(ask('wrong', 'read'))).toMatchObject({ status: 401, cause: [{ scheme: 'basic' }] });
  });
});

describe('openid-client', () => {
  const checked = (config: openid.Configuration): void => {
    config[openid.customFetch] = checkedFetch as openid.CustomFetch;
  };
  const execute = [openid.allowInsecureRequests, checked];

  it('registers, gets a token, introspects it and revokes it', async () => {
    const config = await openid.dynamicClientRegistration(issuer, METADATA, undefined, {
      algorithm: 'oauth2',
      execute,
    });
    const token = await openid.clientCredentialsGrant(config, { scope: 'billing', resource: `${publicUrl}/mcp` });
    expect(token.scope).toBe('billing');
    expect(await kindOf(token.access_token)).toBe('agent');
    expect((await openid.tokenIntrospection(config, token.access_token)).active).toBe(true);
    await openid.tokenRevocation(config, token.access_token);
    expect((await openid.tokenIntrospection(config, token.access_token)).active).toBe(false);
  });

  it('renews its token', async () => {
    const config = await openid.dynamicClientRegistration(issuer, RENEWABLE, undefined, {
      algorithm: 'oauth2',
      execute,
    });
    const first = await openid.clientCredentialsGrant(config);
    const second = await openid.refreshTokenGrant(config, first.refresh_token!);
    expect(await kindOf(second.access_token)).toBe('agent');
    const { refresh_token } = second;
    const stolen = await restClient(publicUrl)('POST', '/v1/auth/token/refresh', { refresh_token });
    expect([stolen.status, stolen.body.code]).toEqual([401, 'invalid_credential']);
    const third = await openid.refreshTokenGrant(config, refresh_token!);
    expect(await kindOf(third.access_token)).toBe('agent');
    await expect(openid.refreshTokenGrant(config, first.refresh_token!)).rejects.toMatchObject({
      error: 'invalid_grant',
    });
  });

  it('discovers with a known id and secret, and reads the errors', async () => {
    const { body } = await restClient(publicUrl)('POST', '/v1/oauth/register', METADATA);
    const { client_id, client_secret } = body;
    for (const proof of [openid.ClientSecretBasic(client_secret), openid.ClientSecretPost(client_secret)]) {
      const config = await openid.discovery(issuer, client_id, undefined, proof, { algorithm: 'oauth2', execute });
      expect((await openid.clientCredentialsGrant(config)).scope).toBe(METADATA.scope);
      const elsewhere = openid.clientCredentialsGrant(config, { resource: 'https://elsewhere.example' });
      await expect(elsewhere).rejects.toMatchObject({ error: 'invalid_target' });
    }
  });
});

describe.each([
  ['v1', OldClient, OldTransport, OldProvider, oldAuth, oldRegister],
  ['v2', Client, StreamableHTTPClientTransport, ClientCredentialsProvider, auth, registerClient],
] as const)('The official MCP client %s', (_, McpClient, Transport, Provider, authorize, register) => {
  const mcpUrl = new URL(`${publicUrl}/mcp`);
  const endpoints = async () => (await restClient(publicUrl)('GET', '/.well-known/oauth-authorization-server')).body;

  it('registers, finds the server of the MCP endpoint, gets a token, and calls a tool', async () => {
    const client = await register(publicUrl, {
      metadata: await endpoints(),
      clientMetadata: { ...METADATA, redirect_uris: [] },
    });
    const provider = new Provider({
      clientId: client.client_id,
      clientSecret: client.client_secret!,
      expectedIssuer: publicUrl,
    });
    expect(await authorize(provider as never, { serverUrl: mcpUrl })).toBe('AUTHORIZED');
    expect(provider.tokens()!.scope).toBe(METADATA.scope);
    const mcp = new McpClient({ name: 'test', version: '1.0.0' });
    await mcp.connect(new Transport(mcpUrl, { authProvider: provider as never }) as never);
    const { structuredContent } = (await mcp.callTool({ name: 'get_balance', arguments: {} })) as {
      structuredContent: { balance_usd: number };
    };
    expect(structuredContent.balance_usd).toBe(0);
    await mcp.close();
  });

  it('shows the reason why the service refuses a browser flow', async () => {
    const metadata = { redirect_uris: ['http://localhost/callback'], grant_types: ['authorization_code'] };
    const refused = register(publicUrl, { metadata: await endpoints(), clientMetadata: metadata });
    await expect(refused).rejects.toThrow('Authorization in a browser is not available.');
  });
});
