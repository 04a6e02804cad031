/** Sessions of callers who open many: none ends a call of another caller, or one that has begun to work. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Server } from '@modelcontextprotocol/server';
import { describe, expect, it, onTestFinished } from 'vitest';
import { authInfoOf, type McpCaller } from '../../../facades/mcp/caller.ts';
import { type Held, type Owner, ownerOf, roomFor } from '../../../facades/mcp/transport/session-limits.ts';
import { Sessions } from '../../../facades/mcp/transport/sessions.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { viewer as sampleViewer } from '../sample-api.ts';
import { call, INITIALIZE, of2025, rawClient, rpc, whenWaiting } from './raw-client.ts';

const freehold = await startFreehold({
  TRUSTED_PROXY_CIDRS: '127.0.0.0/8',
  SIMULATED_PROVISION_SECONDS: '600',
  POLL_SECONDS: '0.2',
});
const { send } = rawClient(`${freehold.publicUrl}/mcp`, '');

/** Lets an order fail now, which ends the waits for its server. */
const fail = (orderNumber: string) =>
  freehold.db.query('update task set deadline_at = now(), run_at = now() where subject = $1', [orderNumber]);

/** A stranger of a network. Without an address: of this machine. */
function stranger(address?: string, credential?: string) {
  const headers = {
    ...of2025('2025-11-25'),
    ...(address && { 'x-forwarded-for': address }),
    ...(credential && { authorization: `Bearer ${credential}` }),
  };
  const without = credential ? [] : ['authorization'];
  const open = async () => send({ headers, without, body: rpc('initialize', INITIALIZE) });
  const within = (session: string | null, body: unknown) =>
    send({ headers: { ...headers, 'mcp-session-id': session! }, without, body });
  return { open, within };
}
const resultOf = ({ messages }: Awaited<ReturnType<typeof send>>) => messages[0]?.result?.structuredContent;

describe('Fifty-five strangers who initialize', () => {
  it.each(['198.51.100.1', undefined])(
    'cost a caller no answer of an order or a wait (a caller from %s)',
    async (address) => {
      const { accessToken: access_token, fund } = await freehold.newAccount();
      await fund(30);
      const victim = stranger(address);
      const [ordering, waiting] = [(await victim.open()).session, (await victim.open()).session];
      const newcomers = () => Promise.all(Array.from({ length: 55 }, () => stranger().open()));
      const order = victim.within(ordering, call('order_server', { service_code: 'vps-1', access_token }));
      await newcomers();
      const ordered = resultOf(await order);
      expect(ordered.root_password).toEqual(expect.any(String));
      const wait = { order_number: ordered.order_number, status: 'running', timeout: 25, access_token };
      const [waited] = await whenWaiting(freehold.db, () => [victim.within(waiting, call('wait_for_server', wait))]);
      for (const { status } of await newcomers()) expect(status).toBe(200);
      await fail(ordered.order_number);
      expect(resultOf((await waited)!).order_number).toBe(ordered.order_number);
    },
  );
});

describe('A caller who holds all sessions with calls under way', () => {
  it.each([
    ['a network without a credential', false],
    ['a credential', true],
  ])('is the only one to be refused another: %s', async (_, hasAccount) => {
    const owner = hasAccount ? await freehold.newAccount() : undefined;
    // An account has 32 calls under way at most, so two accounts wait.
    const waiters = await Promise.all(
      [1, 2].map(async () => {
        const { accessToken: access_token, rest, fund } = await freehold.newAccount();
        await fund(30);
        const { body } = await rest('POST', '/v1/servers', { service_code: 'vps-1' });
        return { access_token, order_number: body.order_number as string };
      }),
    );
    const holder = stranger('198.51.100.7', owner?.accessToken);
    const sessions = await Promise.all(Array.from({ length: 50 }, async () => (await holder.open()).session));
    const args = (i: number) => ({ ...waiters[i % 2]!, status: 'failed', timeout: 25 });
    const waits = await whenWaiting(freehold.db, () =>
      sessions.map((session, i) => holder.within(session, call('wait_for_server', args(i)))),
    );
    const refused = await holder.open();
    expect([refused.status, refused.retryAfter, refused.messages[0].id]).toEqual([429, '5', 1]);
    expect(refused.messages[0].error.message).toContain('50 sessions');
    expect((await stranger('198.51.100.8').open()).status).toBe(200);
    for (const { order_number } of waiters) await fail(order_number);
    for (const [i, answer] of (await Promise.all(waits)).entries())
      expect(resultOf(answer).order_number).toBe(waiters[i % 2]!.order_number);
    expect((await holder.open()).status).toBe(200);
  });
});

