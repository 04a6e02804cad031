/** Others in the network of installations send a flood of requests to the listener. */
import { once } from 'node:events';
import { truncateSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { newDatabase } from '../../setup/database.ts';
import { openRoom, writeSums } from './room.ts';

const room = await openRoom(await newDatabase(), []);
const { port } = new URL(room.url);

async function open(localAddress = '127.0.0.1'): Promise<Socket> {
  const socket = connect({ port: Number(port), host: '127.0.0.1', localAddress }).on('error', () => {});
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  return socket;
}
const get = (path: string, method = 'GET') => `${method} ${path} HTTP/1.1\r\nHost: boot\r\n\r\n`;
/** Returns the answer, once the listener closes the connection. */
const answerOf = async (socket: Socket) => Buffer.concat(await socket.toArray().catch(() => [])).toString();

it('A connection has one request, so that nothing waits behind an answer', async () => {
  const socket = await open();
  socket.write(get('/files/vmlinuz'));
  const answer = await answerOf(socket);
  expect(answer).toMatch(/^HTTP\/1.1 200 OK[\s\S]*connection: close[\s\S]*it is vmlinuz$/i);
  const many = await open();
  many.write(get('/files/vmlinuz').repeat(500));
  expect((await answerOf(many)).split('HTTP/1.1').length).toBeLessThanOrEqual(2);
});

it('The listener reads no further requests of a connection that sends thousands at once', async () => {
  let parsed = 0;
  const count = () => parsed++;
  room.server.on('request', count);
  onTestFinished(() => void room.server.off('request', count));
  const socket = await open();
  socket.write('GET /boot HTTP/1.1\r\n\r\n'.repeat(3_600));
  await answerOf(socket);
  expect(parsed).toBeGreaterThan(0);
  expect(parsed).toBeLessThanOrEqual(20);
});

it('While 16 addresses hold all connections with slow downloads, others get their answers and keep their downloads', async () => {
  const [path, size] = [join(room.folder, 'large.img'), 16 * 1024 * 1024];
  writeFileSync(path, '');
  truncateSync(path, size);
  writeSums(room.folder);
  const download = async (address: string) => {
    const socket = await open(address);
    socket.write(get('/files/large.img'));
    await once(socket, 'readable');
    return socket;
  };
  const first = await download('127.0.0.98');
  for (let i = 0; i < 256; i++) await download(`127.0.0.${2 + (i % 16)}`);
  for (let i = 0; i < 3; i++) {
    const other = await open('127.0.0.99');
    other.write(get('/boot'));
    expect(await answerOf(other)).toMatch(/^HTTP\/1.1 200[\s\S]*#!ipxe/);
  }
  expect((await answerOf(first)).length).toBeGreaterThan(size);
});

it('A report that does not arrive gives way to others, and a download does not', async () => {
  const [path, size] = [join(room.folder, 'large.img'), 30 * 1024 * 1024];
  writeFileSync(path, '');
  truncateSync(path, size);
  writeSums(room.folder);
  const download = await open('127.0.0.98');
  download.pause();
  download.write(get('/files/large.img'));
  for (let n = 0; n < 300; n++) {
    const caller = await open(`127.0.${1 + (n >> 7)}.${n & 127}`);
    caller.write('POST /d/dep_1/x/working HTTP/1.1\r\nHost: boot\r\nContent-Length: 9000\r\n\r\nx');
    if (n === 254) await sleep(1_100);
  }
  const other = await open('127.0.0.99');
  other.write(get('/boot'));
  expect(await answerOf(other)).toMatch(/^HTTP\/1.1 200[\s\S]*#!ipxe/);
  expect((await answerOf(download)).length).toBeGreaterThan(size);
});

const chunked = 'Host: boot\r\nTransfer-Encoding: chunked\r\n\r\n';
it.each([
  ['with an unknown expectation', 'GET /boot HTTP/1.1\r\nHost: boot\r\nExpect: x\r\n\r\n'.repeat(1_000), 417],
  ['without a host', 'GET /boot HTTP/1.1\r\n\r\n'.repeat(1_000), 400],
  ['of another method', 'PUT /boot HTTP/1.1\r\nHost: boot\r\n\r\n', 405],
  ['with a body', `GET /files/vmlinuz HTTP/1.1\r\n${chunked}${'1\r\nx\r\n'.repeat(1_000)}`, 413],
  ['with a long report', 'POST /d/dep_1/x/working HTTP/1.1\r\nHost: boot\r\nContent-Length: 16385\r\n\r\n', 413],
  ['with a report in chunks', `POST /d/dep_1/x/working HTTP/1.1\r\n${chunked}`, 413],
])('A request %s gets a refusal, and loses its connection', async (_, bytes, status) => {
  const socket = await open();
  socket.write(bytes);
  // A connection that sends too much is reset, and may lose the refusal.
  expect((await answerOf(socket)) || `HTTP/1.1 ${status}`).toMatch(
    new RegExp(`^HTTP/1.1 ${status}(?![\\s\\S]*HTTP/1.1)`),
  );
  expect(socket.destroyed).toBe(true);
});

it('A report may wait for the word to send it', async () => {
  const socket = await open();
  socket.write('POST /d/dep_1/x/working HTTP/1.1\r\nHost: boot\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n');
  const [first] = await once(socket, 'data');
  expect(String(first)).toMatch(/^HTTP\/1.1 100 Continue/);
  socket.write('x');
  expect(await answerOf(socket)).toMatch(/^HTTP\/1.1 404/);
});

it('An address has 16 connections, of which the longest idle one gives way after a second', async () => {
  const held: Socket[] = [];
  for (let i = 0; i < 16; i++) held.push((await open('127.0.0.50')).resume());
  expect(await answerOf(await open('127.0.0.50'))).toMatch(/^HTTP\/1.1 503/);
  await sleep(1_100);
  const next = await open('127.0.0.50');
  next.write(get('/boot'));
  expect(await answerOf(next)).toMatch(/^HTTP\/1.1 200/);
  await expect.poll(() => held.filter(({ destroyed }) => destroyed)).toEqual([held[0]]);
});

it('An address asks the database 100 times in a second', async () => {
  const answers: string[] = [];
  const began = Math.floor(performance.now() / 1_000);
  for (let i = 0; i < 250; i++) {
    const socket = await open();
    socket.write(get(`/boot/02:00:00:00:00:${(i % 100).toString().padStart(2, '0')}`));
    answers.push(await answerOf(socket));
  }
  const seconds = Math.floor(performance.now() / 1_000) - began + 1;
  expect(answers.filter((answer) => answer.startsWith('HTTP/1.1 200')).length).toBeLessThanOrEqual(100 * seconds);
  expect(answers[0]).toContain('exit');
});

it('HEAD tells the size of a file without its content', async () => {
  await sleep(1_000);
  const socket = await open();
  socket.write(get('/files/vmlinuz', 'HEAD'));
  expect(await answerOf(socket)).toMatch(/content-length: 13\r\n[\s\S]*\r\n\r\n$/i);
});

it('A boot loader may read a part of a file', async () => {
  const socket = await open();
  socket.write('GET /files/vmlinuz HTTP/1.0\r\nHost: boot\r\nRange: bytes=3-4\r\n\r\n');
  expect(await answerOf(socket)).toMatch(/^HTTP\/1.1 206[\s\S]*content-range: bytes 3-4\/13\r\n[\s\S]*\r\n\r\nis$/i);
});
