import type { AddressInfo } from 'node:net';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openSampleApi } from '../sample-api.ts';

const { app, errors } = await openSampleApi();
await app.listen({ port: 0, host: '127.0.0.1' });
const url = new URL(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}/mcp`);
const AGENT = { name: 'test', version: '1' };

interface AnyClient {
  // biome-ignore lint/suspicious/noExplicitAny: the two clients have different types for the same call
  callTool(call: { name: string; arguments?: Record<string, unknown> }): Promise<any>;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  listTools(): Promise<any>;
  getServerVersion(): unknown;
}
const requestInit = (authorization?: string) => ({
  requestInit: { headers: (authorization ? { authorization } : {}) as Record<string, string> },
});

/** The client of SDK v2, pinned to the newest revision. */
async function modern(authorization?: string): Promise<AnyClient> {
  const client = new Client(AGENT, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  await client.connect(new StreamableHTTPClientTransport(url, requestInit(authorization)));
  onTestFinished(() => client.close());
  return client as AnyClient;
}

/** The client of SDK v1, which asks for a revision of 2025. */
async function old(authorization?: string, version = '2025-11-25'): Promise<AnyClient> {
  const client = new OldClient(AGENT);
  const transport = new OldTransport(url, requestInit(authorization));
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    if ('method' in message && message.method === 'initialize') message.params!.protocolVersion = version;
    return send(message, options);
  };
  await client.connect(transport as never);
  expect(transport.protocolVersion).toBe(version);
  onTestFinished(() => client.close());
  return client as AnyClient;
}

const CLIENTS: [name: string, connect: (authorization?: string) => Promise<AnyClient>][] = [
  ['v2 at 2026-07-28', modern],
  ['v1 at 2025-11-25', old],
  ['v1 at 2025-06-18', (authorization) => old(authorization, '2025-06-18')],
  ['v1 at 2025-03-26', (authorization) => old(authorization, '2025-03-26')],
];

describe.each(CLIENTS)('The client %s', (_, open) => {
  it('lists the tools with schemas and hints', async () => {
    const client = await open();
    expect(client.getServerVersion()).toMatchObject({ name: 'freehold', version: '1.1.0' });
    const { tools } = await client.listTools();
    const byName = new Map<string, Record<string, unknown>>(tools.map((tool: { name: string }) => [tool.name, tool]));
    expect([...byName.keys()].sort()).toEqual(
      ['broken', 'change_thing', 'delete_thing', 'echo', 'get_something', 'get_thing'].concat([
        'list_parts',
        'list_things',
        'order_thing',
        'refused',
      ]),
    );
    expect(byName.get('list_parts')).toMatchObject({ title: 'All parts' });
    expect(byName.get('get_thing')).toMatchObject({
      title: 'Get thing',
      description: 'Shows one thing.',
      inputSchema: {
        type: 'object',
        properties: {
          thing_id: { type: 'string', description: 'The id of a thing.' },
          access_token: { type: 'string' },
        },
        required: ['thing_id'],
      },
      annotations: { readOnlyHint: true },
    });
    expect(byName.get('change_thing')).toMatchObject({
      inputSchema: { required: ['thing_id', 'count'] },
      annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true },
    });
    expect(byName.get('delete_thing')).toMatchObject({ annotations: { destructiveHint: true, idempotentHint: true } });
    expect(byName.get('order_thing')).toMatchObject({ annotations: { readOnlyHint: false, idempotentHint: false } });
    expect(byName.get('echo')).toMatchObject({
      inputSchema: {
        properties: { mode: { enum: ['red', 'dark_blue'] }, key: { description: 'Makes the request safe to repeat.' } },
      },
    });
    expect(JSON.stringify(tools)).not.toContain('$ref');
  });

  it('calls a tool by header, and gets the answer of REST as structure and as text', async () => {
    const client = await open('Bearer read');
    const { structuredContent, content, isError } = await client.callTool({
      name: 'get_thing',
      arguments: { thing_id: 'one' },
    });
    const rest = await app.inject({ url: '/v1/things/one', headers: { authorization: 'Bearer read' } });
    expect(structuredContent).toEqual(rest.json());
    expect(JSON.parse(content[0].text)).toEqual(rest.json());
    expect(isError).toBeFalsy();
  });

  it('calls a tool by argument, which overrides the header', async () => {
    const args = { service_code: 'x', color: 'dark_blue', access_token: 'servers' };
    for (const header of [undefined, 'Bearer read']) {
      const client = await open(header);
      const { structuredContent } = await client.callTool({ name: 'order_thing', arguments: args });
      expect(structuredContent).toMatchObject({ thing_id: 'new', color: 'dark_blue', plaintext: 'shown once' });
      const { structuredContent: echoed } = await client.callTool({ name: 'echo', arguments: args });
      expect(echoed.caller.scopes).toEqual(['public', 'servers']);
      expect(JSON.stringify(echoed.args)).not.toContain('access_token');
    }
  });

  it.each<[string, Record<string, unknown>, object]>([
    ['no credential', { thing_id: 'one' }, { status: 401, code: 'missing_credential' }],
    ['a bad access_token', { thing_id: 'one', access_token: 'no' }, { status: 401, code: 'invalid_credential' }],
    [
      'an access_token that is no text',
      { thing_id: 'one', access_token: 1 },
      { status: 422, code: 'validation_failed' },
    ],
    [
      'too small a scope',
      { thing_id: 'one', access_token: 'public' },
      { status: 403, code: 'insufficient_scope', required_scope: 'read' },
    ],
    ['scope before input', { nonsense: 1, access_token: 'public' }, { code: 'insufficient_scope' }],
    ['what is not there', { thing_id: 'none', access_token: 'read' }, { status: 404, code: 'not_found' }],
    [
      'a missing argument',
      { access_token: 'read' },
      { status: 422, code: 'validation_failed', errors: [{ field: 'thing_id', code: 'required' }] },
    ],
    [
      'an unknown argument',
      { thing_id: 'one', thingId: 'one', access_token: 'read' },
      {
        status: 422,
        code: 'unknown_field',
        errors: [{ field: 'thingId', message: expect.stringContaining('Did you mean thing_id?') }],
      },
    ],
    [
      'a wrong type',
      { thing_id: { a: 1 }, access_token: 'read' },
      { status: 422, errors: [{ field: 'thing_id', code: 'wrong_type' }] },
    ],
    [
      'U+0000',
      { thing_id: 'a\0', access_token: 'read' },
      { status: 422, code: 'validation_failed', errors: [{ field: 'thing_id' }] },
    ],
  ])('gets a tool error that it can read for %s', async (_, args, error) => {
    const client = await open();
    const { isError, structuredContent, content } = await client.callTool({ name: 'get_thing', arguments: args });
    expect(isError).toBe(true);
    expect(structuredContent).toMatchObject(error);
    expect(JSON.parse(content[0].text)).toEqual(structuredContent);
  });

  it('gets a masked error for an unexpected failure', async () => {
    const { isError, structuredContent } = await (await open()).callTool({ name: 'broken' });
    expect([isError, structuredContent.code]).toEqual([true, 'internal_error']);
    expect(JSON.stringify([structuredContent, errors])).not.toContain('hunter2');
  });

  it('gets lists as objects, one of several types, and defaults', async () => {
    const client = await open('Bearer read');
    const answer = async (name: string, args: Record<string, unknown> = {}) =>
      (await client.callTool({ name, arguments: args })).structuredContent;
    expect(await answer('list_parts')).toMatchObject({ data: [{ name: 'lid' }], has_more: false });
    expect(await answer('get_something', { thing_id: 'part' })).toMatchObject({ name: 'lid' });
    const { data } = await answer('list_things', { limit: null, color: ['dark_blue'] });
    expect(data[0].labels).toEqual({ limit: 20, color: ['DARK_BLUE'] });
  });

  it('gets an error for an unknown tool', async () => {
    await expect((await open()).callTool({ name: 'nonsense' })).rejects.toMatchObject({ code: -32602 });
  });

  it('is refused with HTTP 401 if the header is bad', async () => {
    await expect(open('Bearer nonsense')).rejects.toThrow();
  });
});

describe('The endpoint', () => {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const post = (payload: string | Buffer, more: Record<string, string> = {}) =>
    app.inject({ method: 'POST', url: '/mcp', headers: { ...headers, ...more }, payload });
  const LIST = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';

  it('answers a bad Bearer header with 401 invalid_token, and asks for none', async () => {
    const bad = await post(LIST, { authorization: 'Bearer nonsense' });
    expect([bad.statusCode, bad.headers['www-authenticate'], bad.json().code]).toEqual([
      401,
      'Bearer realm="svc", error="invalid_token"',
      'invalid_credential',
    ]);
    expect((await post(LIST)).statusCode).toBe(200);
  });

  it('answers invalid JSON with a JSON-RPC error', async () => {
    for (const payload of ['{', Buffer.from([0xff])]) {
      const response = await post(payload);
      expect([response.statusCode, response.json().error.code]).toEqual([400, -32_700]);
    }
    expect((await post('x'.repeat(257 * 1024))).json()).toMatchObject({ jsonrpc: '2.0', error: { code: -32_000 } });
    expect((await post('')).statusCode).toBe(400);
    const deep = await post(
      `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":${'['.repeat(30_000)}${']'.repeat(30_000)}}`,
    );
    expect(deep.statusCode).toBe(400);
    expect((await post(LIST, { 'content-type': 'text/plain' })).statusCode).toBe(415);
  });

  it('accepts a body of up to 256 KiB', async () => {
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call' };
    const args = { service_code: 'x', free_text: 'x'.repeat(200 * 1024) };
    const response = await post(JSON.stringify({ ...call, params: { name: 'echo', arguments: args } }));
    expect([response.statusCode, response.body.includes('isError')]).toEqual([200, false]);
  });

  it('has no sessions, so it refuses GET and DELETE with a JSON-RPC error', async () => {
    for (const method of ['GET', 'DELETE'] as const) {
      const response = await app.inject({ method, url: '/mcp', headers });
      expect([response.statusCode, response.json().jsonrpc]).toEqual([405, '2.0']);
    }
    expect((await app.inject({ method: 'PUT', url: '/mcp' })).json().code).toBe('not_found');
  });

  it('refuses foreign origins, and sends the headers of every answer', async () => {
    expect((await post(LIST, { origin: 'https://evil.example' })).statusCode).toBe(403);
    const response = await post(LIST, { origin: 'http://localhost:6274' });
    expect(response.statusCode).toBe(200);
    expect(response.headers).toMatchObject({
      'x-request-id': expect.stringMatching(/^req_/),
      'x-content-type-options': 'nosniff',
      'access-control-allow-origin': '*',
    });
  });

  it('has logged only the broken tool', () => {
    expect(new Set(errors.map(({ name }) => name))).toEqual(new Set(['TypeError']));
  });
});
