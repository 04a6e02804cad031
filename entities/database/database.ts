/** The database: one pool, migrations under a lock, and transactions that publish their changes after the commit. */
import pg from 'pg';
import { DataSource, type EntityManager } from 'typeorm';
import { Waker, wakeWebhooks } from '../webhooks/outbox.ts';
import { Bus, type Change } from './bus.ts';
import { MIGRATIONS } from './migrations/index.ts';
import { TABLES } from './tables.ts';
import { type Queryable, rows, sqlStateOf, type Transaction, within } from './transaction.ts';

// int8 becomes bigint, so that money never passes through a float.
pg.types.setTypeParser(pg.types.builtins.INT8, BigInt);

/** The lock of migrations: any fixed number. */
const MIGRATION_LOCK = 4_707_366_001;
/** Serialization failure and deadlock. PostgreSQL has rolled back, so the caller can repeat the work. */
const RETRYABLE = new Set(['40001', '40P01']);
const ATTEMPTS_MAX = 5;

/**
 * A connection of the pool that always has an error listener. The pool listens while the connection is idle, and TypeORM
 * while a transaction uses it. In between, an error without a listener would end the process. The next statement fails.
 */
class Client extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config);
    this.on('error', () => {});
  }
}

export class Database implements Queryable {
  readonly #source: DataSource;
  readonly bus: Bus;
  /** TypeORM's own pool. A query runner for each statement would cost a request more time than its checks. */
  readonly #pool: pg.Pool;

  /** Wakes the webhooks for which a commit has deliveries. */
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

  /** Connects, migrates the schema, and starts the bus. @throws Error if an unknown version made the schema */
  static async open(url: string, { poolSize = 10 }: { poolSize?: number } = {}): Promise<Database> {
    const source = new DataSource({
      type: 'postgres',
      url,
      poolSize,
      entities: TABLES,
      migrations: MIGRATIONS,
      migrationsTransactionMode: 'each',
      applicationName: 'freehold',
      // A forgotten transaction would keep dead rows alive and slow down the leasing of tasks.
      extra: { idle_in_transaction_session_timeout: 30_000, keepAlive: true, Client },
    });
    await migrate(url, source);
    const bus = new Bus(url);
    await bus.start();
    return new Database(source, bus);
  }

  /** Sends one statement. Repeats it if PostgreSQL rolls it back to end a deadlock. */
  query<T>(sql: string, parameters: unknown[] = [], name?: string): Promise<T[]> {
    return retried(() => rows<T>(this.#pool, sql, parameters, name));
  }

  /** Does the work in one transaction and then publishes its changes. Repeats it if PostgreSQL rolls it back to end a conflict. */
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    return retried(() => this.once(work));
  }

  protected async once<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    const { result, changes } = await within(this.manager, work);
    this.publish(changes);
    return result;
  }

  /** Publishes committed changes: the bus reports rows, and the waker wakes webhooks with deliveries. */
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

/** Repeats the work at once, a few times, if PostgreSQL rolls it back. */
async function retried<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt === ATTEMPTS_MAX || !RETRYABLE.has(sqlStateOf(error) ?? '')) throw error;
    }
  }
}

/** Migrates the schema. When many processes start at once, one migrates and the others wait. */
async function migrate(url: string, source: DataSource) {
  const lock = new pg.Client({ connectionString: url });
  lock.on('error', () => {}); // the waiting query fails
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