it('A key with all calls of its account under way holds up no urgent call of a login', async () => {
  const { accessToken, rest, fund } = await freehold.newAccount();
  await fund(30);
  const { order_number } = (await rest('POST', '/v1/servers', { service_code: 'vps-1' })).body;
  const key = (await rest('POST', '/v1/auth/api-keys', { name: 'stolen', scope: 'read' })).body;
  const as = (credential: string, name: string, args: object) =>
    send({ headers: { authorization: `Bearer ${credential}` }, body: call(name, args) });
  const wait = { order_number, status: 'failed', timeout: 20 };
  const waits = await whenWaiting(freehold.db, () =>
    Array.from({ length: 32 }, () => as(key.plaintext, 'wait_for_server', wait)),
  );
  expect(resultOf(await as(accessToken, 'get_balance', {})).code).toBe('rate_limited');
  const revoked = await as(accessToken, 'revoke_api_key', { key_id: key.key_id });
  expect(resultOf(revoked)).toMatchObject({ status: 'revoked' });
  await Promise.all(waits);
});

it('The keys of an account share a limit of sessions', async () => {
  const { rest, accessToken } = await freehold.newAccount();
  const key = async () => (await rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'read' })).body.plaintext;
  const clients = [accessToken, await key(), await key()].map((credential) => stranger(undefined, credential));
  const first = (await clients[0]!.open()).session;
  for (let i = 0; i < 120; i++) expect((await clients[i % 3]!.open()).status).toBe(200);
  // The oldest session made room, and the service opens it again.
  expect((await clients[0]!.within(first, rpc('ping'))).status).toBe(200);
});

it('The tokens of an OAuth client share a limit of sessions, so they end none of the owner', () => {
  const viewer = {
    accountId: 'acct',
    kind: 'access_token',
    name: null,
    scopes: new Set<never>(),
    expiresAt: null,
  } as const;
  const owned = (credentialId: string, holder: string | null) =>
    ownerOf({ viewer: { ...viewer, credentialId, holder, family: credentialId }, address: null }, Buffer.alloc(32));
  const idle = (id: string, owner: Owner) => [id, { owner, calls: 0, streams: 0, questions: { size: 0 } }] as const;
  const ofClient = Array.from({ length: 50 }, (_, i) => idle(`c${i}`, owned(`tok_${i % 25}`, 'cl_1')));
  const live = new Map([idle('login', owned('tok_login', null)), ...ofClient]);
  expect(roomFor(owned('tok_new', 'cl_1'), live)).toEqual({ evicts: 'c0' });
  expect(roomFor(owned('tok_login', null), live)).toEqual({});
});

