/** Servers: their machines, their renewals, and the engines that make them. */
import type { Database } from '../../entities/database/database.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import type { Vault } from '../../entities/secrets.ts';
import { writeEngine } from '../../entities/servers/engine.ts';
import type { Server } from '../../entities/servers/server.ts';
import { startTask, type WorkerPart } from '../tasks/tasks.ts';
import { RENEWAL_PROCESS, RESUME_TASK, renewalProcess } from './billing/renew.ts';
import type { HardwareDriver } from './drivers/driver.ts';
import { seedDocumentationAddresses } from './placement/addresses.ts';
import { OBSERVER_PROCESS, observerProcess } from './reconcile/observe.ts';
import { REVERSE_DNS_PROCESS, type ReverseDnsHook, reverseDnsProcess } from './reconcile/reverse-dns.ts';
import { serverProcess } from './steps/process.ts';
import { retrySuspended } from './steps/resume.ts';
import { destroyTask, SERVER_LANE, SERVER_PROCESS, serverTask } from './steps/task.ts';

export interface ServersOptions {
  db: Database;
  vault: Vault;
  drivers: Record<Server['kind'], HardwareDriver>;
  /** Seconds before a worker looks at a machine again. */
  pollSeconds: number;
  /** Seconds that a machine has to give proof, before the worker tries something else. Default: 300; dedicated: 3600. */
  proofSeconds?: Record<Server['kind'], number>;
  /** Absent: names of addresses are data alone. */
  reverseDns?: ReverseDnsHook | undefined;
}

export class Servers implements WorkerPart {
  readonly #options: ServersOptions;
  readonly lanes = { [SERVER_LANE]: 16 };

  constructor(options: ServersOptions) {
    this.#options = options;
  }

  get #engines(): HardwareDriver[] {
    return Object.values(this.#options.drivers);
  }

  get simulated(): boolean {
    return this.#engines.some(({ simulated }) => simulated);
  }

  get processes() {
    const { db, vault, drivers, pollSeconds, proofSeconds, reverseDns } = this.#options;
    return {
      [SERVER_PROCESS]: serverProcess({ db, vault, drivers, pollSeconds, proofSeconds }),
      [RENEWAL_PROCESS]: renewalProcess(db),
      [OBSERVER_PROCESS]: observerProcess(db, drivers, console.error),
      ...(reverseDns && { [REVERSE_DNS_PROCESS]: reverseDnsProcess(db, reverseDns) }),
    };
  }

  get periodic() {
    return [RENEWAL_PROCESS, OBSERVER_PROCESS, ...(this.#options.reverseDns ? [REVERSE_DNS_PROCESS] : [])];
  }

  /** The engine that makes machines of a kind. */
  engineOf(kind: Server['kind']): string {
    return this.#options.drivers[kind].name;
  }

  /** Seeds what simulated machines need in the database before the first order. */
  async prepare(): Promise<void> {
    // Real machines would be given these addresses, too.
    if (this.#engines.every(({ simulated }) => simulated)) await seedDocumentationAddresses(this.#options.db);
  }

  /** Writes which engine makes machines of each kind. */
  async writeEngines(): Promise<void> {
    for (const [kind, { name, needsHosts = false }] of Object.entries(this.#options.drivers))
      await writeEngine(this.#options.db, { kind, driver: name, needsHosts });
  }

  /** Lets the worker carry out the change that the server's row names. */
  change(tx: Transaction, server: Pick<Server, 'kind' | 'orderNumber' | 'accountId'>): Promise<void> {
    return startTask(tx, serverTask(server, 'change'));
  }

  /** Lets the worker destroy the machine of a server, also one that it still makes. */
  destroy(tx: Transaction, server: Pick<Server, 'orderNumber' | 'accountId'>): Promise<void> {
    return startTask(tx, destroyTask(server));
  }

  /** Lets the worker try to resume the suspended servers of an account: its balance grew, or a server renews itself again. */
  retrySuspended(tx: Transaction, accountId: string): Promise<void> {
    return retrySuspended(tx, accountId, RESUME_TASK);
  }
}
