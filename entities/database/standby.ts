/**
 * Reads from a standby of PostgreSQL that miss no commit. Before a read, the process asks the primary for the end of its log,
 * the LSN. All reads that wait share the question. Then the process waits until the standby has replayed the log up to there.
 * So each caller reads every write that ended before, also those of other processes. If the standby stays behind, the primary
 * answers.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { DataSource } from 'typeorm';
import type { PostgresDataSourceOptions } from 'typeorm/driver/postgres/PostgresDataSourceOptions.js';
import { ApiError } from '../errors.ts';
import { log } from '../monitoring/log.ts';
import { newClient, withSchema } from './connection.ts';
import { Database, poolOf, SESSION } from './database.ts';
import { Pool, type PoolConfig } from './pool.ts';
import { TABLES } from './tables.ts';
import { isDatabaseAway, sqlStateOf, type Transaction } from './transaction.ts';

/** The longest wait for a standby to replay. A read at the primary is faster than a longer one. */
const REPLAY_MS = 50;
/** The pause between two looks at the standby. */
const LOOK_MS = 1;
/** The pause between two looks at a server that gave no answer. The primary answers meanwhile. */
const AWAY_MS = 1_000;
/** The longest wait for an answer of either server. */
const ANSWER_MS = 2_000;

/** PostgreSQL's code for a read of an unlogged table at a standby. */
const UNLOGGED = '0A000';

const READ_CLUSTER = `
  select concat_ws('/', system_identifier, current_database()) as id, pg_is_in_recovery() as follows
  from pg_control_system()`;
/** The end of the log that is on the disk of the primary. Each commit that has ended lies before it. */
const READ_END = `select pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint as lsn`;
/** A server that follows no primary has no end. */
const READ_REPLAYED = `
  select case when pg_is_in_recovery() then pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint end as lsn`;

/** The database of the service, whose reads outside of transactions go to a standby. */
export class StandbyReads extends Database {
  readonly #primary: Database;
  readonly #replay: Replay;

  private constructor(source: DataSource, primary: Database, replay: Replay) {
    super(source, primary.bus, primary.waker, primary.role);
    this.#primary = primary;
    this.#replay = replay;
  }

  /**
   * @param url the database at its primary
   * @param readUrl the same database at one standby
   * @throws Error if `readUrl` leads to another database
   */
  static async follow(primary: Database, url: string, readUrl: string): Promise<StandbyReads> {
    const replay = new Replay(url, readUrl, await refuseOthers(url, readUrl));
    const { poolSize, applicationName } = primary.source.options as PostgresDataSourceOptions;
    const source = new DataSource({
      type: 'postgres',
      driver: Object.create(pg, { Pool: { value: StandbyPool } }),
      url: withSchema(readUrl),
      entities: TABLES,
      ...{ poolSize, applicationName },
      extra: { ...SESSION, keepAlive: true, primary: poolOf(primary.source), replay },
    });
    await source.initialize();
    return new StandbyReads(source, primary, replay);
  }

  /**
   * The standby may be away, or end a read that conflicts with its log. It has no unlogged tables. The primary answers what the
   * standby refuses.
   */
  override async query<T>(sql: string, parameters: unknown[] = []): Promise<T[]> {
    try {
      return await super.query<T>(sql, parameters);
    } catch (error) {
      if (!isDatabaseAway(error) && sqlStateOf(error) !== UNLOGGED) throw error;
      return this.#primary.query<T>(sql, parameters);
    }
  }