describe('A full process', () => {
  const session = (id: string, owner: Owner, calls = 0, asking = 0): readonly [string, Held] => [
    id,
    { owner, calls, streams: 0, questions: { size: asking } },
  ];
  const strangers = (count: number, calls = 0) =>
    Array.from({ length: count }, (_, i) => session(`s${i}`, { credential: '', counted: '', group: `n${i}` }, calls));
  const customer = (id: string, group: string, calls = 0, asking = 0) =>
    session(id, { credential: id, counted: id, group }, calls, asking);
  /** Accounts with an idle session each. */
  const customers = (count: number) => Array.from({ length: count }, (_, i) => customer(`c${i}`, `account ${i}`));
  const [newcomer, unknown] = [
    { credential: 'new', counted: 'new', group: 'new account' },
    { credential: '', counted: '', group: 'new network' },
  ];
  const both = [newcomer, unknown];

  it('takes room from the oldest idle stranger', () => {
    const [, busy] = strangers(1, 1)[0]!;
    const [, idle] = strangers(1)[0]!;
    const live = new Map([customer('c', 'account'), ['busy', busy], ['old', idle], ...strangers(1_997)]);
    for (const owner of both) expect(roomFor(owner, live)).toEqual({ evicts: 'old' });
  });

  it('takes room from the account with most sessions, while others have calls under way', () => {
    const live = new Map([
      customer('one', 'small'),
      ...['a', 'b'].map((id) => customer(id, 'large')),
      ...['k', 'l', 'm'].map((id) => customer(id, 'largest')),
      ...strangers(1_994, 1),
    ]);
    for (const owner of both) expect(roomFor(owner, live)).toEqual({ evicts: 'k' });
  });

  it('takes room from the account with most sessions before idle strangers, for a customer', () => {
    const live = new Map([...strangers(1_998), customer('a', 'large'), customer('b', 'large')]);
    expect(roomFor(newcomer, live)).toEqual({ evicts: 'a' });
    expect(roomFor(unknown, live)).toEqual({ evicts: 's0' });
  });

  it('of twenty accounts that ask their users in every session has room for a customer and a stranger', () => {
    const ids = Array.from({ length: 2_000 }, (_, i) => i);
    const live = new Map(ids.map((i) => customer(`${i}`, `account ${i % 20}`, 1, 1)));
    for (const owner of both) expect(roomFor(owner, live)).toEqual({ evicts: '0' });
    // Each of them has its own limit.
    expect(roomFor({ credential: '0', counted: '0', group: 'account 0' }, live)).toEqual({ evicts: '0' });
  });

  it('ends an idle session before one that asks, and one that asks before one that works', () => {
    const small = strangers(1_997, 1);
    const [working, asking, idle] = [customer('w', 'l', 1), customer('q', 'l', 1, 1), customer('i', 'l')];
    expect(roomFor(newcomer, new Map([working, asking, idle, ...small]))).toEqual({ evicts: 'i' });
    expect(roomFor(newcomer, new Map([working, asking, ...strangers(1_998, 1)]))).toEqual({ evicts: 'q' });
    // Its calls end before it closes.
    const both = [working, customer('x', 'l', 1)];
    expect(roomFor(newcomer, new Map([...both, ...strangers(1_998, 1)]))).toEqual({ evicts: 'w' });
  });

  it('of accounts with an idle session each has room for a customer: the least recently used one gives it', () => {
    const live = new Map([customer('busy', 'b', 1), ...customers(1_999)]);
    expect(roomFor(newcomer, live)).toEqual({ evicts: 'c0' });
    // A stranger takes the room of no account that has one session.
    expect(roomFor(unknown, live)).toMatchObject({ status: 503 });
  });

  it('spares an idle session with an open stream of updates while another is idle', () => {
    const streaming = customers(2_000).map(([id, held]) => [id, { ...held, streams: 1 }] as const);
    expect(roomFor(newcomer, new Map(streaming))).toEqual({ evicts: 'c0' });
    expect(roomFor(newcomer, new Map([...streaming.slice(0, 1_999), customer('quiet', 'q')]))).toEqual({
      evicts: 'quiet',
    });
  });

  it('takes no room from a smaller account for one with an idle session of its own', () => {
    const [own, busy] = [customer('own', newcomer.group), customer('busy', newcomer.group, 1)];
    expect(roomFor(newcomer, new Map([...customers(1_999), own]))).toEqual({ evicts: 'own' });
    expect(roomFor(newcomer, new Map([...customers(1_999), busy]))).toEqual({ evicts: 'c0' });
    const equal = customer('second', 'account 1');
    expect(roomFor(newcomer, new Map([...customers(1_998), equal, busy]))).toEqual({ evicts: 'c1' });
  });

  it('refuses the newcomer while no other has more than one session, and all have calls under way', () => {
    expect(roomFor(newcomer, new Map(strangers(2_000, 1)))).toMatchObject({ status: 503 });
    expect(roomFor(unknown, new Map(strangers(2_000, 1)))).toMatchObject({ status: 503 });
  });
});

