/** Whether Freehold reaches its engines and gateways, as a worker last measured it. Each component of the status has a row. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { entity, type RowOf } from '../database/table.ts';

export const HEALTH_STATUSES = ['operational', 'partial_outage', 'major_outage'] as const;

export const Health = entity('health', {
  /** The id of the component, such as `machines-ams`. */
  component: column.key(),
  status: column.measured(...HEALTH_STATUSES),
  checkedAt: column.now(),
});
export type Health = RowOf<typeof Health>;

export const PAYMENTS_COMPONENT = 'payments';
/** Whether the service has warned the operator that x402 payments will soon stop. The status does not show it. */
export const X402_WARNING_COMPONENT = 'x402-warning';
/** Whether the last proof of the books found no fault. The status does not show it. */
export const BOOKS_COMPONENT = 'books';
export const machinesComponent = (region: string): string => `machines-${region}`;

/** Writes the health of components. $1 components, $2 their statuses. */
export const WRITE_HEALTH = statement({})`
  insert into health (component, status, checked_at)
  select given.*, now() from unnest($1::text[], $2::text[]) as given order by 1
  on conflict (component) do update set status = excluded.status, checked_at = now()`;
/** Writes the health of one component; a row says that it is new or has changed. $1 component, $2 status. */
export const CHANGE_HEALTH = statement({ changed: column.boolean() })`
  insert into health as kept (component, status, checked_at) values ($1, $2, now())
  on conflict (component) do update set status = excluded.status, checked_at = now() where kept.status <> excluded.status
  returning true as changed`;
