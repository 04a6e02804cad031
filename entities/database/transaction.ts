/** Where SQL is sent: a transaction, or the database. And what its errors mean. */
import type pg from 'pg';
import type { EntityManager } from 'typeorm';
import { causesOf } from '../errors.ts';
import type { Change } from './bus.ts';

/** Where SQL can be sent: the database itself, or a transaction. */
export interface Queryable {
  /**
   * Rows of any statement, also of an UPDATE with RETURNING. Columns get their names in TypeScript here: `account_id` is
   * `accountId`.
   * @param name has it planned once for each connection: for a statement whose planning costs as much as its execution
   */
  query<T = Record<string, unknown>>(sql: string, parameters?: unknown[], name?: string): Promise<T[]>;
  /** TypeORM's manager, for the functions of `table.ts`. */
  readonly manager: EntityManager;
}

/** A transaction. What it changed is published after the commit, and never if it fails. */
export class Transaction implements Queryable {
  readonly manager: EntityManager;
  readonly changes: Change[] = [];
  readonly #client: pg.ClientBase;
  constructor(manager: EntityManager, client: pg.ClientBase) {
    this.manager = manager;
    this.#client = client;
  }
  query<T>(sql: string, parameters: unknown[] = [], name?: string): Promise<T[]> {
    return rows<T>(this.#client, sql, parameters, name);
  }
  changed(...changes: Change[]): void {
    this.changes.push(...changes);
  }

  /** Does the work in a savepoint. If it fails, what it wrote and locked is undone, and this transaction can go on. */
  async attempt<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    const { result, changes } = await within(this.manager, work);
    this.changed(...changes);
    return result;
  }
}

/** A transaction of that manager; if it is in one, a savepoint of it. */
export const within = <T>(outer: EntityManager, work: (tx: Transaction) => Promise<T>) =>
  outer.transaction(async (manager) => {
    const tx = new Transaction(manager, await manager.queryRunner!.connect());
    return { result: await work(tx), changes: tx.changes };
  });

export async function rows<T>(
  connection: pg.Pool | pg.ClientBase,
  text: string,
  values: unknown[],
  name?: string,
): Promise<T[]> {
  const { fields, rows } = await connection.query({ text, values, rowMode: 'array', ...(name && { name }) });
  const names = fields.map((field) => camel(field.name));
  return rows.map((row: unknown[]) => {
    const named: Record<string, unknown> = {};
    for (let i = 0; i < names.length; i++) named[names[i]!] = row[i];
    return named as T;
  });
}

const CAMEL = new Map<string, string>();
/** The name of a column in TypeScript. Columns are few, so each is converted once. */
function camel(column: string): string {
  let name = CAMEL.get(column);
  if (name === undefined) {
    name = column.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
    CAMEL.set(column, name);
  }
  return name;
}

/** PostgreSQL's code of an error, such as 23505 for a broken unique constraint. */
export const sqlStateOf = (error: unknown): string | undefined => (error as { code?: string } | undefined)?.code;

/** No connection, or no more: codes of PostgreSQL, of sockets and of name servers. */
const CONNECTION_LOST =
  /^(08...|57P0[1-5]|25P0[34]|ECONN(RESET|REFUSED|ABORTED)|EPIPE|ETIMEDOUT|E(HOST|NET)(UNREACH|DOWN)|ENOTFOUND|EAI_AGAIN)$/;
/** What the drivers say without a code. */
const LOST_MESSAGE =
  /^(Connection terminated|Client .* is not queryable$|Cannot use a pool after calling end|timeout exceeded when trying to connect|timeout expired$|Query read timeout$|Driver not Connected$|Query runner already released)/;
/** There is a connection, but no room (53), no connections allowed (55000), no changes (25006), or no end of conflicts. */
const REFUSING = /^(53...|55000|25006|40001|40P01)$/;

/** Whether the connection could not be made, or was lost. A COMMIT may have happened then. */
export const isConnectionLost = (error: unknown): boolean => allCausesOf(error).some(isLost);

/** Whether the database cannot be used at the moment: the fault is not in what was asked, and trying again may help. */
export const isDatabaseAway = (error: unknown): boolean =>
  allCausesOf(error).some((cause) => isLost(cause) || REFUSING.test(sqlStateOf(cause) ?? ''));

function isLost(error: Error & { syscall?: string }): boolean {
  const code = sqlStateOf(error) ?? '';
  // PostgreSQL's Unix socket is a file, which is gone while it does not run.
  return (
    CONNECTION_LOST.test(code) || LOST_MESSAGE.test(error.message) || (code === 'ENOENT' && error.syscall === 'connect')
  );
}

/** The causes of an error, and those of each address that was tried when a name has several. */
const allCausesOf = (error: unknown): Error[] =>
  causesOf(error).flatMap((cause) => [
    cause,
    ...(cause instanceof AggregateError ? cause.errors.flatMap(allCausesOf) : []),
  ]);

/** The constraint that an error names. */
export const constraintOf = (error: unknown): string | undefined =>
  (error as { constraint?: string } | undefined)?.constraint;