/** The sessions of a process, with a credential of its own for each account. */
function process(checked = Promise.resolve()) {
  /** The accounts whose sessions gave room, in turn. */
  const gave: (string | null)[] = [];
  const sessions = new Sessions({
    factory: () => new Server({ name: 'test', version: '1' }, { capabilities: {} }),
    secrets: [Buffer.alloc(32, 7)],
    onCredentialEnd: ({ accountId }) => ({ checked, forget: () => gave.push(accountId) }),
    onError: () => {},
  });
  onTestFinished(() => sessions.close());
  async function send(account: string, method: 'GET' | 'POST', session?: string, body?: object) {
    const viewer = account ? { ...sampleViewer('read'), accountId: account, credentialId: account } : null;
    const accept = `text/event-stream${body ? ', application/json' : ''}`;
    const headers = {
      accept,
      ...of2025('2025-11-25'),
      'content-type': 'application/json',
      ...(session && { 'mcp-session-id': session }),
    };
    const raw = body && JSON.stringify(body);
    return sessions.fetch(new Request('http://localhost/mcp', { method, headers, ...(raw && { body: raw }) }), {
      authInfo: authInfoOf({ viewer, address: '198.51.100.1' } as McpCaller),
      parsedBody: body,
    });
  }
  async function open(account: string) {
    const answer = await send(account, 'POST', undefined, rpc('initialize', INITIALIZE));
    const text = await answer.text();
    return { status: answer.status, session: answer.headers.get('mcp-session-id')!, text };
  }
  const ping = async (account: string, session: string) => {
    const answer = await send(account, 'POST', session, rpc('ping'));
    await answer.text();
    return answer.status;
  };
  return { gave, open, ping, stream: (account: string, session: string) => send(account, 'GET', session) };
}

it('Two thousand accounts with an idle session each keep no customer out, and lose no stream of updates', async () => {
  const { gave, open, ping, stream } = process();
  const first = (await open('first')).session;
  const updates = (await stream('first', first)).body!;
  const sessions: string[] = [];
  for (let i = 0; i < 1_999; i++) sessions.push((await open(`many ${i}`)).session);
  expect((await open('')).status).toBe(503);
  for (let i = 0; i < 3; i++) expect((await open(`customer ${i}`)).status).toBe(200);
  expect(gave).toEqual(['many 0', 'many 1', 'many 2']);
  // The service opens a session that gave room again. A client that left its stream has no updates to lose.
  expect(await ping('many 0', sessions[0]!)).toBe(200);
  await updates.cancel();
  await sleep(100);
  expect(await ping('many 1', sessions[1]!)).toBe(200);
  expect(gave.slice(3)).toEqual(['many 3', 'first']);
});

it('A session that is opening gives no room', async () => {
  const checked = Promise.withResolvers<void>();
  const { open } = process(checked.promise);
  const openings = Array.from({ length: 50 }, () => open('one'));
  await sleep(200);
  const late = [open('one'), open('one')];
  await sleep(200);
  checked.resolve();
  for (const { text } of await Promise.all(openings)) expect(text).toContain('"protocolVersion":"2025-11-25"');
  expect((await Promise.all(late)).map(({ status }) => status)).toEqual([429, 429]);
});
