import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { startFreehold } from '../../setup/freehold.ts';
import {
  call,
  envelope,
  type Headers,
  INITIALIZE,
  MODERN,
  modern,
  notification,
  of2025,
  rawClient,
  rpc,
  type Send,
} from './raw-client.ts';

const freehold = await startFreehold();
const alice = await freehold.newAccount();
const { send, outcome, usual } = rawClient(`${freehold.publicUrl}/mcp`, alice.accessToken);

afterEach(async () => {
  // The process survives every request.
  expect(await outcome({ body: rpc('ping') })).toEqual([200, 1]);
});

describe('An invalid message', () => {
  it.each<[what: string, body: unknown, code: number, id?: number]>([
    ['half an object', '{', -32700],
    ['nothing', '', -32700],
    ['bytes that are no UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]), -32700],
    ['an object of fifty levels', `${'{"a":'.repeat(50)}1${'}'.repeat(50)}`, -32700],
    ['a hundred thousand brackets', '['.repeat(100_000), -32700],
    ['a number', '7', -32600],
    ['a text', '"ping"', -32600],
    ['null', 'null', -32600],
    ['an empty object', {}, -32600],
    ['an empty batch', [], -32600],
    ['a batch of other things', [1, null, 'ping'], -32600],
    ['a batch that would fill the memory', Array.from({ length: 3_000 }, (_, i) => rpc('tools/list', {}, i)), -32600],
    ['no version', { id: 1, method: 'ping' }, -32600, 1],
    ['another version', { jsonrpc: '1.0', id: 1, method: 'ping' }, -32600, 1],
    ['a method that is a number', { jsonrpc: '2.0', id: 1, method: 7 }, -32600],
    ['no method', { jsonrpc: '2.0', id: 1 }, -32600],
    ['an id that is an object', rpc('ping', undefined, {}), -32600],
    ['an id that is null', rpc('ping', undefined, null), -32600],
    ['params that are a list', { ...rpc('tools/call'), params: [1] }, -32600, 1],
    ['params that are a number', { ...rpc('tools/call'), params: 7 }, -32600, 1],
    ['an unknown member', { ...rpc('ping'), extra: 1 }, -32600, 1],
  ])('is refused: %s', async (_, body, code, id) => {
    expect(await outcome({ body })).toEqual([400, [id ?? null, code]]);
  });

  it('is refused at the size limit, without reading the rest', async () => {
    const body = rpc('ping', { x: 'a'.repeat(300_000) });
    expect(await outcome({ body })).toEqual([400, [null, -32000]]);
  });
});

describe('A wrong header', () => {
  it.each<[what: string, request: Send, status: number, code: number, id: number | null]>([
    ['a content type that is not JSON', { headers: { 'content-type': 'text/plain' } }, 415, -32000, null],
    ['a form', { headers: { 'content-type': 'application/x-www-form-urlencoded' } }, 415, -32000, null],
    ['an empty content type', { headers: { 'content-type': '' } }, 415, -32000, null],
    ['only JSON is accepted', { headers: { accept: 'application/json' } }, 406, -32000, null],
    ['only streams are accepted', { headers: { accept: 'text/event-stream' } }, 406, -32000, null],
    ['a page of another site calls', { headers: { origin: 'https://evil.example' } }, 403, -32000, null],
    ['a page without origin calls', { headers: { origin: 'null' } }, 403, -32000, null],
    ['a revision before the oldest supported one', { headers: of2025('2024-10-07') }, 400, -32000, null],
    ['an invalid revision', { headers: of2025('yesterday') }, 400, -32602, 1],
    ['the newest revision, and a message of the older ones', { headers: modern('ping') }, 400, -32602, 1],
  ])('is refused with its status: %s', async (_, request, status, code, id) => {
    expect(await outcome({ body: rpc('ping'), ...request })).toEqual([status, [id, code]]);
  });

  const list = rpc('tools/list', envelope());
  const balance = rpc('tools/call', { name: 'get_balance', arguments: {}, ...envelope() });
  it.each<[what: string, headers: Headers, body: object, code: number]>([
    ['an unknown revision', modern('tools/list', '', '1900-01-01'), rpc('tools/list', envelope('1900-01-01')), -32022],
    ['an older revision', modern('tools/list', '', '2025-11-25'), rpc('tools/list', envelope('2025-11-25')), -32022],
    ['another revision than the message', modern('tools/list', '', '2025-11-25'), list, -32020],
    ['another method than the message', modern('tools/call', 'x'), list, -32020],
    ['no method', of2025(MODERN), list, -32020],
    ['no name of the tool', modern('tools/call'), balance, -32020],
    ['the name of another tool', modern('tools/call', 'get_account'), balance, -32020],
    ['capabilities that are a text', modern('tools/list'), rpc('tools/list', envelope(MODERN, 'all')), -32602],
    ['a revision that is a number', modern('tools/list'), rpc('tools/list', envelope(7)), -32602],
  ])('is refused in the newest version: %s', async (_, headers, body, code) => {
    expect(await outcome({ headers, body })).toEqual([400, [1, code]]);
  });

  it('is answered with the supported revisions', async () => {
    const headers = modern('tools/list', '', '1900-01-01');
    const { messages } = await send({ headers, body: rpc('tools/list', envelope('1900-01-01')) });
    expect(messages[0].error.data).toEqual({ supported: [MODERN], requested: '1900-01-01' });
  });
});

describe('An impossible request', () => {
  it.each<[what: string, body: unknown, code: number]>([
    ['an unknown method', rpc('nothing/here'), -32601],
    ['a method of the newest version', rpc('server/discover'), -32601],
    ['an unknown tool', call('nothing'), -32602],
    ['a tool named like a member of objects', call('__proto__'), -32602],
    ['no tool', rpc('tools/call', {}), -32602],
    ['a tool that is a number', call(7), -32602],
    ['arguments that are a text', call('get_balance', 'all'), -32602],
    ['arguments that are a list', call('get_balance', []), -32602],
    ['arguments that are null', call('get_balance', null), -32602],
    ['an unknown prompt', rpc('prompts/get', { name: 'nothing' }), -32602],
    ['an unknown resource', rpc('resources/read', { uri: 'file:///etc/passwd' }), -32602],
    // The SDK uses this code for malformed params of every method but tools/call.
    ['a resource that is a number', rpc('resources/read', { uri: 7 }), -32603],
    ['a completion of nothing', rpc('completion/complete', { ref: { type: 'ref/nothing' } }), -32603],
  ])('is a JSON-RPC error: %s', async (_, body, code) => {
    expect(await outcome({ body })).toEqual([200, [1, code]]);
  });

  it.each<[what: string, params: unknown]>([
    ['nothing', undefined],
    ['a revision that is a number', { ...INITIALIZE, protocolVersion: 7 }],
    ['no capabilities', { protocolVersion: '2025-11-25', clientInfo: INITIALIZE.clientInfo }],
  ])('begins no session: initialize with %s', async (_, params) => {
    const { status, messages, session } = await send({ body: { ...rpc('initialize'), params } });
    expect([status, messages[0].error.code, messages[0].id, session]).toEqual([400, -32602, 1, null]);
  });

  it.each([
    ['2025-11-25', '2025-11-25'],
    ['2025-06-18', '2025-06-18'],
    ['2025-03-26', '2025-03-26'],
    ['2024-11-05', '2025-11-25'],
    ['2030-01-01', '2025-11-25'],
  ])('for revision %s is answered with %s', async (protocolVersion, negotiated) => {
    const { messages } = await send({ body: rpc('initialize', { ...INITIALIZE, protocolVersion }) });
    expect(messages[0].result.protocolVersion).toBe(negotiated);
  });

  it.each<[what: string, args: object, code: string]>([
    ['an unknown argument', { nothing: 1 }, 'unknown_field'],
    ['a member of all objects', { constructor: 1 }, 'unknown_field'],
  ])('gets a tool error if the tool exists: %s', async (_, args, code) => {
    const { messages } = await send({ body: call('get_balance', args) });
    expect(messages[0].result).toMatchObject({ isError: true, structuredContent: { code } });
  });

  it('gets 404 in the newest version only if the method is unknown', async () => {
    const unknown = (method: string, name?: string) =>
      outcome({ headers: modern(method, name), body: rpc(method, { ...(name && { name }), ...envelope() }) });
    expect(await unknown('nothing/here')).toEqual([404, [1, -32601]]);
    expect(await unknown('ping')).toEqual([404, [1, -32601]]);
    expect(await unknown('tools/call', 'nothing')).toEqual([200, [1, -32602]]);
  });
});

describe('A message without an answer', () => {
  it.each<[what: string, body: unknown, headers?: Headers]>([
    ['a notification', notification('notifications/initialized')],
    ['an unknown notification', notification('notifications/nothing')],
    ['a cancellation of an unknown request', notification('notifications/cancelled', { requestId: 99 })],
    ['progress of an unknown request', notification('notifications/progress', { progressToken: 1, progress: 1 })],
    ['a request without id', notification('tools/list')],
    ['a batch of notifications', [notification('notifications/initialized'), notification('notifications/nothing')]],
    ['an answer without a request', { jsonrpc: '2.0', id: 99, result: {} }],
    ['an error without a request', { jsonrpc: '2.0', id: 99, error: { code: 1, message: 'no' } }],
    [
      'a notification of the newest version',
      notification('notifications/cancelled', { requestId: 1, ...envelope() }),
      modern('notifications/cancelled'),
    ],
  ])('gets status 202: %s', async (_, body, headers = {}) => {
    expect(await outcome({ body, headers })).toEqual([202]);
  });

  it('has no effect either, such as a tool call without an id', async () => {
    const public_key = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILZo0JzYJEHChHBt6zG/B6cGUZpbFXeUqaufc1ki+RX/';
    const body = notification('tools/call', { name: 'add_ssh_key', arguments: { public_key } });
    expect(await outcome({ body })).toEqual([202]);
    const keys = (await alice.rest('GET', '/v1/ssh-keys')).body.data;
    expect(keys).toEqual([]);
  });
});

describe('A batch', () => {
  it.each(['2025-03-26', undefined])('is answered message by message (revision %s)', async (version) => {
    const unknown = rpc('tools/call', { name: 'nothing' }, 2);
    const body = [rpc('ping', {}, 1), unknown, notification('notifications/initialized'), rpc('ping', {}, 'three')];
    const [status, ...answers] = await outcome({ body, headers: version ? of2025(version) : {} });
    expect(status).toBe(200);
    expect(answers).toHaveLength(3);
    expect(answers).toEqual(expect.arrayContaining([1, [2, -32602], 'three']));
  });

  it('cannot bypass the limit of one session, and does not exist in the newest version', async () => {
    const body = [rpc('initialize', INITIALIZE), rpc('ping', {}, 2)];
    expect(await outcome({ body })).toEqual([400, [null, -32600]]);
    const batch = [rpc('tools/list', envelope())];
    expect(await outcome({ body: batch, headers: modern('tools/list') })).toEqual([400, [null, -32600]]);
  });
});

it('The connection closes after an answer if the client asks for that', async () => {
  const socket = connect(Number(new URL(freehold.publicUrl).port), '127.0.0.1');
  const body = JSON.stringify(rpc('ping'));
  socket.write(
    [
      'POST /mcp HTTP/1.1',
      'Host: localhost',
      'Connection: close',
      'Content-Type: application/json',
      'Accept: application/json, text/event-stream',
      'MCP-Protocol-Version: 2025-06-18',
      `Content-Length: ${body.length}`,
      '',
      body,
    ].join('\r\n'),
  );
  let answer = '';
  for await (const part of socket) answer += part;
  expect(answer).toMatch(/^HTTP\/1\.1 200 .*\r\nconnection: close\r\n/is);
});

it('An answer that is no stream tells its length, so that it leaves in one write', async () => {
  const headers = { ...usual, ...modern('tools/list') };
  const body = JSON.stringify(rpc('tools/list', envelope()));
  const response = await fetch(`${freehold.publicUrl}/mcp`, { method: 'POST', headers, body });
  const bytes = await response.arrayBuffer();
  expect(response.status).toBe(200);
  expect(response.headers.get('content-length')).toBe(String(bytes.byteLength));
  expect(response.headers.get('x-request-id')).toMatch(/^req_/);
});
