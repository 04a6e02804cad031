/**
 * The connections of a process. Callers take turns at them: an account takes half of them at most, and strangers together
 * half. So neither many calls nor slow ones of one caller keep the connections from the others.
 */
import pg from 'pg';
import { type Caller, callers } from '../caller.ts';
import { Turns } from '../turns.ts';

/** Connections that callers leave to the service. */
const OWN = 2;
const WAITING_MAX = 2_000;
const WAITING_OF_GROUP_MAX = 200;

type Connected = (
  error: Error | undefined,
  client: pg.PoolClient | undefined,
  release: pg.PoolClient['release'],
) => void;

export class Pool extends pg.Pool {
  readonly #turns: Record<Caller['kind'], Turns>;

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
    if (!caller || caller.connections) return done ? super.connect(done) : super.connect();
    const connected = this.#atTurn(caller);
    if (!done) return connected;
    connected.then(
      (client) => done(undefined, client, client.release),
      (error: Error) => done(error, undefined, () => {}),
    );
  }

  async #atTurn(caller: Caller): Promise<pg.PoolClient> {
    const leave = await this.#turns[caller.kind].enter(caller.group);
    try {
      const client = await super.connect();
      caller.connections++;
      const { release } = client;
      client.release = (destroy) => {
        caller.connections--;
        leave();
        release.call(client, destroy);
      };
      return client;
    } catch (error) {
      leave();
      throw error;
    }
  }
}
