/**
 * The connections of a process. Callers take turns at them: an account takes half of them at most, and strangers together
 * half. PostgreSQL ends a caller's statement that lasts too long. So neither many calls nor slow ones of one caller keep the
 * connections from the others.
 */
import pg from 'pg';
import { type Caller, callers } from '../caller.ts';
import { Turns } from '../turns.ts';

/** Connections that callers leave to the service. */
const OWN = 2;
const WAITING_MAX = 2_000;
const WAITING_OF_GROUP_MAX = 200;
/** The longest statement of a caller. The service itself may take longer, for example to delete old rows. */
const STATEMENT_SECONDS = 20;

type Connected = (
  error: Error | undefined,
  client: pg.PoolClient | undefined,
  release: pg.PoolClient['release'],
) => void;

export class Pool extends pg.Pool {
  readonly #turns: Record<Caller['kind'], Turns>;
  /** Connections whose statements end after `STATEMENT_SECONDS`. */
  readonly #limited = new WeakSet<pg.PoolClient>();

  constructor(config: pg.PoolConfig) {
    super(config);
    const { max } = this.options;
    const half = Math.ceil(max / 2);
    const turns = (places: number, placesOfGroup: number) =>
      new Turns({
        ...{ places, placesOfGroup, waiting: WAITING_MAX, waitingOfGroup: WAITING_OF_GROUP_MAX },
        refusal: 'You have too many calls under way. Wait until some of them end.',
      });
    this.#turns = { account: turns(Math.max(half, max - OWN), half), stranger: turns(half, Math.ceil(half / 2)) };
  }

  override connect(): Promise<pg.PoolClient>;
  override connect(done: Connected): void;
  override connect(done?: Connected): unknown {
    const caller = callers.getStore();
    const connected = !caller || caller.connections ? this.#connected(caller) : this.#atTurn(caller);
    if (!done) return connected;
    connected.then(
      (client) => done(undefined, client, client.release),
      (error: Error) => done(error, undefined, () => {}),
    );
  }

  /** Returns a connection with the statement timeout of a caller, or that of the service. */
  async #connected(caller: Caller | undefined): Promise<pg.PoolClient> {
    const client = await super.connect();
    if (this.#limited.has(client) === !!caller) return client;
    try {
      await client.query(`set statement_timeout to ${caller ? `'${STATEMENT_SECONDS}s'` : 'default'}`);
    } catch (error) {
      client.release(true);
      throw error;
    }
    if (caller) this.#limited.add(client);
    else this.#limited.delete(client);
    return client;
  }

  async #atTurn(caller: Caller): Promise<pg.PoolClient> {
    const leave = await this.#turns[caller.kind].enter(caller.group);
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