  override transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.#primary.transaction(work);
  }

  /** Closes the connections to the standby only. */
  override async close(): Promise<void> {
    await Promise.all([this.source.destroy(), this.#replay.close()]);
  }
}

interface StandbyConfig extends PoolConfig {
  primary: pg.Pool;
  replay: Replay;
}

/** The connections to a standby, and those to its primary while the standby stays behind. */
class StandbyPool extends Pool {
  readonly #primary: pg.Pool;
  readonly #replay: Replay;

  constructor({ primary, replay, ...config }: StandbyConfig) {
    super(config);
    this.#primary = primary;
    this.#replay = replay;
  }

  protected override async connection(): Promise<pg.PoolClient> {
    if (await this.#replay.isComplete())
      try {
        return await super.connection();
      } catch (error) {
        if (error instanceof ApiError) throw error;
      }
    return this.#primary.connect();
  }
}

/** @returns PostgreSQL's number of the cluster, and the database @throws Error if the URL leads to another cluster or database */
async function refuseOthers(url: string, readUrl: string): Promise<string> {
  const read = async (given: string) => {
    const client = newClient(given, { connectionTimeoutMillis: ANSWER_MS });
    try {
      await client.connect();
      return (await client.query<{ id: string; follows: boolean }>(READ_CLUSTER)).rows[0]!;
    } finally {
      await client.end().catch(() => {});
    }
  };
  const [primary, standby] = await Promise.all([
    read(url),
    read(readUrl).catch((error: Error) => log.warn(`DATABASE_READ_URL leads to no database: ${error.message}. `)),
  ]);
  if (standby && standby.id !== primary.id)
    throw new Error('DATABASE_READ_URL names no standby of the database of DATABASE_URL.');
  // It is the primary, or was promoted. As if it were away, the primary answers until it follows.
  if (standby?.follows === false)
    log.warn('DATABASE_READ_URL leads to a server that follows no primary. Make it a standby of DATABASE_URL.');
  return primary.id;
}

/** Compares the logs of a primary and its standby. */
class Replay {
  readonly #primary: Session;
  readonly #standby: Session;
  #present: Promise<boolean> = Promise.resolve(false);
  #next: Promise<boolean> | undefined;
  /** Set while one of the servers gives no answer. Each later look runs beside the reads. */
  #away: { nextLookAt: number; look?: Promise<boolean> } | undefined;
  /** Whether the last question waited in vain. Then the next one does not wait. */
  #isBehind = false;

  constructor(url: string, readUrl: string, cluster: string) {
    this.#primary = new Session(url, cluster);
    this.#standby = new Session(readUrl, cluster);
  }

  /**
   * Whether the standby has replayed every commit that ended before this call. Callers who come during a question share the
   * next one.
   */
  isComplete(): Promise<boolean> {
    this.#next ??= this.#present.then(() => {
      this.#next = undefined;
      this.#present = this.#ask();
      return this.#present;
    });
    return this.#next;
  }

  async #ask(): Promise<boolean> {
    if (!this.#away) return this.#compare();
    if (performance.now() >= this.#away.nextLookAt) this.#away.look ??= this.#compare();
    return false;
  }

  async #compare(): Promise<boolean> {
    try {
      const end = await this.#primary.read(READ_END);
      const last = performance.now() + (this.#isBehind ? 0 : REPLAY_MS);
      for (;;) {
        const replayed = await this.#standby.read(READ_REPLAYED);
        this.#isBehind = replayed === null || replayed < end!;
        this.#away = undefined;
        if (!this.#isBehind || performance.now() > last) return !this.#isBehind;
        await sleep(LOOK_MS);
      }
    } catch {
      this.#away = { nextLookAt: performance.now() + AWAY_MS };
      return false;
    }
  }

  async close(): Promise<void> {
    await this.#present;
    await this.#away?.look;
    await Promise.all([this.#primary.end(), this.#standby.end()]);
  }
}

/** A connection to a server of the cluster. It comes back at the next question. */
class Session {
  readonly #url: string;
  readonly #cluster: string;
  #client: pg.Client | undefined;

  constructor(url: string, cluster: string) {
    this.#url = url;
    this.#cluster = cluster;
  }

  async read(sql: string): Promise<bigint | null> {
    try {
      this.#client ??= await this.#connect();
      const { rows } = await this.#client.query<{ lsn: bigint | null }>({ name: 'lsn', text: sql });
      return rows[0]!.lsn;
    } catch (error) {
      void this.end();
      throw error;
    }
  }

  async end(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await client?.end().catch(() => {});
  }

  async #connect(): Promise<pg.Client> {
    const client = newClient(this.#url, { connectionTimeoutMillis: ANSWER_MS, query_timeout: ANSWER_MS });
    await client.connect();
    // Another server may have taken the address.
    const { rows } = await client.query<{ id: string }>(READ_CLUSTER);
    if (rows[0]!.id === this.#cluster) return client;
    await client.end();
    throw new Error('Another cluster answers.');
  }
}
