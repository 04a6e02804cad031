/** Requests whose bodies cost more than their bytes. */
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { serveInOrder } from '../../../facades/http/pipelining.ts';
import { startFreehold } from '../../setup/freehold.ts';

const CHUNKED = 'POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n';
const CHUNK = '1\r\nx\r\n';
type Named = { name?: string } | null;

async function open(port: number): Promise<Socket & { answer: string }> {
  const socket = Object.assign(connect(port, '127.0.0.1'), { answer: '' }).on('error', () => {});
  onTestFinished(() => void socket.destroy());
  socket.on('data', (chunk) => (socket.answer += chunk));
  await once(socket, 'connect');
  return socket;
}

async function serving(answer: RequestListener): Promise<Socket & { answer: string }> {
  const server = createServer(answer);
  serveInOrder(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close().closeAllConnections());
  return open((server.address() as AddressInfo).port);
}

describe('An answer before the end of the body', () => {
  it('ends the connection, and the listener parses no more of the body', async () => {
    let chunks = 0;
    const socket = await serving((request, response) => {
      request.on('data', () => chunks++);
      request.once('data', () => response.end('refused'));
    });
    socket.write(CHUNKED + CHUNK);
    await once(socket, 'end');
    expect(socket.answer).toContain('refused');
    expect(chunks).toBe(1);
  });

  it.each([false, true])('calls for no more chunks of one read: answered in a later turn %j', async (isLater) => {
    let calls = 0;
    const socket = await serving((request, response) => {
      const { parser } = request.socket as unknown as { parser: Record<string, unknown> };
      const key = Object.keys(parser).find((one) => (parser[one] as Named)?.name === 'parserOnBody')!;
      const take = parser[key] as (...given: unknown[]) => unknown;
      const parserOnBody = function (this: unknown, ...given: unknown[]) {
        calls++;
        return take.apply(this, given);
      };
      parser[key] = parserOnBody;
      const answer = () => response.writeHead(429).end('refused');
      if (isLater) request.once('data', () => process.nextTick(answer));
      else answer();
    });
    socket.write(CHUNKED + CHUNK.repeat(5_000));
    await once(socket, 'close');
    expect(socket.answer).toContain('refused');
    expect(calls).toBeLessThan(10);
  });

  it('reaches a client that sends on', async () => {
    const socket = await serving((_, response) => response.writeHead(401, { connection: 'close' }).end('refused'));
    socket.write(`${CHUNKED}10000\r\n${'x'.repeat(65_536)}\r\n`);
    const sending = setInterval(() => socket.write(CHUNK), 1);
    await once(socket, 'end');
    clearInterval(sending);
    expect(socket.answer).toContain('refused');
  });

  it('keeps the connection if the body has come meanwhile', async () => {
    const socket = await serving((request, response) => request.resume().once('end', () => response.end('taken')));
    for (const times of [1, 2]) {
      socket.write(`${CHUNKED}${CHUNK.repeat(1_000)}0\r\n\r\n`);
      await expect.poll(() => socket.answer.split('taken').length).toBe(1 + times);
    }
  });
});

describe('A body of too many chunks', () => {
  /** A server that counts the calls of the parser for a body. It answers with the length of a whole body. */
  const counting = async () => {
    const counts = { calls: 0, ends: 0 };
    const socket = await serving((request, response) => {
      const { push } = request;
      request.push = (...given) => {
        counts.calls++;
        return push.apply(request, given);
      };
      let length = 0;
      request.on('data', (chunk) => (length += chunk.length)).on('error', () => {});
      request.once('end', () => counts.ends++).once('end', () => response.end(`taken: ${length}`));
    });
    return { counts, socket };
  };

  it.each(['', '0\r\n\r\n'])('ends the connection, and the parser calls for no more chunks: end %j', async (end) => {
    const { counts, socket } = await counting();
    socket.write(CHUNKED + CHUNK.repeat(5_000) + end);
    await once(socket, 'close');
    expect(socket.answer).toBe('');
    expect(counts.ends).toBe(0);
    // After the first chunk above the limit, only the end of the body may call.
    expect(counts.calls).toBeLessThanOrEqual(1_024 + 2);
  });

  it('counts chunks of many reads together', async () => {
    const { counts, socket } = await counting();
    socket.write(CHUNKED);
    for (let i = 0; i < 11 && !socket.closed; i++) {
      socket.write(CHUNK.repeat(100));
      await expect.poll(() => socket.closed || counts.calls >= 100 * (i + 1)).toBe(true);
    }
    if (!socket.closed) await once(socket, 'close');
    expect(counts.ends).toBe(0);
  });

  it('leaves the next connections their bodies', async () => {
    const { socket } = await counting();
    const port = socket.remotePort!;
    socket.write(CHUNKED + CHUNK.repeat(5_000));
    await once(socket, 'close');
    for (let i = 0; i < 3; i++) {
      const next = await open(port);
      next.write(`${CHUNKED}${CHUNK.repeat(500)}0\r\n\r\n`);
      await expect.poll(() => next.answer).toContain('taken: 500');
    }
  });

  it('costs less if it waits behind another request', async () => {
    let calls = 0;
    const server = createServer(() => {});
    serveInOrder(server);
    server.on('request', (request) => {
      const { push } = request;
      request.push = (...given) => {
        calls++;
        return push.apply(request, given);
      };
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close().closeAllConnections());
    const socket = await open((server.address() as AddressInfo).port);
    socket.write(`GET / HTTP/1.1\r\nHost: x\r\n\r\n${CHUNKED}${CHUNK.repeat(5_000)}`);
    await once(socket, 'close');
    // 64 KiB of waiting requests hold fewer chunks.
    expect(calls).toBeLessThan(300);
  });
});

describe('The public listener', async () => {
  const { publicUrl } = await startFreehold({ ROLES: 'api' });
  const refused = async (text: string) => {
    const socket = await open(Number(new URL(publicUrl).port));
    socket.write(text);
    await expect.poll(() => socket.answer).toContain('"code"');
    return socket;
  };
  const head = 'POST /v1/servers HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';

  it.each(['Content-Length: 100', 'Transfer-Encoding: chunked'])('says so before it closes: %s', async (length) => {
    const socket = await refused(`${head}${length}\r\n\r\n`);
    expect(socket.answer).toMatch(/^HTTP\/1.1 401 .*\r\nconnection: close\r\n/s);
    if (!socket.readableEnded) await once(socket, 'end');
  });

  it('keeps the connection after the refusal of a whole request', async () => {
    const socket = await refused(`${head}Content-Length: 2\r\n\r\n{}`);
    expect(socket.answer).toMatch(/^HTTP\/1.1 401 .*\r\nconnection: keep-alive\r\n/is);
  });
});
