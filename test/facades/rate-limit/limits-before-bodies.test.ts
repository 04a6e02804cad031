/** Work that a caller above a limit does not cost the service, and bodies that cost more than they say. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startFreehold } from '../../setup/freehold.ts';
import { envelope, modern, rawClient, rpc } from '../mcp/raw-client.ts';

const { publicUrl } = await startFreehold({ ROLES: 'api', TRUSTED_PROXY_CIDRS: '127.0.0.0/8' });
const limited = await startFreehold({
  ROLES: 'api',
  TRUSTED_PROXY_CIDRS: '127.0.0.0/8',
  RATE_LIMIT_PUBLIC_PER_MINUTE: '3',
});
const list = (length: number) => `[${Array(length).fill('{}').join(',')}]`;

/** The status of a request whose body never comes. Without an early refusal, the service waits for the body. */
async function withoutBody(method: string, path: string, address: string, length = 200_000): Promise<number> {
  const socket = connect(Number(new URL(limited.publicUrl).port), '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  const headers = [
    `${method} ${path} HTTP/1.1`,
    'Host: localhost',
    'Content-Type: application/json',
    `X-Forwarded-For: ${address}`,
    `Content-Length: ${length}`,
  ];
  socket.write(`${headers.join('\r\n')}\r\n\r\n`);
  const answer = Promise.race([once(socket, 'data'), new Promise<string>((done) => setTimeout(done, 1_000, 'none'))]);
  return Number(String(await answer).split(' ')[1]);
}

describe('A caller above its limit', () => {
  it.each([
    ['POST', '/mcp'],
    ['POST', '/hooks/payments'],
    ['POST', '/nothing'],
    ['POST', '/v1/catalog'],
    ['DELETE', '/mcp'],
  ])('is refused %s %s before its body', async (method, path) => {
    const address = `198.51.100.${method.length + path.length}`;
    for (let i = 0; i < 4; i++)
      await fetch(`${limited.publicUrl}/v1/catalog`, { headers: { 'x-forwarded-for': address } });
    expect(await withoutBody(method, path, address)).toBe(429);
  });

  it('reaches its limit over MCP by large bodies that never come', async () => {
    const statuses = [];
    for (let i = 0; i < 4; i++) statuses.push(await withoutBody('POST', '/mcp', '198.51.100.200'));
    expect(statuses.at(-1)).toBe(429);
  });

  it('reaches its limit by heads that are too large', async () => {
    const headers = { 'x-forwarded-for': '198.51.100.202', accept: '*/*,'.repeat(5_000) };
    const statuses = [];
    for (let i = 0; i < 4; i++) statuses.push((await fetch(`${limited.publicUrl}/v1/catalog`, { headers })).status);
    expect(statuses).toEqual([400, 400, 400, 429]);
  });

  it('has one count for a large call over MCP, whose body comes', async () => {
    const { send } = rawClient(`${limited.publicUrl}/mcp`, '');
    const { _meta } = envelope();
    const body = rpc('tools/list', { _meta: { ..._meta, 'x/note': 'x'.repeat(10_000) } });
    const headers = { ...modern('tools/list'), 'x-forwarded-for': '198.51.100.201' };
    const statuses = [];
    for (let i = 0; i < 4; i++) statuses.push((await send({ headers, body, without: ['authorization'] })).status);
    expect(statuses).toEqual([200, 200, 200, 429]);
  });

  it('still gets the error of a small tool call, with its id', async () => {
    const { send } = rawClient(`${limited.publicUrl}/mcp`, '');
    const headers = { ...modern('tools/call', 'list_catalog'), 'x-forwarded-for': '203.0.113.9' };
    const body = rpc('tools/call', { name: 'list_catalog', arguments: {}, ...envelope() }, 7);
    const answers = [];
    for (let i = 0; i < 5; i++) answers.push(await send({ headers, body, without: ['authorization'] }));
    const { status, messages } = answers.at(-1)!;
    expect([status, messages[0].id, messages[0].error.data.code]).toEqual([429, 7, 'rate_limited']);
  });
});

describe('OPTIONS', () => {
  const options = (address: string, body?: string) =>
    fetch(`${limited.publicUrl}/v1/servers`, {
      method: 'OPTIONS',
      headers: { 'x-forwarded-for': address, 'content-type': 'application/json' },
      ...(body && { body }),
    });

  it('counts, apart from the other calls of its address', async () => {
    for (let i = 0; i < 3; i++) expect((await options('203.0.113.20')).status).toBe(200);
    expect((await options('203.0.113.20')).status).toBe(429);
    const headers = { 'x-forwarded-for': '203.0.113.20' };
    expect((await fetch(`${limited.publicUrl}/v1/catalog`, { headers })).status).toBe(200);
  });

  it('takes no body', async () => {
    const refused = await options('203.0.113.21', '{}');
    expect([refused.status, (await refused.json()).code]).toEqual([400, 'body_too_large']);
    expect(await withoutBody('OPTIONS', '/v1/servers', '203.0.113.22')).toBe(400);
  });
});

describe('A body of more than 1,000 values', () => {
  it.each([
    ['objects', list(1_000)],
    ['numbers', `[${'1,'.repeat(1_001)}1]`],
    ['members', JSON.stringify(Object.fromEntries(Array.from({ length: 1_001 }, (_, i) => [i, i])))],
  ])('is refused by REST and by MCP: %s', async (_, text) => {
    const headers = { 'content-type': 'application/json' };
    const rest = await fetch(`${publicUrl}/v1/auth/login`, { method: 'POST', headers, body: text });
    expect([rest.status, await rest.json()]).toMatchObject([400, { code: 'body_too_large' }]);
    const { status, messages } = await rawClient(`${publicUrl}/mcp`, '').send({
      body: text,
      without: ['authorization'],
    });
    expect([status, messages[0].error.message]).toEqual([400, 'The body has more than 1,000 values.']);
  });

  it('differs from a long text, and from fewer values', async () => {
    const { outcome } = rawClient(`${publicUrl}/mcp`, '');
    for (const note of ['"{[,:'.repeat(10_000), Array(400).fill({ a: [] })]) {
      const { _meta } = envelope();
      const body = rpc('tools/list', { _meta: { ..._meta, 'x/note': note } });
      expect(await outcome({ headers: modern('tools/list'), body, without: ['authorization'] })).toEqual([200, 1]);
    }
  });
});
