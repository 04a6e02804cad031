/** Requests whose bodies cost more than their bytes. */
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { serveInOrder } from '../../../facades/http/pipelining.ts';
import { startFreehold } from '../../setup/freehold.ts';

const CHUNKED = 'POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n';
const CHUNK = '1\r\nx\r\n';

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
      socket.write(`${CHUNKED}${CHUNK.repeat(4_000)}0\r\n\r\n`);
      await expect.poll(() => socket.answer.split('taken').length).toBe(1 + times);
    }
  });
});

it('A body of more than 4,096 chunks ends the connection, even if the handler reads it', async () => {
  const socket = await serving((request, response) => request.resume().once('end', () => response.end('taken')));
  socket.write(CHUNKED + CHUNK.repeat(5_000));
  await once(socket, 'close');
  expect(socket.answer).toBe('');
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
