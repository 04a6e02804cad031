/** Calls that cost much of the processor, and no query. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { Database } from '../../../entities/database/database.ts';
import { newDatabaseUrl } from '../../setup/database.ts';
import { atEnd } from '../../setup/end.ts';
import { fundAccount } from '../../setup/shop.ts';
import { restClient, spawnService } from '../../setup/spawn.ts';

const DATABASE_URL = await newDatabaseUrl();
// The service has a loop of its own, so that answers are counted in their order.
const { url: publicUrl, stop } = await spawnService({ DATABASE_URL, ROLES: 'api' });
atEnd(stop);
const db = await Database.open(DATABASE_URL);
atEnd(() => db.close());
const credentials = { email: 'ada@example.org', password: 'a password of ada' };
const { account, tokens } = (await restClient(publicUrl)('POST', '/v1/auth/register', credentials)).body;
await fundAccount(db, account.id, 1_000_000n);
const FLOOD = 400;

/** Opens a connection to the service from an address of loopback. */
async function open(localAddress: string): Promise<Socket> {
  const socket = connect({ port: Number(new URL(publicUrl).port), host: '127.0.0.1', localAddress });
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  return socket;
}
const textOf = (head: string, body = '') =>
  `${head} HTTP/1.1\r\nhost: localhost\r\nconnection: keep-alive\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: ${body.length}\r\n`;

/** Sends costly calls of a stranger at once. @returns how many have their answer, and the end of all */
async function startFlood(large = '') {
  const unknown = Object.fromEntries(Array.from({ length: 900 }, (_, i) => [`m${i}`, 1]));
  const params = { name: 'list_coins', arguments: { ...unknown, large } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  const call = `${textOf('POST /mcp', body)}\r\n${body}`;
  const sockets = await Promise.all(Array.from({ length: FLOOD }, () => open('127.0.0.9')));
  // The first call loads the tools.
  sockets[0]!.write(call);
  await once(sockets[0]!, 'data');
  const flood = { answered: 0, ended: Promise.resolve<unknown>(undefined) };
  const ends = sockets.map(
    (socket) =>
      new Promise((resume) => {
        socket.once('data', () => resume(flood.answered++));
        socket.once('close', resume).on('error', () => {});
      }),
  );
  flood.ended = Promise.all(ends);
  for (const socket of sockets) socket.write(call);
  return flood;
}

it.each([
  ['a customer', true],
  ['a stranger of another address', false],
])('A flood of costly calls delays %s by a few of them', async (_, isCustomer) => {
  const authorization = `authorization: Bearer ${tokens.access_token}\r\n`;
  const own = await open('127.0.0.8');
  // The account is known afterwards.
  own.write(`${textOf('GET /v1/account/balance')}${authorization}\r\n`);
  await once(own, 'data');
  const flood = await startFlood();
  own.write(`${textOf('GET /v1/billing/coins')}${isCustomer ? authorization : ''}\r\n`);
  expect(String(await once(own, 'data'))).toMatch(/^HTTP\/1.1 200 /);
  expect(flood.answered).toBeLessThan(FLOOD / 10);
  await flood.ended;
});

/** Opens 240 connections of others during a flood. @returns how many calls of the flood have their answers before all others */
async function answeredBeforeNewcomers(): Promise<number> {
  const flood = await startFlood();
  const others = Array.from({ length: 240 }, async (_, i) => {
    const socket = await open(`127.0.1.${i + 1}`);
    socket.write(`${textOf('GET /v1/billing/coins')}\r\n`);
    expect(String(await once(socket, 'data'))).toMatch(/^HTTP\/1.1 200 /);
    socket.destroy();
  });
  await Promise.all(others);
  const { answered, ended } = flood;
  await ended;
  return answered;
}

it('A flood of costly calls delays new connections of others by a few of them', async () => {
  const answered: number[] = [];
  // Other programs can slow the rounds of one try. Without empty rounds, no try has fewer than 28.
  while (answered.length < 3 && !(Math.min(...answered) < FLOOD / 16)) answered.push(await answeredBeforeNewcomers());
  expect(Math.min(...answered)).toBeLessThan(FLOOD / 16);
});

it('Bodies that wait for their turn have 8 MiB, and the largest give way to others of the site', async () => {
  const flood = await startFlood('x'.repeat(40_000));
  const own = await open('127.0.0.9');
  const body = '{"name":"x"}';
  own.write(`${textOf('POST /v1/auth/login', body)}\r\n${body}`);
  expect(String(await once(own, 'data'))).toMatch(/^HTTP\/1.1 422 /);
  await flood.ended;
  expect(flood.answered).toBeGreaterThan(100);
  expect(flood.answered).toBeLessThan(300);
});
