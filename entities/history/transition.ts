/**
 * Moves rows from state to state. Only these functions change a stored state, and only as its table of transitions allows.
 * If the lifecycle names an event for the new state, the same statement writes the event and its audit entry.
 * Other moves are part of an act that the caller records.
 */
import type { EntitySchema } from 'typeorm';
import { columnsOf } from '../database/table.ts';
import type { Queryable, Transaction } from '../database/transaction.ts';
import { exactJson } from '../json.ts';
import { deliveriesFor, WEBHOOK_IDS_SQL } from '../webhooks/outbox.ts';
import type { Actor } from './audit.ts';
import type { EventType } from './event.ts';
import { type Lifecycle, type SilentLifecycle, statesBefore } from './lifecycle.ts';
import { recordAll, recordParameters, recordSql } from './record.ts';

/** SQL that gives a column its value. The old row's state is `before.<column of the state>`. */
class Expression {
  readonly sql: string;
  constructor(sql: string) {
    this.sql = sql;
  }
}
/** Makes a value that PostgreSQL computes from the row. */
export const expression = (sql: string): Expression => new Expression(sql);
export type Changes<T> = { [K in keyof T]?: T[K] | Expression };

export interface Move<T> {
  /** A move with an event needs it. */
  actor?: Actor;
  /** Other columns that change with the state. */
  set?: Changes<T>;
  /** Other columns, and the values that the move requires. */
  where?: Partial<T>;
  /** Further data of the event. */
  data?: Record<string, unknown>;
  /** Replaces the lifecycle's event for the state. */
  event?: EventType;
}

/** A row after its move. */
export type Moved<T, State> = T & { previousState: State };

/**
 * Moves one row to another state, if the lifecycle allows it from the present one.
 * @returns the row after the move, or undefined without a move
 */
export async function transition<T, State extends string>(
  tx: Transaction,
  lifecycle: Lifecycle<T, State>,
  key: string,
  to: State,
  { actor, set = {}, where = {}, data, event = lifecycle.told?.events[to] }: Move<T> = {},
): Promise<Moved<T, State> | undefined> {
  const { told } = lifecycle;
  const given = new Parameters();
  const columns = columnsIn(lifecycle);
  const conditions = Object.entries({ [lifecycle.key]: key, ...where }).map(
    ([property, value]) => `${columns[property]!.name} = ${given.add(value)}`,
  );
  const moved = moveSql(lifecycle, to, conditions.join(' and '), set, given);
  if (!told || !event) return (await tx.query<Moved<T, State>>(`with ${moved} select * from moved`, given.values))[0];
  const happening = { type: event, resource: told.resource, actor: actor!, data: { status: to, ...data } };
  const first = given.values.length + 1;
  const [row] = await tx.query<Moved<T, State> & { subject: string; webhookIds: string[] }>(
    `with ${moved}, told as (select moved.*, ${columns[lifecycle.key]!.name} as subject from moved),
      ${recordSql('told', first)} select *, ${WEBHOOK_IDS_SQL} from told`,
    [...given.values, ...recordParameters(happening)],
  );
  if (!row) return undefined;
  const { webhookIds, subject: id, ...rest } = row;
  tx.changed({ kind: told.change, accountId: accountOf(row), id }, ...deliveriesFor(webhookIds));
  return rest as unknown as Moved<T, State>;
}

/** Moves the rows that the condition selects and whose states allow it, in the order of their keys. @returns the rows after the move */
export function transitionWhere<T, State extends string>(
  tx: Queryable,
  lifecycle: SilentLifecycle<T, State>,
  to: State,
  condition: string,
  { parameters = [], set = {} }: { parameters?: unknown[]; set?: Changes<T> } = {},
): Promise<Moved<T, State>[]> {
  const given = new Parameters(parameters);
  const moved = moveSql(lifecycle, to, condition, set, given);
  return tx.query(`with ${moved} select * from moved`, given.values);
}

/** The next state of a locked row, and the other columns that change. */
export interface RowMove<T, State> {
  row: T;
  to: State;
  set: Partial<T>;
}

/**
 * Moves many locked rows in one statement, and records the moves in another. A row may keep its state.
 * @returns the rows after the move, in that order
 * @throws Error if the lifecycle does not allow one of the moves
 */
