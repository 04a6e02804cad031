/**
 * The connections of a process. Callers take turns at them. An account takes a quarter of them at most, and its tasks another.
 * Strangers together take half. PostgreSQL ends a caller's statement that lasts too long. So neither many calls nor slow ones of
 * one account keep the connections from the others. The pool closes connections that the network has dropped without a word.
 */
import pg from 'pg';
import { type Caller, callers } from '../caller.ts';
import { Turns } from '../turns.ts';
import { STATEMENT_MS } from './pooler.ts';
import { isConnectionLost } from './transaction.ts';

/** Connections that callers leave to the service. */
const OWN = 2;
const WAITING_MAX = 2_000;
const WAITING_OF_GROUP_MAX = 200;

/** How long PostgreSQL may leave a connection without an answer while it does nothing for it. */
const SILENT_MS = 25_000;
/** The longest transaction through a pooler, whose backends no connection knows. */
const POOLED_MS = 60_000;
/** The longest wait for a new connection, and for the answer of a look. */
const ANSWER_MS = 5_000;

/** Whether the backends $1 work, or have worked within $2 seconds. Ends the others, and so their locks. */
const END_IDLE = `
  with looked as (
    select pid, state not like 'idle%' or state_change > now() - make_interval(secs => $2) as works
    from pg_stat_activity where pid = any($1))
  select pid, works, case when not works then pg_terminate_backend(pid) end from looked`;

/** The options of the pool. `silentMs` is for tests. */
export interface PoolConfig extends pg.PoolConfig {
  silentMs?: number;
  /** Whether a pooler in transaction mode is between the pool and PostgreSQL. */
  isPooled?: boolean;
}

/** A connection of the pool that can be closed without an answer. */
export class Client extends pg.Client {
  declare readonly processID: number;

  /**
   * Always has an error listener. The pool listens while the connection is idle, and TypeORM while a transaction uses it. In
   * between, an error without a listener would end the process. The next statement fails.
   */
  constructor(config?: pg.ClientConfig) {
    super({ ...config, connectionTimeoutMillis: ANSWER_MS });
    this.on('error', () => {});
  }

  /** Closes the connection. The waiting query fails. */
  drop(): void {
    this.connection.stream.destroy(new Error('Connection terminated, because PostgreSQL was silent'));
  }
}

/** A connection to a pooler. Its statements have no names: the next one may meet a session that does not know them. */
class PooledClient extends Client {
  /** For those who send statements of their own. */
  readonly isPooled = true;

  // biome-ignore lint/suspicious/noExplicitAny: the library has six forms of this method, and this passes each of them on
  override query(query: any, ...rest: any[]): any {
    const unnamed = query?.name ? { ...query, name: undefined } : query;
    return (super.query as (...all: unknown[]) => unknown).call(this, unnamed, ...rest);
  }
}

type Connected = (
  error: Error | undefined,
  client: pg.PoolClient | undefined,
  release: pg.PoolClient['release'],
) => void;

export class Pool extends pg.Pool {
  readonly #turns: Record<Caller['kind'], Turns>;
  readonly #isPooled: boolean;
  /** Connections whose statements end after `STATEMENT_MS`. */
  readonly #limited = new WeakSet<pg.PoolClient>();
  /** The connections in use, and since when, by performance.now(). */
  readonly #used = new Map<Client, number>();

  constructor({ isPooled = false, silentMs = isPooled ? POOLED_MS : SILENT_MS, ...config }: PoolConfig) {
    super({ ...config, Client: isPooled ? PooledClient : Client } as pg.PoolConfig);
    this.#isPooled = isPooled;
    this.on('acquire', (client) => this.#used.set(client as unknown as Client, performance.now()));
    this.on('release', (_, client) => this.#used.delete(client as unknown as Client));
    const look = setInterval(() => (this.ended ? clearInterval(look) : this.#look(silentMs)), silentMs / 5).unref();
    const { max } = this.options;
    const [half, most] = [Math.ceil(max / 2), Math.max(Math.ceil(max / 2), max - OWN)];
    const turns = (places: number, placesOfGroup: number) =>
      new Turns({
        ...{ places, placesOfGroup, waiting: WAITING_MAX, waitingOfGroup: WAITING_OF_GROUP_MAX },
        refusal: 'You have too many calls under way. Wait until some of them end.',
      });
    const quarter = Math.ceil(most / 4);
    this.#turns = { account: turns(most, quarter), stranger: turns(half, quarter), task: turns(most, quarter) };
  }

  /** How many callers wait for a connection. */
  get waiting(): number {
    return Object.values(this.#turns).reduce((sum, turns) => sum + turns.waiting, this.waitingCount);
  }

  /** Closes the connections in use for which PostgreSQL does nothing. They are all closed if it does not answer. */
  async #look(silentMs: number): Promise<void> {
    const before = performance.now() - silentMs;
    const silent = [...this.#used].filter(([, since]) => since < before);
    if (!silent.length) return;
    const pids = silent.map(([{ processID }]) => processID);
    const working = this.#isPooled ? new Set() : await this.#working(pids, silentMs / 1000);
    for (const [client, since] of silent)
      if (this.#used.get(client) === since && !working.has(client.processID)) client.drop();
  }

  /** Asks by a connection of its own. */
  async #working(pids: number[], silentSeconds: number): Promise<Set<number>> {
    const client = new Client({ ...this.options, query_timeout: ANSWER_MS });
    try {
      await client.connect();
      const { rows } = await client.query<{ pid: number; works: boolean }>(END_IDLE, [pids, silentSeconds]);
      return new Set(rows.filter(({ works }) => works).map(({ pid }) => pid));
    } catch (error) {
      // An error in its answer, such as too many connections, shows that PostgreSQL is not silent.
      return new Set(isConnectionLost(error) ? [] : pids);
    } finally {
      void client.end().catch(() => {});
    }
  }

  override connect(): Promise<pg.PoolClient>;
  override connect(done: Connected): void;
  override connect(done?: Connected): unknown {
    const connected = this.connection();
    if (!done) return connected;
    connected.then(
      (client) => done(undefined, client, client.release),
      (error: Error) => done(error, undefined, () => {}),
    );
  }

  /** Returns a connection at the turn of the caller. */
  protected connection(): Promise<pg.PoolClient> {
    const caller = callers.getStore();
    return !caller || caller.connections ? this.#connected(caller) : this.#atTurn(caller);
  }

  /** Returns a connection with the statement timeout of a caller, or that of the service. */
  async #connected(caller: Caller | undefined): Promise<pg.PoolClient> {
    const client = await super.connect();
    const isLimited = caller !== undefined && caller.kind !== 'task';
    if (this.#isPooled || this.#limited.has(client) === isLimited) return client;
    try {
      await client.query(`set statement_timeout to ${isLimited ? STATEMENT_MS : 'default'}`);
    } catch (error) {
      client.release(true);
      throw error;
    }
    if (isLimited) this.#limited.add(client);
    else this.#limited.delete(client);
    return client;
  }

  async #atTurn(caller: Caller): Promise<pg.PoolClient> {
    const leave = await this.#turns[caller.kind].enter(caller.group, caller.signal);
    try {
      const client = await this.#connected(caller);
      caller.connections++;
      const { release } = client;
      client.release = (destroy) => {
        // A second release throws, and must not leave a place twice.
        release.call(client, destroy);
        caller.connections--;
        leave();
      };
      return client;
    } catch (error) {
      leave();
      throw error;
    }
  }
}
