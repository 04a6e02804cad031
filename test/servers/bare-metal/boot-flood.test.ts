/** Others in the network of installations send a flood of requests to the listener. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, it, onTestFinished } from 'vitest';
import { newDatabase } from '../../setup/database.ts';
import { openRoom } from './room.ts';

const room = await openRoom(await newDatabase(afterAll), [], afterAll);
const { port } = new URL(room.url);

async function open(): Promise<Socket> {
  const socket = connect(Number(port), '127.0.0.1').on('error', () => {});
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

it.each([
  ['with an unknown expectation', 'GET /boot HTTP/1.1\r\nHost: boot\r\nExpect: x\r\n\r\n'.repeat(1_000), 0],
  ['without a host', 'GET /boot HTTP/1.1\r\n\r\n'.repeat(1_000), 1],
  [
    'with a body',
    `${'GET /files/vmlinuz HTTP/1.1\r\nHost: boot\r\nTransfer-Encoding: chunked\r\n\r\n'}${'1\r\nx\r\n'.repeat(1_000)}`,
    0,
  ],
  ['with a long report', 'POST /d/dep_1/x/working HTTP/1.1\r\nHost: boot\r\nContent-Length: 16385\r\n\r\n', 0],
  [
    'with a report in chunks',
    'POST /d/dep_1/x/working HTTP/1.1\r\nHost: boot\r\nTransfer-Encoding: chunked\r\n\r\n',
    0,
  ],
])('A request %s loses its connection', async (_, bytes, answers) => {
  const socket = await open();
  socket.write(bytes);
  expect((await answerOf(socket)).split('HTTP/1.1').length - 1).toBeLessThanOrEqual(answers);
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

it('An address has 16 connections, and gets others when they end', async () => {
  const held: Socket[] = [];
  for (let i = 0; i < 16; i++) held.push(await open());
  const more = await open();
  await once(more, 'close');
  held[0]!.destroy();
  await once(held[0]!, 'close');
  await expect
    .poll(async () => {
      const next = await open();
      next.write(get('/boot'));
      return (await answerOf(next)).slice(0, 15);
    })
    .toBe('HTTP/1.1 200 OK');
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
