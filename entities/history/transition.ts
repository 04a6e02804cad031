/** The one way in which a state changes: by a table of transitions, together with its event and its audit entry. */
import type { EntitySchema } from 'typeorm';
import type { ChangeKind } from '../database/bus.ts';
import type { Transaction } from '../database/database.ts';
import { columnsOf } from '../database/table.ts';
import { deliveriesFor, WEBHOOK_IDS_SQL } from '../webhooks/outbox.ts';
import type { Actor } from './audit.ts';
import type { EventType } from './event.ts';
import { type ResourceType, recordAll, recordParameters, recordSql } from './record.ts';

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
  const [found] = await tx.query<Row & { previousStatus: Status; webhookIds: string[] }>(
    `with before as (select id, status from ${table} where order_number = $1 for update),
      moved as (
        update ${table} set status = $2${updatedAt}${assigned.map(({ name }, i) => `, ${name} = $${4 + i}`).join('')}
        from before where ${table}.id = before.id and before.status = any($3)
        returning ${columnsOf(entity as EntitySchema<unknown>)}, before.status as "previousStatus", ${table}.account_id, ${table}.order_number as subject),
      ${recordSql('moved', first)}
    select *, ${WEBHOOK_IDS_SQL} from moved`,
    [
      orderNumber,
      to,
      from,
      ...assigned.map(({ value }) => value),
      ...recordParameters({ type: event, resource, actor, data: { status: to, ...data } }),
    ],
  );
  if (!found) return undefined;
  const { webhookIds, ...row } = found;
  tx.changed({ kind: change, accountId: row.accountId, id: row.orderNumber }, ...deliveriesFor(webhookIds));
  return row as unknown as Row & { previousStatus: Status };
}

/**
 * The same for many rows that are locked and in hand as they are, in a statement for all and one for what is recorded of them.
 * @returns them as they are after the move, in that order @throws Error if one could not be moved
 */
export async function transitionAll<
  Row extends { accountId: string; orderNumber: string; status: Status },
  Status extends string,
>(
  tx: Transaction,
  { entity, resource, change, transitions, events }: Lifecycle<Row, Status>,
  moves: readonly { row: Row; set: Partial<Row> }[],
  to: Status,
  actor: Actor,
): Promise<Row[]> {
  if (!moves.length) return [];
  const from = (Object.keys(transitions) as Status[]).filter((status) => transitions[status].includes(to));
  const columns = entity.options.columns as unknown as Record<string, { name: string; type: string; array?: boolean }>;
  const properties = [...new Set(moves.flatMap(({ set }) => Object.keys(set)))];
  const rows = moves.map(({ row, set }): Row => ({ ...row, ...set, status: to }));
  const given = ['orderNumber', ...properties].map((property) => {
    const { name, type, array } = columns[property]!;
    return { property, name, type: type + (array ? '[]' : '') };
  });
  const values = rows.map((row) =>
    Object.fromEntries(given.map(({ property, name }) => [name, row[property as keyof Row]])),
  );
  const table = entity.options.name;
  const moved = await tx.query(
    `update ${table} set status = $1${given
      .slice(1)
      .map(({ name }) => `, ${name} = given.${name}`)
      .join('')}
      from jsonb_to_recordset($2::jsonb) as given(${given.map(({ name, type }) => `${name} ${type}`).join(', ')})
      where ${table}.order_number = given.order_number and ${table}.status = any($3) returning ${table}.id`,
    [to, JSON.stringify(values, (_, value) => (typeof value === 'bigint' ? String(value) : value)), from],
  );
  if (moved.length < rows.length) throw new Error(`Not each ${table} could become ${to}.`);
  await recordAll(
    tx,
    rows.map(({ accountId, orderNumber: subject }) => ({
      ...{ accountId, subject, type: events[to], resource, actor, data: { status: to } },
    })),
  );
  for (const { accountId, orderNumber } of rows) tx.changed({ kind: change, accountId, id: orderNumber });
  return rows;
}
