/**
 * Compares the order statement through the service's database client with the same statement through pgbench. The
 * difference is the cost of the driver and of Node.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { globSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Database } from '../entities/database/database.ts';
import { recordParameters } from '../entities/history/record.ts';
import { newId, newOrderNumber } from '../entities/ids.ts';
import { ORDER_SERVER } from '../entities/servers/order.ts';
import { startTaskParameters } from '../entities/tasks/start.ts';
import { serverTask } from '../provisioning/index.ts';
import { median } from './figure.ts';

const ROUNDS = 7;
const SECONDS = 2;
const CONNECTIONS = 16;
const ACCOUNTS = 64;
const PRICE = 6_000_000;
const ACCOUNT = 'acct_bench_';

/** @returns the median of the ratios; undefined without pgbench */
export async function statement(databaseUrl: string, folder: string): Promise<number | undefined> {
  const pgbench = globSync('/usr/lib/postgresql/*/bin/pgbench').at(-1);
  if (!pgbench) return undefined;
  const db = await Database.open(databaseUrl, { poolSize: CONNECTIONS });
  try {
    await db.query(
      `insert into balance (account_id, available_micros) select $1 || n, 1000000000000000 from generate_series(1, $2::int) n`,
      [ACCOUNT, ACCOUNTS],
    );
    const script = join(folder, 'order.sql');
    writeFileSync(script, scriptOf(ORDER_SERVER.text));
    const ratios: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const first = round % 2 ? await byPgbench(pgbench, script, databaseUrl) : await byService(db);
      const second = round % 2 ? await byService(db) : await byPgbench(pgbench, script, databaseUrl);
      ratios.push(round % 2 ? second / first : first / second);
      await freeRoom(db);
    }
    // These orders have no transfers that paid for them, so a proof of the books would fail.
    await db.query('delete from task where account_id like $1', [`${ACCOUNT}%`]);
    await db.query('delete from server where account_id like $1', [`${ACCOUNT}%`]);
    await db.query('alter table transfer disable trigger all');
    await db.query('delete from transfer where account_id like $1', [`${ACCOUNT}%`]);
    await db.query('alter table transfer enable trigger all');
    await db.query('delete from balance where account_id like $1', [`${ACCOUNT}%`]);
    return median(ratios);
  } finally {
    await db.close();
  }
}

/** Without room a statement would do nothing, and be fast. @throws Error if no room is left */
async function freeRoom(db: Database): Promise<void> {
  const [left] = await db.query(
    `select from place where region_code = 'zrh' and service_code = 'vps-1' and order_number is null limit 1`,
  );
  assert.ok(left, 'The statement had no room any more.');
  const ordered = `(select order_number from server where account_id like '${ACCOUNT}%')`;
  await db.query(`update place set order_number = null where order_number in ${ordered}`);
  await db.query(`update address set held_by = null where held_by in ${ordered}`);
  await db.query('vacuum (analyze) place, address');
}

/** The parameters of an order of that account. */
function parametersOf(account: number): unknown[] {
  const [accountId, orderNumber, kind] = [`${ACCOUNT}${account}`, newOrderNumber('SRV'), 'VPS'] as const;
  const actor = { type: 'api_key', id: 'key', name: 'bench', requestId: 'req' } as const;
  return [
    ...[
      accountId,
      PRICE,
      newId('xfr'),
      orderNumber,
      'vps-1',
      newId('srv'),
      kind,
      'web.example.org',
      'zrh',
      'debian-13',
    ],
    ...[[], [], null, null, '{}', true, PRICE, 0, 1_000_000, null, null, null],
    ...startTaskParameters(serverTask({ kind, orderNumber, accountId, host: null })),
    ...recordParameters({ type: 'server.created', actor, data: { status: 'PENDING' } }),
  ];
}

/** @returns orders per second */
async function byService(db: Database): Promise<number> {
  let orders = 0;
  const end = performance.now() + SECONDS * 1000;
  const one = async () => {
    for (; performance.now() < end; orders++)
      await ORDER_SERVER.all(db, parametersOf(1 + Math.floor(Math.random() * ACCOUNTS)));
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, one));
  return orders / SECONDS;
}

async function byPgbench(pgbench: string, script: string, databaseUrl: string): Promise<number> {
  const { stdout } = await promisify(execFile)(pgbench, [
    ...['-n', '-M', 'prepared', '-c', `${CONNECTIONS}`, '-j', '2', '-T', `${SECONDS}`, '-f', script, databaseUrl],
  ]);
  return Number(/tps = ([\d.]+)/.exec(stdout)![1]);
}

/** Returns the statement with pgbench variables: a random account, and random values in unique columns. */
function scriptOf(sql: string): string {
  const [one, other] = [parametersOf(1), parametersOf(2)];
  const valueAt = (place: number): string => {
    const value = one[place];
    if (place === 0) return `('${ACCOUNT}' || :account)`;
    if (typeof value === 'string' && value !== other[place]) return `('${place}_' || :chance || '_' || :client_id)`;
    if (value === null || value === undefined) return 'null';
    if (Array.isArray(value)) return `'{}'`;
    return typeof value === 'string' ? `'${value}'` : String(value);
  };
  const filled = sql.replaceAll(/\$(\d+)/g, (_, place) => valueAt(Number(place) - 1)).replaceAll(/\s+/g, ' ');
  return `\\set account random(1, ${ACCOUNTS})\n\\set chance random(1, 1000000000000000)\n${filled};\n`;
}
