/** Engines: which driver makes machines of each kind. Workers write it when they start, for all queries that count hosts. */

import { boolean, entity, key, type RowOf, text } from '../database/table.ts';
import type { Queryable } from '../database/transaction.ts';

export const Engine = entity('engine', {
  /** `VPS` or `DEDICATED`. */
  kind: key(),
  driver: text(),
  /** Whether it makes machines on hosts of the operator's list alone, so that without any there is nothing to sell. */
  needsHosts: boolean(),
});
export type Engine = RowOf<typeof Engine>;

export const writeEngine = (db: Queryable, { kind, driver, needsHosts }: Engine): Promise<unknown> =>
  db.query(
    `insert into engine (kind, driver, needs_hosts) values ($1, $2, $3)
    on conflict (kind) do update set driver = excluded.driver, needs_hosts = excluded.needs_hosts`,
    [kind, driver, needsHosts],
  );

/** Whether a host is of the engine of its kind, in a query that calls it `host`. Before the first worker, all are. */
export const OWN_HOST_SQL = `host.driver = coalesce((select engine.driver from engine where engine.kind = host.kind), host.driver)`;

/** Whether the engine of the tier `tier` makes machines on hosts of the operator's list alone. */
export const NEEDS_HOSTS_SQL = `exists (
  select from engine where engine.needs_hosts and engine.kind = case tier.kind when 'vps' then 'VPS' else 'DEDICATED' end)`;
