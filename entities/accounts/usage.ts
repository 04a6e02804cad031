/** The statements of usage, which read the transfers of an account. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { nullable, type Row } from '../database/table.ts';
import { UTC_DAY } from '../payments/ledger.ts';

/**
 * Transfers from and to the available balance. Captures are not among them, because they take held money.
 * $1 account, $2 its available balance, $3 and $4 range of times. The times are the database's, and a process with another
 * clock makes the ids.
 */
const RANGE = `
  transfer.account_id = $1 and (transfer.debit = $2 or transfer.credit = $2)
    and transfer.created_at >= $3 and transfer.created_at < $4`;
const AMOUNT = 'case when transfer.credit = $2 then transfer.amount_micros else -transfer.amount_micros end';

/** The sum of the days from $2 to $3 (UTC) of the account $1. A trigger of the transfers keeps the sums. */
export const FIND_USAGE_TOTAL = statement({
  totalMicros: column.bigint(),
  toppedUpMicros: column.bigint(),
  spentMicros: column.bigint(),
  adjustedMicros: column.bigint(),
})`
  select coalesce(sum(total_micros), 0)::bigint as total_micros,
    coalesce(sum(topped_up_micros), 0)::bigint as topped_up_micros, coalesce(sum(spent_micros), 0)::bigint as spent_micros,
    coalesce(sum(total_micros - topped_up_micros + spent_micros), 0)::bigint as adjusted_micros
  from usage_day
    where account_id = $1 and day between ($2::timestamptz at time zone 'UTC')::date and ($3::timestamptz at time zone 'UTC')::date`;

/** For the proof of the books: the accounts whose sums differ from their transfers. */
export const WRONG_USAGE_SQL = `
  select account_id as row
  from usage_day as kept
  full join (
    select account_id, ${UTC_DAY} as day,
      sum(signed) as micros,
      coalesce(sum(signed) filter (where kind in ('topup', 'bonus')), 0) as topped_up,
      coalesce(-sum(signed) filter (where kind not in ('topup', 'bonus', 'adjustment')), 0) as spent
    from transfer cross join lateral (
      select case when credit = 'available:' || account_id then amount_micros else -amount_micros end as signed) as change
    where 'available:' || account_id in (debit, credit) group by 1, 2) as summed using (account_id, day)
  where (coalesce(kept.total_micros, 0), coalesce(kept.topped_up_micros, 0), coalesce(kept.spent_micros, 0))
    <> (coalesce(summed.micros, 0), coalesce(summed.topped_up, 0), coalesce(summed.spent, 0))`;

const USAGE_ITEM = {
  id: column.key(),
  kind: column.oneOf('order', 'renewal', 'traffic', 'refund', 'topup', 'bonus', 'adjustment'),
  orderNumber: nullable(column.text()),
  serviceCode: nullable(column.text()),
  description: column.text(),
  /** The paid time; without a paid time, `from` and `to` are the moment of the transfer. */
  from: column.timestamp(),
  to: column.timestamp(),
  hours: nullable(column.int()),
  /** Negative if the transfer took money from the balance. */
  amountMicros: column.bigint(),
};
export type UsageItem = Row<typeof USAGE_ITEM>;

/**
 * A page of a range, newest first. $5 last id of the page before, $6 limit. For an order, a resize and a resumed server, the
 * capture has the paid time.
 */
export const LIST_USAGE = statement(USAGE_ITEM, { replans: true })`
  with page as (
    select transfer.*, ${AMOUNT} as signed from transfer
    where ${RANGE} and ($5::text is null or (transfer.created_at, transfer.id)
      < ((select before.created_at from transfer as before where before.id = $5 and before.account_id = $1), $5))
    order by transfer.created_at desc, transfer.id desc limit $6),
  timed as (
    select page.*, coalesce(page.period_from, capture.period_from) as starts, coalesce(page.period_to, capture.period_to) as ends
    from page left join transfer capture on page.kind in ('hold', 'renewal') and page.period_from is null
      and capture.external_key = 'capture:' || split_part(page.external_key, ':', 2))
  select id, order_number, service_code, description, signed as amount_micros,
    case kind when 'hold' then 'order' when 'release' then 'refund' else kind end as kind,
    coalesce(starts, created_at) as from, coalesce(ends, created_at) as to,
    case kind when 'refund' then floor(extract(epoch from ends - starts) / 3600)
      else round(extract(epoch from ends - starts) / 3600) end::int as hours
  from timed order by created_at desc, id desc`;
