/** A slow receiver delays only its own account. Tarpits take connections and never answer. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterAll, describe, expect, it } from 'vitest';
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
