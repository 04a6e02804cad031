/**
 * The proof of the books. Every kept balance is the sum of its transfers. The amounts of payments, top-ups, payouts and
 * movements agree with the ledger. The prices of servers do, too, and no server is paid for longer than its
 * transfers say. The proof reads everything, so operators run it occasionally.
 */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { nullable, type Row } from '../database/table.ts';
import type { Queryable } from '../database/transaction.ts';
import { CHECKS, ROWS_MAX } from './proof/checks.ts';

/** One account whose kept balance is not the sum of its transfers. `count` is the number of all such accounts. */
export type Mismatch = Pick<Row<typeof SUMMED>, 'keptMicros' | 'summedMicros' | 'count'> & { accountId: string };
export interface Books {
  /** Whether every kept balance is the sum of its transfers. */
  balanced: boolean;
  transfers: number;
  /** The first accounts that are wrong. */
  mismatches: Mismatch[];
  /** The sums of all ledger accounts by name. Those of customers are added up. */
  totals: { name: string; micros: bigint }[];
}

const LEGS =
  'select debit as name, -amount_micros as micros from transfer union all select credit, amount_micros from transfer';

/** Matches the names of ledger accounts of customers. */
export const OF_CUSTOMER = `name ~ '^(available|held|owed|withheld):'`;
const SUMMED = {
  /** Null: the row is the total of a ledger account, or of those of customers together. */
  accountId: nullable(column.text()),
  name: nullable(column.text()),
  keptMicros: column.bigint(),
  summedMicros: column.bigint(),
  /** The legs of the total, or all accounts that are wrong. */
  count: column.int(),
};
/** The totals by name, and the first accounts that are wrong. It reads all transfers once. */
const SUM_LEGS = statement(SUMMED)`
  with summed as materialized (select name, sum(micros) as micros, count(*) as legs from (${LEGS}) legs group by 1),
    kept as (
      select account_id, part, kept
      from balance cross join lateral (values ('available', available_micros), ('held', held_micros), ('owed', -owed_micros),
        ('withheld', withheld_micros)) as parts(part, kept)),
    wrong as (
      select account_id, coalesce(sum(kept), 0)::bigint as kept_micros, coalesce(sum(micros), 0)::bigint as summed_micros
      from kept full join (
        select split_part(name, ':', 2) as account_id, split_part(name, ':', 1) as part, micros
        from summed where ${OF_CUSTOMER}) as own using (account_id, part)
      group by account_id having bool_or(coalesce(kept, 0) <> coalesce(micros, 0)))
  select null as account_id, case when ${OF_CUSTOMER} then split_part(name, ':', 1) else name end as name,
    0::bigint as kept_micros, sum(micros)::bigint as summed_micros, sum(legs)::int as count from summed group by 2
  union all (
    select account_id, null, kept_micros, summed_micros, count(*) over ()::int from wrong order by account_id limit ${ROWS_MAX})
  order by name, account_id`;

/** Proves that the balances are the sums of all transfers, or names the first accounts that are wrong. */
export async function verifyBooks(db: Queryable): Promise<Books> {
  const rows = await SUM_LEGS.all(db);
  const mismatches = rows.flatMap(({ accountId, name: _, ...sums }) =>
    accountId === null ? [] : { accountId, ...sums },
  );
  const totals = rows.flatMap(({ name, summedMicros: micros }) => (name === null ? [] : { name, micros }));
  const legs = rows.reduce((sum, { name, count }) => sum + (name === null ? 0 : count), 0);
  return { balanced: !mismatches.length, transfers: legs / 2, mismatches, totals };
}

/** A kind of fault, with the ids of the first rows that disagree with the ledger. `count` is the number of all such rows. */
export interface Fault {
  table: string;
  detail: string;
  rows: string[];
  count: number;
}

export interface Proof extends Books {
  /** In the order of the checks. */
  faults: Fault[];
  /** The first wrong row; null: none. */
  firstFault: { table: string; row: string; detail: string } | null;
}

/** Verifies the books, then each of the checks. @returns balanced only without any fault */
export async function proveBooks(db: Queryable): Promise<Proof> {
  const books = await verifyBooks(db);
  const faults: Fault[] = [];
  const [first] = books.mismatches;
  if (first)
    faults.push({
      table: 'balance',
      detail: `The first balance keeps ${first.keptMicros} micro-USD, and its transfers sum up to ${first.summedMicros}.`,
      rows: books.mismatches.map(({ accountId }) => accountId),
      count: first.count,
    });
  faults.push(...(await check(db, CHECKS, new Map(books.totals.map(({ name, micros }) => [name, micros])))));
  const [fault] = faults;
  const firstFault = fault ? { table: fault.table, row: fault.rows[0]!, detail: fault.detail } : null;
  return { ...books, balanced: !fault, faults, firstFault };
}

/** Does some checks. @param totals the sums of the ledger accounts by name */
export async function check(db: Queryable, some: typeof CHECKS, totals: Map<string, bigint>): Promise<Fault[]> {
  const faults: Fault[] = [];
  for (const { table, detail, total, wrong } of some) {
    const found = await wrong.all(db, total ? [totals.get(total) ?? 0n] : []);
    if (found[0]) faults.push({ table, detail, rows: found.map(({ row }) => row), count: found[0].count });
  }
  return faults;
}
