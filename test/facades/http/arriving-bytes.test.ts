/** Senders of bodies that do not end. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ArrivingBytes } from '../../../facades/http/arriving-bytes.ts';
import { startFreehold } from '../../setup/freehold.ts';

const KIB = 1024;
const LIMITS = { perSite: 200 * KIB, perProcess: 500 * KIB };

async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  socket.resume();
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  return socket;
}
const head = (address: string, length: number) =>
  `POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: ${address}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;

/** @returns a function that sends all but one byte of a body, and waits until the server has them */
async function serving() {
  const arriving = new ArrivingBytes(LIMITS);
  let arrived = 0;
  const server = createServer((request, response) => {
    const address = String(request.headers['x-forwarded-for']);
    arriving.watch(request, response, address);
    request
      .on('data', ({ length }) => (arrived += length))
      .on('end', () => {
        arriving.forget(request, address);
        response.end('taken');
      });
    request.on('error', () => {});
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close().closeAllConnections());
  return async (address: string, bytes: number) => {
    const socket = await open((server.address() as AddressInfo).port);
    const before = arrived;
    socket.write(head(address, bytes + 1) + 'x'.repeat(bytes));
    await expect.poll(() => arrived).toBe(before + bytes);
    return socket;
  };
}
const areOpen = (sockets: Socket[]) => sockets.map(({ destroyed }) => !destroyed);

describe('Waiting bodies', () => {
  it('of a site end above its bound, the largest and newest first, and those of other sites stay', async () => {
    const send = await serving();
    const other = await send('192.0.2.1', 95 * KIB);
    const sockets: Socket[] = [];
    for (const [i, kib] of [8, 90, 90, 30, 8].entries()) sockets.push(await send(`2001:db8:1:${i}::1`, kib * KIB));
    await expect.poll(() => areOpen([other, ...sockets])).toEqual([true, true, true, false, true, true]);
  });

  it('count until the end of the response when nothing reads them', async () => {
    const arriving = new ArrivingBytes({ perSite: 60 * KIB });
    let begun = 0;
    const server = createServer((request, response) => {
      arriving.watch(request, response, '192.0.2.1');
      // By now the body has come.
      setTimeout(() => {
        arriving.forget(request, '192.0.2.1');
        begun++;
      }, 100);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close().closeAllConnections());
    const sockets: Socket[] = [];
    for (const count of [1, 2]) {
      const socket = await open((server.address() as AddressInfo).port);
      socket.write(`GET / HTTP/1.1\r\nHost: a\r\nContent-Length: ${40 * KIB}\r\n\r\n${'x'.repeat(40 * KIB)}`);
      sockets.push(socket);
      await expect.poll(() => begun).toBe(count);
    }
    await expect.poll(() => areOpen(sockets)).toEqual([true, false]);
  });

  it('of the site with most bytes end above the bound of the process', async () => {
    const send = await serving();
    const small = await send('192.0.2.1', 50 * KIB);
    const sockets: Socket[] = [];
    for (let i = 0; i < 3; i++) sockets.push(await send(`192.0.2.${2 + i}`, 160 * KIB));
    await expect.poll(() => areOpen([small, ...sockets]).filter(Boolean).length).toBe(3);
    expect(small.destroyed).toBe(false);
  });

  it('count no longer after `forget`', async () => {
    const send = await serving();
    const sockets: Socket[] = [];
    for (let i = 0; i < 6; i++) {
      const socket = await send('192.0.2.1', 90 * KIB);
      socket.write('x');
      await once(socket, 'data');
      sockets.push(socket);
    }
    expect(areOpen(sockets)).toEqual(Array(6).fill(true));
  });
});

it('The public listener ends the unfinished bodies of a site above 8 MiB', async () => {
  const { publicUrl } = await startFreehold({
    ...{ ROLES: 'api', TRUSTED_PROXY_CIDRS: '127.0.0.0/8' },
    ...{ RATE_LIMIT_PUBLIC_PER_MINUTE: '1000', CONNECTIONS_MAX: '1000' },
  });
  const sockets: Socket[] = [];
  for (let i = 0; i < 50; i++) {
    const socket = await open(Number(new URL(publicUrl).port));
    socket.write(head('192.0.2.1', 250_001) + 'x'.repeat(250_000));
    sockets.push(socket);
  }
  await expect.poll(() => areOpen(sockets).filter(Boolean).length).toBeLessThan(34);
});
