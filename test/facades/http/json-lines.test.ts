/** Streams of lists whose readers pause. */
import { once } from 'node:events';
import { get, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import Fastify from 'fastify';
import { expect, it, onTestFinished } from 'vitest';
import { LINES, type LinesOptions, linesStreamer } from '../../../facades/formats/json-lines.ts';
import { UnreadBytes, type UnreadLimits } from '../../../facades/http/unread-bytes.ts';
import { ApiError } from '../../../schema/index.ts';

const KIB = 1024;
const PAGE = JSON.stringify({ data: [{ text: 'x'.repeat(512 * KIB) }], next_cursor: 'more' });

/** Serves a list without end to a reader that pauses. */
async function serveToPausing({ readmit = async () => {}, ...bounds }: Partial<LinesOptions & UnreadLimits>) {
  const unread = new UnreadBytes(bounds);
  const streamLines = linesStreamer({ readmit, onWrite: unread.note });
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
    return reply.send(await streamLines(request, reply.raw, {}, read, new AbortController().signal, LINES));
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
  onTestFinished(() => app.close());
  const [response] = (await once(
    get(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}/`),
    'response',
  )) as [IncomingMessage];
  response.on('error', () => {});
  return { pages: () => pages, isClosed: () => raw?.closed };
}

it('A stream reads no page for a reader that pauses, and ends when too much waits', async () => {
  const { pages, isClosed } = await serveToPausing({ perProcess: 256 * KIB, stalledMs: 400 });
  await expect.poll(isClosed).toBe(true);
  expect(pages()).toBeLessThan(40);
});

it('A stream ends with its credential, although its reader pauses', async () => {
  let isRevoked = false;
  const readmit = async () => {
    if (isRevoked) throw new ApiError('revoked_credential');
  };
  const { isClosed } = await serveToPausing({ readmit });
  await sleep(1_000);
  expect(isClosed()).toBe(false);
  isRevoked = true;
  await expect.poll(isClosed).toBe(true);
});
