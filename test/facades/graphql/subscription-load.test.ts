/** Many subscriptions of one account. */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { oauthRequests } from '../../accounts/oauth/requests.ts';
import { eventually, startFreehold, type TestAccount } from '../../setup/freehold.ts';
import { queriesOf } from '../../setup/queries.ts';
import { listen } from '../../setup/subscription.ts';

const { anonymous, db, newAccount, graphqlUrl, operatorToken } = await startFreehold();
const { newClient, tokenOf } = oauthRequests(anonymous);
const limited = await startFreehold({ ROLES: 'api', RATE_LIMIT_KEY_PER_MINUTE: '120' });
const SERVERS = 'subscription { serverUpdated { server { orderNumber labels } } }';
const CHANGES = 10;

/** Opens ten subscriptions with each of so many new keys. It waits for each ten, because an account may begin 32 at once. */
async function tenEach(account: TestAccount, keys: number, query: string) {
  const all: ReturnType<typeof listen>[] = [];
  for (let n = 0; n < keys; n++) {
    const { body } = await account.rest('POST', '/v1/auth/api-keys', { name: `key ${n}`, scope: 'read' });
    all.push(...Array.from({ length: 10 }, () => listen(graphqlUrl, body.plaintext, query)));
    await eventually(async () => all.every(({ messages }) => messages.length));
  }
  return all;
}

it('All tokens of an OAuth client have ten subscriptions together, so the owner has others', async () => {
  const account = await newAccount();
  const balance = 'subscription { balanceChanged { balanceUsd } }';
  const client = await newClient({ scope: 'read' }, account.rest);
  const [first, second] = [await tokenOf(client), await tokenOf(client)];
  const all = Array.from({ length: 10 }, () => listen(graphqlUrl, first, balance));
  await eventually(async () => all.every(({ messages }) => messages[0]?.balanceChanged));
  const refused = listen(graphqlUrl, second, balance);
  await eventually(async () => refused.messages.length || refused.failure());
  expect(JSON.stringify(refused.failure() ?? refused.messages[0])).toContain('10 subscriptions at once');
  const own = listen(graphqlUrl, account.accessToken, balance);
  await eventually(async () => own.messages[0]?.balanceChanged);
  for (const one of [...all, refused, own]) one.dispose();
});

it('An operator has the console open in many windows, of which each has three subscriptions', async () => {
  const events = 'subscription { operatorEvent { id } }';
  const all = Array.from({ length: 30 }, () => listen(graphqlUrl, operatorToken, events));
  await eventually(async () => all.every(({ messages, failure }) => messages.length || failure()));
  expect(all.filter(({ messages }) => !messages[0]?.operatorEvent)).toEqual([]);
  for (const one of all) one.dispose();
});

it('An account has at most 50 subscriptions with all its credentials, and the end of one allows another', async () => {
  const account = await newAccount();
  const balance = 'subscription { balanceChanged { balanceUsd } }';
  const all = await tenEach(account, 5, balance);
  await eventually(async () => all.every(({ messages }) => messages[0]?.balanceChanged));
  const refused = listen(graphqlUrl, account.accessToken, balance);
  await eventually(async () => refused.messages.length || refused.failure());
  expect(JSON.stringify(refused.failure() ?? refused.messages[0])).toContain('50 subscriptions at once');
  const other = listen(graphqlUrl, (await newAccount()).accessToken, balance);
  await eventually(async () => other.messages[0]?.balanceChanged);
  all[0]!.dispose();
  await eventually(async () => {
    const again = listen(graphqlUrl, account.accessToken, balance);
    await eventually(async () => again.messages.length || again.failure());
    again.dispose();
    return Boolean(again.messages[0]?.balanceChanged);
  });
  for (const one of [...all, refused, other]) one.dispose();
});

it('Subscriptions of one account share their reads, and each hears the last change', async () => {
  const account = await newAccount();
  await account.fund(30);
  const { order_number: order } = (await account.rest('POST', '/v1/servers', { service_code: 'vps-1' })).body;
  await eventually(async () => (await account.rest('GET', `/v1/servers/${order}`)).body.status === 'running');
  const all = await tenEach(account, 3, SERVERS);
  await eventually(async () => all.every(({ messages }) => messages.length));
  const queries = await queriesOf(db, async () => {
    for (let n = 1; n <= 10; n++) await account.rest('PATCH', `/v1/servers/${order}`, { labels: { n: String(n) } });
    await eventually(async () =>
      all.every(({ messages }) => JSON.stringify(messages.at(-1).serverUpdated.server.labels).includes('"10"')),
    );
  });
  expect(queries.filter(({ text }) => text.includes('cross join lateral')).length).toBeLessThanOrEqual(
    (all.length * CHANGES) / 10,
  );
  for (const one of all) one.dispose();
});

