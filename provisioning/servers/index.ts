/** Servers as a part of provisioning: the processes of their machines, renewals, findings and reverse DNS. */
import { REMOVE_SAMPLE } from '../../entities/catalog.ts';
import type { Database } from '../../entities/database/database.ts';
import { LOCK_NAME } from '../../entities/database/lock-name.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { REMOVE_IMAGES_OF_NO_ENGINE } from '../../entities/engine-image.ts';
import type { Actor } from '../../entities/history/audit.ts';
import { logFault, log as logger } from '../../entities/monitoring/log.ts';
import type { Vault } from '../../entities/secrets.ts';
import {
  COUNT_SERVERS_OF_ENVIRONMENT,
  COUNT_SIMULATED_SERVERS,
  FIND_ADDED_ENGINES,
  LOCK_ENGINES,
  REMOVE_OTHER_ENGINES,
  WRITE_ENGINE,
} from '../../entities/servers/engine.ts';
import { SEED_DOCUMENTATION_ADDRESSES } from '../../entities/servers/ip-address.ts';
import type { Server } from '../../entities/servers/server.ts';
import { signalTask, startTask } from '../../entities/tasks/start.ts';
import { cronSubject } from '../tasks/schedule.ts';
import type { WorkerPart } from '../tasks/tasks.ts';
import { followSuspension } from './billing/kept-off.ts';
import { RENEWAL_PROCESS, RESUME_TASK, renewalProcess } from './billing/renew.ts';
import { retrySuspended } from './billing/resume.ts';
import { DriverError } from './drivers/driver.ts';
import { type Connect, type Drivers, Engines } from './engines.ts';
import { IMAGE_LANE, IMAGE_PROCESS, imageProcess } from './images/process.ts';
import { METER_PROCESSES, meterProcess } from './metering/meter.ts';
import { NO_DRIVER } from './none.ts';
import { OBSERVER_PROCESS, observerProcess } from './reconcile/observe.ts';
import { REVERSE_DNS_PROCESS, type ReverseDnsHook, reverseDnsProcess } from './reconcile/reverse-dns.ts';
import { serverProcess } from './steps/process.ts';
import { destroyTask, SERVER_LANE, SERVER_PROCESS, serverTask, type Tasked } from './task.ts';

/** Lets a worker look at all engines at once. */
export const lookAtEngines = (tx: Transaction): Promise<void> => signalTask(tx, cronSubject(OBSERVER_PROCESS));

/** Milliseconds that the engines have to answer at the start. */
const CHECK_MS = 10_000;

export interface ServersOptions {
  db: Database;
  vault: Vault;
  /** The drivers of the environment. */
  drivers: Drivers;
  /** Makes the drivers of other engines. Absent: this process reaches none. */
  connect?: Connect;
  /** Seconds until a worker observes a machine again. */
  pollSeconds: number;
  /** Seconds that a machine has to give proof before the worker tries to recover it. Default: 300; dedicated: 3600. */
  proofSeconds?: Record<Server['kind'], number>;
  /** Absent: the names of addresses are only stored. */
  reverseDns?: ReverseDnsHook | undefined;
  /** Packets a second of one machine from which on the operator hears of it. Default: 50,000. */
  packetsPerSecondMax?: number;
  /** Takes a line about each failed call of a driver. Default: a warning in the log. */
  log?: (line: string) => void;
}

/** Leaves the catalog to the operator. */
const removeSample = (db: Database): Promise<void> =>
  db.transaction(async (tx) => {
    await LOCK_NAME.all(tx, ['sample catalog']);
    for (const removal of REMOVE_SAMPLE) await removal.all(tx);
  });

export class Servers implements WorkerPart {
  readonly #options: ServersOptions;
  readonly engines: Engines;
  /** A step that waits for its engine or BMC gives its place away. So a hundred silent ones with all their tasks leave room. */
  readonly lanes = {
    [SERVER_LANE]: { places: 16, perParty: 12, perAccount: 8, waiting: 1200 },
    [IMAGE_LANE]: { places: 4, perParty: 1, waiting: 0 },
  };

  constructor(options: ServersOptions) {
    this.#options = options;
    this.engines = new Engines(options.db, options.drivers, options.connect);
  }

