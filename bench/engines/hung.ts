/**
 * `node bench/engines/hung.ts`, a part of `npm run bench`. Forty engines accept connections and never answer. A service carries out
 * twelve changes at each of them, and reboots a machine of another engine. A second service reboots a machine without such
 * neighbours. Their reboots take turns, so other load on the machine slows both. The run is longer than a silent call, so
 * it has the retries, too.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Database } from '../../entities/database/database.ts';
import { startEmbeddedPostgres } from '../../entities/database/embedded/postgres.ts';
import { newFolder, type RestClient, removeFolder, restClient, spawnService } from '../../test/setup/spawn.ts';
import { median, print } from '../figure.ts';
import { run, stops } from '../run.ts';
import { newOrderer } from '../seed.ts';

const ENGINES = 40;
/** The changes that a worker carries out at one engine at once, and the accounts that share all changes. */
const [CHANGES, ACCOUNTS] = [12, 20];
const HUNG = ENGINES * CHANGES;
/** A silent call ends after 30 seconds. Its first retry comes within ten more, and the second one after the next 50. */
const SECONDS = 90;
/** Reboots of each service that warm up compilers and pools; not counted. */
const REBOOTS_BEFORE = 40;
/** Seconds that the changes have to reach their engines. */
const PATIENCE_SECONDS = 5;
const BAR = 1.2;

/** The connections to the hung engines. */
const sockets = new Set<Socket>();

/** A service with a running server at an engine that answers. */
interface World {
  db: Database;
  folder: string;
  url: string;
  rest: RestClient;
  order: string;
}
/** An account with servers at hung engines. */
interface Neighbour {
  orders: string[];
  rest: RestClient;
}

await run(bench);

async function bench() {
  const worlds = [await open(), await open()] as const;
  const neighbours = await addNeighbours(worlds[0]);
  for (let n = 0; n < REBOOTS_BEFORE; n++) for (const world of worlds) await timed(world);
  await hang(neighbours);
  const times: [number[], number[]] = [[], []];
  const end = performance.now() + SECONDS * 1000;
  for (let turn = 0; performance.now() < end; turn++)
    for (const index of turn % 2 ? ([0, 1] as const) : ([1, 0] as const)) times[index].push(await timed(worlds[index]));
  const [beside, alone] = times;
  const shown = (all: number[]) => `${median(all).toFixed(0)} ms, at most ${Math.max(...all).toFixed(0)} ms`;
  console.log(
    `${beside.length} reboots of each service: ${shown(beside)} beside hung engines, ${shown(alone)} without.`,
  );
  print({
    name: `a reboot beside ${HUNG} changes at ${ENGINES} hung engines, to one without`,
    ratio: median(beside) / median(alone),
    bar: BAR,
  });
}

async function open(): Promise<World> {
  const folder = newFolder();
  stops.push(() => removeFolder(folder));
  const postgres = await startEmbeddedPostgres(folder);
  stops.push(() => removeFolder(postgres.folder), postgres.stop);
  await Database.open(postgres.url, { ownerUrl: postgres.ownerUrl }).then((opened) => opened.close());
  const db = await Database.open(postgres.ownerUrl, { poolSize: 1 });
  stops.push(() => db.close());
  const environment = { DATA_DIR: folder, DATABASE_URL: postgres.url, RATE_LIMIT_STORE: 'memory' };
  const { url, stop } = await spawnService({ ...environment, SIMULATED_PROVISION_SECONDS: '0' });
  stops.push(stop);
  const { credential } = await newOrderer(db);
  const rest = restClient(url, credential);
  const { status, body } = await rest('POST', '/v1/servers', { service_code: 'vps-1', region: 'zrh' });
  assert.equal(status, 200, JSON.stringify(body));
  const order = body.order_number as string;
  await runs(rest, order);
  return { db, folder, url, rest, order };
}

async function addNeighbours({ db, folder, url, order }: World): Promise<Neighbour[]> {
  for (let n = 0; n < ENGINES; n++) await addEngine(db, folder, `hung-${n}`);
  const neighbours: Neighbour[] = [];
  for (let n = 0; n < ACCOUNTS; n++) {
    const { id, credential } = await newOrderer(db);
    neighbours.push({ orders: await addServers(db, order, id, n), rest: restClient(url, credential) });
  }
  return neighbours;
}

/** Adds an engine with a host. Its socket accepts connections and never answers. Looks reached it before. */
async function addEngine(db: Database, folder: string, name: string) {
  const path = join(folder, `${name}.sock`);
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    socket.resume();
  }).listen(path);
  await once(server, 'listening');
  stops.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const connection = {
    ...{ endpoints: [`unix:${path}`], project: 'freehold', pool: 'default', network: 'lxdbr0', nameservers: [] },
    ...{ openMail: false, clientCertificate: null, serverCertificate: null },
  };
  await db.query(
    `insert into engine (name, kinds, needs_hosts, simulated, region_code, connection, seen_at)
      values ($1, '{VPS}', true, false, 'zrh', $2, now())`,
    [name, JSON.stringify(connection)],
  );
  await db.query(
    `insert into host (name, region_code, kind, driver, vcpus, memory_mb, disk_gb)
      values ($1, 'zrh', 'VPS', $1, 64, 262144, 4000)`,
    [name],
  );
}

/** Copies a running server to several engines, for an account. @returns the order numbers */
async function addServers(db: Database, order: string, accountId: string, account: number): Promise<string[]> {
  const rows = await db.query<{ orderNumber: string }>(
    `insert into server (id, account_id, order_number, kind, status, hostname, service_code, region, os, host, engine,
        ssh_key_ids, ssh_public_keys, price_month_micros, setup_fee_micros, paid_until)
      select 'srv_hung_' || made.number, $2, 'SRV-' || made.number, kind, status, hostname, service_code, region, os,
        made.at, made.at, ssh_key_ids, ssh_public_keys, price_month_micros, setup_fee_micros, paid_until
      from server, (
        select 'hung-' || n % $4::int as at, lpad(n::text, 10, '0') as number
        from generate_series($3::int, $3 + $5::int - 1) n) made
      where order_number = $1
      returning order_number`,
    [order, accountId, (account * HUNG) / ACCOUNTS, ENGINES, HUNG / ACCOUNTS],
  );
  return rows.map(({ orderNumber }) => orderNumber);
}

/** @returns the milliseconds of a reboot, from the request until the server runs again */
async function timed({ rest, order }: World): Promise<number> {
  const began = performance.now();
  await reboot(rest, order);
  await runs(rest, order);
  return performance.now() - began;
}

async function reboot(rest: RestClient, order: string) {
  const { status, body } = await rest('PATCH', `/v1/servers/${order}`, { action: 'reboot' });
  assert.equal(status, 200, JSON.stringify(body));
}

async function runs(rest: RestClient, order: string) {
  for (;;) {
    const { status, body } = await rest('GET', `/v1/servers/${order}?wait_for=running`);
    assert.equal(status, 200, JSON.stringify(body));
    if (body.status === 'running') return;
  }
}

/** Reboots the servers of the hung engines. Then all of them have some seconds to reach their engines. */
async function hang(neighbours: Neighbour[]) {
  const begin = async ({ orders, rest }: Neighbour) => {
    for (const order of orders) await reboot(rest, order);
  };
  await Promise.all(neighbours.map(begin));
  for (const end = performance.now() + PATIENCE_SECONDS * 1000; sockets.size < HUNG && performance.now() < end; )
    await sleep(50);
  console.log(`${Math.min(sockets.size, HUNG)} of ${HUNG} changes at hung engines wait at once.`);
}
