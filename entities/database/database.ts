/** The database: one pool, migrations under a lock, and transactions that tell what they changed after their commit. */
import pg from 'pg';
import { DataSource, type EntityManager } from 'typeorm';
import { Waker, wakeWebhooks } from '../webhooks/outbox.ts';
import { Bus, type Change } from './bus.ts';
import { MIGRATIONS } from './migrations/index.ts';
import { ENTITIES } from './tables.ts';
import { type Queryable, rows, sqlStateOf, type Transaction, within } from './transaction.ts';

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
