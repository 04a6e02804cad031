/** Meters: the traffic of each server in the running month, and samples of the use of its machine. */
import * as column from '../../database/column.ts';
import { statement } from '../../database/statement.ts';
import { defaulting, entity, nullable, type Row } from '../../database/table.ts';

/** Days that samples are kept, and meters of machines that are off or gone. */
const [MINUTE_DAYS, HOUR_DAYS] = [1, 60];
/** The most packets a second of a row. */
const INT_MAX = 2 ** 31 - 1;
/** The most of a sum. With the growth of one reading, it fits the column. */
const SUM_MAX = '9000000000000000000';

export const Meter = entity('meter', {
  orderNumber: column.key(),
  /** The machine and its start, with which its counters began at zero. */
  epoch: column.text(),
  readAt: column.timestamp(),
  /** The counters of the machine, each from the last reading that had it. */
  sentBytes: nullable(column.bigint()),
  receivedBytes: nullable(column.bigint()),
  sentPackets: nullable(column.bigint()),
  cpuNs: nullable(column.bigint()),
  /** The sums of the counters since the first reading, over all machines of the server. */
  totalSentBytes: defaulting(column.bigint(), 0),
  totalReceivedBytes: defaulting(column.bigint(), 0),
  totalCpuNs: defaulting(column.bigint(), 0),
  /** The mean between the last two readings. */
  packetsPerSecond: defaulting(column.int(), 0),
  /** The speed of its network card at the last reading. */
  portMbps: nullable(column.int()),
  /** The calendar month (UTC) of the next three columns, such as 2026-11. */
  month: column.text(),
  /** The sent bytes of the month. */
  usedBytes: defaulting(column.bigint(), 0),
  /** The last warning of the month: 80 or 100; 0 for none. */
  warnedPercent: defaulting(column.int(), 0),
  /** The TB above the tier that the customer has paid for. */
  chargedTb: defaulting(column.int(), 0),
});

/** The sums of a meter at the first reading of a minute or an hour. */
const MeterSample = entity('meter_sample', {
  orderNumber: column.key(),
  /** Seconds: 60 or 3600. */
  step: { ...column.int(), primary: true },
  at: { ...column.timestamp(), primary: true },
  sentBytes: column.bigint(),
  receivedBytes: column.bigint(),
  /** Null: the engine does not know it, as of virtual machines. */
  cpuNs: nullable(column.bigint()),
  /** The occupied bytes at that time. Null: the engine does not know them. */
  memoryBytes: nullable(column.bigint()),
  diskBytes: nullable(column.bigint()),
});

/** The running month. */
export const MONTH = `to_char(now() at time zone 'UTC', 'YYYY-MM')`;

/** The sent bytes of the running month of a row of `server`; null for a machine without a reading. */
export const TRAFFIC_USED_SQL = `(
  select case month when ${MONTH} then used_bytes else 0 end from meter where meter.order_number = server.order_number)`;
/** The same for the server $1. */
export const FIND_TRAFFIC_USED = statement({ trafficUsedBytes: nullable(column.bigint()) })`
  select ${TRAFFIC_USED_SQL} as traffic_used_bytes from server where order_number = $1`;

/** The growth of a counter since the last reading. Another epoch, or a smaller value, means that it began at zero. */
const grownSql = (counter: string) => `
  coalesce(case when meter.epoch = excluded.epoch and excluded.${counter} >= meter.${counter}
    then excluded.${counter} - meter.${counter} else excluded.${counter} end, 0)`;
/** A counter that the engine does not show keeps its value. */
const keptSql = (counter: string) => `
  ${counter} = coalesce(excluded.${counter}, case meter.epoch when excluded.epoch then meter.${counter} else 0 end)`;
const sumSql = (sum: string, counter: string) => `least(${SUM_MAX}, ${sum} + ${grownSql(counter)})`;
const totalSql = (counter: string) => `total_${counter} = ${sumSql(`meter.total_${counter}`, counter)}`;
const ofMonthSql = (counted: string) => `case meter.month when excluded.month then meter.${counted} else 0 end`;
const SUMMED = ['sent_bytes', 'received_bytes', 'cpu_ns'];

