/** Senders of SQL: a transaction, or the database. And the meaning of their errors. */
import type pg from 'pg';
import type { EntityManager } from 'typeorm';
import { causesOf } from '../errors.ts';
import type { Change } from './bus.ts';
import { preparedName } from './prepared.ts';

/** A sender of SQL: the database, or a transaction. */
export interface Queryable {
  /**
   * Returns the rows of any statement, including an UPDATE with RETURNING. Columns get their names in TypeScript:
   * `account_id` becomes `accountId`.
   */
  query<T = Record<string, unknown>>(sql: string, parameters?: unknown[]): Promise<T[]>;
  /** TypeORM's manager, for the functions of `table.ts`. */
  readonly manager: EntityManager;
}

/** A transaction. The database publishes its changes after the commit. */
export class Transaction implements Queryable {
  readonly manager: EntityManager;
  readonly changes: Change[] = [];
  readonly #client: pg.ClientBase;
  constructor(manager: EntityManager, client: pg.ClientBase) {
    this.manager = manager;
    this.#client = client;
  }
  query<T>(sql: string, parameters: unknown[] = []): Promise<T[]> {
    return rows<T>(this.#client, sql, parameters);
  }
  changed(...changes: Change[]): void {
    this.changedAll(changes);
  }
  /** The same for a list of any length. A call with too many arguments would fail. */
  changedAll(changes: readonly Change[]): void {
    for (const change of changes) this.changes.push(change);
  }

  /** Does the work in a savepoint. If the work fails, PostgreSQL undoes its writes and locks, and the transaction can continue. */
  async attempt<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    const { result, changes } = await within(this.manager, work);
    this.changedAll(changes);
    return result;
  }
}

/** Does the work in a transaction of that manager, or in a savepoint if the manager is in a transaction. */
export const within = <T>(outer: EntityManager, work: (tx: Transaction) => Promise<T>) =>
  outer.transaction(async (manager) => {
    const tx = new Transaction(manager, await manager.queryRunner!.connect());
    return { result: await work(tx), changes: tx.changes };
  });

export async function rows<T>(connection: pg.Pool | pg.ClientBase, text: string, values: unknown[]): Promise<T[]> {
  const { fields, rows } = await connection.query({
    name: preparedName(text),
    text,
    values,
    rowMode: 'array',
  } as pg.QueryArrayConfig);
  const names = fields.map((field) => camel(field.name));
  return rows.map((row: unknown[]) => {
    const named: Record<string, unknown> = {};
    for (let i = 0; i < names.length; i++) named[names[i]!] = row[i];
    return named as T;
  });
}

const CAMEL = new Map<string, string>();
/** Returns the name of a column in TypeScript. It converts each name once. */
function camel(column: string): string {
  let name = CAMEL.get(column);
  if (name === undefined) {
    name = column.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
    CAMEL.set(column, name);
  }
  return name;
}

/** Returns PostgreSQL's code of an error, such as 23505 for a broken unique constraint. */
export const sqlStateOf = (error: unknown): string | undefined => (error as { code?: string } | undefined)?.code;

/** Codes of a missing or lost connection: of PostgreSQL, sockets and name servers. */
const CONNECTION_LOST =
  /^(08...|57P0[1-5]|25P0[34]|ECONN(RESET|REFUSED|ABORTED)|EPIPE|ETIMEDOUT|E(HOST|NET)(UNREACH|DOWN)|ENOTFOUND|EAI_AGAIN)$/;
/** Messages of drivers without a code. */
const LOST_MESSAGE =
  /^(Connection terminated|Client .* is not queryable$|Cannot use a pool after calling end|timeout exceeded when trying to connect|timeout expired$|Query read timeout$|Driver not Connected$|Query runner already released|Database connection provided by a query runner was already released)/;
/**
 * The server lacks resources (53), accepts no connections (55000) or no changes (25006), or conflicts do not end. Or a
 * statement lasted too long (57014), or waited too long for a lock (55P03).
 */
const REFUSING = /^(53...|55000|25006|40001|40P01|57014|55P03)$/;

/** Whether the connection failed or was lost. A COMMIT may have happened nevertheless. */
export const isConnectionLost = (error: unknown): boolean => allCausesOf(error).some(isLost);

/** Whether the database is unavailable. The request is not at fault, and the caller may retry. */
export const isDatabaseAway = (error: unknown): boolean =>
  allCausesOf(error).some((cause) => isLost(cause) || REFUSING.test(sqlStateOf(cause) ?? ''));

function isLost(error: Error & { syscall?: string }): boolean {
  const code = sqlStateOf(error) ?? '';
  // PostgreSQL's Unix socket is a file that exists only while the server runs.
  return (
    CONNECTION_LOST.test(code) || LOST_MESSAGE.test(error.message) || (code === 'ENOENT' && error.syscall === 'connect')
  );
}

/** Returns the causes of an error. A name with several addresses has an error for each. */
const allCausesOf = (error: unknown): Error[] =>
  causesOf(error).flatMap((cause) => [
    cause,
    ...(cause instanceof AggregateError ? cause.errors.flatMap(allCausesOf) : []),
  ]);

/** Returns the constraint that an error names. */
export const constraintOf = (error: unknown): string | undefined =>
  (error as { constraint?: string } | undefined)?.constraint;
