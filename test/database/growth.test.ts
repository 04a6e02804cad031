/** Lists of the operator and ticks read few pages, however many rows the customers have. The proof reads each row a few times. */
import { beforeAll, describe, expect, it } from 'vitest';
import { grow } from '../../bench/scale/seed.ts';
import { Database } from '../../entities/database/database.ts';
import type { Statement } from '../../entities/database/statement.ts';
import { READ_FIGURES } from '../../entities/monitoring/figures.ts';
import { proveBooks } from '../../entities/payments/books.ts';
import { SUM_DAYS } from '../../entities/payments/ledger.ts';
import { WATCH_TOP_UPS } from '../../entities/payments/top-up.ts';
import { LIST_SERVERS } from '../../entities/servers/find.ts';
import { FIND_EXPECTED_MACHINES } from '../../entities/servers/finding.ts';
import { FIND_DUE_TRAFFIC } from '../../entities/servers/metering/traffic.ts';
import { FIND_CHANGED_NAMES } from '../../entities/servers/reverse-dns.ts';
import { LIST_TASKS } from '../../entities/tasks/task.ts';
import { DELETE_OLD_DELIVERIES, DELETE_OLD_SNAPSHOTS } from '../../entities/webhooks/delivery.ts';
import { newDatabaseUrl } from '../setup/database.ts';
import { atEnd } from '../setup/end.ts';
import { asAdministrator } from '../setup/postgres.ts';

/** Their transfers are sixty thousand, in some 2,500 pages. */
const SERVERS = 6_000;
let db: Database;
beforeAll(async () => {
  db = await Database.open(asAdministrator(await newDatabaseUrl()), { poolSize: 2 });
  atEnd(() => db.close());
  await grow(db, 1, SERVERS);
});

type Plan = { 'Actual Rows': number; 'Shared Hit Blocks': number; 'Shared Read Blocks': number };
/** Returns the rows that a statement finds, and the pages that it reads. */
async function read(text: string, parameters: unknown[] = []) {
  const [row] = await db.query<Record<string, { Plan: Plan }[]>>(
    `explain (analyze, buffers, format json) ${text}`,
    parameters,
  );
  const { Plan } = Object.values(row!)[0]![0]!;
  return { found: Plan['Actual Rows'], pages: Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks'] };
}
type Call = [statement: Statement<unknown>, parameters: unknown[]];
const servers = (status: string[] | null, hostname: string | null): Call => [
  LIST_SERVERS,
  [51, null, null, status, null, hostname, [], [], null, null],
];

describe(`With ${SERVERS} servers, few pages are read by`, () => {
  it.each<[string, Call, found: number]>([
    ['the list of servers with a host name', servers(null, 'web-7.example.org'), 1],
    ['the list of servers in a rare state', servers(['REBUILDING'], null), 3],
    ['the list of open top-ups', [WATCH_TOP_UPS, [null, null]], 10],
    ['the list of stuck tasks', [LIST_TASKS.STUCK, [50]], 5],
    ['the deletion of deliveries', [DELETE_OLD_DELIVERIES, [30, 1_000, 5_000, 1_200]], 0],
    ['the deletion of snapshots', [DELETE_OLD_SNAPSHOTS, ['evt_0', 5_000]], 0],
    ['the search for changed names', [FIND_CHANGED_NAMES, [50, 2, 15]], 0],
    ['the second look at machines', [FIND_EXPECTED_MACHINES, [['VPS'], null, ['SRV-0515815139']]], 1],
  ])('%s', async (_, [{ text }, parameters], found) => {
    const cost = await read(text, parameters);
    expect(cost.found).toBe(found);
    expect(cost.pages).toBeLessThan(30);
  });
});

it('The search for used traffic reads the meters, and no server', async () => {
  const [meters] = await db.query<{ pages: number }>(`select relpages as pages from pg_class where relname = 'meter'`);
  expect((await read(FIND_DUE_TRAFFIC.text, [200, 'VPS'])).pages).toBeLessThan(meters!.pages + 20);
});

it('A scrape of metrics reads few pages', async () => {
  const { found, pages } = await read(READ_FIGURES.text, [['servers', 'periodic'], ['bitcoin']]);
  expect(found).toBeGreaterThan(10);
  expect(pages).toBeLessThan(100);
});

it('The totals of a day read a small part of the transfers', async () => {
  expect((await read(SUM_DAYS.text, [1])).pages).toBeLessThan(500);
});

it('The proof of the books reads each transfer a few times', async () => {
  const [transfers] = await db.query<{ count: number }>('select count(*)::int as count from transfer');
  const readRows = await db.transaction(async (tx) => {
    expect(await proveBooks(tx)).toMatchObject({ balanced: true, faults: [] });
    const [rows] = await tx.query<{ count: number }>(
      'select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int as count from pg_stat_xact_user_tables',
    );
    return rows!.count;
  });
  expect(readRows).toBeLessThan(transfers!.count * 40);
});
