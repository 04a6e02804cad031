/** Reports for the operator. They read whole tables, as the proof of the books does. */
import * as column from './database/column.ts';
import { statement } from './database/statement.ts';
import type { Row } from './database/table.ts';
import { REVENUE } from './payments/ledger.ts';
import { IS_IN_BALANCE_SQL } from './payments/payment.ts';

const SALES = {
  region: column.text(),
  /** The code of the tier. */
  serviceCode: column.text(),
  /** Delivered servers that are not deleted or suspended, now. */
  servers: column.int(),
  /** The sum of their prices of a month, now. */
  monthlyMicros: column.bigint(),
  /** Delivered orders of the range. */
  ordered: column.int(),
  /** Deleted servers of the range. An undelivered order does not count. */
  deleted: column.int(),
  /** The servers at the beginning of the range, suspended ones included. */
  before: column.int(),
  /** Those of them that were deleted in the range. */
  lost: column.int(),
  /** The money that servers earned in the range. */
  earnedMicros: column.bigint(),
  /** The part of earned money that went back in the range. */
  refundedMicros: column.bigint(),
};
/** The sales of one tier in one region. */
export type Sales = Row<typeof SALES>;

const inRange = (time: string): string => `${time} >= $1 and ${time} < $2`;
const DELETED = `status in ('DELETING', 'DELETED')`;
/** Sums up each tier and region from $1 until before $2. A deleted server does not change any more, so its last change is its end. */
export const SUM_SALES = statement(SALES)`
  with sold as (
    select region, service_code,
      count(*) filter (where not ${DELETED} and status <> 'SUSPENDED') as servers,
      sum(price_month_micros) filter (where not ${DELETED} and status <> 'SUSPENDED') as monthly_micros,
      count(*) filter (where ${inRange('created_at')}) as ordered,
      count(*) filter (where ${DELETED} and ${inRange('updated_at')}) as deleted,
      count(*) filter (where created_at < $1 and not (${DELETED} and updated_at < $1)) as before,
      count(*) filter (where created_at < $1 and ${DELETED} and ${inRange('updated_at')}) as lost
    from server where paid_until is not null group by 1, 2),
  earned as (
    select region, coalesce(transfer.service_code, server.service_code) as service_code,
      sum(amount_micros) filter (where credit = '${REVENUE}') as earned_micros,
      sum(amount_micros) filter (where debit = '${REVENUE}') as refunded_micros
    from transfer join server using (order_number)
    where '${REVENUE}' in (debit, credit) and ${inRange('transfer.created_at')} group by 1, 2)
  select region, service_code, coalesce(servers, 0)::int as servers, coalesce(monthly_micros, 0)::bigint as monthly_micros,
    coalesce(ordered, 0)::int as ordered, coalesce(deleted, 0)::int as deleted, coalesce(before, 0)::int as before, coalesce(lost, 0)::int as lost,
    coalesce(earned_micros, 0)::bigint as earned_micros, coalesce(refunded_micros, 0)::bigint as refunded_micros
  from sold full join earned using (region, service_code) order by region, service_code`;

const INCOME = {
  /** The code of the coin. */
  coin: column.text(),
  payments: column.int(),
  /** The value of the payments when they were credited. */
  creditedMicros: column.bigint(),
  /** The part of it that payouts sent back. */
  paidOutMicros: column.bigint(),
};
/** The payments in one coin. */
export type Income = Row<typeof INCOME>;
/** Sums up each coin's payments that were credited from $1 until before $2, without reversed ones. */
export const SUM_INCOME = statement(INCOME)`
  select coin, count(*)::int as payments, sum(credited_micros)::bigint as credited_micros,
    sum(paid_out_micros)::bigint as paid_out_micros
  from payment where ${IS_IN_BALANCE_SQL} and ${inRange('credited_at')} group by coin order by coin`;
