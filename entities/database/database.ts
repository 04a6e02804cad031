/** The database: one pool, migrations under a lock, and transactions that tell what they changed after their commit. */
import pg from 'pg';
import { DataSource, type EntityManager } from 'typeorm';
import { causesOf } from '../errors.ts';
import { Waker, wakeWebhooks } from '../webhooks/outbox.ts';
import { Bus, type Change } from './bus.ts';
import { MIGRATIONS } from './migrations/index.ts';
import { ENTITIES } from './tables.ts';

// int8 as bigint everywhere: money never passes through a float.
pg.types.setTypeParser(pg.types.builtins.INT8, BigInt);

/** Any fixed number: it names the lock under which schemas are changed. */
const MIGRATION_LOCK = 4_707_366_001;
/** Serialization failure and deadlock: PostgreSQL has rolled back, so the work can simply be done again. */
const RETRYABLE = new Set(['40001', '40P01']);
const ATTEMPTS_MAX = 5;

/**
 * One connection of the pool, whose loss nobody may overhear. The pool listens while it is idle and TypeORM while it is
 * used, but neither in between: an end that comes in one packet with the answer before it would be the end of the process.
 * Whoever uses it finds out by the next statement.
 */
class Client extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config);
    this.on('error', () => {});
  }
}

/** Where SQL can be sent: the database itself, or a transaction. */
export interface Queryable {
  /**
   * Rows of any statement, also of an UPDATE with RETURNING. Columns get their names in TypeScript here: `account_id` is `accountId`.
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

export class Database implements Queryable {
  readonly #source: DataSource;
  readonly bus: Bus;
  /** TypeORM's own pool. A query runner around each statement would cost a request more time than its checks do. */
  readonly #pool: pg.Pool;

  /** Wakes the webhooks that a commit has deliveries for. */
  readonly waker: Waker;

  protected constructor(source: DataSource, bus: Bus, waker?: Waker) {
    this.#source = source;
    this.bus = bus;
    this.#pool = (source.driver as unknown as { master: pg.Pool }).master;
    this.waker = waker ?? new Waker((ids) => wakeWebhooks(this, bus, ids));
  }

  get source(): DataSource {
    return this.#source;
  }

  get manager(): EntityManager {
    return this.source.manager;
  }

  /** Connects, brings the schema up to date, and starts the bus. @throws if another version made the schema */
  static async open(url: string, { poolSize = 10 }: { poolSize?: number } = {}): Promise<Database> {
    const source = new DataSource({
      type: 'postgres',
      url,
      poolSize,
      entities: ENTITIES,
      migrations: MIGRATIONS,
      migrationsTransactionMode: 'each',
      applicationName: 'freehold',
      // A transaction that somebody forgot would keep dead rows alive, and starve the leasing of tasks.
      extra: { idle_in_transaction_session_timeout: 30_000, keepAlive: true, Client },
    });
    await migrate(url, source);
    const bus = new Bus(url);
    await bus.start();
    return new Database(source, bus);
  }

  /** Sends one statement, again if PostgreSQL has rolled it back to end a deadlock. */
  query<T>(sql: string, parameters: unknown[] = [], name?: string): Promise<T[]> {
    return retried(() => rows<T>(this.#pool, sql, parameters, name));
  }

  /** Does the work in one transaction, again if PostgreSQL asks for that, and then publishes what it changed. */
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    return retried(() => this.once(work));
  }

  protected async once<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    const { result, changes } = await within(this.manager, work);
    this.publish(changes);
    return result;
  }

  /** Tells what was committed: the bus hears of rows, and webhooks with deliveries are woken. */
  protected publish(changes: readonly Change[]): void {
    this.waker.wake(changes.filter(({ kind }) => kind === 'webhook').map(({ id }) => id!));
    this.bus.publish(changes.filter(({ kind }) => kind !== 'webhook'));
  }

  async close(): Promise<void> {
    await this.waker.idle();
    await this.bus.close();
    await this.source.destroy();
  }
}

/** Does it again at once, some times, where PostgreSQL has rolled it back. */
async function retried<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt === ATTEMPTS_MAX || !RETRYABLE.has(sqlStateOf(error) ?? '')) throw error;
    }
  }
}

/** A transaction of that manager; if it is in one, a savepoint of it. */
const within = <T>(outer: EntityManager, work: (tx: Transaction) => Promise<T>) =>
  outer.transaction(async (manager) => {
    const tx = new Transaction(manager, await manager.queryRunner!.connect());
    return { result: await work(tx), changes: tx.changes };
  });

async function rows<T>(
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
const sqlStateOf = (error: unknown): string | undefined => (error as { code?: string } | undefined)?.code;

/** No connection, or no more: codes of PostgreSQL, of sockets and of name servers. */
const LOST =
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
  return LOST.test(code) || LOST_MESSAGE.test(error.message) || (code === 'ENOENT' && error.syscall === 'connect');
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

/** Any number of processes may start at once: one migrates, the others wait and find it done. */
async function migrate(url: string, source: DataSource) {
  const lock = new pg.Client({ connectionString: url });
  lock.on('error', () => {}); // the query that waits for it fails
  await lock.connect();
  try {
    await lock.query('select pg_advisory_lock($1)', [MIGRATION_LOCK]);
    await source.initialize();
    const known = new Set(MIGRATIONS.map((migration) => new migration().name));
    const { rows: tables } = await lock.query(`select to_regclass('migrations') as name`);
    const { rows: done } = tables[0].name ? await lock.query('select name from migrations order by id') : { rows: [] };
    const unknown = done.find(({ name }) => !known.has(name));
    if (unknown) {
      await source.destroy();
      throw new Error(
        `This program does not know the migration ${unknown.name}, which the database has. ` +
          'A newer version made this database, or one before the first release. ' +
          'Start that version, or restore a backup made before the upgrade.',
      );
    }
    await source.runMigrations();
  } finally {
    await lock.end();
  }
}
