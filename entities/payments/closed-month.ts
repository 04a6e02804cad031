/**
 * Closed months: the operator's word that the books of a month are complete, with its totals. The database gives
 * each transfer its time, so no later transfer comes into a month that is over. `npm run verify` compares the totals.
 */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { entity, type Row, type RowOf } from '../database/table.ts';

/** The sums of a ledger account in a month, in micro-USD as decimal strings. Customers are added up. */
export interface MonthTotal {
  name: string;
  debit: string;
  credit: string;
}

export const ClosedMonth = entity('closed_month', {
  /** Such as 2026-10, in UTC. */
  month: column.key(),
  transfers: column.int(),
  totals: column.json<MonthTotal[]>(),
  closedAt: column.now(),
});
export type ClosedMonth = RowOf<typeof ClosedMonth>;

const TOTALS = {
  transfers: column.int(),
  totals: column.json<MonthTotal[]>(),
  /** Whether no transaction of the month can still commit. */
  isOver: column.boolean(),
};
const start = (month: string) => `(to_date(${month}, 'YYYY-MM')::timestamp at time zone 'UTC')`;
const end = (month: string) => `((to_date(${month}, 'YYYY-MM') + interval '1 month') at time zone 'UTC')`;
const totalsOf = (month: string) => `
  select (select count(*)::int from transfer where created_at >= ${start(month)} and created_at < ${end(month)}) as transfers,
    (select coalesce(jsonb_agg(jsonb_build_object('name', name, 'debit', debit, 'credit', credit) order by name), '[]') from (
      select case when name ~ '^(available|held|owed|withheld):' then split_part(name, ':', 1) else name end as name,
        sum(gave)::text as debit, sum(got)::text as credit
      from transfer cross join lateral (values (transfer.debit, amount_micros, 0), (transfer.credit, 0, amount_micros)) as leg (name, gave, got)
      where created_at >= ${start(month)} and created_at < ${end(month)} group by 1) as sums) as totals,
    ${end(month)} < now() - interval '1 hour' as is_over`;

/** The totals of the month $1. */
export const SUM_MONTH = statement(TOTALS)`${totalsOf('$1')}`;
/** The closed months whose transfers have other totals now. */
export const CHANGED_MONTHS_SQL = `
  select month as row from closed_month, lateral (${totalsOf('month')}) as present
  where closed_month.transfers <> present.transfers or closed_month.totals <> present.totals`;

const JOURNAL_ENTRY = {
  id: column.key(),
  at: column.timestamp(),
  kind: column.text(),
  debit: column.text(),
  credit: column.text(),
  micros: column.bigint(),
  orderNumber: column.text(),
  description: column.text(),
};
export type JournalEntry = Row<typeof JOURNAL_ENTRY>;
/**
 * The transfers of the month $1 after the id $2, at most 1,000 in the order of their ids. An id does not tell the time of the
 * database. So the pages of a month together read the whole table.
 */
export const LIST_JOURNAL = statement(JOURNAL_ENTRY)`
  select id, created_at as at, kind, debit, credit, amount_micros as micros, coalesce(order_number, '') as order_number, description
  from transfer where created_at >= ${start('$1')} and created_at < ${end('$1')} and id > $2 order by id limit 1000`;
