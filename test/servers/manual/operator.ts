/** An operator that works through the queue. Its machines exist only in memory. */
import type { Database } from '../../../entities/database/database.ts';
import type { Vault } from '../../../entities/secrets.ts';
import type { ManualJob } from '../../../entities/servers/manual-job.ts';
import type { MachineKey, MachineSpec } from '../../../provisioning/servers/drivers/driver.ts';
import { closeManualJob, listManualJobs, manualSpecOf } from '../../../provisioning/servers/manual-jobs.ts';

interface Machine {
  spec: MachineSpec;
  power: 'on' | 'off';
  boots: number;
  traced: boolean;
}
const nameOf = ({ order, generation }: MachineKey) => `${order}.${generation}`;

export class Operator {
  /** The completed jobs, oldest first. */
  readonly done: string[] = [];
  readonly #db: Database;
  readonly #vault: Vault;
  readonly #machines = new Map<string, Machine>();
  #working: Promise<void> | undefined;
  #over = false;

  constructor(db: Database, vault: Vault) {
    this.#db = db;
    this.#vault = vault;
  }

  machineOf(key: MachineKey): Machine | undefined {
    return this.#machines.get(nameOf(key));
  }

  start(): void {
    this.#working = this.#work();
  }

  async stop(): Promise<void> {
    this.#over = true;
    await this.#working;
  }

  /** Closes any job as done. */
  async close(id: string): Promise<void> {
    await this.#db.transaction((tx) => closeManualJob(tx, id, 'DONE', null));
  }

  async #work(): Promise<void> {
    while (!this.#over) {
      for (const job of await listManualJobs(this.#db, 100)) {
        if (job.state !== 'OPEN') break; // Open jobs come first.
        const did = this.#do(job, manualSpecOf(this.#vault, job));
        await this.#db.transaction((tx) => closeManualJob(tx, job.id, did ? 'DONE' : 'FAILED', null));
      }
      await new Promise((resume) => setTimeout(resume, 20));
    }
  }

  /** @returns whether the job was possible */
  #do({ orderNumber: order, generation, action, power }: ManualJob, spec: MachineSpec | null): boolean {
    const key = { order, generation };
    const machine = this.machineOf(key);
    this.done.push([action, ...(power ? [power] : [])].join(' ').toLowerCase());
    const boots = (machine?.boots ?? 0) + 1;
    if (action === 'DESTROY') return this.#machines.delete(nameOf(key)) || !machine;
    if (action === 'CREATE' || action === 'REBUILD')
      this.#machines.set(nameOf(key), { spec: spec!, power: 'on', boots, traced: false });
    else if (!machine) return false;
    else if (action === 'RESIZE') machine.spec = spec!;
    else Object.assign(machine, power === 'off' ? { power } : { power: 'on', boots });
    return true;
  }
}
