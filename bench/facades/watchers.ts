/**
 * `node bench/facades/watchers.ts`: the cost of watchers by WebSocket. Clients in a second process open 10,000 sockets of operators on
 * one process, who all see the same. Then as many sockets of accounts see nothing of a change of another account.
 */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { WebSocket } from 'ws';
import { readConfig } from '../../config.ts';
import { Bus } from '../../entities/database/bus.ts';
import { Database } from '../../entities/database/database.ts';
import { startEmbeddedPostgres } from '../../entities/database/embedded/postgres.ts';
import { newId } from '../../entities/ids.ts';
import { ADD_OPERATOR } from '../../entities/operator.ts';
import { digest, mintCredential } from '../../entities/secrets.ts';
import { Server } from '../../entities/servers/server.ts';
import { SOCKETS as LIMITS } from '../../facades/graphql/sockets.ts';
import { startService } from '../../main.ts';
import { freePort, newFolder, removeFolder } from '../../test/setup/spawn.ts';
import { median, print } from '../figure.ts';
import { run, stops } from '../run.ts';
import { newOrderer, serverOf } from '../seed.ts';

const SOCKETS = Number(process.env.SOCKETS ?? 10_000);
const ROUNDS = 9;
/** The sockets of one operator, and of one API key. */
const [OF_OPERATOR, OF_KEY] = [64, 10];
/** The sockets that open at once. */
const OPENING = 50;
/** The number of changes that no socket sees. */
const UNSEEN = 2_000;
const SERVERS = 'subscription { serverUpdated { type at server { orderNumber status hostname region ipv4 labels } } }';

/** Opens SOCKETS with these credentials, or closes all without one. */
interface Opening {
  url: string;
  credentials: string[];
}

if (process.argv[2] === 'clients') await clients();
else await run(bench);

async function bench(): Promise<void> {
  const folder = newFolder();
  stops.push(() => removeFolder(folder));
  const postgres = await startEmbeddedPostgres(folder, ['autovacuum=off']);
  stops.push(() => removeFolder(postgres.folder), postgres.stop);
  const ports = { PORT: String(await freePort()), INTERNAL_PORT: String(await freePort()) };
  await Database.open(postgres.url, { ownerUrl: postgres.ownerUrl }).then((opened) => opened.close());
  const config = readConfig({
    ...{ DATABASE_URL: postgres.url, DATA_DIR: folder, ALLOW_SIMULATED: 'true', ROLES: 'api', ...ports },
    ...{ RATE_LIMIT_STORE: 'memory', RATE_LIMIT_KEY_PER_MINUTE: '1000000', RATE_LIMIT_KEY_PER_HOUR: '1000000' },
  });
  const service = await startService(config);
  stops.push(() => service.stop());
  const db = await Database.open(postgres.ownerUrl, { poolSize: 1 });
  stops.push(() => db.close());
  const other = new Bus(postgres.url);
  await other.start();
  stops.push(() => other.close());
  const child = fork(import.meta.filename, ['clients']);
  stops.push(() => child.kill());
  const ask = async (question: Partial<Opening>) => {
    child.send(question);
    return (await once(child, 'message'))[0] as number;
  };
  const url = `${service.internalUrl.replace('http', 'ws')}/graphql`;
  const { id: accountId } = await newOrderer(db);
  await db.source.manager.insert(Server, serverOf(accountId, 1));
  const [server] = await db.query<{ id: string }>('select order_number as id from server');
  await db.query(
    `insert into event (id, account_id, type, subject, data) values ($1, $2, 'server.running', $3, '{}')`,
    [newId('evt'), accountId, server!.id],
  );

  const before = memory();
  await ask({ url, credentials: await operators(db, SOCKETS / OF_OPERATOR) });
  print({ name: 'KiB of the heap for a socket that watches', ratio: (memory() - before) / SOCKETS, bar: 25 });
  const change = { kind: 'server', accountId, id: server!.id } as const;
  const [times, costs]: [number[], number[]] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    const [began, cpu] = [Date.now(), process.cpuUsage()];
    const arrived = once(child, 'message');
    child.send({});
    other.publish([change]);
    times.push(((await arrived)[0] as number) - began);
    const { user, system } = process.cpuUsage(cpu);
    costs.push((user + system) / 1_000);
  }
  console.log(`all see a change: ms ${times.map(Math.round).join(' ')}; CPU ms ${costs.map(Math.round).join(' ')}`);
  print({ name: `ms until the last of ${SOCKETS} sockets has a change that all see`, ratio: median(times), bar: 400 });
  print({ name: 'µs of processor time for each of them', ratio: (median(costs) * 1_000) / SOCKETS, bar: 40 });

  await ask({ url, credentials: [] });
  await ask({ url, credentials: await keys(db, SOCKETS / OF_KEY) });
  if (SOCKETS === LIMITS.max - LIMITS.reserved) await proveLimit(db, url);
  const idle = await processorTime(1, other);
  const busy = await processorTime(UNSEEN, other);
  print({ name: 'µs of processor time for a change that no socket sees', ratio: (busy - idle) / UNSEEN, bar: 20 });
}

