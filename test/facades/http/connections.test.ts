/** The limits of the public listener for connections, and for bytes that wait for slow readers. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { disconnectOf } from '../../../facades/http/connections.ts';
import { eventually, startFreehold } from '../../setup/freehold.ts';
import { INITIALIZE, rawClient, rpc } from '../mcp/raw-client.ts';

const few = await startFreehold({ ROLES: 'api', CONNECTIONS_MAX: '5' });
const free = await startFreehold({ ROLES: 'api' });

async function open(publicUrl: string, localAddress = '127.0.0.1'): Promise<Socket> {
  const socket = connect({ port: Number(new URL(publicUrl).port), host: '127.0.0.1', localAddress });
  socket.on('error', () => {});
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  return socket;
}

const request = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`;
/** The next bytes of a connection, or nothing if the service has closed it. */
const answer = (socket: Socket) =>
  Promise.race([once(socket, 'data').then(String), once(socket, 'close').then(() => '')]);
const status = async (socket: Socket, text: string) => {
  socket.write(text);
  return Number((await answer(socket)).split(' ')[1]);
};

const INITIAL = rpc('initialize', INITIALIZE);

describe('A network', () => {
  /** Opens a connection with a request under way, which a stream of updates is. */
  const busy = async (publicUrl: string, localAddress?: string) => {
    const { send } = rawClient(`${publicUrl}/mcp`, '');
    const { session } = await send({ headers: { connection: 'close' }, body: INITIAL, without: ['authorization'] });
    const socket = await open(publicUrl, localAddress);
    const headers = `Accept: text/event-stream\r\nMcp-Session-Id: ${session}\r\n`;
    expect(await status(socket, request('/mcp', headers))).toBe(200);
    return socket;
  };

  it('has a limit of connections, which does not affect other networks', async () => {
    const sockets: Socket[] = [];
    for (let i = 0; i < 5; i++) sockets.push(await busy(few.publicUrl, '127.0.0.3'));
    const refused = await open(few.publicUrl, '127.0.0.3');
    expect(await answer(refused)).toMatch(/^HTTP\/1.1 429 .*\r\nretry-after: 5\r\n.*"code":"rate_limited"/s);
    expect(await status(await open(few.publicUrl, '127.0.0.2'), request('/v1/catalog'))).toBe(200);
    sockets[0]!.destroy();
    await eventually(
      async () => (await status(await open(few.publicUrl, '127.0.0.3'), request('/v1/catalog'))) === 200,
    );
  });

  it('at its limit loses its longest idle connection to a new one, and none with a request under way', async () => {
    const from = '127.0.0.4';
    const stream = await busy(few.publicUrl, from);
    const idle: Socket[] = [];
    for (let i = 0; i < 4; i++) idle.push(await open(few.publicUrl, from));
    for (const i of [1, 0, 2, 3]) expect(await status(idle[i]!, request('/v1/catalog'))).toBe(200);
    const closed = once(idle[1]!, 'close');
    const newcomer = await open(few.publicUrl, from);
    expect(await status(newcomer, request('/v1/catalog'))).toBe(200);
    await closed;
    for (const socket of [idle[0]!, idle[2]!, idle[3]!]) expect(await status(socket, request('/v1/catalog'))).toBe(200);
    expect(stream.destroyed).toBe(false);
  });

  it('at its limit leaves a new connection a second for its first request', async () => {
    const from = '127.0.0.5';
    for (let i = 0; i < 5; i++) await open(few.publicUrl, from);
    expect(await answer(await open(few.publicUrl, from))).toMatch(/^HTTP\/1.1 429 /);
    await eventually(async () => (await status(await open(few.publicUrl, from), request('/v1/catalog'))) === 200);
  });

  it('at the limit of all callers takes the longest idle connection of any network', async () => {
    const { publicUrl } = await startFreehold({ ROLES: 'api', CONNECTIONS_TOTAL_MAX: '6' });
    const stream = await busy(publicUrl, '127.0.0.20');
    const idle: Socket[] = [];
    for (let i = 0; i < 5; i++) idle.push(await open(publicUrl, `127.0.0.${30 + i}`));
    for (const socket of idle) expect(await status(socket, request('/v1/catalog'))).toBe(200);
    const closed = once(idle[0]!, 'close');
    expect(await status(await open(publicUrl, '127.0.0.40'), request('/v1/catalog'))).toBe(200);
    await closed;
    for (const socket of idle.slice(1)) expect(await status(socket, request('/v1/catalog'))).toBe(200);
    expect(stream.destroyed).toBe(false);
    for (let i = 0; i < 5; i++) await busy(publicUrl, `127.0.0.${50 + i}`);
    expect(await answer(await open(publicUrl, '127.0.0.60'))).toMatch(/^HTTP\/1.1 429 .*All callers together/s);
  });

  it.each([
    ['', ''],
    [' behind a proxy', '127.0.0.9'],
  ])('at the limit of all callers takes the oldest request whose body does not come%s', async (_, proxy) => {
    const { publicUrl } = await startFreehold({
      ...{ ROLES: 'api', CONNECTIONS_TOTAL_MAX: '6' },
      ...(proxy && { TRUSTED_PROXY_CIDRS: proxy }),
    });
    const silent: Socket[] = [];
    for (let i = 0; i < 6; i++) {
      const socket = await open(publicUrl, proxy || `127.0.0.${70 + i}`);
      const headers = `X-Forwarded-For: 198.51.100.${i}\r\nContent-Type: application/json\r\nContent-Length: 9\r\n`;
      socket.write(request('/v1/auth/login', headers).replace('GET', 'POST'));
      silent.push(socket);
    }
    const closed = once(silent[0]!, 'close');
    const newcomer = async () => status(await open(publicUrl, proxy || '127.0.0.80'), request('/v1/catalog'));
    await eventually(async () => (await newcomer()) === 200);
    await closed;
    expect(silent.slice(2).map(({ destroyed }) => destroyed)).toEqual([false, false, false, false]);
  });

  it('behind a trusted proxy shares a limit with the other networks of its /48', async () => {
    const proxied = await startFreehold({ ROLES: 'api', CONNECTIONS_MAX: '1', TRUSTED_PROXY_CIDRS: '127.0.0.9' });
    const { send } = rawClient(`${proxied.publicUrl}/mcp`, '');
    const stream = async (address: string) => {
      const { session } = await send({ body: rpc('initialize', INITIALIZE), without: ['authorization'] });
      const headers = [`X-Forwarded-For: ${address}`, 'Accept: text/event-stream', `Mcp-Session-Id: ${session}`, ''];
      return status(await open(proxied.publicUrl, '127.0.0.9'), request('/mcp', headers.join('\r\n')));
    };
    for (let i = 0; i < 10; i++) expect(await stream(`2001:db8:1:${i}::1`)).toBe(200);
    expect(await stream('2001:db8:1:a::1')).toBe(429);
    expect(await stream('2001:db8:2::1')).toBe(200);
  });

  it('behind a trusted proxy has the same limit of requests under way', async () => {
    const proxied = await startFreehold({ ROLES: 'api', CONNECTIONS_MAX: '5', TRUSTED_PROXY_CIDRS: '127.0.0.9' });
    const { send } = rawClient(`${proxied.publicUrl}/mcp`, '');
    const stream = async (address: string) => {
      const { session } = await send({ body: rpc('initialize', INITIALIZE), without: ['authorization'] });
      const headers = [`X-Forwarded-For: ${address}`, 'Accept: text/event-stream', `Mcp-Session-Id: ${session}`, ''];
      return status(await open(proxied.publicUrl, '127.0.0.9'), request('/mcp', headers.join('\r\n')));
    };
    for (let i = 0; i < 5; i++) expect(await stream('198.51.100.1')).toBe(200);
    expect(await stream('198.51.100.1')).toBe(429);
    expect(await stream('198.51.100.2')).toBe(200);
  });
});

