/** The service keeps little of a request over MCP. The heap of the process shows it, after a collection. */
import { once } from 'node:events';
import { createServer, connect, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it, onTestFinished } from 'vitest';
import { atEnd } from '../../setup/end.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { call, envelope, modern, notification, of2025, rpc } from '../mcp/raw-client.ts';

const { newAccount, publicUrl } = await startFreehold({ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' });

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
async function heapBytes(): Promise<number> {
  for (let i = 0; i < 5; i++) await new Promise((resume) => setTimeout(resume, 50, collectGarbage()));
  return process.memoryUsage().heapUsed;
}

/** Expects that work keeps few bytes. Other work of this process may add to a figure, so it measures up to three times. */
async function expectLittle(keptBytes: () => Promise<number>, limitBytes: number): Promise<void> {
  const figures: number[] = [];
  do figures.push(await keptBytes());
  while (figures.at(-1)! > limitBytes && figures.length < 3);
  expect(Math.min(...figures)).toBeLessThan(limitBytes);
}

/** A receiver of webhooks that never answers. */
const silent = createServer((socket) => void socket.on('error', () => {}).resume()).listen(0, '127.0.0.1');
await once(silent, 'listening');
atEnd(() => silent.close());

const { port } = silent.address() as AddressInfo;
/** An account with a server and a webhook. */
async function newCaller() {
  const { accessToken, fund, rest } = await newAccount();
  await fund(30);
  const { body: order } = await rest('POST', '/v1/servers', { service_code: 'vps-1' });
  const { body: hook } = await rest('POST', '/v1/webhooks', { url: `http://127.0.0.1:${port}`, events: ['*'] });
  return {
    authorization: `Bearer ${accessToken}`,
    uri: `freehold://servers/${order.order_number}`,
    test: call('test_webhook', { id: hook.id }),
  };
}

const LARGE = 200_000;
/** An account may have 32 under way. */
const CALLS = 30;
/** With one letter outside Latin-1, a text takes two bytes a letter. */
const note = (length: number) => `\u2713${'x'.repeat(length - 1)}`;
const LISTEN = modern('subscriptions/listen');
const listen = (resourceSubscriptions: string[], more = {}) =>
  rpc('subscriptions/listen', { notifications: { resourceSubscriptions }, _meta: { ...envelope()._meta, ...more } });

const USUAL = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

/** Sends by a socket, which keeps nothing that it has sent. */
async function send(headers: object, message: object): Promise<Socket> {
  const body = Buffer.from(JSON.stringify(message));
  const all = Object.entries({ ...USUAL, ...headers, host: 'localhost', 'content-length': body.length });
  const socket = connect(Number(new URL(publicUrl).port), '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.write(`POST /mcp HTTP/1.1\r\n${all.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`);
  socket.write(body);
  return socket;
}

const MANY = Array<string>(950).fill(note(200));

it.each([
  ['a stream with large details', true, (uri: string) => listen([uri], { 'x/note': note(LARGE) })],
  ['a stream with many URIs', true, (uri: string) => listen([uri, ...MANY])],
  ['a stream of a stranger, which ends at once', false, () => listen(MANY)],
])('The service keeps little of %s', async (_, isCustomer, message) => {
  const { authorization, uri } = await newCaller();
  const open = async () => {
    const headers = { ...LISTEN, ...(isCustomer ? { authorization } : { connection: 'close' }) };
    const socket = await send(headers, message(uri));
    expect(String(await once(socket, 'data'))).toContain(' 200 ');
    if (!isCustomer) await once(socket, 'close');
  };
  await open();
  await expectLittle(async () => {
    const before = await heapBytes();
    for (let i = 0; i < 9; i++) await open();
    return (await heapBytes()) - before;
  }, 9 * LARGE);
});

type Message = ReturnType<typeof rpc>;
it.each([
  [
    'a call with large details',
    (test: Message) => ({
      ...test,
      params: { ...test.params, _meta: { note: note(LARGE / 2) }, note: note(LARGE / 2) },
    }),
  ],
  ['a batch with a large notification', (test: Message) => [test, notification('x', { note: note(60_000) })]],
])('The service keeps little of %s while the call waits', async (_, large) => {
  /** The bytes by which the heap grows while the calls of a new customer wait. */
  const growth = async (messageOf: (test: Message) => object) => {
    const { authorization, test } = await newCaller();
    let text = '';
    const before = await heapBytes();
    for (let i = 0; i < CALLS; i++) {
      const socket = await send({ ...of2025('2025-03-26'), authorization }, messageOf(test));
      socket.on('data', (data) => (text += data));
    }
    await sleep(1_500);
    expect(text.includes('"id":1')).toBe(false);
    return (await heapBytes()) - before;
  };
  await growth((test) => test);
  await expectLittle(async () => (await growth(large)) - (await growth((test) => test)), CALLS * 60_000);
});
