/** Streams of lists whose readers pause. */
import { once } from 'node:events';
import { get, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import Fastify from 'fastify';
import { expect, it, onTestFinished } from 'vitest';
import { linesStreamer } from '../../../facades/http/json-lines.ts';
import { UnreadBytes } from '../../../facades/http/unread-bytes.ts';

const KIB = 1024;
const PAGE = JSON.stringify({ data: [{ text: 'x'.repeat(512 * KIB) }], next_cursor: 'more' });

it('A stream reads no page for a reader that pauses, and ends when too much waits', async () => {
  const unread = new UnreadBytes({ perProcess: 256 * KIB, stalledMs: 400 });
  const streamLines = linesStreamer({ readmit: async () => {}, onWrite: unread.note });
  let pages = 0;
  const read = async () => {
    pages++;
    return PAGE;
  };
  const app = Fastify();
  app.decorateRequest('viewer', null);
  let raw: ServerResponse | undefined;
  app.get('/', async (request, reply) => {
    raw = reply.raw;
    return reply.send(await streamLines(request, reply.raw, {}, read, new AbortController().signal));
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
  onTestFinished(() => app.close());
  const [response] = (await once(
    get(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}/`),
    'response',
  )) as [IncomingMessage];
  response.on('error', () => {});
  await expect.poll(() => raw?.closed, { timeout: 5000 }).toBe(true);
  expect(pages).toBeLessThan(40);
});