  get simulated(): boolean {
    return Object.values(this.#options.drivers).some(({ simulated }) => simulated);
  }

  get processes() {
    const { db, vault, pollSeconds, proofSeconds, reverseDns, log } = this.#options;
    const { packetsPerSecondMax = 50_000 } = this.#options;
    const { engines } = this;
    const meter = (kind: Server['kind']) =>
      meterProcess({ db, kind, engines, packetsPerSecondMax, log: log ?? ((line) => logger.warn(line)) });
    return {
      [SERVER_PROCESS]: serverProcess({ db, vault, engines, pollSeconds, proofSeconds, log }),
      [RENEWAL_PROCESS]: renewalProcess(db),
      [IMAGE_PROCESS]: imageProcess(db, engines),
      [OBSERVER_PROCESS]: observerProcess(db, engines, logFault),
      [METER_PROCESSES.VPS]: meter('VPS'),
      [METER_PROCESSES.DEDICATED]: meter('DEDICATED'),
      ...(reverseDns && { [REVERSE_DNS_PROCESS]: reverseDnsProcess(db, reverseDns) }),
    };
  }

  get periodic() {
    const always = [RENEWAL_PROCESS, OBSERVER_PROCESS, ...Object.values(METER_PROCESSES)];
    return [...always, ...(this.#options.reverseDns ? [REVERSE_DNS_PROCESS] : [])];
  }

  /** The name of the engine of the environment that makes machines of a kind. */
  engineOf(kind: Server['kind']): string {
    return this.#options.drivers[kind].name;
  }

  /** Seeds addresses before the first order, if all machines are simulated. Real ones never get them, nor the sample catalog. */
  async prepare(): Promise<void> {
    const { db, drivers } = this.#options;
    const isReal = Object.values(drivers).some((driver) => !driver.simulated && driver !== NO_DRIVER);
    if (this.simulated && !isReal) await SEED_DOCUMENTATION_ADDRESSES.all(db);
    if (!this.simulated) await removeSample(db);
  }

  /**
   * Checks the set-up of the engines. A silent engine is no reason to refuse the start.
   * @returns warnings for the operator
   * @throws DriverError rejected until the operator has followed its message
   */
  async check(): Promise<string[]> {
    const signal = AbortSignal.timeout(CHECK_MS);
    const checked = (await this.engines.all()).map(async ({ name, engine, driver }) => {
      try {
        return await (await driver()).check?.(signal);
      } catch (error) {
        // Work on an unsafe engine stops by itself. Others must not wait for it.
        if (error instanceof DriverError && error.code === 'rejected' && engine === null) throw error;
        return [`The engine ${name} cannot be checked. ${error instanceof Error ? error.message : error}`];
      }
    });
    return (await Promise.all(checked)).flatMap((warnings) => warnings ?? []);
  }

  /**
   * Writes the engines of the environment, for queries that count hosts and addresses.
   * @throws Error if a real engine would take over simulated servers, or a simulated one would be beside real ones. Or servers
   * would have no driver
   */
  async writeEngines(): Promise<void> {
    const { db, drivers } = this.#options;
    for (const [kind, driver] of Object.entries(drivers)) {
      const { name, simulated } = driver;
      const { orphans } = (await COUNT_SERVERS_OF_ENVIRONMENT.first(db, [kind]))!;
      if (orphans && driver === NO_DRIVER)
        throw new Error(
          `The service has ${orphans} servers of the kind ${kind}, and the configuration has no driver for them. Configure the earlier driver, or delete them by it first.`,
        );
      const { servers } = (await COUNT_SIMULATED_SERVERS.first(db, [kind]))!;
      if (servers && !simulated)
        throw new Error(
          `${servers} servers of the kind ${kind} are simulated, and the driver ${name} cannot run them. Start with another DATA_DIR or database, or delete them with the simulated driver first.`,
        );
    }
    const added = await FIND_ADDED_ENGINES.first(db, [null]);
    if (added && drivers.VPS.simulated)
      throw new Error(
        `The engine ${added.name} is real, so VPS cannot be simulated. Set LXC_ENDPOINTS, or remove the engine.`,
      );
    const engines = this.engines.configured;
    await db.transaction(async (tx) => {
      await LOCK_ENGINES.all(tx);
      await REMOVE_OTHER_ENGINES.all(tx, [engines.map(({ name }) => name)]);
      for (const { name, kinds, driver } of engines) {
        const { needsHosts = false, simulated } = await driver();
        await WRITE_ENGINE.all(tx, [name, kinds, needsHosts, simulated]);
      }
      await REMOVE_IMAGES_OF_NO_ENGINE.all(tx);
    });
  }

  /** Starts the task that brings the machine of a server to the state of its row. */
  reconcile(tx: Transaction, server: Tasked): Promise<void> {
    return startTask(tx, serverTask(server));
  }

  /** Starts the task that destroys the machine of a server, even one that is still being made. */
  destroy(tx: Transaction, server: Tasked): Promise<void> {
    return startTask(tx, destroyTask(server));
  }

  /** Starts a task for the suspended servers of an account, after its balance grew or automatic renewal was turned on. */
  retrySuspended(tx: Transaction, accountId: string): Promise<void> {
    return retrySuspended(tx, [accountId], RESUME_TASK);
  }

  /** Turns the servers of an account off or on, and gives up its resumptions, after its suspension changed. */
  followSuspension(tx: Transaction, accountId: string, actor: Actor): Promise<void> {
    return followSuspension(tx, accountId, actor);
  }
}