/** Opens a WebSocket with a credential. */
async function connected(accessToken: string): Promise<WebSocket> {
  const socket = new WebSocket(graphqlUrl.replace('http', 'ws'), 'graphql-transport-ws');
  await once(socket, 'open');
  socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${accessToken}` } }));
  await once(socket, 'message');
  return socket;
}
const subscribe = (socket: WebSocket, id: number, query: string) =>
  socket.send(JSON.stringify({ id: String(id), type: 'subscribe', payload: { query } }));

it('A WebSocket whose client reads nothing is closed before its messages fill the memory', async () => {
  const socket = await connected((await newAccount()).accessToken);
  const types = [1, 2, 3, 4].map((n) => `t${n}: types { name description fields { name description } }`);
  const received: string[] = [];
  socket.on('message', (message) => received.push(String(message)));
  const closed = once(socket, 'close');
  let sent = 0;
  // A busy machine writes little in a pause.
  for (let pauses = 0; pauses < 12 && socket.readyState === WebSocket.OPEN; pauses++) {
    socket.pause();
    for (const last = sent + 100; sent < last; sent++) subscribe(socket, sent, `{ __schema { ${types.join(' ')} } }`);
    await sleep(5_000);
    socket.resume();
    await Promise.race([closed, sleep(500)]);
  }
  await closed;
  expect(received.length).toBeLessThan(sent);
});

it('A key has its limit of calls, and the operator has none', async () => {
  const { graphql } = await limited.newAccount();
  let [calls, code] = [0, undefined];
  for (; !code && calls < 300; calls++) code = (await graphql('{ account { id } }')).errors?.[0].extensions.code;
  expect(code).toBe('rate_limited');
  // On a busy machine the earliest calls leave the minute.
  expect(calls).toBeGreaterThan(120);
  for (let call = 0; call < 121; call++)
    expect((await limited.operator('{ gateways { name } }')).errors).toBeUndefined();
});

it('A WebSocket has at most a hundred operations that wait', async () => {
  const socket = await connected((await newAccount()).accessToken);
  const messages: { id: string; payload: { message: string; extensions: { code: string } }[] }[] = [];
  socket.on('message', (message) => messages.push(JSON.parse(String(message))));
  for (let id = 0; id < 400; id++) subscribe(socket, id, '{ account { id } }');
  await eventually(async () => new Set(messages.map(({ id }) => id)).size === 400);
  const refused = messages.filter(({ payload }) => Array.isArray(payload)).map(({ payload }) => payload[0]!);
  expect(new Set(refused.map(({ extensions }) => extensions.code))).toEqual(new Set(['rate_limited']));
  expect(refused.some(({ message }) => message.includes('operations of this socket wait'))).toBe(true);
  socket.close();
});

it('A stranger who sends fragments without end is cut off', async () => {
  const socket = new WebSocket(graphqlUrl.replace('http', 'ws'), 'graphql-transport-ws');
  await once(socket, 'open');
  const closed = once(socket, 'close');
  for (let sent = 0; sent < 200; sent++) socket.send('x', { fin: false });
  await closed;
});

it('A stranger who sends messages without a credential is cut off, and so is a flood of pings', async () => {
  for (const [socket, count] of [
    [new WebSocket(graphqlUrl.replace('http', 'ws'), 'graphql-transport-ws'), 20],
    [await connected((await newAccount()).accessToken), 3_000],
  ] as const) {
    if (socket.readyState !== WebSocket.OPEN) await once(socket, 'open');
    const closed = once(socket, 'close');
    for (let sent = 0; sent < count; sent++) socket.send('{"type":"ping"}', () => {});
    await closed;
  }
});

it('A subscription asks for few values, and its answers are small', async () => {
  const account = await newAccount();
  await account.fund(30);
  const labels = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`label-${n}`, 'x'.repeat(60)]));
  await account.rest('POST', '/v1/servers', { service_code: 'vps-1', labels });
  const asking = (values: number) =>
    listen(
      graphqlUrl,
      account.accessToken,
      `subscription { serverUpdated { server { ${Array.from({ length: values }, (_, n) => `l${n}: labels`).join(' ')} } } }`,
    );
  const [many, large, small] = [asking(250), asking(100), asking(10)];
  await eventually(async () => [many, large, small].every(({ messages, failure }) => messages.length || failure()));
  expect(JSON.stringify(many.failure() ?? many.messages)).toContain('values, and may for 200');
  expect(JSON.stringify(large.failure() ?? large.messages)).toContain('The answer is too large');
  expect(small.messages[0].serverUpdated.server.l9).toEqual(labels);
  for (const one of [many, large, small]) one.dispose();
});
