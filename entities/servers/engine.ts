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
});
export type Engine = RowOf<typeof Engine>;

/** $1 kind, $2 driver, $3 whether it needs hosts. */
export const WRITE_ENGINE = statement({})`
  insert into engine (kind, driver, needs_hosts) values ($1, $2, $3)
  on conflict (kind) do update set driver = excluded.driver, needs_hosts = excluded.needs_hosts`;

/** Whether a host belongs to the engine of its kind, in a query that calls it `host`. Before the first worker, all do. */
export const OWN_HOST_SQL = `host.driver = coalesce((select engine.driver from engine where engine.kind = host.kind), host.driver)`;

/** Whether the engine of the tier `tier` needs hosts. */
export const NEEDS_HOSTS_SQL = `exists (
  select from engine where engine.needs_hosts and engine.kind = case tier.kind when 'vps' then 'VPS' else 'DEDICATED' end)`;
