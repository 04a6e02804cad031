/** Clients that send requests before they have the answers. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type NetConnectOpts, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { mintCredential } from '../../../entities/secrets.ts';
import { serveInOrder } from '../../../facades/http/pipelining.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { freePort } from '../../setup/spawn.ts';
import { lineOf } from './circuit.ts';

const get = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`;

async function open(to: NetConnectOpts): Promise<Socket> {
  const socket = connect(to).on('error', () => {});
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  return socket;
}
/** Everything that the service sends until the connection closes, or until it has sent so many answers. */
async function read(socket: Socket, answers = Infinity): Promise<string[]> {
  let text = '';
  const parts = () => text.split(/(?=HTTP\/1\.1 \d{3})/).filter(Boolean);
  socket.on('data', (chunk) => (text += chunk));
  await expect.poll(() => socket.closed || (parts().length >= answers && text.endsWith('}'))).toBe(true);
  return parts();
}

it('A connection that its client has reset gets no handler, because it has no address any more', async () => {
  let handled = 0;
  const server = createServer(() => handled++);
  serveInOrder(server);
  server.prependListener('connection', (socket) =>
    Object.defineProperty(socket, 'remoteAddress', { value: undefined }),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const socket = await open({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' });
  socket.write(get('/'));
  await once(socket, 'close');
  expect(handled).toBe(0);
});

describe('A connection', () => {
  /** A server whose answers the test gives. */
  const serving = async () => {
    const begun: [path: string, response: ServerResponse][] = [];
    const counts = { parsed: 0 };
    const server = createServer(({ url }, response) => void begun.push([url!, response]));
    serveInOrder(server);
    server.on('request', () => counts.parsed++);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close().closeAllConnections());
    let connection: Socket | undefined;
    server.on('connection', (one) => (connection = one));
    const accepted = () => connection!;
    return {
      begun,
      counts,
      accepted,
      socket: await open({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' }),
    };
  };

  it('has one request under way, however many its client sends', async () => {
    const { begun, socket } = await serving();
    socket.write(['/1', '/2', '/3'].map((path) => get(path)).join(''));
    for (const path of ['/1', '/2', '/3']) {
      await expect.poll(() => begun.length).toBe(1);
      const [url, response] = begun.pop()!;
      expect(url).toBe(path);
      response.end();
    }
    socket.write(get('/4'));
    await expect.poll(() => begun[0]?.[0]).toBe('/4');
  });

  it.each([
    ['of a stated length', 'Content-Length: 300000', (body: string) => body],
    ['in chunks', 'Transfer-Encoding: chunked', (body: string) => `493e0\r\n${body}\r\n0\r\n\r\n`],
  ])('reads little of a waiting body %s, and the rest at its turn', async (_, header, framed) => {
    const { begun, socket, accepted } = await serving();
    socket.write(`${get('/1')}POST /2 HTTP/1.1\r\nHost: localhost\r\n${header}\r\n\r\n${framed('x'.repeat(300_000))}`);
    await expect.poll(() => accepted().bytesRead).toBeGreaterThan(1_000);
    await new Promise((resume) => setTimeout(resume, 100));
    expect(accepted().bytesRead).toBeLessThan(140_000);
    expect(begun).toHaveLength(1);
    begun.pop()![1].end();
    await expect.poll(() => begun.length).toBe(1);
    const [path, { req }] = begun.pop()!;
    let bytes = 0;
    for await (const chunk of req) bytes += chunk.length;
    expect([path, bytes]).toEqual(['/2', 300_000]);
    expect(socket.closed).toBe(false);
  });

  it('closes when the bodies of waiting requests have too many chunks, however small', async () => {
    const { begun, socket } = await serving();
    const chunked = `POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(400)}0\r\n\r\n`;
    socket.write(get('/') + chunked.repeat(2));
    await expect.poll(() => socket.closed).toBe(true);
    expect(begun.length).toBe(1);
  });

  it('with more than sixteen waiting requests closes, and begins none of them', async () => {
    const { begun, counts, socket } = await serving();
    socket.write(get('/').repeat(17));
    await expect.poll(() => begun.length).toBe(1);
    expect(socket.closed).toBe(false);
    socket.write(get('/').repeat(500));
    await read(socket);
    expect(begun.length).toBe(1);
    // The listener does not even parse the rest.
    expect(counts.parsed).toBe(1 + 16 + 1);
  });

  it.each([
    ['an unknown expectation', get('/', 'Expect: x\r\n')],
    ['the expectation of a continue', get('/', 'Expect: 100-continue\r\n')],
    ['no Host', 'GET / HTTP/1.1\r\n\r\n'],
  ])('counts waiting requests with %s, too', async (_, request) => {
    const { begun, socket } = await serving();
    socket.write(get('/') + request.repeat(17));
    expect(await read(socket)).toEqual([]);
    expect(begun.length).toBe(1);
  });

  it('gets the continue of a request at its turn', async () => {
    const { begun, socket } = await serving();
    const answers = read(socket, 3);
    socket.write(get('/1') + get('/2', 'Expect: 100-continue\r\n'));
    for (const text of ['{1}', '{2}']) {
      await expect.poll(() => begun.length).toBe(1);
      begun.pop()![1].end(text);
    }
    expect((await answers).map((answer) => answer.slice(9, 12))).toEqual(['200', '100', '200']);
  });

  it.each([
    ['heads', get('/', `X: ${'x'.repeat(10_000)}\r\n`).repeat(7)],
    ['names of headers', get('/', Array.from({ length: 49 }, (_, i) => `x${i}:\r\n`).join('')).repeat(8)],
    ['bodies', `${get('/', 'Content-Length: 20000\r\n')}${'x'.repeat(20_000)}`.repeat(4)],
  ])('with more than 64 KiB of waiting requests closes: %s', async (_, requests) => {
    const { begun, socket } = await serving();
    const small = `${get('/', 'Content-Length: 1000\r\n')}${'x'.repeat(1_000)}`;
    socket.write(get('/') + small.repeat(3));
    await expect.poll(() => begun.length).toBe(1);
    expect(socket.closed).toBe(false);
    socket.write(requests);
    await read(socket);
    expect(begun.length).toBe(1);
  });

  it('begins none of its waiting requests after its client has left', async () => {
    const { begun, socket } = await serving();
    socket.write(get('/').repeat(5));
    await expect.poll(() => begun.length).toBe(1);
    socket.destroy();
    await once(begun[0]![1], 'close');
    await new Promise(setImmediate);
    expect(begun.length).toBe(1);
  });
});

describe('A flood over one connection', async () => {
  const onion = { host: '127.0.0.1', port: await freePort() };
  const { publicUrl, internalUrl } = await startFreehold({ ONION_LISTENER: `${onion.host}:${onion.port}` });
  const at = (url: string) => ({ host: '127.0.0.1', port: Number(new URL(url).port) });
  const guess = get('/v1/account', `Authorization: Bearer ${mintCredential('live')}\r\n`);

  it.each<[what: string, to: NetConnectOpts, request: string, begin?: string]>([
    ['the public listener', at(publicUrl), get('/v1/catalog')],
    ['the public listener, with an unknown expectation', at(publicUrl), get('/v1/catalog', 'Expect: x\r\n')],
    ['the public listener, with guessed credentials', at(publicUrl), guess],
    ['the onion service', onion, guess, lineOf(7)],
    ['the internal listener', at(internalUrl), get('/graphql?query={catalog}', 'Authorization: Bearer x\r\n')],
  ])('ends it: %s', async (_, to, request, begin = '') => {
    const socket = await open(to);
    socket.write(begin + request.repeat(2_000));
    expect((await read(socket)).length).toBeLessThan(20);
  });

  it('differs from a few requests, which get their answers in order', async () => {
    const socket = await open(at(publicUrl));
    const paths = Array.from({ length: 10 }, (_, i) => (i % 2 ? '/v1/catalog/vps' : '/v1/account'));
    socket.write(paths.map((path) => get(path)).join(''));
    const answers = await read(socket, paths.length);
    expect(answers.map((answer) => answer.slice(9, 12))).toEqual(paths.map((_, i) => (i % 2 ? '200' : '401')));
  });
});

describe('A request that Node would answer by itself', async () => {
  const { publicUrl } = await startFreehold({ ROLES: 'api', RATE_LIMIT_PUBLIC_PER_MINUTE: '3' });

  it('gets an error of the service, and counts for the rate limits', async () => {
    const statuses = [];
    for (const head of ['Host: x\r\nExpect: x\r\n', '', 'Host: x\r\nExpect: x\r\n', '']) {
      const socket = await open({ host: '127.0.0.1', port: Number(new URL(publicUrl).port) });
      socket.write(`GET /v1/catalog HTTP/1.1\r\n${head}\r\n`);
      const [answer] = await read(socket, 1);
      statuses.push(/"code":"(\w+)"/.exec(answer!)?.[1]);
    }
    expect(statuses).toEqual(['invalid_header', 'invalid_header', 'invalid_header', 'rate_limited']);
  });
});