/** Accounts have all their places, so the service refuses one more, and still admits an operator. */
async function proveLimit(db: Database, url: string): Promise<void> {
  const { credential } = await newOrderer(db);
  const refused = new WebSocket(url, 'graphql-transport-ws');
  await once(refused, 'open');
  refused.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${credential}` } }));
  assert.equal((await once(refused, 'close'))[0], 1013);
  const [operator] = await operators(db, 1);
  (await watching(url, operator!)).terminate();
  console.log(`accounts have ${SOCKETS} sockets; one more is closed with 1013, and an operator comes in`);
}

/** The KiB that live objects and buffers of this process have. */
function memory(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (let i = 0; i < 3; i++) collect();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / 1024;
}

/** The processor time of this process in µs, while so many changes of others arrive one after the other. */
async function processorTime(changes: number, other: Bus): Promise<number> {
  const accountId = newId('acct');
  const before = process.cpuUsage();
  for (let n = 0; n < changes; n++) other.publish([{ kind: 'server', accountId, id: `SRV-${n}` }]);
  await new Promise((resume) => setTimeout(resume, 2_000));
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

async function operators(db: Database, count: number): Promise<string[]> {
  const tokens = Array.from({ length: Math.ceil(count) }, () => mintCredential('op'));
  for (const token of tokens)
    await ADD_OPERATOR.all(db, [newId('opr'), `bench-${token.slice(-8)}`, 'READ_ONLY', digest(token), 90]);
  return tokens;
}

/** Makes accounts with one API key each. */
async function keys(db: Database, count: number): Promise<string[]> {
  const accounts = [];
  for (let n = 0; n < count; n++) accounts.push(await newOrderer(db));
  return accounts.map(({ credential }) => credential);
}

/** The second process. It answers an opening when all sockets have the present state, and another message after each change. */
async function clients(): Promise<void> {
  let sockets: WebSocket[] = [];
  let waiting = 0;
  const note = () => {
    if (--waiting === 0) process.send!(Date.now());
  };
  process.on('message', async ({ url, credentials = [] }: Partial<Opening>) => {
    if (!url) {
      waiting = sockets.length;
      return;
    }
    waiting = 0;
    for (const socket of sockets) socket.terminate();
    sockets = [];
    const all = Array.from({ length: credentials.length && SOCKETS }, (_, n) => credentials[n % credentials.length]!);
    for (let n = 0; n < all.length; n += OPENING)
      sockets.push(...(await Promise.all(all.slice(n, n + OPENING).map((credential) => watching(url, credential)))));
    for (const socket of sockets) socket.on('message', note);
    process.send!(sockets.length);
  });
}

/** Opens a socket and waits until the service watches for it. */
async function watching(url: string, credential: string): Promise<WebSocket> {
  const socket = new WebSocket(url, 'graphql-transport-ws', { perMessageDeflate: false });
  socket.on('close', (code) => code !== 1006 && console.error(`A socket closed with ${code}.`));
  await once(socket, 'open');
  socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${credential}` } }));
  await once(socket, 'message');
  socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query: SERVERS } }));
  // An account without servers gets no present state. The answer to a second operation comes after the subscription began.
  socket.send(JSON.stringify({ id: '2', type: 'subscribe', payload: { query: '{ __typename }' } }));
  await new Promise<void>((resume) =>
    socket.on('message', function told(message) {
      if (!String(message).includes('"id":"2","type":"complete"') && !/"id":"2".*complete/.test(String(message)))
        return;
      socket.off('message', told);
      resume();
    }),
  );
  return socket;
}
