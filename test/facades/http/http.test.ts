import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { openSampleApi } from '../sample-api.ts';
import { slow } from '../sample-schema.ts';

const { app, errors, answers } = await openSampleApi();
await app.listen({ port: 0, host: '127.0.0.1' });
const { port } = app.server.address() as AddressInfo;
const url = `http://127.0.0.1:${port}`;

/** Opens a connection. `send` waits until the packet has arrived alone, or the server has closed the connection. */
async function open() {
  const accepted = once(app.server, 'connection') as Promise<[Socket]>;
  const socket = connect(port, '127.0.0.1').setNoDelay();
  const [peer] = await accepted;
  let answer = '';
  socket.on('data', (chunk) => (answer += chunk)).on('error', () => {});
  const closed = once(socket, 'close').then(() => answer);
  const send = async (packet: string) => {
    const arrived = peer.bytesRead + Buffer.byteLength(packet);
    socket.write(packet);
    await expect.poll(() => peer.destroyed || peer.bytesRead >= arrived, WAIT).toBe(true);
  };
  return { socket, peer, send, closed };
}
const WAIT = { timeout: 240_000, interval: 5 };

/** Sends packets, and returns the response as text. */
async function raw(...packets: string[]): Promise<string> {
  const { send, closed } = await open();
  for (const packet of packets) await send(packet);
  return closed;
}
/** Splits the text of a response. */
function partsOf(answer: string) {
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  const [status = '', ...lines] = head.split('\r\n');
  const headers = Object.fromEntries(lines.map((line) => line.toLowerCase().split(': ') as [string, string]));
  return { status, headers, body };
}

describe('Every response', () => {
  it.each(['/v1/parts', '/v1/things/one', '/v1/nowhere', '/v1/things/%', '/v1/broken', '/v1/refused/rate_limited'])(
    'to %s has a request id and the security headers',
    async (path) => {
      const response = await fetch(url + path);
      const headers = Object.fromEntries(response.headers);
      const body = await response.json();
      expect(headers).toMatchObject({
        'x-request-id': expect.stringMatching(/^req_/),
        'content-type': 'application/json; charset=utf-8',
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
        'strict-transport-security': expect.stringContaining('max-age='),
        'access-control-allow-origin': '*',
        'access-control-expose-headers': '*',
      });
      if (!response.ok) expect((body as { request_id: string }).request_id).toBe(headers['x-request-id']);
    },
  );

  it('has an ETag if it is cacheable, and is 304 for a client with that ETag', async () => {
    const first = await fetch(`${url}/v1/something/one`);
    const etag = first.headers.get('etag')!;
    expect(first.headers.get('cache-control')).toBe('public, max-age=60');
    for (const ifNoneMatch of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const again = await fetch(`${url}/v1/something/one`, { headers: { 'if-none-match': ifNoneMatch } });
      expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', etag]);
    }
    const other = await fetch(`${url}/v1/something/part`, { headers: { 'if-none-match': etag } });
    expect(other.status).toBe(200);
    expect((await fetch(`${url}/v1/parts`)).headers.get('etag')).toBeNull();
  });
});

describe('A method', () => {
  it('is 404 if the path lacks it, and Allow names the methods of the path', async () => {
    for (const method of ['PUT', 'DELETE']) {
      const response = await fetch(`${url}/v1/things`, { method, body: '{' });
      expect([response.status, response.headers.get('allow')]).toEqual([404, 'GET, HEAD, POST']);
      expect(await response.json()).toMatchObject({ code: 'not_found' });
    }
  });

  it('HEAD answers as GET does, without the body', async () => {
    const response = await fetch(`${url}/v1/parts`, { method: 'HEAD' });
    expect([response.status, await response.text()]).toEqual([200, '']);
    expect(response.headers.get('content-length')).not.toBe('0');
    expect((await fetch(`${url}/v1/things`, { method: 'HEAD' })).status).toBe(401);
  });

  it('OPTIONS allows browsers the methods of the path and all headers', async () => {
    const response = await fetch(`${url}/v1/things`, { method: 'OPTIONS' });
    expect([response.status, await response.text()]).toEqual([200, '']);
    expect(response.headers.get('access-control-allow-methods')).toBe('GET, HEAD, POST');
    expect(response.headers.get('access-control-allow-headers')).toContain('Authorization');
  });
});