/**
 * Counts readings, and takes samples. A reading that is not newer than the last one changes nothing. Readings of other engines
 * than that of the server do not count. $1 the readings as JSON, with the `engine` of the server; null for the environment.
 * $2 their time, $3 the kind of servers. It returns the machines that counted, and whether each hides its network card.
 */
export const COUNT_READINGS = statement({
  order: column.text(),
  generation: column.int(),
  engine: nullable(column.text()),
  packetsPerSecond: column.int(),
  isHidden: column.boolean(),
})`
  with given as (
      select given.* from jsonb_to_recordset($1::jsonb) as given("order" text, generation int, epoch text, "sentBytes" bigint,
          "receivedBytes" bigint, "sentPackets" bigint, "cpuNs" bigint, "memoryBytes" bigint, "diskBytes" bigint, "portMbps" int,
          engine text)
        join server on server.order_number = given."order" and server.generation = given.generation
          and server.engine is not distinct from given.engine
      where server.kind = $3 and server.status not in ('FAILED', 'DELETED')),
    counted as (
      insert into meter (order_number, epoch, read_at, sent_bytes, received_bytes, sent_packets, cpu_ns, port_mbps, month)
      select "order", epoch, $2::timestamptz, "sentBytes", "receivedBytes", "sentPackets", "cpuNs", "portMbps",
        to_char($2::timestamptz at time zone 'UTC', 'YYYY-MM')
      from given order by "order"
      on conflict (order_number) do update set
        epoch = excluded.epoch, read_at = excluded.read_at, port_mbps = excluded.port_mbps, month = excluded.month,
        ${[...SUMMED, 'sent_packets'].map(keptSql).join(', ')}, ${SUMMED.map(totalSql).join(', ')},
        packets_per_second = least(${INT_MAX}, ${grownSql('sent_packets')} / greatest(1, extract(epoch from excluded.read_at - meter.read_at))),
        used_bytes = ${sumSql(ofMonthSql('used_bytes'), 'sent_bytes')},
        warned_percent = ${ofMonthSql('warned_percent')}, charged_tb = ${ofMonthSql('charged_tb')}
      where meter.read_at < excluded.read_at
      returning meter.*),
    sampled as (
      insert into meter_sample (order_number, step, at, sent_bytes, received_bytes, cpu_ns, memory_bytes, disk_bytes)
      select order_number, step, date_trunc(unit, read_at, 'UTC'), total_sent_bytes, total_received_bytes,
        case when "cpuNs" is not null then total_cpu_ns end, "memoryBytes", "diskBytes"
      from counted join given on "order" = order_number
        cross join (values (60, 'minute'), (3600, 'hour')) as steps(step, unit)
      order by order_number, step on conflict do nothing)
  select order_number as "order", generation, given.engine, packets_per_second, "sentBytes" is null as is_hidden
  from counted join given on "order" = order_number`;

/** The use since the sample before, with the memory and disk of that time. */
const { orderNumber: _, step: __, ...USE } = MeterSample.columns;
export type Use = Row<typeof USE>;
/** The use of the machine of a server. $1 order number, $2 step in seconds, $3 and $4 the first and the last time. */
export const LIST_USE = statement(USE)`
  select * from (
    select at, sent_bytes - lag(sent_bytes) over before as sent_bytes, received_bytes - lag(received_bytes) over before as received_bytes,
      cpu_ns - lag(cpu_ns) over before as cpu_ns, memory_bytes, disk_bytes
    from meter_sample where order_number = $1 and step = $2 and at <= $4 window before as (order by at)) as used
  where at >= $3 and sent_bytes is not null order by at`;

/** Deletes old samples, and the meters of machines that have had no reading for a long time. */
export const DELETE_OLD_SAMPLES = statement({})`
  with unread as (delete from meter where read_at < now() - ${HOUR_DAYS} * interval '1 day')
  delete from meter_sample where step = 60 and at < now() - ${MINUTE_DAYS} * interval '1 day'
    or step = 3600 and at < now() - ${HOUR_DAYS} * interval '1 day'`;
