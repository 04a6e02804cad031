/** Readers of large responses. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { UnreadBytes } from '../../../facades/http/unread-bytes.ts';

const KIB = 1024;
const LIMITS = { perReader: 256 * KIB, perProcess: 512 * KIB, most: 64 * 1024 * KIB, stalledMs: 400 };
/** A reader shares the process of the test, whose pauses are no stalls. */
const PATIENT = { stalledMs: 1000 };
const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** Serves so many bytes in one write, and returns a function that connects a reader. */
async function serving(bytes: number, limits: Partial<typeof LIMITS> = {}) {
  const unread = new UnreadBytes({ ...LIMITS, ...limits });
  const responses: ServerResponse[] = [];
  const server = createServer((_, response) => {
    responses.push(response);
    response.end(Buffer.alloc(bytes));
    setImmediate(unread.note, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return async () => {
    const before = responses.length;
    const socket: Socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
    ends.push(() => socket.destroy());
    socket.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
    while (responses.length === before) await sleep(5);
    return { socket, response: responses[before]! };
  };
}

/** @param msPerKib the pause of a slow reader. The kernel decides how large the chunks are. */
async function readAll(socket: Socket, msPerKib = 0): Promise<number> {
  let bytes = 0;
  for await (const chunk of socket) {
    const { length } = chunk as Buffer;
    bytes += length;
    if (msPerKib) await sleep((length / KIB) * msPerKib);
  }
  return bytes;
}

describe('A response', () => {
  it('of any size reaches a reader that reads at once', async () => {
    const reader = await serving(32 * 1024 * KIB, PATIENT);
    const { socket } = await reader();
    expect(await readAll(socket)).toBeGreaterThan(32 * 1024 * KIB);
  });

  it('reaches a slow reader that makes progress, for longer than a stalled one has', async () => {
    const reader = await serving(8 * 1024 * KIB, PATIENT);
    const { socket } = await reader();
    const startedAt = performance.now();
    expect(await readAll(socket, 0.4)).toBeGreaterThan(8 * 1024 * KIB);
    expect(performance.now() - startedAt).toBeGreaterThan(2 * PATIENT.stalledMs);
  });

  it('ends for a reader that reads nothing, after a pause', async () => {
    const reader = await serving(16 * 1024 * KIB);
    const { response } = await reader();
    await sleep(100);
    expect(response.closed).toBe(false);
    await expect.poll(() => response.closed).toBe(true);
  });

  it('ends at once above the hard bound', async () => {
    const reader = await serving(16 * 1024 * KIB, { most: 1024 * KIB });
    const { response } = await reader();
    await expect.poll(() => response.closed).toBe(true);
  });
});

describe('Many responses', () => {
  it('end for those readers that stalled longest, and not for a reader that reads', async () => {
    const reader = await serving(6 * 1024 * KIB, { perReader: 64 * 1024 * KIB, perProcess: 14 * 1024 * KIB });
    const stalled = [await reader(), await reader(), await reader()];
    const reading = await reader();
    const bytes = readAll(reading.socket, 0.4);
    await expect.poll(() => stalled.filter(({ response }) => response.closed).length).toBe(2);
    expect(stalled.map(({ response }) => response.closed)).toEqual([true, true, false]);
    expect(await bytes).toBeGreaterThan(6 * 1024 * KIB);
  });
});
