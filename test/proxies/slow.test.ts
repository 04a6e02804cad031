/** The files of nginx and HAProxy in docs/operate/proxies.md keep little, and not for long, for callers who stop. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import tls from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../setup/freehold.ts';
import { say } from '../setup/say.ts';
import { freePort, type OnEnd } from '../setup/spawn.ts';
import { FOR_STRANGERS, type RunningProxy } from './programs.ts';
import { socketsAround } from './sockets.ts';

const MIB = 1024 ** 2;
const PART = Buffer.alloc(64 * 1024);
/** The first bytes of a hello of TLS, whose record has 512. */
const HALF_HELLO = Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252]);

const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n';

/** Stands for the service. Its answers have no end, and that to `/silent` and a switched protocol wait after their first part. */
async function startService(onEnd: OnEnd) {
  const ports = { api: await freePort(), internal: await freePort() };
  const answers = new Map<string, ServerResponse | Duplex>();
  const service = createServer(({ url = '' }, answer) => {
    answers.set(url, answer);
    if (url.startsWith('/silent')) return void answer.write('first');
    const write = () => {
      while (answer.write(PART));
    };
    answer.on('drain', write);
    write();
  });
  const internal = createServer((_, answer) => void answer.end());
  internal.on('upgrade', ({ url = '' }, socket) => {
    answers.set(
      url,
      socket.on('error', () => {}),
    );
    socket.write(`${SWITCH}first`);
    onEnd(() => void socket.destroy());
  });
  for (const [server, port] of [[service, ports.api] as const, [internal, ports.internal] as const]) {
    onEnd(() => {
      server.close();
      server.closeAllConnections();
    });
    await once(server.listen(port, '127.0.0.1'), 'listening');
  }
  return { ports, answers };
}
type Answers = Awaited<ReturnType<typeof startService>>['answers'];

const portOf = (url: string) => Number(new URL(url).port);

/** Asks for an answer over TLS, and does not read it. */
async function ask(
  { url, ca }: Pick<RunningProxy, 'url' | 'ca'>,
  path: string,
  onEnd: OnEnd,
  connection = 'keep-alive',
) {
  const socket = tls.connect({ port: portOf(url), host: '127.0.0.1', servername: 'localhost', ca });
  onEnd(() => void socket.destroy());
  await once(socket, 'secureConnect');
  socket.pause();
  socket.write(requestFor(path, connection));
  return socket;
}
const requestFor = (path: string, connection = 'keep-alive') =>
  `GET ${path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: other\r\nConnection: ${connection}\r\n\r\n`;

/**
 * Asks until the service answers, since a proxy on a busy machine may take it for dead.
 * @returns the caller's side and the service's
 */
async function served(
  proxy: Pick<RunningProxy, 'url' | 'ca'>,
  path: string,
  answers: Answers,
  onEnd: OnEnd,
  connection?: string,
) {
  for (let attempt = 0; ; attempt++) {
    const own = `${path}?${attempt}`;
    const caller = await ask(proxy, own, onEnd, connection);
    for (let look = 0; look < 30; look++, await sleep(100)) {
      const answer = answers.get(own);
      if (answer) return [caller, answer] as const;
    }
  }
}

/** Opens a connection without TLS, and reads nothing. */
async function open(url: string, onEnd: OnEnd): Promise<Socket> {
  const socket = connect(portOf(url), '127.0.0.1').on('error', () => {});
  onEnd(() => void socket.destroy());
  await once(socket, 'connect');
  return socket;
}

/** The bytes that have left a socket of this process for its kernel. */
const leftOf = (socket: Socket): number => {
  const { writeQueueSize = 0 } = (socket as { _handle?: { writeQueueSize?: number } })._handle ?? {};
  return socket.bytesWritten - socket.writableLength - writeQueueSize;
};
/** The bytes that wait in the kernel at the end of a connection whose other end this process has. */
const waitingAt = ({ localPort, remotePort }: Socket, [from, to] = [localPort, remotePort]) =>
  socketsAround().find((one) => one.localPort === from && one.remotePort === to)!;

/** The bytes of an answer that the proxy has read, and that its caller's kernel has not taken. */
function heldBetween(service: Socket, caller: Socket, read: number): number {
  const { localPort, remotePort } = service;
  const beforeProxy = waitingAt(service).unsent + waitingAt(service, [remotePort, localPort]).unread;
  return leftOf(service) - beforeProxy - waitingAt(caller).unread - read;
}

/** Waits until a number stays the same. */
async function settled(read: () => number): Promise<number> {
  for (let before = Number.NaN; ; await sleep(300)) {
    const now = read();
    if (now === before) return now;
    before = now;
  }
}

describe.each(FOR_STRANGERS)('%s', (name, start) => {
  it.each([0, 16])('holds less than 1 MiB for a caller who reads %d MiB and then nothing', async (mebibytes) => {
    const { ports, answers } = await startService(onTestFinished);
    const proxy = await start({ ports, onEnd: onTestFinished });
    const [caller, answer] = await served(proxy, '/', answers, onTestFinished);
    const service = (answer as ServerResponse).socket!;
    let read = 0;
    caller.on('data', ({ length }) => {
      read += length;
      if (read > mebibytes * MIB) caller.pause();
    });
    if (mebibytes) caller.resume();
    await eventually(async () => caller.isPaused());
    await settled(() => leftOf(service));
    const held = heldBetween(service, caller, read);
    say(`${name} holds ${held} bytes for a caller who reads ${mebibytes} MiB and then nothing.`);
    expect(held).toBeLessThan(MIB);
  });
});

it.concurrent.for(FOR_STRANGERS)(
  '%s ends half a hello of TLS and an answer without a reader, but no silent stream',
  async ([name, start], { onTestFinished: onEnd }) => {
    const { ports, answers } = await startService(onEnd);
    const proxy = await start({ ports, onEnd });
    const [stream, streamed] = await served(proxy, '/silent', answers, onEnd);
    const [socket, upgraded] = await served({ ...proxy, url: proxy.consoleUrl }, '/socket', answers, onEnd, 'Upgrade');
    let heard = '';
    for (const silent of [stream, socket]) silent.resume().on('data', (part) => (heard += part));
    const haveHeard = (word: string) => eventually(async () => heard.split(word).length === 3);
    await haveHeard('first');
    const half = await open(proxy.url, onEnd);
    half.resume().write(HALF_HELLO);
    const [unread, unreadAnswer] = await served(proxy, '/', answers, onEnd);
    const plain = await open(proxy.plainUrl, onEnd);
    plain.write(requestFor('/').repeat(10_000));
    const sides = [unread, plain].map(({ localPort, remotePort }) => `${remotePort} to ${localPort}`);
    await Promise.all([once(half, 'close'), once(unreadAnswer, 'close')]);
    expect([stream.closed, socket.closed]).toEqual([false, false]);
    for (const answer of [streamed, upgraded]) answer.write('second');
    await haveHeard('second');
    socket.write('third');
    expect(String(await once(upgraded, 'data'))).toBe('third');
    // The kernel keeps the bytes of a closed connection, as long as the caller's kernel answers.
    const isKept = () => socketsAround().some((one) => sides.includes(`${one.localPort} to ${one.remotePort}`));
    if (name === 'HAProxy') await eventually(async () => !isKept());
  },
);