describe('An error', () => {
  it('is one flat object', async () => {
    const response = await fetch(`${url}/v1/refused/insufficient_balance`);
    expect(response.status).toBe(402);
    expect(response.headers.get('retry-after')).toBe('7');
    expect(response.headers.get('x-more')).toBe('more');
    expect(await response.json()).toEqual({
      type: 'http://localhost:3000/docs/errors#insufficient_balance',
      title: 'Payment Required',
      status: 402,
      code: 'insufficient_balance',
      detail: 'The balance does not cover the price. Top up by CreateTopup.',
      request_id: response.headers.get('x-request-id'),
      retryable: true,
      retry_after: 7,
      available_regions: ['ams'],
      required_usd: 6,
      balance_usd: 0.000001,
    });
  });

  it('is application/problem+json for clients that accept it', async () => {
    const ask = (accept: string) => fetch(`${url}/v1/nowhere`, { headers: { accept } });
    expect((await ask('application/problem+json')).headers.get('content-type')).toMatch(/^application\/problem\+json/);
    expect((await ask('*/*')).headers.get('content-type')).toMatch(/^application\/json/);
  });

  it('of a credential has WWW-Authenticate (RFC 6750)', async () => {
    const challenge = async (headers: Record<string, string>) =>
      (await fetch(`${url}/v1/things`, { headers })).headers.get('www-authenticate');
    expect(await challenge({})).toBe('Bearer realm="svc"');
    expect(await challenge({ authorization: 'Bearer wrong' })).toBe('Bearer realm="svc", error="invalid_token"');
    expect(await challenge({ authorization: 'Bearer public' })).toBe(
      'Bearer realm="svc", error="insufficient_scope", scope="read"',
    );
    expect((await fetch(`${url}/v1/refused/invalid_login`)).headers.get('www-authenticate')).toBe('Bearer realm="svc"');
  });

  it('is masked if it is a fault, and the log has its text without values', async () => {
    const before = errors.length;
    const response = await fetch(`${url}/v1/broken`);
    const body = await response.json();
    expect(response.status).toBe(500);
    expect(body).toMatchObject({ code: 'internal_error', detail: 'Something failed on our side.', retryable: true });
    expect(JSON.stringify([body, errors])).not.toContain('hunter2');
    expect(errors.slice(before)).toEqual([
      expect.objectContaining({ name: 'TypeError', request_id: response.headers.get('x-request-id') }),
    ]);
    expect(JSON.stringify(errors.at(-1))).toContain('sample-schema.ts');
  });

  it('also reaches clients that send invalid HTTP, or too large or too many headers', async () => {
    const nonsense = await raw('NONSENSE\r\n\r\n');
    expect(nonsense).toMatch(/^HTTP\/1\.1 400 /);
    expect(JSON.parse(nonsense.split('\r\n\r\n')[1]!)).toMatchObject({ status: 400, code: 'invalid_header' });
    const endless = await raw(`GET /v1/parts HTTP/1.1\r\nhost: x\r\nx-long: ${'x'.repeat(17_000)}\r\n\r\n`);
    expect(JSON.parse(endless.split('\r\n\r\n')[1]!)).toMatchObject({
      code: 'invalid_header',
      detail: 'The headers are larger than 16 KiB.',
    });
    const many = await raw(`GET /v1/parts HTTP/1.1\r\nhost: x\r\n${'x: y\r\n'.repeat(100)}\r\n`);
    expect(JSON.parse(many.split('\r\n\r\n')[1]!)).toMatchObject({
      code: 'invalid_header',
      detail: 'The request has more than 100 headers.',
    });
  });

  const large = (method: string, size: number) =>
    `${method} /v1/parts HTTP/1.1\r\nhost: x\r\nx-long: ${'x'.repeat(size)}\r\n\r\n`;
  const halves = (text: string): [string, string] => [text.slice(0, 900), text.slice(900)];
  it.each<[what: string, packets: string[]]>([
    ['headers above the limit of the service', [large('HEAD', 17_000)]],
    ["headers above Node's limit", [large('HEAD', 70_000)]],
    ['headers above the limit of the service, in two packets', halves(large('HEAD', 17_000))],
    ['a malformed request line', ['HEAD /a b HTTP/1.1\r\nhost: x\r\n\r\n']],
    ['a malformed header', ['HEAD / HTTP/1.1\r\nhost: x\r\n', 'bad header\r\n\r\n']],
    ['a malformed body', ['HEAD /v1/parts HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n']],
  ])('has no body for a HEAD with %s', async (_, packets) => {
    expect(await raw(...packets)).toMatch(/HTTP\/1\.1 400 Bad Request\r\n([^\r]+\r\n)+\r\n$/);
  });

  it.each<[what: string, packets: string[]]>([
    ['headers above the limit of the service', [large('GET', 17_000)]],
    ['headers above the limit of the service, in two packets', halves(large('GET', 17_000))],
    ['a URL above the limit of the service', [`GET /${'x'.repeat(17_000)} HTTP/1.1\r\nhost: x\r\n\r\n`]],
    ['a malformed request line', ['GET /a b HTTP/1.1\r\nhost: x\r\n\r\n']],
    ['no request line', ['NONSENSE\r\n\r\n']],
    ['no method', ['\u0016\u0003\u0001 \r\n\r\n']],
  ])('arrives completely, and ends the connection: %s', async (_, packets) => {
    const { status, headers, body } = partsOf(await raw(...packets));
    expect(status).toBe('HTTP/1.1 400 Bad Request');
    expect(headers).toMatchObject({
      connection: 'close',
      'content-length': String(Buffer.byteLength(body)),
      date: expect.any(String),
    });
    expect(JSON.parse(body)).toMatchObject({ status: 400, code: 'invalid_header', request_id: expect.any(String) });
  });

  it('of a body that ends early is not a fault', async () => {
    const before = errors.length;
    const { socket, peer, send } = await open();
    await send('POST /v1/echo HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{');
    socket.destroy();
    await expect.poll(() => peer.destroyed, WAIT).toBe(true);
    expect((await fetch(`${url}/v1/parts`)).status).toBe(200);
    expect(errors.length).toBe(before);
  });
});

