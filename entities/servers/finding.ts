/** Findings: differences between servers and the machines that an engine reports. And the circuit breakers of engines. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { defaulting, entity, nullable, type RowOf } from '../database/table.ts';
import type { Queryable } from '../database/transaction.ts';
import { NO_ENGINE } from './engine.ts';

/**
 * - ORPHAN: a machine with our mark that belongs to no server;
 * - LOST: a server whose machine the engine does not have;
 * - POWER: a machine that is off though its server runs, or on though its server is stopped. Or the worker cannot turn the
 *   machine of a suspended server off or on;
 * - SIZE, IMAGE: a machine with another size than the tier of its server, or from another image;
 * - MISPLACED: a machine on another host than its claim, because that host is unknown or has no room. Or a machine that cannot
 *   leave a host that the operator evacuates;
 * - CAPACITY: a host that the operator sells as larger than it is, or that its engine does not have. Or a host without room for a
 *   rebuild of its largest machine beside the old one;
 * - INCOMPLETE: a machine that was never finished, such as by a rebuild that failed;
 * - STUCK: a machine that was given up and cannot be removed;
 * - TRAFFIC: a machine that sends very many packets, or hides its network card from the engine.
 */
export const FINDING_KINDS = [
  'ORPHAN',
  'LOST',
  'POWER',
  'SIZE',
  'IMAGE',
  'MISPLACED',
  'CAPACITY',
  'INCOMPLETE',
  'STUCK',
  'TRAFFIC',
] as const;
export type FindingKind = (typeof FINDING_KINDS)[number];

export const Finding = entity('finding', {
  id: column.key(),
  kind: column.oneOf(...FINDING_KINDS),
  /** The name of the engine. */
  driver: column.text(),
  /** The order of the machine. CAPACITY: the name of the host. */
  orderNumber: column.text(),
  /** CAPACITY: 0. */
  generation: column.int(),
  detail: column.text(),
  firstSeenAt: column.now(),
  lastSeenAt: column.now(),
  /** When the difference was gone. */
  resolvedAt: nullable(column.timestamp()),
});
export type Finding = RowOf<typeof Finding>;

/** An open circuit breaker: the worker destroys no machine of that engine while the row exists. */
export const CircuitBreaker = entity('brake', {
  driver: column.key(),
  reason: column.text(),
  /** Whether it makes none either, because the operator has restored the database. */
  stopsOrders: defaulting(column.boolean(), 'false'),
  createdAt: column.now(),
});
export type CircuitBreaker = RowOf<typeof CircuitBreaker>;

const IS_BREAKER_OPEN = statement({ open: column.boolean() })`
  select exists (select from brake where driver = $1) as open`;
export async function isBreakerOpen(db: Queryable, driver: string): Promise<boolean> {
  const breaker = await IS_BREAKER_OPEN.first(db, [driver]);
  return breaker!.open;
}

const ARE_ORDERS_STOPPED = statement({ stopped: column.boolean() })`
  select exists (select from brake where driver = $1 and stops_orders) as stopped`;
/** Whether the worker makes no machine of an engine. */
export async function areOrdersStopped(db: Queryable, driver: string): Promise<boolean> {
  const orders = await ARE_ORDERS_STOPPED.first(db, [driver]);
  return orders!.stopped;
}
/** The engines that make no machine, because the operator has restored the database. */
export const LIST_STOPPED_ENGINES = statement({ driver: column.text() })`
  select driver from brake where stops_orders order by driver`;
/** Opens the circuit breakers of all engines, also for orders. $1 reason. */
export const STOP_ENGINES = statement({ driver: column.text() })`
  insert into brake (driver, reason, stops_orders)
  select name, $1, true from engine where name <> '${NO_ENGINE}' order by name
  on conflict (driver) do update set reason = excluded.reason, stops_orders = true
  returning driver`;

/** Opens the circuit breaker of an engine; no row if it is open. $1 driver, $2 reason. */
export const OPEN_BREAKER = statement({ driver: column.text() })`
  insert into brake (driver, reason) values ($1, $2) on conflict do nothing returning driver`;

const MACHINE = { order: column.text(), generation: column.int() };
/** The machines of the open findings of a driver. $1 driver, $2 kind. */
export const FIND_REPORTED_MACHINES = statement(MACHINE)`
  select order_number as "order", generation from finding where driver = $1 and kind = $2 and resolved_at is null`;
/** Writes findings, and says which are new. $1 driver, $2 the findings as JSON. */
export const WRITE_FINDINGS = statement({
  ...MACHINE,
  id: column.text(),
  kind: Finding.columns.kind,
  isNew: column.boolean(),
})`
  insert into finding (id, kind, driver, order_number, generation, detail)
  select id, kind, $1, "order", generation, detail
  from jsonb_to_recordset($2::jsonb) as given(id text, kind text, "order" text, generation int, detail text)
  order by kind, "order", generation
  on conflict (kind, order_number, generation) where resolved_at is null
    do update set last_seen_at = now(), detail = excluded.detail
  returning id, kind, order_number as "order", generation, xmax = 0 as is_new`;

