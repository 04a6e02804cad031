/** A slow receiver delays only its own account. Tarpits take connections and never answer; floods answer without end. */
import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer as createTlsServer } from 'node:tls';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { call } from '../../provisioning/outbound/call.ts';
import { AddressRules } from '../../provisioning/outbound/public-address.ts';
import { CONTROLLER } from '../setup/certificates.ts';
import { atEnd } from '../setup/end.ts';
import { eventually, startFreehold, type TestAccount } from '../setup/freehold.ts';
import type { OnEnd } from '../setup/spawn.ts';
import { KEY, receiver, register } from './receivers.ts';

const { newAccount } = await startFreehold({ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' });

/** Longer than a fair delivery takes on a busy machine, and shorter than the tarpits hold a call. */
const FAIR_MS = 5000;

let held = 0;
const tarpit = createServer((socket: Socket) => {
  held++;
  socket.on('error', () => {});
});
const port = await listening(atEnd, tarpit, '0.0.0.0');

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

const COSTLY_HOST = '127.0.0.5';
/** An unreachable receiver takes all of it, so the tests of one group run at once. */
const TIMEOUT_SECONDS = 5;

/** All but the end of 29,000 bytes. A busy machine takes seconds to read them 40 times, byte by byte. */
const LONG = { answerBytesMax: 28_000, timeoutSeconds: 60 };

const get = (
  port: number,
  scheme = 'https',
  addresses = [COSTLY_HOST],
  { answerBytesMax = 1024, timeoutSeconds = TIMEOUT_SECONDS } = {},
) =>
  call(
    {
      ...{ method: 'GET', url: `${scheme}://hooks.example.org:${port}/`, account: 'acct', headers: {} },
      ...{ answerBytesMax, timeoutSeconds },
    },
    { rules: new AddressRules(['127.0.0.0/8']), resolve: async () => addresses },
  );

/** Starts a server, by default on the costly host, until the end. @returns its port */
async function listening(onEnd: OnEnd, server: Server, host = COSTLY_HOST): Promise<number> {
  server.listen(0, host);
  await once(server, 'listening');
  onEnd(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** A receiver that sends the text again and again, until the other side closes. */
async function startFlood(onEnd: OnEnd, text: string) {
  const ended = Promise.withResolvers<{ bytes: number; afterMs: number }>();
  const chunk = Buffer.from(text.repeat(Math.ceil(16_384 / text.length)), 'latin1');
  const server = createServer((socket) => {
    const startedAt = performance.now();
    const pour = () => {
      while (socket.writable && socket.write(chunk));
    };
    socket.on('error', () => {}).on('drain', pour);
    socket.on('close', () => ended.resolve({ bytes: socket.bytesWritten, afterMs: performance.now() - startedAt }));
    socket.once('data', pour);
  });
  return { port: await listening(onEnd, server), ended: ended.promise };
}

describe('A costly receiver', () => {
  it.concurrent.for([
    ['interim answers', 'http', 'HTTP/1.1 100 Continue\r\n\r\n'],
    ['early hints', 'http', `HTTP/1.1 103 Early Hints\r\nlink: <${'x'.repeat(4000)}>\r\n\r\n`],
    ['requests to begin TLS again', 'https', '\x16\x03\x03\x00\x04\x00\x00\x00\x00'],
  ] as const)('loses its connection when it sends %s without end', async ([, scheme, text], { onTestFinished }) => {
    const flood = await startFlood(onTestFinished, text);
    const answer = get(flood.port, scheme);
    const { bytes, afterMs } = await flood.ended;
    expect(afterMs).toBeLessThan((TIMEOUT_SECONDS - 1) * 1000);
    // The kernels of both sides hold some megabytes.
    expect(bytes).toBeLessThan(32 * 2 ** 20);
    expect(await answer).toBe('unreachable');
  });

  it.concurrent('gets no check of a chain of certificates above 16 KB', async ({ onTestFinished }) => {
    const chain = (certificates: number) => ({ ...CONTROLLER, cert: CONTROLLER.cert.repeat(certificates) });
    expect(await get(await listening(onTestFinished, createTlsServer(chain(3))))).toBe('tls');
    expect(await get(await listening(onTestFinished, createTlsServer(chain(40))))).toBe('unreachable');
  });

  it.concurrent('chooses no group for the exchange of keys', async ({ onTestFinished }) => {
    const hello = Promise.withResolvers<Buffer>();
    const port = await listening(
      onTestFinished,
      createServer((socket) =>
        socket.once('data', (data) => {
          hello.resolve(data);
          socket.destroy();
        }),
      ),
    );
    await get(port);
    const message = await hello.promise;
    // RFC 5246, 7.4.1.2: the suites follow the version, the random number and the id of a session.
    const from = 44 + message.readUInt8(43);
    const suites = message.subarray(from + 2, from + 2 + message.readUInt16BE(from));
    const offered = Array.from({ length: suites.length / 2 }, (_, i) => suites.readUInt16BE(2 * i));
    expect(offered).toContain(0xc02f); // ECDHE-RSA-AES128-GCM-SHA256
    for (const dhe of [0x33, 0x39, 0x67, 0x6b, 0x9e, 0x9f, 0xccaa]) expect(offered).not.toContain(dhe);
  });

  it.concurrent('does not learn by a second address whether a port of the first one is closed', async ({
    onTestFinished,
  }) => {
    let calls = 0;
    const port = await listening(
      onTestFinished,
      createServer((socket) => {
        calls++;
        socket.destroy();
      }),
    );
    expect(await get(port, 'http', ['127.0.0.6', COSTLY_HOST])).toBe('unreachable');
    expect(calls).toBe(0);
  });
});

describe('A costly receiver whose certificate counts', () => {
  beforeAll(() => void vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0'));
  atEnd(() => void vi.unstubAllEnvs());

  it.concurrent.for([
    ['http', createHttpServer()],
    ['https', createHttpsServer(CONTROLLER)],
  ] as const)(
    'is unreachable when it changes the protocol over %s, and holds no call',
    async ([scheme, server], { onTestFinished }) => {
      server.on('request', (_, { socket }) =>
        socket!.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
      );
      const port = await listening(onTestFinished, server);
      expect(await Promise.race([get(port, scheme), sleep((TIMEOUT_SECONDS + 3) * 1000)])).toBe('unreachable');
    },
  );

  it.concurrent.for(['TLSv1.2', 'TLSv1.3'] as const)(
    'ends no other call when it changes the protocol and breaks %s in one segment',
    async (maxVersion, { onTestFinished }) => {
      let isDue = false;
      const behind = createTlsServer({ ...CONTROLLER, maxVersion }, (socket) =>
        socket
          .on('error', () => {})
          .once('data', () => {
            isDue = true;
            socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n');
          }),
      );
      const port = await listening(onTestFinished, behind);
      // Bytes that are no TLS follow the answer.
      const server = createServer((near) => {
        const far = connect(port, COSTLY_HOST);
        far.on('data', (data) => near.write(isDue ? Buffer.concat([data, Buffer.alloc(100, 'c')]) : data));
        near.on('data', (data) => far.write(data));
        for (const [one, other] of [
          [near, far],
          [far, near],
        ] as const)
          one.on('error', () => {}).on('close', () => other.destroy());
      });
      const slow = createHttpServer((_, response) => void setTimeout(() => response.end(), 2000));
      const other = get(await listening(onTestFinished, slow), 'http');
      expect(await get(await listening(onTestFinished, server))).toBe('unreachable');
      expect(await other).toMatchObject({ status: 200 });
    },
  );

  it.concurrent('loses its connection when it sends many small records of TLS, each of which can ask for new keys', async ({
    onTestFinished,
  }) => {
    const sending = (letters: number) =>
      createTlsServer(CONTROLLER, (socket) => {
        socket.setNoDelay().on('error', () => {});
        socket.once('data', async () => {
          for (const letter of `HTTP/1.1 200 OK\r\nx: ${'x'.repeat(letters)}\r\ncontent-length: 0\r\n\r\n`) {
            socket.write(letter);
            await new Promise((resume) => setImmediate(resume));
          }
        });
      });
    expect(await get(await listening(onTestFinished, sending(20)))).toMatchObject({ status: 200 });
    expect(await get(await listening(onTestFinished, sending(200)))).toBe('unreachable');
  });

  it.concurrent('begins TLS once, because the chain of another handshake can be long', async ({ onTestFinished }) => {
    const again = Promise.withResolvers<Error | null>();
    const server = createTlsServer({ ...CONTROLLER, maxVersion: 'TLSv1.2' }, (socket) => {
      socket.on('error', again.resolve).on('close', () => again.resolve(new Error('It was closed.')));
      socket.once('data', () => socket.renegotiate({}, again.resolve));
    });
    const answer = get(await listening(onTestFinished, server));
    expect(await again.promise).toBeInstanceOf(Error);
    expect(await answer).toBe('unreachable');
  });

  it('holds little memory when it sends its answer byte by byte, and ends no other call', async ({
    onTestFinished,
  }) => {
    const pieces = '1\r\nx\r\n'.repeat(29_000);
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => socket.write(`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${pieces}`));
    });
    const slow = createHttpServer((_, response) => void setTimeout(() => response.end(), 3000));
    const [port, other] = [
      await listening(onTestFinished, server),
      get(await listening(onTestFinished, slow), 'http', [COSTLY_HOST], LONG),
    ];
    const costly = Array.from({ length: 40 }, () => get(port, 'http', [COSTLY_HOST], LONG));
    expect(await other).toMatchObject({ status: 200 });
    for (const answer of await Promise.all(costly)) expect(answer).toMatchObject({ status: 200, complete: false });
  });

  it('counts as one that answered when its answer is long', async ({ onTestFinished }) => {
    const answer: RequestListener = (_, response) => response.end('x'.repeat(2 ** 20));
    const chain = { ...CONTROLLER, cert: CONTROLLER.cert.repeat(5) };
    for (const [scheme, server] of [
      ['http', createHttpServer(answer)],
      ['https', createHttpsServer(chain, answer)],
    ] as const)
      expect(await get(await listening(onTestFinished, server), scheme)).toMatchObject({
        status: 200,
        complete: false,
      });
  });
});