describe('A caller who disconnects', () => {
  it('aborts the signal of the operation, and a caller who waits does not', async () => {
    const waiting = fetch(`${url}/v1/slow`);
    await expect.poll(() => slow.running, WAIT).toBe(1);
    slow.finish();
    expect(await (await waiting).json()).toMatchObject({ name: 'late' });
    expect(slow).toMatchObject({ running: 0, aborted: 0 });
    const disconnect = new AbortController();
    const request = fetch(`${url}/v1/slow`, { signal: disconnect.signal }).catch(() => 'gone');
    await expect.poll(() => slow.running, WAIT).toBe(1);
    disconnect.abort();
    expect(await request).toBe('gone');
    await expect.poll(() => slow, WAIT).toMatchObject({ running: 0, aborted: 1 });
  });
});

describe('The log of responses', () => {
  it('has operation, status, time and request id, and no input', async () => {
    answers.length = 0;
    await fetch(`${url}/v1/things/CANARY1?limit=CANARY2`, {
      headers: { authorization: 'Bearer CANARY3', 'user-agent': 'CANARY4' },
    });
    await fetch(`${url}/CANARY5`, { method: 'POST', body: 'CANARY6' });
    await expect.poll(() => answers.length).toBe(2);
    expect(answers).toEqual([
      {
        facade: 'rest',
        operation: 'GetThing',
        status: 401,
        ms: expect.any(Number),
        requestId: expect.stringMatching(/^req_/),
      },
      expect.objectContaining({ facade: 'http', operation: 'unknown path', status: 404 }),
    ]);
    expect(JSON.stringify(answers)).not.toMatch(/CANARY|127\.0\.0\.1/);
  });
});
