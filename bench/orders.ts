/**
 * Measures how several workers drain waiting orders, from the order to the machine's proof of life. Simulated machines take
 * two seconds to boot, which the orders wait together.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../entities/database/database.ts';
import { restClient, spawnService } from '../test/setup/spawn.ts';
import type { Figure } from './figure.ts';
import { cpuSeconds, secondsOfChildren, secondsOfDatabase } from './report.ts';
import { newOrderer } from './seed.ts';

const WORKERS = 4;
const ACCOUNTS = 32;
const ORDERS = 1_500;
/** Orders that warm up compilers, pools and kept statements; not counted. */
const ORDERS_BEFORE = 600;
const CONNECTIONS = 16;
const REGIONS = ['ams', 'zrh', 'kef', 'buh'];
const BARS = { betweenMs: 1000 / 300, workerMs: 10, databaseMs: 6 };
const PATIENCE_SECONDS = 240;

interface Given {
  /** Its data folder is that of the API, whose secrets let the workers open sealed passwords. */
  environment: { DATABASE_URL: string; DATA_DIR: string };
  /** The process of PostgreSQL. */
  postmaster: number;
  /** The port of the API. */
  port: number;
  db: Database;
}

export async function orders({ environment, postmaster, port, db }: Given): Promise<Figure[]> {
  const clients: ReturnType<typeof restClient>[] = [];
  for (let n = 0; n < ACCOUNTS; n++)
    clients.push(restClient(`http://127.0.0.1:${port}`, (await newOrderer(db)).credential));
  const start = () => spawnService({ ...environment, ROLES: 'worker' });
  const workers = await Promise.all(Array.from({ length: WORKERS }, start));
  const signal = (name: 'SIGSTOP' | 'SIGCONT') => workers.forEach(({ process }) => void process.kill(name));
  try {
    await untilRunning(db, await place(clients, ORDERS_BEFORE));
    signal('SIGSTOP');
    const numbers = await place(clients, ORDERS);
    await db.query('vacuum (analyze)');
    const seconds = () => workers.reduce((sum, { process }) => sum + cpuSeconds(process.pid!), 0);
    const before = { workers: seconds(), database: secondsOfChildren(postmaster), now: performance.now() };
    signal('SIGCONT');
    await untilRunning(db, numbers);
    const betweenMs = (performance.now() - before.now) / ORDERS;
    const workerMs = ((seconds() - before.workers) * 1000) / ORDERS;
    const databaseMs = (secondsOfDatabase(postmaster, before.database) * 1000) / ORDERS;
    const all = `of ${ORDERS} orders, ${WORKERS} workers`;
    return [
      { name: `ms between two ${all}`, ratio: betweenMs, bar: BARS.betweenMs, detail: `${rateOf(betweenMs)} a second` },
      { name: `ms of the workers' processors for one ${all}`, ratio: workerMs, bar: BARS.workerMs },
      { name: `ms of PostgreSQL's processors for one ${all}`, ratio: databaseMs, bar: BARS.databaseMs },
    ];
  } finally {
    signal('SIGCONT');
    for (const worker of workers) await worker.stop();
  }
}

const rateOf = (betweenMs: number): string => (1000 / betweenMs).toFixed(0);

/** Places orders of all accounts in turn. @returns their numbers */
async function place(clients: ReturnType<typeof restClient>[], count: number): Promise<string[]> {
  const numbers: string[] = [];
  let next = 0;
  const placeSome = async () => {
    for (let n = next++; n < count; n = next++) {
      const region = REGIONS[n % REGIONS.length];
      const { status, body } = await clients[n % ACCOUNTS]!('POST', '/v1/servers', { service_code: 'vps-1', region });
      assert.equal(status, 200, JSON.stringify(body));
      numbers.push(body.order_number);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, placeSome));
  return numbers;
}

/** Waits until all servers run. @throws Error if one does not, or shares an address */
async function untilRunning(db: Database, numbers: string[]): Promise<void> {
  for (const end = Date.now() + PATIENCE_SECONDS * 1000; ; await sleep(100)) {
    const [{ running }] = (await db.query<{ running: number }>(
      `select count(*)::int as running from server where order_number = any($1) and status = 'RUNNING'`,
      [numbers],
    )) as [{ running: number }];
    if (running === numbers.length) break;
    assert.ok(Date.now() < end, `Only ${running} of ${numbers.length} servers run.`);
  }
  const [{ twice }] = (await db.query<{ twice: number }>(
    `select greatest(count(ipv4) - count(distinct ipv4), count(ipv6_prefix) - count(distinct ipv6_prefix))::int as twice
      from server where ipv4 is not null`,
  )) as [{ twice: number }];
  assert.equal(twice, 0, 'An address was given twice.');
}