export async function transitionAll<T, State extends string>(
  tx: Transaction,
  lifecycle: Lifecycle<T, State>,
  moves: readonly RowMove<T, State>[],
  actor?: Actor,
): Promise<T[]> {
  if (!moves.length) return [];
  const { table, key, state, transitions, told } = lifecycle;
  const columns = columnsIn(lifecycle);
  const properties = [...new Set(moves.flatMap(({ set }) => Object.keys(set)))];
  const given = [key, state, ...properties].map((property) => ({ property, ...columns[property]! }));
  const rows = moves.map(({ row, to, set }): T => ({ ...row, ...set, [state]: to }));
  const values = rows.map((row) =>
    Object.fromEntries(given.map(({ property, name }) => [name, row[property as keyof T]])),
  );
  const ways = (Object.keys(transitions) as State[]).flatMap((from) =>
    [...transitions[from], from].map((to) => `${from} ${to}`),
  );
  const name = table.options.name;
  const [at, keyName] = [columns[state]!.name, columns[key]!.name];
  const moved = await tx.query(
    `update ${name} set ${given.slice(1).map((one) => `${one.name} = given.${one.name}`)}
      from jsonb_to_recordset($1::jsonb) as given(${given.map((one) => `${one.name} ${one.type}`)})
      where ${name}.${keyName} = given.${keyName} and ${name}.${at} || ' ' || given.${at} = any($2) returning 1`,
    [exactJson(values), ways],
  );
  if (moved.length < rows.length) throw new Error(`The lifecycle of ${name} does not allow one of these moves.`);
  if (told) await tell(tx, lifecycle, moves, actor!);
  return rows;
}

async function tell<T, State extends string>(
  tx: Transaction,
  { key, state, told }: Lifecycle<T, State>,
  moves: readonly RowMove<T, State>[],
  actor: Actor,
): Promise<void> {
  const { resource, change, events } = told!;
  const moved = moves.filter(({ row, to }) => row[state] !== to);
  const subjects = moved.map(({ row, to }) => ({ accountId: accountOf(row), subject: row[key] as string, to }));
  await recordAll(
    tx,
    subjects.flatMap(({ accountId, subject, to }) => {
      const type = events[to];
      return type ? [{ accountId, subject, type, resource, actor, data: { status: to } }] : [];
    }),
  );
  for (const { accountId, subject } of subjects) tx.changed({ kind: change, accountId, id: subject });
}

/** Returns CTEs that lock the rows of the condition and move them. */
function moveSql<T, State extends string>(
  lifecycle: Lifecycle<T, State>,
  to: State,
  condition: string,
  set: Changes<T>,
  given: Parameters,
): string {
  const columns = columnsIn(lifecycle);
  const table = lifecycle.table.options.name;
  const [key, state] = [columns[lifecycle.key]!.name, columns[lifecycle.state]!.name];
  const assigned = Object.entries(set).map(([property, value]) => {
    const { name, type } = columns[property]!;
    if (value instanceof Expression) return `, ${name} = ${value.sql}`;
    return `, ${name} = ${given.add(type === 'jsonb' && value !== null ? JSON.stringify(value) : value)}`;
  });
  const updatedAt = columns.updatedAt ? ', updated_at = now()' : '';
  return `before as (select ${key}, ${state} from ${table} where ${condition} order by ${key} for update),
    moved as (update ${table} set ${state} = ${given.add(to)}${updatedAt}${assigned.join('')} from before
      where ${table}.${key} = before.${key} and before.${state} = any(${given.add(statesBefore(lifecycle, to))})
      returning ${columnsOf(lifecycle.table as EntitySchema<unknown>)}, before.${state} as previous_state)`;
}

/** The parameters of a statement. `add` returns the number of each. */
class Parameters {
  readonly values: unknown[];
  constructor(values: readonly unknown[] = []) {
    this.values = [...values];
  }
  add(value: unknown): string {
    return `$${this.values.push(value)}`;
  }
}

const columnsIn = <T, State extends string>({ table }: Lifecycle<T, State>) =>
  Object.fromEntries(
    Object.entries(table.options.columns as Record<string, { name: string; type: string; array?: boolean }>).map(
      ([property, { name, type, array }]) => [property, { name, type: type + (array ? '[]' : '') }],
    ),
  );

const accountOf = (row: unknown): string => (row as { accountId: string }).accountId;
