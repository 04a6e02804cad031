/** The database: one pool, migrations under a lock, and transactions that publish their changes after the commit. */
import pg from 'pg';
import { DataSource, type EntityManager } from 'typeorm';
import { Waker, wakeWebhooks } from '../webhooks/outbox.ts';
import { Bus, type Change } from './bus.ts';
import { withSchema } from './connection.ts';
import { migrate } from './migrate.ts';
import { Pool } from './pool.ts';
import { checkPooler, IDLE_TRANSACTION_MS, LOCK_MS } from './pooler.ts';
import type { DatabaseRole } from './role.ts';
import { TABLES } from './tables.ts';
import { isConnectionLost, type Queryable, rows, sqlStateOf, type Transaction, within } from './transaction.ts';

// int8 becomes bigint, so that money never passes through a float.
pg.types.setTypeParser(pg.types.builtins.INT8, BigInt);

/** Serialization failure and deadlock. PostgreSQL has rolled back, so the caller can repeat the work. */
const RETRYABLE = new Set(['40001', '40P01']);
const ATTEMPTS_MAX = 5;

/** The driver of TypeORM, with the pool at which callers take turns. */
const DRIVER: typeof pg = Object.create(pg, { Pool: { value: Pool } });

/** The settings of a session. A pooler refuses them. */
export const SESSION = { idle_in_transaction_session_timeout: IDLE_TRANSACTION_MS, lock_timeout: LOCK_MS };
const READ_TIME = 'select clock_timestamp() as now';
/** The seconds by which the clock of this process is ahead of that of PostgreSQL. */
export async function clockAhead(db: Queryable): Promise<number> {
  const [row] = await db.query<{ now: Date }>(READ_TIME);
  return (Date.now() - row!.now.getTime()) / 1000;
}

/** TypeORM's own pool. A query runner for each statement would cost a request more time than its checks. */
export const poolOf = ({ driver }: DataSource): pg.Pool => (driver as unknown as { master: pg.Pool }).master;

interface OpenOptions {
  /** The name of the connections, by which other processes see this one. */
  name?: string;
  poolSize?: number;
  /** The same database by the role that owns the tables. Absent: the role of the service migrates, if it may. */
  ownerUrl?: string | undefined;
  /** The same database through a pooler in transaction mode. The bus and the migrations do not use it. */
  poolerUrl?: string | undefined;
  /** For tests: how long PostgreSQL may be silent. */
  silentMs?: number;
}

export class Database implements Queryable {
  readonly #source: DataSource;
  readonly bus: Bus;
  readonly #pool: pg.Pool;

  /** The role by which the service uses the database. Absent: within a request. */
  readonly role: DatabaseRole | undefined;

  /** The database for reads outside of transactions: at a standby, or this one. */
  reads: Database = this;

  /** Wakes the webhooks for which a commit has deliveries. */
  readonly waker: Waker;

  protected constructor(source: DataSource, bus: Bus, waker?: Waker, role?: DatabaseRole) {
    this.role = role;
    this.#source = source;
    this.bus = bus;
    this.#pool = poolOf(source);
    this.waker = waker ?? new Waker((ids) => wakeWebhooks(this, bus, ids));
  }

  get source(): DataSource {
    return this.#source;
  }

  get manager(): EntityManager {
    return this.source.manager;
  }

  /**
   * Connects, migrates the schema, and starts the bus.
   * @param url the database by the role of the service
   * @throws Error if an unknown version made the schema, or if the role of the service may not migrate
   */
  static async open(
    url: string,
    { name = 'freehold', poolSize = 10, ownerUrl, poolerUrl, silentMs }: OpenOptions = {},
  ): Promise<Database> {
    const role = await migrate(url, ownerUrl);
    if (poolerUrl) await checkPooler(url, poolerUrl);
    const source = new DataSource({
      type: 'postgres',
      driver: DRIVER,
      url: poolerUrl ?? withSchema(url),
      poolSize,
      entities: TABLES,
      // A pooler keeps connections beyond the end of their process. Then only the bus shows the process.
      applicationName: poolerUrl ? 'freehold' : name,
      extra: { ...(poolerUrl ? { isPooled: true } : SESSION), keepAlive: true, silentMs },
    });
    await source.initialize();
    const bus = new Bus(url, name);
    await bus.start();
    return new Database(source, bus, undefined, role);
  }

  /** The connections of this process by their state, and the callers that wait for one. */
  get connections(): { open: number; idle: number; waiting: number } {
    const { totalCount: open, idleCount: idle } = this.#pool;
    return { open, idle, waiting: (this.#pool as Pool).waiting };
  }

  /** Sends one statement. Repeats it if PostgreSQL rolls it back to end a deadlock. */
  query<T>(sql: string, parameters: unknown[] = []): Promise<T[]> {
    return retried(() => rows<T>(this.#pool, sql, parameters));
  }

  /** Does the work in one transaction and then publishes its changes. Repeats it if PostgreSQL rolls it back to end a conflict. */
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    return retried(() => this.once(work));
  }

  protected async once<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    let changes: readonly Change[] = [];
    try {
      const { result } = await within(this.manager, async (tx) => {
        const result = await work(tx);
        await this.bus.sendByCommit(tx, tx.changes);
        changes = tx.changes;
        return result;
      });
      this.publish(changes);
      return result;
    } catch (error) {
      if (isConnectionLost(error)) this.publish(changes);
      throw error;
    }
  }

  /**
   * Publishes changes that were committed, or that may be: the answer to the COMMIT was lost. The bus reports rows, and the
   * waker wakes webhooks with deliveries.
   */
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
