/** A slow receiver delays only its own account. Tarpits take connections and never answer; floods answer without end. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { call } from '../../provisioning/outbound/call.ts';
import { AddressRules } from '../../provisioning/outbound/public-address.ts';
import { eventually, startFreehold, type TestAccount } from '../setup/freehold.ts';
import { KEY, receiver, register } from './receivers.ts';

const { newAccount } = await startFreehold({ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' });

/** Longer than a fair delivery takes on a busy machine, and shorter than the tarpits hold a call. */
const FAIR_MS = 5000;

let held = 0;
const tarpit = createServer((socket: Socket) => {
  held++;
  socket.on('error', () => {});
}).listen(0, '0.0.0.0');
await once(tarpit, 'listening');
const { port } = tarpit.address() as AddressInfo;
afterAll(() => void tarpit.close());

/** Makes an account with ten tarpits at hosts of its own, and an event for each of them. */
async function withTarpits(net: number, host = (i: number) => `127.0.${net}.${i + 1}`): Promise<TestAccount> {
  const account = await newAccount();
  for (let i = 0; i < 10; i++) await register(account, `http://${host(i)}:${port}/`, { event_filter: 'ssh_key.*' });
  await account.rest('POST', '/v1/ssh-keys', { name: 'laptop', public_key: KEY });
  return account;
}

/** Returns the milliseconds until another account gets its event. */
async function deliveryMs(): Promise<number> {
  const account = await newAccount();
  const to = await receiver();
  await register(account, to.url, { event_filter: 'ssh_key.*' });
  const startedAt = performance.now();
  await account.rest('POST', '/v1/ssh-keys', { name: 'laptop', public_key: KEY });
  await eventually(async () => to.received.length > 0);
  return performance.now() - startedAt;
}

describe('A slow receiver', () => {
  it('delays no other account, while two accounts have ten each', async () => {
    await withTarpits(31);
    await withTarpits(32);
    await eventually(async () => held >= 12);
    expect(await deliveryMs()).toBeLessThan(FAIR_MS);
  });

  it('delays no other account when more accounts have them than the lane has places', async () => {
    await withTarpits(33);
    await withTarpits(34);
    await withTarpits(35);
    expect(await deliveryMs()).toBeLessThan(FAIR_MS);
  });
});

describe('A host that receivers share', () => {
  it('serves another account at once, while eight accounts call a closed port of it', async () => {
    const closed = createServer().listen(0, '127.0.0.1');
    await once(closed, 'listening');
    const { port: refused } = closed.address() as AddressInfo;
    closed.close();
    const accounts = await Promise.all(Array.from({ length: 8 }, () => newAccount()));
    for (const account of accounts) {
      for (let i = 0; i < 3; i++)
        await register(account, `http://127.0.0.1:${refused}/${i}`, { event_filter: 'ssh_key.*' });
      await account.rest('POST', '/v1/ssh-keys', { name: 'laptop', public_key: KEY });
    }
    expect(await deliveryMs()).toBeLessThan(FAIR_MS);
  });

  it('serves another account at once, while nine accounts call a silent port of it', async () => {
    for (let i = 0; i < 9; i++) {
      const account = await newAccount();
      await register(account, `http://127.0.0.1:${port}/`, { event_filter: 'ssh_key.*' });
      await account.rest('POST', '/v1/ssh-keys', { name: 'laptop', public_key: KEY });
    }
    expect(await deliveryMs()).toBeLessThan(FAIR_MS);
  });
});

const FLOODING_HOST = '127.0.0.5';
const TIMEOUT_SECONDS = 5;

/** A receiver that sends the text again and again, until the other side closes. */
async function startFlood(text: string) {
  const ended = Promise.withResolvers<{ bytes: number; afterMs: number }>();
  const chunk = text.repeat(Math.ceil(16_384 / text.length));
  const server = createServer((socket) => {
    const startedAt = performance.now();
    const pour = () => {
      while (socket.writable && socket.write(chunk));
    };
    socket.on('error', () => {}).on('drain', pour);
    socket.on('close', () => ended.resolve({ bytes: socket.bytesWritten, afterMs: performance.now() - startedAt }));
    socket.once('data', pour);
  }).listen(0, FLOODING_HOST);
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { url: `http://${FLOODING_HOST}:${(server.address() as AddressInfo).port}/`, ended: ended.promise };
}

it.each([
  ['interim answers', 'HTTP/1.1 100 Continue\r\n\r\n'],
  ['early hints', `HTTP/1.1 103 Early Hints\r\nlink: <${'x'.repeat(4000)}>\r\n\r\n`],
])('The service closes the connection of a receiver that sends %s without end', async (_, text) => {
  const flood = await startFlood(text);
  const request = { method: 'GET', url: flood.url, headers: {}, answerBytesMax: 1024, timeoutSeconds: TIMEOUT_SECONDS };
  const outbound = { rules: new AddressRules([`${FLOODING_HOST}/32`]), resolve: async () => [FLOODING_HOST] };
  const answer = call(request as Parameters<typeof call>[0], outbound);
  const { bytes, afterMs } = await flood.ended;
  expect(afterMs).toBeLessThan((TIMEOUT_SECONDS - 1) * 1000);
  // The kernels of both sides hold some megabytes.
  expect(bytes).toBeLessThan(32 * 2 ** 20);
  expect(await answer).toBe('unreachable');
});
