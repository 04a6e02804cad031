/**
 * Moves rows from state to state, only as their tables of transitions allow. Nothing else changes a stored state, with one
 * exception. The upserts of a task (tasks/start.ts, webhooks/outbox.ts) make a dead task ready again.
 * If the lifecycle is told, the statement of a move also writes the event and its audit entry. Other moves are part of an act
 * that the caller records.
 */
import type { EntitySchema } from 'typeorm';
import * as column from '../database/column.ts';
import { keepPrepared } from '../database/prepared.ts';
import { type Statement, statement } from '../database/statement.ts';
import { type Columns, columnsOf, type Table } from '../database/table.ts';
import type { Queryable, Transaction } from '../database/transaction.ts';
import { exactJson } from '../json.ts';
import { deliveriesFor, WEBHOOK_IDS_SQL } from '../webhooks/outbox.ts';
import type { Actor } from './audit.ts';
import type { ResourceEventType } from './event.ts';
import { type AnyLifecycle, type Lifecycle, statesBefore, type ToldLifecycle } from './lifecycle.ts';
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

/** The other columns of a move. */
interface Change<T> {
  /** Columns that change with the state. */
  set?: Changes<T>;
  /** Columns, and the values that the move requires. */
  where?: Partial<T>;
}

/** A move that writes an event. */
export interface Move<T> extends Change<T> {
  actor: Actor;
  /** Further data of the event. */
  data?: Record<string, unknown>;
  /** Replaces the lifecycle's event for the state. */
  event?: ResourceEventType;
}

/** A row after its move. */
export type Moved<T, State> = T & { previousState: State };

/**
 * Moves one row to another state, if the lifecycle allows it from the present one.
 * @returns the row after the move, or undefined without a move
 */
export async function transition<T, State extends string>(
  db: Queryable,
  lifecycle: Lifecycle<T, State>,
  key: string,
  to: State,
  change?: Change<T>,
): Promise<Moved<T, State> | undefined>;
export async function transition<T, State extends string>(
  tx: Transaction,
  lifecycle: ToldLifecycle<T, State>,
  key: string,
  to: State,
  move: Move<T>,
): Promise<Moved<T, State> | undefined>;
export async function transition<T, State extends string>(
  db: Queryable,
  lifecycle: AnyLifecycle<T, State>,
  key: string,
  to: State,
  change: Change<T> | Move<T> = {},
): Promise<Moved<T, State> | undefined> {
  const { where = {}, set = {} } = change;
  const values = [key, ...Object.values(where), ...storedValues(lifecycle, set), to, statesBefore(lifecycle, to)];
  const sql = moveOfOne(lifecycle, Object.keys(where), set);
  const { told } = lifecycle;
  if (!told) return (await db.query<Moved<T, State>>(sql, values))[0];
  const { actor, data, event = told.events[to] } = change as Move<T>;
  const happening = recordParameters({ type: event, actor, data: { status: to, ...data } });
  const [row] = await db.query<Moved<T, State> & { subject: string; webhookIds: string[] }>(sql, [
    ...values,
    ...happening,
  ]);
  if (!row) return undefined;
  const { webhookIds, subject: id, ...rest } = row;
  (db as Transaction).changed({ kind: told.change, accountId: accountOf(row), id }, ...deliveriesFor(webhookIds));
  return rest as unknown as Moved<T, State>;
}

/**
 * Declares a move of the rows that a condition selects. The statement locks them in the order of their keys, and moves those
 * whose states allow it. Call this once, when the module loads. The condition and the expressions share the parameters.
 * @param options.also a CTE that changes other tables for the rows of the relation `moved`
 */
export function moveStatement<T, State extends string>(
  lifecycle: Lifecycle<T, State>,
  to: State,
  condition: string,
  set: { [K in keyof T]?: Expression } = {},
  { also }: { also?: string } = {},
): Statement<Moved<T, State>> {
  const shape = shapeOf(lifecycle);
  const assigned = (Object.entries(set) as [string, Expression][]).map(
    ([property, { sql }]) => `, ${shape.columns[property]!.name} = ${sql}`,
  );
  const from = `array[${statesBefore(lifecycle, to).map((state) => `'${state}'`)}]`;
  const moved = moveSql(shape, { condition, assigned: assigned.join(''), to: `'${to}'`, from });
  const columns = { ...(lifecycle.table as unknown as Table<Columns>).columns, previousState: column.text() };
  return statement(columns)`with ${moved}${also ? `, ${also}` : ''} select * from moved` as Statement<Moved<T, State>>;
}

/** The next state of a locked row, and the other columns that change. */
export interface RowMove<T, State> {
  row: T;
  to: State;
  set: Partial<T>;
}

/**
 * Moves many locked rows in one statement, and records the moves of a told lifecycle in another. A row may keep its state.
 * @returns the rows after the move, in that order
 * @throws Error if the lifecycle does not allow one of the moves
 */
