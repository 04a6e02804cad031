/** The one way in which a state changes: by a table of transitions, together with its event and its audit entry. */
import type { EntitySchema } from 'typeorm';
import type { Actor } from './audit.ts';
import type { ChangeKind } from './bus.ts';
import type { Transaction } from './database.ts';
import { columnsOf } from './entity.ts';
import type { EventType } from './event.ts';
import { WEBHOOKS_WOKEN, WOKEN_SQL } from './outbox.ts';
import { type ResourceType, recordParameters, recordSql } from './record.ts';

export interface Lifecycle<Row, Status extends string> {
  entity: EntitySchema<Row>;
  resource: ResourceType;
  change: ChangeKind;
  /** From each state, the states it can go to. */
  transitions: Readonly<Record<Status, readonly Status[]>>;
  /** The event that tells of arriving in a state. */
  events: Readonly<Record<Status, EventType>>;
}

export interface Move<Row> {
  actor: Actor;
  /** Other columns that change with the state. */
  set?: Partial<Row>;
  data?: Record<string, unknown>;
  /** Instead of the event that tells of arriving in that state. */
  event?: EventType;
}

/**
 * Moves the row with that order number to another state, if the table allows it from the state it is in now.
 * @returns the row as it is after the move, or undefined where nothing was moved
 */
export async function transition<
  Row extends { accountId: string; orderNumber: string; status: Status },
  Status extends string,
>(
  tx: Transaction,
  { entity, resource, change, transitions, events }: Lifecycle<Row, Status>,
  orderNumber: string,
  to: Status,
  { actor, set = {}, data, event = events[to] }: Move<Row>,
): Promise<(Row & { previousStatus: Status }) | undefined> {
  const from = (Object.keys(transitions) as Status[]).filter((status) => transitions[status].includes(to));
  const columns = entity.options.columns as Record<string, { name: string; type: unknown } | undefined>;
  const assigned = Object.entries(set).map(([property, value]) => {
    const column = columns[property]!;
    return { name: column.name, value: column.type === 'jsonb' && value !== null ? JSON.stringify(value) : value };
  });
  const updatedAt = columns.updatedAt ? ', updated_at = now()' : '';
  const table = entity.options.name;
  const first = 4 + assigned.length;
  const [found] = await tx.query<Row & { previousStatus: Status; webhooksWoken: boolean }>(
    `with before as (select id, status from ${table} where order_number = $1 for update),
      moved as (
        update ${table} set status = $2${updatedAt}${assigned.map(({ name }, i) => `, ${name} = $${4 + i}`).join('')}
        from before where ${table}.id = before.id and before.status = any($3)
        returning ${columnsOf(entity as EntitySchema<unknown>)}, before.status as "previousStatus", ${table}.account_id, ${table}.order_number as subject),
      ${recordSql('moved', first)}
    select *, ${WOKEN_SQL} from moved`,
    [
      orderNumber,
      to,
      from,
      ...assigned.map(({ value }) => value),
      ...recordParameters({ type: event, resource, actor, data: { status: to, ...data } }),
    ],
  );
  if (!found) return undefined;
  const { webhooksWoken, ...row } = found;
  tx.changed({ kind: change, accountId: row.accountId, id: row.orderNumber });
  if (webhooksWoken) tx.changed(WEBHOOKS_WOKEN);
  return row as unknown as Row & { previousStatus: Status };
}
