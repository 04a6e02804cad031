/** Engines: the drivers that make machines of each kind. Workers write them when they start; queries that count hosts read them. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { entity, type RowOf } from '../database/table.ts';

export const Engine = entity('engine', {
  /** `VPS` or `DEDICATED`. */
  kind: column.key(),
  driver: column.text(),
  /** Whether it makes machines only on hosts that the operator has added. */
  needsHosts: column.boolean(),
  /** Whether its machines are simulated. */
  simulated: column.boolean(),
});
export type Engine = RowOf<typeof Engine>;

/** $1 kind, $2 driver, $3 whether it needs hosts, $4 whether its machines are simulated. */
export const WRITE_ENGINE = statement({})`
  insert into engine (kind, driver, needs_hosts, simulated) values ($1, $2, $3, $4)
  on conflict (kind) do update
    set driver = excluded.driver, needs_hosts = excluded.needs_hosts, simulated = excluded.simulated`;

/** Whether a host belongs to the engine of its kind, in a query that calls it `host`. Before the first worker, all do. */
export const OWN_HOST_SQL = `host.driver = coalesce((select engine.driver from engine where engine.kind = host.kind), host.driver)`;

/** The kind of servers of a tier, which the query calls by that name. */
export const kindOfTierSql = (tier: string): string => `case ${tier}.kind when 'vps' then 'VPS' else 'DEDICATED' end`;

/** Whether machines of a kind, given as an expression, are simulated. Before the first worker, all are. */
export const isSimulatedSql = (kind: string): string =>
  `coalesce((select engine.simulated from engine where engine.kind = ${kind}), true)`;

/** Counts the servers of the kind $1 whose machines are simulated, and not gone. */
export const COUNT_SIMULATED_SERVERS = statement({ servers: column.int() })`
  select count(*)::int as servers from server, engine
  where engine.kind = $1 and engine.simulated and server.kind = $1 and server.status <> 'DELETED'
    and (server.status <> 'FAILED' or server.ipv4 is not null)`;

/** Whether the engine of the tier `tier` needs hosts. */
export const NEEDS_HOSTS_SQL = `exists (
  select from engine where engine.needs_hosts and engine.kind = ${kindOfTierSql('tier')})`;
