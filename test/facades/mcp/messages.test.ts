/** Each message counts for the rate limits, by its credential or network, before the service does any work for it. */
import { beforeEach, describe, expect, it } from 'vitest';
import { newDatabaseUrl } from '../../setup/database.ts';
import { eventually, startFreehold } from '../../setup/freehold.ts';
import { call, envelope, INITIALIZE, modern, notification, rawClient, rpc, type Send } from './raw-client.ts';

const QUOTA = 12;
const url = await newDatabaseUrl();
/** Makes the accounts, without a limit of registrations. */
const generous = await startFreehold({ DATABASE_URL: url });
const freehold = await startFreehold({
  DATABASE_URL: url,
  ROLES: 'api',
  RATE_LIMIT_STORE: 'memory',
  RATE_LIMIT_PUBLIC_PER_MINUTE: String(QUOTA),
  RATE_LIMIT_KEY_PER_MINUTE: String(QUOTA),
  TRUSTED_PROXY_CIDRS: '127.0.0.0/8',
});
const { send, outcome } = rawClient(`${freehold.publicUrl}/mcp`, '');

/** Begins no test at the end of a minute, because a new window would allow more requests. */
beforeEach(() => eventually(async () => Date.now() % 60_000 < 45_000, 20), 30_000);

let addresses = 0;
/** Sends as a stranger with an address of its own. */
const stranger = () => {
  const headers = { 'x-forwarded-for': `198.51.100.${++addresses}` };
  return (request: Send) =>
    send({
      ...request,
      headers: { ...headers, ...request.headers },
      without: ['authorization', ...(request.without ?? [])],
    });
};

describe('A message of a stranger counts', () => {
  it.each<[what: string, request: Send, status: number]>([
    ['initialize', { body: rpc('initialize', INITIALIZE) }, 200],
    ['a list of tools', { body: rpc('tools/list') }, 200],
    ['a list of prompts', { body: rpc('prompts/list') }, 200],
    ['a list of the newest version', { body: rpc('tools/list', envelope()), headers: modern('tools/list') }, 200],
    ['a ping', { body: rpc('ping') }, 200],
    ['a notification', { body: notification('notifications/initialized') }, 202],
    ['an answer', { body: { jsonrpc: '2.0', id: 1, result: {} } }, 202],
    ['a resource', { body: rpc('resources/read', { uri: 'freehold://coins' }) }, 200],
    ['an unknown tool', { body: call('nothing') }, 200],
    ['a tool with a refused credential', { body: call('get_balance', { access_token: 'nonsense' }) }, 200],
    ['a tool with a credential that is no text', { body: call('get_balance', { access_token: { toString: 1 } }) }, 200],
    ['an unknown session', { body: rpc('ping'), headers: { 'mcp-session-id': 'x' } }, 404],
    ['an unknown version', { body: rpc('ping'), headers: { 'mcp-protocol-version': '1999-01-01' } }, 400],
    ['a body that is no JSON', { body: '{' }, 400],
    ['a body that is too large', { body: rpc('ping', { x: 'a'.repeat(300_000) }) }, 400],
    ['a batch that is too long', { body: Array.from({ length: 11 }, (_, i) => rpc('ping', {}, i)) }, 400],
    ['a stream without a session', { method: 'GET' }, 405],
    ['an end without a session', { method: 'DELETE' }, 405],
    ['a page of another site', { body: rpc('ping'), headers: { origin: 'https://evil.example' } }, 403],
  ])('%s', async (_, request, status) => {
    const client = stranger();
    const first = await client(request);
    expect([first.status, first.remaining]).toEqual([status, QUOTA - 1]);
    for (let i = 1; i < QUOTA; i++) await client(request);
    const over = await client({ body: rpc('ping', {}, 'mine') });
    expect([over.status, over.messages]).toEqual([
      429,
      [
        {
          jsonrpc: '2.0',
          id: 'mine',
          error: { code: -32000, message: expect.stringContaining('"public"'), data: over.data },
        },
      ],
    ]);
    expect(over.data).toEqual({ code: 'rate_limited', retry_after: expect.any(Number) });
    expect(over.retryAfter).toBe(String(over.data.retry_after));
  });

  it('a tool call, once, and beyond the limit the service refuses its POST', async () => {
    const client = stranger();
    for (let i = 1; i <= QUOTA; i++) expect((await client({ body: call('list_coins') })).remaining).toBe(QUOTA - i);
    for (const body of [call('list_coins'), call('get_balance', { access_token: 'nonsense' })]) {
      const { status, messages } = await client({ body });
      expect([status, messages.map(({ id }) => id), messages[0].error.data.code]).toEqual([429, [1], 'rate_limited']);
    }
    const body = Array.from({ length: 10 }, (_, id) => ({ ...call('get_balance'), id }));
    const { status, messages } = await client({ body });
    expect([status, messages.map(({ id }) => id), messages[0].error.data.code]).toEqual([429, [null], 'rate_limited']);
  });
});

describe('A batch', () => {
  it('counts each of its messages', async () => {
    const client = stranger();
    const body = [
      rpc('ping', {}, 1),
      { ...call('list_coins'), id: 2 },
      notification('notifications/initialized'),
      rpc('tools/list', {}, 3),
    ];
    expect((await client({ body })).remaining).toBe(QUOTA - 4);
  });

  it('is refused whole if a limit refuses one of its messages, and does nothing', async () => {
    const client = stranger();
    for (let i = 2; i < QUOTA; i++) await client({ body: rpc('ping') });
    const { status, messages } = await client({ body: Array.from({ length: 10 }, (_, i) => rpc('tools/list', {}, i)) });
    expect([status, messages.map(({ id }) => id)]).toEqual([429, [null]]);
  });

  it('holds at most ten messages of 64 KiB together, with ids of their own', async () => {
    const client = stranger();
    const pings = (count: number) => Array.from({ length: count }, (_, i) => rpc('ping', {}, i));
    const { messages } = await client({ body: pings(11) });
    expect(messages[0].error).toEqual({ code: -32600, message: expect.stringContaining('at most 10 messages') });
    expect((await client({ body: pings(10) })).messages).toHaveLength(10);
    const large = await stranger()({ body: [rpc('ping', { note: 'x'.repeat(65_536) })] });
    const text = 'A batch has at most 64 KiB. Send its messages one by one.';
    expect([large.status, large.messages[0].error]).toEqual([400, { code: -32600, message: text }]);
    const twice = await stranger()({ body: [rpc('ping', {}, 1), rpc('ping', {}, 1)] });
    expect([twice.status, twice.messages[0].error.code]).toEqual([400, -32600]);
  });
});

it('A customer counts by the credential, of the header or of the argument', async () => {
  const [one, two] = [await generous.newAccount(), await generous.newAccount()];
  const as = (credential: string, body: unknown) =>
    send({ headers: { authorization: `Bearer ${credential}`, 'x-forwarded-for': '198.51.100.250' }, body });
  expect((await as(one.accessToken, rpc('tools/list'))).remaining).toBe(QUOTA - 1);
  const balance = call('get_balance', { access_token: two.accessToken });
  for (let i = 0; i < QUOTA; i++) await as(one.accessToken, balance);
  expect((await as(one.accessToken, balance)).messages[0].result.structuredContent.code).toBe('rate_limited');
  expect((await as(one.accessToken, rpc('ping'))).remaining).toBe(QUOTA - 2);
  expect((await as(two.accessToken, rpc('ping'))).status).toBe(429);
  const stream = { method: 'GET', headers: { authorization: `Bearer ${two.accessToken}` } };
  expect(await outcome(stream)).toEqual([429, [null, -32000]]);
});
