/**
 * A load generator that uses little processor time. Each keep-alive connection sends prepared bytes, one request at a
 * time. It checks only the status, the length and the caller's comparison of each answer.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export interface Load {
  port: number;
  /** A whole HTTP request as bytes. */
  request: Buffer;
  /** Whether the body is correct. */
  expects: (body: Buffer) => boolean;
  connections: number;
  seconds: number;
}

export interface Loaded {
  requests: number;
  /** Seconds from the first request to the last answer. */
  seconds: number;
}

/** Returns the bytes of a request that is sent many times. */
export function prepare(
  method: string,
  path: string,
  credential?: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Buffer {
  const text = body === undefined ? '' : JSON.stringify(body);
  const lines = [
    `${method} ${path} HTTP/1.1`,
    'Host: localhost',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(credential ? [`Authorization: Bearer ${credential}`] : []),
    ...(text ? ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(text)}`] : []),
  ];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${text}`);
}

/** @throws Error at the first answer that is not 200 or fails the comparison */
export async function load({ port, request, expects, connections, seconds }: Load): Promise<Loaded> {
  const sockets = await Promise.all(Array.from({ length: connections }, () => open(port)));
  let requests = 0;
  const began = performance.now();
  const end = began + seconds * 1000;
  try {
    await Promise.all(
      sockets.map((socket) =>
        converse(socket, request, (body) => {
          if (!expects(body)) throw new Error(`A wrong answer: ${body.toString().slice(0, 500)}`);
          requests++;
          return performance.now() < end;
        }),
      ),
    );
    return { requests, seconds: (performance.now() - began) / 1000 };
  } finally {
    for (const socket of sockets) socket.destroy();
  }
}

async function open(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  await once(socket, 'connect');
  return socket;
}

/** Repeats the request until `next` returns false. */
function converse(socket: Socket, request: Buffer, next: (body: Buffer) => boolean): Promise<void> {
  return new Promise((done, fail) => {
    let received: Buffer = EMPTY;
    socket.on('data', (chunk) => {
      received = received.length ? Buffer.concat([received, chunk]) : chunk;
      try {
        const body = bodyOf(received);
        if (!body) return;
        received = EMPTY;
        if (next(body)) socket.write(request);
        else done();
      } catch (error) {
        fail(error);
      }
    });
    socket.once('error', fail);
    socket.once('close', () => fail(new Error('The server closed a connection.')));
    socket.write(request);
  });
}
const EMPTY = Buffer.alloc(0);
const LAST_CHUNK = Buffer.from('0\r\n\r\n');

/** Returns the body once it is complete. A connection has one request under way, so no second answer follows. */
function bodyOf(received: Buffer): Buffer | undefined {
  const headEnd = received.indexOf('\r\n\r\n');
  if (headEnd === -1) return undefined;
  const head = received.toString('latin1', 0, headEnd);
  if (!head.startsWith('HTTP/1.1 200 ')) throw new Error(`Not 200: ${received.toString().slice(0, 2000)}`);
  const body = received.subarray(headEnd + 4);
  if (/^transfer-encoding: chunked/im.test(head))
    return body.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK) ? body : undefined;
  const length = /^content-length: (\d+)/im.exec(head)?.[1];
  if (!length) throw new Error(`No length: ${head}`);
  return body.length === Number(length) ? body : undefined;
}
