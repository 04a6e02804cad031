import { Client, ClientCredentialsProvider, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { ClientCredentialsProvider as OldProvider } from '@modelcontextprotocol/sdk/client/auth-extensions.js';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { describe, expect, it } from 'vitest';
import { startFreehold } from '../../setup/freehold.ts';

const { publicUrl, anonymous } = await startFreehold();
const secure = new URL(`${publicUrl}/mcp/secure`);

describe.each([
  ['v1', OldClient, OldTransport, OldProvider],
  ['v2', Client, StreamableHTTPClientTransport, ClientCredentialsProvider],
] as const)('The machine client of SDK %s', (_, McpClient, Transport, Provider) => {
  it('gets a token after a 401 from the secure path, and calls tools with it', async () => {
    const { body } = await anonymous('POST', '/v1/oauth/register', { client_name: 'machine', scope: 'read' });
    const provider = new Provider({
      clientId: body.client_id,
      clientSecret: body.client_secret,
      expectedIssuer: publicUrl,
    });
    const client = new McpClient({ name: 'test', version: '1.0.0' });
    await client.connect(new Transport(secure, { authProvider: provider as never }) as never);
    expect(provider.tokens()).toMatchObject({ access_token: expect.stringMatching(/^svc_at_/), scope: 'read' });
    const { tools } = (await client.listTools()) as { tools: { name: string }[] };
    expect(tools.some(({ name }) => name === 'order_server')).toBe(false);
    const result = (await client.callTool({ name: 'get_balance', arguments: {} })) as { structuredContent: unknown };
    expect(result.structuredContent).toMatchObject({ balance_usd: 0 });
    await client.close();
  });
});

it('Only the secure path requires a credential, and names the authorization server', async () => {
  const call = (url: URL | string, authorization?: string) =>
    fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...(authorization && { authorization }),
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
    });
  expect((await call(`${publicUrl}/mcp`)).status).toBe(200);
  const refused = await call(secure);
  expect(refused.status).toBe(401);
  const challenge = refused.headers.get('www-authenticate')!;
  const metadata = /resource_metadata="([^"]+)"/.exec(challenge)![1]!;
  expect(await (await fetch(metadata)).json()).toMatchObject({
    resource: secure.href,
    authorization_servers: [publicUrl],
  });
  const bad = await call(secure, 'Bearer svc_at_nonsense');
  expect([bad.status, bad.headers.get('www-authenticate')]).toEqual([
    401,
    expect.stringContaining('error="invalid_token"'),
  ]);
});
