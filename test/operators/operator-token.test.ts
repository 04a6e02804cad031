/** The operator's token belongs to the internal listener. The public listener does not know it. */
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { bearer } from '../accounts/oauth/requests.ts';
import { startFreehold } from '../setup/freehold.ts';
import { callTool } from '../setup/tool.ts';

const { anonymous, graphqlUrl, newAccount, operator, operatorToken, publicUrl } = await startFreehold();
const INVALID = { status: 401, code: 'invalid_credential' };

describe("The public listener refuses the operator's token", () => {
  it.each([
    ['GET', '/v1/servers'],
    ['GET', '/v1/account'],
    ['GET', '/v1/account/audit-log'],
    ['GET', '/v1/catalog/vps'],
    ['POST', '/v1/servers'],
    ['DELETE', '/v1/servers/SRV-AAAAAAAAAA'],
    ['POST', '/v1/oauth/register'],
  ])('for %s %s', async (method, path) => {
    const body = method === 'POST' ? {} : undefined;
    const answer = await anonymous(method, path, body, bearer(operatorToken));
    expect([answer.status, answer.body]).toEqual([401, expect.objectContaining(INVALID)]);
  });

  it('as the header of MCP', async () => {
    const response = await fetch(`${publicUrl}/mcp`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...bearer(operatorToken),
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
    });
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toContain('error="invalid_token"');
  });

  it('as the access_token of an MCP tool', async () => {
    const { accessToken } = await newAccount();
    for (const header of [undefined, accessToken]) {
      const { isError, content } = await callTool(publicUrl, header, 'list_servers', { access_token: operatorToken });
      expect([isError, content]).toEqual([true, expect.objectContaining(INVALID)]);
    }
  });

  it('at introspection', async () => {
    for (const headers of [{}, bearer(operatorToken)]) {
      const token = 'authorization' in headers ? {} : { token: operatorToken };
      const { status, body } = await anonymous('POST', '/v1/oauth/introspect', token, headers);
      expect([status, body]).toEqual([200, { active: false }]);
    }
  });

  it('and has no GraphQL', async () => {
    const response = await fetch(`${publicUrl}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...bearer(operatorToken) },
      body: JSON.stringify({ query: '{ servers { data { orderNumber } } }' }),
    });
    expect(response.status).toBe(404);
  });
});

describe("The internal listener takes the operator's token", () => {
  it('over HTTP', async () => {
    expect((await operator('{ servers { data { orderNumber } } }')).errors).toBeUndefined();
  });

  it('over WebSocket', async () => {
    const socket = new WebSocket(graphqlUrl.replace('http', 'ws'), 'graphql-transport-ws');
    await once(socket, 'open');
    socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${operatorToken}` } }));
    const [message] = (await once(socket, 'message')) as [MessageEvent<string>];
    expect(JSON.parse(message.data)).toMatchObject({ type: 'connection_ack' });
    socket.close();
  });
});
