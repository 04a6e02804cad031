/** The work for a caller ends when the caller goes. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, it } from 'vitest';
import { disconnectOf } from '../../../facades/http/disconnect.ts';
import { atEnd } from '../../setup/end.ts';

const server = createServer().listen(0, '127.0.0.1');
await once(server, 'listening');
atEnd(() => server.close());
const { port } = server.address() as AddressInfo;

/** Sends a request. @returns its connection and its response */
async function request() {
  const socket = connect(port, '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  const [, response] = (await once(server, 'request')) as [unknown, ServerResponse];
  return { socket, response };
}

it('It aborts when the caller goes, also for work that begins afterwards', async () => {
  const { socket, response } = await request();
  const signal = disconnectOf(response);
  expect(signal.aborted).toBe(false);
  socket.destroy();
  await once(response, 'close');
  expect(signal.aborted).toBe(true);
  expect(disconnectOf(response).aborted).toBe(true);
});

it('It does not abort when the whole answer has left', async () => {
  const { socket, response } = await request();
  const signal = disconnectOf(response);
  response.end('answer');
  await once(response, 'close');
  expect([signal.aborted, disconnectOf(response).aborted]).toEqual([false, false]);
  socket.destroy();
});