export async function transitionAll<T, State extends string>(
  tx: Transaction,
  lifecycle: Lifecycle<T, State>,
  moves: readonly RowMove<T, State>[],
): Promise<T[]>;
export async function transitionAll<T, State extends string>(
  tx: Transaction,
  lifecycle: ToldLifecycle<T, State>,
  moves: readonly RowMove<T, State>[],
  actor: Actor,
): Promise<T[]>;
export async function transitionAll<T, State extends string>(
  tx: Transaction,
  lifecycle: AnyLifecycle<T, State>,
  moves: readonly RowMove<T, State>[],
  actor?: Actor,
): Promise<T[]> {
  if (!moves.length) return [];
  const { key, state, transitions, told } = lifecycle;
  const { name, columns, keyName, stateName } = shapeOf(lifecycle);
  const properties = [...new Set(moves.flatMap(({ set }) => Object.keys(set)))];
  const given = [key, state, ...properties].map((property) => ({ property, ...columns[property]! }));
  const rows = moves.map(({ row, to, set }): T => ({ ...row, ...set, [state]: to }));
  const values = rows.map((row) =>
    Object.fromEntries(given.map((column) => [column.name, row[column.property as keyof T]])),
  );
  const ways = (Object.keys(transitions) as State[]).flatMap((from) =>
    [...transitions[from], from].map((to) => `${from} ${to}`),
  );
  const moved = await tx.query(
    `update ${name} set ${given.slice(1).map((one) => `${one.name} = given.${one.name}`)}
      from jsonb_to_recordset($1::jsonb) as given(${given.map((one) => `${one.name} ${one.type}`)})
      where ${name}.${keyName} = given.${keyName} and ${name}.${stateName} || ' ' || given.${stateName} = any($2) returning 1`,
    [exactJson(values), ways],
  );
  if (moved.length < rows.length) throw new Error(`The lifecycle of ${name} does not allow one of these moves.`);
  if (told) await tell(tx, lifecycle, moves, actor!);
  return rows;
}

async function tell<T, State extends string>(
  tx: Transaction,
  { key, state, told: { change, events } }: ToldLifecycle<T, State>,
  moves: readonly RowMove<T, State>[],
  actor: Actor,
): Promise<void> {
  const moved = moves
    .filter(({ row, to }) => row[state] !== to)
    .map(({ row, to }) => ({ accountId: accountOf(row), subject: row[key] as string, to }));
  await recordAll(
    tx,
    moved.map(({ accountId, subject, to }) => ({ accountId, subject, type: events[to], actor, data: { status: to } })),
  );
  for (const { accountId, subject } of moved) tx.changed({ kind: change, accountId, id: subject });
}

/** Returns the statement that moves one row. It composes each once: code, and no input, decides the columns. */
function moveOfOne<T, State extends string>(
  lifecycle: AnyLifecycle<T, State>,
  where: readonly string[],
  set: Changes<T>,
): string {
  const shape = shapeOf(lifecycle);
  const changes = Object.entries(set);
  const names = changes.map(([property, value]) =>
    value instanceof Expression ? `${property}=${value.sql}` : property,
  );
  const signature = `${where} ${names}`;
  const known = shape.moves.get(signature);
  if (known !== undefined) return known;
  let place = 0;
  const next = () => `$${++place}`;
  const nameOf = (property: string) => shape.columns[property]!.name;
  const condition = [lifecycle.key, ...where].map((property) => `${nameOf(property)} = ${next()}`).join(' and ');
  const assigned = changes.map(
    ([property, value]) => `, ${nameOf(property)} = ${value instanceof Expression ? value.sql : next()}`,
  );
  const moved = moveSql(shape, { condition, assigned: assigned.join(''), to: next(), from: next() });
  const sql = lifecycle.told
    ? `with ${moved}, told as (select moved.*, ${shape.keyName} as subject from moved),
        ${recordSql('told', place + 1, lifecycle.table as EntitySchema)} select *, ${WEBHOOK_IDS_SQL} from told`
    : `with ${moved} select * from moved`;
  shape.moves.set(signature, sql);
  keepPrepared(sql);
  return sql;
}

/** The values of columns as parameters, without those that PostgreSQL computes. */
const storedValues = <T, State extends string>(lifecycle: AnyLifecycle<T, State>, set: Changes<T>): unknown[] =>
  Object.entries(set).flatMap(([property, value]) => {
    if (value instanceof Expression) return [];
    const isJson = shapeOf(lifecycle).columns[property]!.type === 'jsonb' && value !== null;
    return [isJson ? JSON.stringify(value) : value];
  });

/** Returns CTEs that lock the rows of the condition and move them. */
const moveSql = (
  { name, keyName, stateName, columns, list }: Shape,
  { condition, assigned, to, from }: { condition: string; assigned: string; to: string; from: string },
): string =>
  `before as (select ${keyName}, ${stateName} from ${name} where ${condition} order by ${keyName} for update),
    moved as (update ${name} set ${stateName} = ${to}${columns.updatedAt ? ', updated_at = now()' : ''}${assigned} from before
      where ${name}.${keyName} = before.${keyName} and before.${stateName} = any(${from})
      returning ${list}, before.${stateName} as previous_state)`;

/** The table of a lifecycle as SQL names it. */
interface Shape {
  name: string;
  keyName: string;
  stateName: string;
  columns: Record<string, { name: string; type: string }>;
  /** The select list of all columns. */
  list: string;
  /** The statements that move one row, by the columns that they change. */
  moves: Map<string, string>;
}

const SHAPES = new WeakMap<object, Shape>();
/** Returns the shape of a lifecycle's table. The first call computes it. */
function shapeOf<T, State extends string>(lifecycle: AnyLifecycle<T, State>): Shape {
  const known = SHAPES.get(lifecycle);
  if (known) return known;
  const { table, key, state } = lifecycle;
  const declared = table.options.columns as Record<string, { name: string; type: string; array?: boolean }>;
  const columns = Object.fromEntries(
    Object.entries(declared).map(([property, { name, type, array }]) => [
      property,
      { name, type: type + (array ? '[]' : '') },
    ]),
  );
  const shape = {
    name: table.options.name,
    keyName: columns[key]!.name,
    stateName: columns[state]!.name,
    columns,
    list: columnsOf(table as never),
    moves: new Map(),
  };
  SHAPES.set(lifecycle, shape);
  return shape;
}

const accountOf = (row: unknown): string => (row as { accountId: string }).accountId;
