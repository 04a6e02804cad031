/**
 * `npm run bench`: compares the REST API with a handwritten server (handwritten.ts) over the same PostgreSQL and rows.
 * Only the ratios count: each round measures both servers, one after the other, in reverse order of the last round. The
 * exit code is 1 only if the benchmark itself fails.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import { Database } from '../entities/database/database.ts';
import { startEmbeddedPostgres } from '../entities/database/embedded/postgres.ts';
import { verifyBooks } from '../entities/payments/books.ts';
import { newFolder, removeFolder } from '../test/setup/spawn.ts';
import { addresses } from './addresses.ts';

import { credits } from './credits.ts';
import { print } from './figure.ts';
import { load, prepare } from './load.ts';
import { logins } from './logins.ts';
import { orders } from './orders.ts';
import { pages } from './pages.ts';
import { type Comparison, compare, type Peer, startPeer, startService } from './peers/compare.ts';
import { rateLimits } from './rate-limits.ts';
import { cpuSeconds, type Round, report, type Slice, secondsOfChildren, secondsOfDatabase } from './report.ts';
import { run, stops } from './run.ts';
import { clear, seed } from './seed.ts';
import { statement } from './statement.ts';
import { x402 } from './x402.ts';
import { yoga } from './yoga.ts';

/** Many short slices spread the other work of the machine evenly over both servers. */
const ROUNDS = 15;
const SLICE_SECONDS = 0.5;
/** Rounds that warm up compilers, pools and caches; not counted. */
const ROUNDS_BEFORE = 2;
const CONNECTIONS = 16;
const ORDER = { service_code: 'vps-1', region: 'zrh', hostname: 'web.example.org', labels: { env: 'prod' } };

interface Case extends Comparison {
  name: string;
  /** The lowest ratio that meets the goal. */
  bar: number;
}

await run(bench);

async function bench() {
  const folder = newFolder();
  stops.push(() => removeFolder(folder));
  // Autovacuum would slow some slices only; the benchmark vacuums after each slice of orders instead.
  const postgres = await startEmbeddedPostgres(folder, ['autovacuum=off']);
  stops.push(() => removeFolder(postgres.folder), postgres.stop);
  await Database.open(postgres.url, { ownerUrl: postgres.ownerUrl }).then((opened) => opened.close());
  // The benchmark deletes rows between its slices, which the role of the service may not.
  const db = await Database.open(postgres.ownerUrl, { poolSize: 1 });
  stops.push(() => db.close());
  const { reader, orderNumber, orderer } = await seed(db);
  const cases: Case[] = [
    { name: 'GET one server', bar: 0.9, account: reader, method: 'GET', path: `/v1/servers/${orderNumber}` },
    { name: 'GET a list of 50', bar: 0.9, account: reader, method: 'GET', path: '/v1/servers' },
    { name: 'POST an order', bar: 0.9, account: orderer, method: 'POST', path: '/v1/servers', body: ORDER },
  ];
  const peers = [await startService(postgres.url, folder), await startPeer('handwritten', postgres.url)];
  await announce(db);
  const postmaster = Number(readFileSync(join(postgres.folder, 'postmaster.pid'), 'utf8').split('\n')[0]);
  const measured = await measure(db, cases, peers, postmaster);
  const [service] = peers as [Peer];
  const { port } = service;
  const environment = { DATABASE_URL: postgres.url, DATA_DIR: folder };
  const worked = await orders({ environment, postmaster, port, db });
  const overYoga = await yoga(postgres.url, service, reader, orderNumber);
  const figures = [
    ...overYoga,
    ...(await rateLimits({ databaseUrl: postgres.url, folder, postmaster, service, reader, orderNumber })),
    await logins(port),
    ...(await pages(port, db, orderer)),
    ...worked,
    ...(await x402(postgres.url, db)),
  ];
  const credited = await credits(postgres.url);
  figures.push(...(await addresses(postgres.url, db)));
  const kept = await statement(postgres.ownerUrl, folder);
  const { balanced } = await verifyBooks(db);
  assert.ok(balanced, 'The books do not balance.');
  console.log(report(measured));
  console.log('\nMedian ratios of the service to itself, and the cost of a worker (lower is better):');
  for (const figure of figures) print(figure);
  console.log(`\nPayments of one block credited per second (block of 1,000): ${credited.toFixed(0)}`);
  if (kept === undefined)
    console.log('Skipped: the order statement through pgbench. Install postgresql-15 to measure it.');
  else
    console.log(
      `Orders per second by the statement alone, relative to pgbench: ${kept.toFixed(2)} (bar .80) ${kept >= 0.8 ? 'met' : 'NOT MET'}`,
    );
}

async function announce(db: Database) {
  const setting = (name: string) => `current_setting('${name}') as ${name}`;
  const [settings] = await db.query<Record<string, string>>(
    `select ${['server_version', 'fsync', 'synchronous_commit'].map(setting).join(', ')}`,
  );
  const { serverVersion: version, fsync, synchronousCommit: commit } = settings!;
  console.log(
    `The service against a handwritten fastify + pg server: ${ROUNDS} rounds of ${SLICE_SECONDS} s, ${CONNECTIONS} connections.\n` +
      `Node ${process.version}, PostgreSQL ${version} (fsync ${fsync}, synchronous_commit ${commit}), one machine.\n`,
  );
  // Other load on the machine distorts the ratios, since the two servers are measured one after the other.
  const [load, processors] = [loadavg()[0]!, availableParallelism()];
  if (load > processors)
    console.log(
      `The machine is busy (load ${load.toFixed(0)} on ${processors} processors), so the ratios will vary.\n`,
    );
}

async function measure(db: Database, cases: Case[], peers: Peer[], postmaster: number) {
  const measured = [];
  for (const one of cases) measured.push({ ...one, answers: await compare(one, peers), rounds: [] as Round[] });
  for (let round = 1 - ROUNDS_BEFORE; round <= ROUNDS; round++) {
    for (const { answers, rounds, ...one } of measured) {
      const slices: Partial<Round> = {};
      for (const index of round % 2 ? [0, 1] : [1, 0])
        slices[peers[index]!.name] = await slice(db, one, peers[index]!, answers[index]!, postmaster);
      if (round > 0) rounds.push(slices as Round);
    }
  }
  return measured;
}

/** Loads one server for one slice. @throws Error if an answer is wrong, or if an order is missing from the database */
async function slice(db: Database, one: Case, peer: Peer, expected: Buffer, postmaster: number): Promise<Slice> {
  const [{ account, method, path, body }, { port, pid }] = [one, peer];
  if (body) await clear(db, account);
  const before = { service: cpuSeconds(pid), database: secondsOfChildren(postmaster) };
  const { requests, seconds } = await load({
    port,
    request: prepare(method, path, account.credential, body),
    expects: (answer) => (body ? answer.includes('"status":"pending"') : answer.equals(expected)),
    connections: CONNECTIONS,
    seconds: SLICE_SECONDS,
  });
  const microsOf = (used: number) => (used / requests) * 1e6;
  const cpuMicros = microsOf(cpuSeconds(pid) - before.service);
  const databaseMicros = microsOf(secondsOfDatabase(postmaster, before.database));
  if (body) assert.equal(await clear(db, account), requests, 'Not every order that was answered is there.');
  return { perSecond: requests / seconds, cpuMicros, databaseMicros };
}
