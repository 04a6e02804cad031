/** The traffic of the month against that of the tier. Servers need warnings, pay for more, or get slow. */
import { IS_LIMITED_SQL, LIMITED_MBPS } from '../../accounts/abuse-case.ts';
import * as column from '../../database/column.ts';
import { statement } from '../../database/statement.ts';
import { nullable, type Row } from '../../database/table.ts';
import { Meter, MONTH } from './meter.ts';

/** Megabits a second of a machine above its traffic, unless its tier says otherwise. */
export const SLOW_MBPS = 10;

/**
 * States of machines that are on, or come on as they are. A rebuild makes another one, with its right speed. Customers can keep
 * a server out of RUNNING for ever.
 */
const IS_ON = `status in ('RUNNING', 'STARTING', 'STOPPING', 'REBOOTING')`;

/** A meter with its server and its tier. The limit is the traffic of the tier, and of the TB that were paid. */
const METERED_SQL = `
  meter join server using (order_number) join catalog_item on code = service_code
    cross join lateral (
      select (1e12 * (details->>'trafficTb')::numeric)::bigint as given_bytes,
        case when auto_renew and (details->>'extraTbMicros')::numeric >= 1 then (details->>'extraTbMicros')::numeric::bigint end as tb_micros,
        (details->>'portMbps')::int as tier_mbps,
        least(coalesce((details->>'slowMbps')::numeric::int, ${SLOW_MBPS}), (details->>'portMbps')::int) as slow_mbps) as tier
    cross join lateral (
      select case when used_bytes >= given_bytes then 100 when used_bytes >= 0.8 * given_bytes then 80 else 0 end as percent,
        ceil((used_bytes - given_bytes) / 1e12)::int as begun_tb,
        coalesce(month = ${MONTH} and used_bytes > given_bytes + 1e12 * charged_tb, false) as is_over) as use`;
const IS_ALIVE = `status not in ('FAILED', 'DELETING', 'DELETED')`;

const { month, usedBytes, warnedPercent, chargedTb } = Meter.columns;
const DUE = {
  ...{ orderNumber: column.text(), accountId: column.text(), serviceCode: column.text() },
  ...{ month, usedBytes, warnedPercent, chargedTb },
  /** The part of its traffic that the server has used: 0, 80 or 100. */
  percent: column.int(),
  /** The begun TB above the tier; negative below it. */
  begunTb: column.int(),
  /** The price of each of them in micro-USD. Null: the customer pays for none. */
  tbMicros: nullable(column.bigint()),
};
export type Due = Row<typeof DUE>;
const DUE_COLUMNS = `
  order_number, server.account_id, service_code, month, used_bytes, percent, warned_percent, charged_tb, begun_tb, tb_micros`;
const IS_DUE = `${IS_ALIVE} and month = ${MONTH} and (percent > warned_percent or (is_over and tb_micros is not null))`;
/**
 * The first $1 servers of the kind $2 that need a warning, or can pay for a begun TB. Each has used four fifths of the smallest
 * traffic or more. So the statement looks for the servers of few meters.
 */
export const FIND_DUE_TRAFFIC = statement(DUE)`
  with meter as materialized (
    select * from meter where month = ${MONTH} and used_bytes >= (
      select min(0.8e12 * (details->>'trafficTb')::numeric) from catalog_item where kind in ('vps', 'dedicated')))
  select ${DUE_COLUMNS} from ${METERED_SQL} join balance on balance.account_id = server.account_id
  where ${IS_DUE} and server.kind = $2 and (percent > warned_percent or available_micros >= tb_micros)
  order by order_number limit $1::int`;
/** Locks those that still do. The caller has locked their accounts. $1 order numbers. */
export const LOCK_DUE_TRAFFIC = statement(DUE)`
  select ${DUE_COLUMNS} from ${METERED_SQL}
  where ${IS_DUE} and order_number = any($1) order by order_number for update of meter`;
/** Notes warnings and payments. $1 order numbers, $2 percents, $3 the paid TB. */
export const NOTE_TRAFFIC = statement({})`
  update meter set warned_percent = given.percent, charged_tb = given.tb
  from unnest($1::text[], $2::int[], $3::int[]) as given(order_number, percent, tb)
  where meter.order_number = given.order_number`;

/**
 * Machines of the kind $1 on the engine $2 with a wrong speed. A case of abuse wants the lowest one. Null is the engine of the
 * environment. Machines without a case and within their traffic keep any speed but these two.
 */
export const FIND_WRONG_SPEEDS = statement({ order: column.text(), generation: column.int(), portMbps: column.int() })`
  select order_number as "order", generation, wanted_mbps as port_mbps
  from ${METERED_SQL}
    cross join lateral (select ${IS_LIMITED_SQL} as is_limited) as by_case
    cross join lateral (
      select case when is_limited then ${LIMITED_MBPS} when is_over then slow_mbps else tier_mbps end as wanted_mbps) as wanted
  where server.kind = $1 and coalesce(server.engine, '') = coalesce($2, '') and ${IS_ON} and port_mbps <> wanted_mbps
    and (is_limited or is_over or port_mbps in (slow_mbps, ${LIMITED_MBPS}))`;

/** Whether the server $1 is slow, because its traffic is used up; no row without a reading. */
export const FIND_SLOWNESS = statement({ isSlow: column.boolean() })`
  select is_over as is_slow from ${METERED_SQL} where order_number = $1`;