/** Whether the engine of a row was removed, perhaps while a look at it was under way. Before the first worker, none was. */
const IS_REMOVED = '(driver not in (select name from engine) and exists (select from engine))';
/** Locks the open findings of the engines $1 and of removed ones. A look writes and resolves them in any order. */
export const LOCK_FINDINGS = statement({ id: column.text() })`
  select id from finding where (driver = any($1) or ${IS_REMOVED}) and resolved_at is null
  order by kind, order_number, generation for update`;
const resolveSql = (which: string) => `
  with over as (
    select id from finding where driver = $1 and kind = any($2) and resolved_at is null and ${which}
    order by kind, order_number, generation for update)
  update finding set resolved_at = now() from over where finding.id = over.id`;
/** Resolves findings that were not found again. $1 driver, $2 kinds, $3 the `kind.order.generation` of those that were. */
export const RESOLVE_OTHERS = statement({})`
  ${resolveSql(`kind || '.' || order_number || '.' || generation <> all($3)`)}`;
/** Resolves the findings of machines. $1 driver, $2 kinds, $3 the `order.generation` of the machines. */
export const RESOLVE_MACHINES = statement({})`${resolveSql(`order_number || '.' || generation = any($3)`)}`;
/** Resolves all findings of the engine $1. */
export const RESOLVE_ALL = statement({})`
  with over as (
    select id from finding where driver = $1 and resolved_at is null order by kind, order_number, generation for update)
  update finding set resolved_at = now() from over where finding.id = over.id`;
/** Resolves the findings of removed engines, under LOCK_FINDINGS. */
export const RESOLVE_REMOVED = statement({})`
  update finding set resolved_at = now() where resolved_at is null and ${IS_REMOVED}`;
/** Closes the circuit breakers of removed engines. */
export const CLOSE_REMOVED = statement({})`
  with over as (select driver from brake where ${IS_REMOVED} order by driver for update)
  delete from brake using over where brake.driver = over.driver`;
/** Deletes findings that were resolved $1 days ago. */
export const DELETE_RESOLVED = statement({})`delete from finding where resolved_at < now() - $1 * interval '1 day'`;

const EXPECTED = {
  ...MACHINE,
  host: nullable(column.text()),
  /** Whether a worker moves it to another host. */
  moving: column.boolean(),
  status: column.oneOf('RUNNING', 'STOPPED', 'SUSPENDED'),
  image: column.text(),
  serviceCode: column.text(),
};
const EXPECTED_COLUMNS = `
  order_number as "order", generation, host, status, os as image, service_code, order_number in (
    select own.order_number from placement own join task on subject = own.order_number and state = 'READY' where moving) as moving`;
const IS_EXPECTED = `
  status in ('RUNNING', 'STOPPED', 'SUSPENDED') and change is null and server.kind = any($1)
    and coalesce(server.engine, '') = coalesce($2, '')`;
/** The machines that stable servers should have. $1 kinds of servers, $2 the engine of the operator, or null for that of the environment. */
export const LIST_EXPECTED_MACHINES = statement(EXPECTED)`select ${EXPECTED_COLUMNS} from server where ${IS_EXPECTED}`;
/**
 * Those of them with the order numbers $3. `asleep`: no task, and its server is suspended. Or the server is stopped, and a suspension
 * or an open complaint keeps it so.
 */
export const FIND_EXPECTED_MACHINES = statement({
  ...EXPECTED,
  kind: column.oneOf('VPS', 'DEDICATED'),
  accountId: column.text(),
  asleep: column.boolean(),
})`
  select ${EXPECTED_COLUMNS}, kind, account_id,
    not exists (select from task where subject = order_number) and (status = 'SUSPENDED' or status = 'STOPPED' and (
      exists (select from account where account.id = server.account_id and servers_off)
      or exists (select from abuse_case complaint
        where complaint.account_id = server.account_id and complaint.order_number = server.order_number and state = 'OPEN'))) as asleep
  from server where ${IS_EXPECTED} and order_number = any($3)`;
/** The machines of delivered servers that change or go, on the engine $1 of the operator. */
export const FIND_CHANGING_MACHINES = statement(MACHINE)`
  select order_number as "order", generation from server
  where coalesce(engine, '') = $1 and status <> 'DELETED' and paid_until is not null
    and (status = 'DELETING' or change is not null and status not in ('PENDING', 'PROVISIONING', 'FAILED'))`;
/**
 * Machines of suspended servers: the worker has not turned them off for an hour, or not on in time. $1 kinds of servers, $2 as
 * above.
 */
export const FIND_UNCONFIRMED_MACHINES = statement(MACHINE)`
  select order_number as "order", generation from server
  where status = 'SUSPENDED' and kind = any($1) and coalesce(engine, '') = coalesce($2, '')
    and case when change is not null then change ? 'reported' or failure_code = 'resume_failed'
      else suspended_at < now() - interval '1 hour' and exists (select from task where subject = order_number) end`;
/** Of these orders, the newest generations that belong to a server, and the engine of each as above. $1 order numbers. */
export const FIND_OWNED_MACHINES = statement({ ...MACHINE, engine: nullable(column.text()) })`
  select order_number as "order", generation, engine from server
  where order_number = any($1) and status <> 'DELETED' and (status <> 'FAILED' or ipv4 is not null)`;
