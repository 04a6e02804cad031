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

it.each([
  ['a customer', true],
  ['a stranger of another address', false],
])('A flood of costly calls delays %s by a few of them', async (_, isCustomer) => {
  const authorization = isCustomer ? `authorization: Bearer ${tokens.access_token}\r\n` : '';
  const call = `${textOf('GET /v1/billing/coins')}${authorization}\r\n`;
  const own = await open('127.0.0.8');
  // The account is known afterwards.
  own.write(`${textOf('GET /v1/account/balance')}authorization: Bearer ${tokens.access_token}\r\n\r\n`);
  await once(own, 'data');
  const unknown = Object.fromEntries(Array.from({ length: 900 }, (_, i) => [`m${i}`, 1]));
  const params = { name: 'list_coins', arguments: unknown };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  const sockets = await Promise.all(Array.from({ length: FLOOD }, () => open('127.0.0.9')));
  let answered = 0;
  // The first call loads the tools.
  const flood = `${textOf('POST /mcp', body)}\r\n${body}`;
  sockets[0]!.write(flood);
  await once(sockets[0]!, 'data');
  const all = sockets.map((socket) => once(socket, 'data').then(() => answered++));
  for (const socket of sockets) socket.write(flood);
  own.write(call);
  expect(String(await once(own, 'data'))).toMatch(/^HTTP\/1.1 200 /);
  expect(answered).toBeLessThan(FLOOD / 10);
  await Promise.all(all);
});
