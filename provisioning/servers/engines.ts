/**
 * The engines of this process, each with one driver. The environment configures the first ones. The operator adds others as rows,
 * and the drivers follow these rows without a restart.
 */
import type { Queryable } from '../../entities/database/transaction.ts';
import { type Engine, FIND_ADDED_ENGINES } from '../../entities/servers/engine.ts';
import type { Server } from '../../entities/servers/server.ts';
import { countedEngine } from '../driver-calls.ts';
import { DriverError, type HardwareDriver } from './drivers/driver.ts';
import { NO_DRIVER } from './none.ts';

/** The drivers of the environment, by the kind of machines that they make. */
export type Drivers = Record<Server['kind'], HardwareDriver>;
/** Loads and makes the driver of an engine that the operator added. */
export type Connect = (engine: Engine) => Promise<HardwareDriver>;

export interface ConnectedEngine {
  name: string;
  /** The kinds of servers whose machines it makes. */
  kinds: readonly string[];
  /** As in the rows of its servers: null if the environment configures it. */
  engine: string | null;
  /** Null: it can have hosts in every region. */
  region: string | null;
  revision: number | null;
  /** Whether a look has compared its machines with the servers, since its connection changed. */
  isChecked: boolean;
  /** @throws DriverError unreachable, if there is no way to make it */
  driver(): Promise<HardwareDriver>;
}

const cannotConnect: Connect = async ({ name }) => {
  throw new Error(`This process cannot reach the engine ${name}.`);
};

export class Engines {
  readonly #db: Queryable;
  readonly #drivers: Drivers;
  readonly #connect: Connect;
  readonly #added = new Map<string, { revision: number; driver: Promise<HardwareDriver> }>();

  constructor(db: Queryable, drivers: Drivers, connect = cannotConnect) {
    this.#db = db;
    this.#drivers = drivers;
    this.#connect = connect;
  }

  /** Those of the environment. A driver can make both kinds of machines. */
  get configured(): ConnectedEngine[] {
    const kinds = Object.entries(this.#drivers);
    return [...new Set(Object.values(this.#drivers))].map((driver) => ({
      name: driver.name,
      kinds: kinds.flatMap(([kind, one]) => (one === driver ? kind : [])),
      ...{ engine: null, region: null, revision: null, isChecked: true },
      driver: async () => countedEngine(driver),
    }));
  }

  /** All engines that make machines, in the order of their names. */
  async all(): Promise<ConnectedEngine[]> {
    const rows = await FIND_ADDED_ENGINES.all(this.#db, [null]);
    for (const name of this.#added.keys()) if (!rows.some((row) => row.name === name)) this.#added.delete(name);
    const added = rows.map((row): ConnectedEngine => {
      const { name, kinds, regionCode: region, revision, seenAt } = row;
      const isChecked = seenAt !== null;
      return { name, kinds, engine: name, region, revision, isChecked, driver: () => this.#driverOf(row) };
    });
    const made = this.configured.filter(({ name }) => name !== NO_DRIVER.name);
    return [...made, ...added].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** The name of the engine that has the machine of a server. */
  nameOf({ kind, engine }: Pick<Server, 'kind' | 'engine'>): string {
    return engine ?? this.#drivers[kind].name;
  }

  /**
   * The driver of the engine that has the machine of a server.
   * @throws DriverError unreachable, if there is no way to make it, or no look has checked it: the machine is unknown
   */
  async driverOf({ kind, engine }: Pick<Server, 'kind' | 'engine'>): Promise<HardwareDriver> {
    if (engine === null) return countedEngine(this.#drivers[kind]);
    const row = await FIND_ADDED_ENGINES.first(this.#db, [engine]);
    if (!row) throw new DriverError('unreachable', `The engine ${engine} does not exist.`);
    // The connection may lead to another engine, which has none of its machines.
    if (!row.seenAt) throw new DriverError('unreachable', `No look has reached the engine ${engine} yet.`);
    return this.#driverOf(row);
  }

  #driverOf(row: Engine): Promise<HardwareDriver> {
    const { name, revision } = row;
    const known = this.#added.get(name);
    if (known?.revision === revision) return known.driver;
    const driver = this.#connect(row).then(countedEngine, (error) => {
      if (this.#added.get(name)?.driver === driver) this.#added.delete(name);
      throw new DriverError('unreachable', error instanceof Error ? error.message : String(error));
    });
    this.#added.set(name, { revision, driver });
    return driver;
  }
}