describe('A caller who reads nothing', () => {
  const PATH = '/v1/openapi.json';
  const get = `GET ${PATH} HTTP/1.1\r\nHost: localhost\r\n\r\n`;

  it('loses the connection when too much waits, while another caller reads all of the same', async () => {
    const readers = 3;
    const idle = await Promise.all(Array.from({ length: 120 }, () => open(free.publicUrl)));
    for (const socket of idle) {
      socket.pause();
      // Their answers are more than the buffers of the system take. A connection with more requests is closed for those.
      socket.write(get.repeat(17));
    }
    const reading = await Promise.all(
      Array.from({ length: readers }, async () => {
        return (await fetch(`${free.publicUrl}${PATH}`)).json();
      }),
    );
    expect(reading.map(({ openapi }) => openapi)).toEqual(Array(readers).fill('3.1.1'));
    await eventually(async () => {
      // An empty line before a request has no meaning.
      for (const socket of idle) if (socket.writable) socket.write('\r\n');
      return idle.some(({ destroyed }) => destroyed);
    }, 60);
  });
});

describe('The work for a caller', () => {
  /** @returns a connection with a request under way, and its response */
  async function call() {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const socket = await open(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    socket.write(request('/'));
    const [, response] = (await once(server, 'request')) as [unknown, ServerResponse];
    return { socket, response };
  }

  it('ends when the caller goes, also if it begins afterwards', async () => {
    const { socket, response } = await call();
    const signal = disconnectOf(response);
    expect(signal.aborted).toBe(false);
    socket.destroy();
    await once(response, 'close');
    expect([signal.aborted, disconnectOf(response).aborted]).toEqual([true, true]);
  });

  it('does not end early when the whole answer has left', async () => {
    const { response } = await call();
    const signal = disconnectOf(response);
    response.end('answer');
    await once(response, 'close');
    expect([signal.aborted, disconnectOf(response).aborted]).toEqual([false, false]);
  });
});
