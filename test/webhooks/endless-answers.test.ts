/** A receiver cannot slow the service by an answer without end. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { call } from '../../provisioning/outbound/call.ts';
import { AddressRules } from '../../provisioning/outbound/public-address.ts';

const HOST = '127.0.0.5';
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
  }).listen(0, HOST);
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { url: `http://${HOST}:${(server.address() as AddressInfo).port}/`, ended: ended.promise };
}

it.each([
  ['interim answers', 'HTTP/1.1 100 Continue\r\n\r\n'],
  ['early hints', `HTTP/1.1 103 Early Hints\r\nlink: <${'x'.repeat(4000)}>\r\n\r\n`],
])('The service closes the connection of a receiver that sends %s without end', async (_, text) => {
  const flood = await startFlood(text);
  const request = { method: 'GET', url: flood.url, headers: {}, answerBytesMax: 1024, timeoutSeconds: TIMEOUT_SECONDS };
  const outbound = { rules: new AddressRules([`${HOST}/32`]), resolve: async () => [HOST] };
  const answer = call(request as Parameters<typeof call>[0], outbound);
  const { bytes, afterMs } = await flood.ended;
  expect(afterMs).toBeLessThan((TIMEOUT_SECONDS - 1) * 1000);
  // The kernels of both sides hold some megabytes.
  expect(bytes).toBeLessThan(32 * 2 ** 20);
  expect(await answer).toBe('unreachable');
});
