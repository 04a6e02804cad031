/**
 * Measures a worker's processor time for one of many concurrent orders, from the order to the machine's proof of life.
 * Simulated machines add no time of their own.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../entities/database/database.ts';
import { restClient, spawnService } from '../test/setup/spawn.ts';
import type { Figure } from './figure.ts';
import { cpuSeconds } from './report.ts';
import type { SeededAccount } from './seed.ts';

const ORDERS = 200;
/** Orders that warm up compilers and pools; not counted. */
const ORDERS_BEFORE = 40;
const REGIONS = ['ams', 'zrh', 'kef', 'buh'];
const BAR_MS = 10;
const PATIENCE_SECONDS = 120;

/** @param folder the data folder of the API; its secrets let the worker open sealed passwords */
export async function orders(
  databaseUrl: string,
  folder: string,
  port: number,
  db: Database,
  account: SeededAccount,
): Promise<Figure> {
  const rest = restClient(`http://127.0.0.1:${port}`, account.credential);
  const worker = await spawnService({ DATABASE_URL: databaseUrl, DATA_DIR: folder, ROLES: 'worker' });
  try {
    await run(rest, db, ORDERS_BEFORE);
    const before = cpuSeconds(worker.process.pid!);
    await run(rest, db, ORDERS);
    const ms = ((cpuSeconds(worker.process.pid!) - before) * 1000) / ORDERS;
    return { name: `ms of a worker for one of ${ORDERS} orders at once`, ratio: ms, bar: BAR_MS };
  } finally {
    await worker.stop();
  }
}

/** Places this many orders at once, and waits until all run. @throws Error if one does not, or shares an address */
async function run(rest: ReturnType<typeof restClient>, db: Database, count: number): Promise<void> {
  const answers = await Promise.all(
    Array.from({ length: count }, (_, n) =>
      rest('POST', '/v1/servers', { service_code: 'vps-1', region: REGIONS[n % REGIONS.length] }),
    ),
  );
  const numbers = answers.map(({ status, body }) => {
    assert.equal(status, 200, JSON.stringify(body));
    return body.order_number as string;
  });
  for (const end = Date.now() + PATIENCE_SECONDS * 1000; ; await sleep(100)) {
    const [found] = await db.query<{ running: number; twice: number }>(
      `select count(*) filter (where order_number = any($1) and status = 'RUNNING')::int as running,
        greatest(count(ipv4) - count(distinct ipv4), count(ipv6_prefix) - count(distinct ipv6_prefix))::int as twice
        from server where ipv4 is not null`,
      [numbers],
    );
    if (found!.running === count) return assert.equal(found!.twice, 0, 'An address was given twice.');
    assert.ok(Date.now() < end, `Only ${found!.running} of ${count} servers run.`);
  }
}
