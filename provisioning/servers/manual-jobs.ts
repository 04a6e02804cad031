/** The queue of the driver for machines that people make. A specification stays sealed until its job closes. */
import { findAll } from '../../entities/database/table.ts';
import type { Queryable, Transaction } from '../../entities/database/transaction.ts';
import { expression, transition } from '../../entities/history/transition.ts';
import { newId } from '../../entities/ids.ts';
import type { Vault } from '../../entities/secrets.ts';
import {
  ADD_MANUAL_JOB,
  JOB_SPEC,
  LIST_JOBS_OF_MACHINES,
  LIST_MANUAL_JOBS,
  LOCK_OPEN_JOBS,
  MACHINE_IS_GONE,
  MANUAL_JOB_LIFECYCLE,
  ManualJob,
} from '../../entities/servers/manual-job.ts';
import { signalTask } from '../../entities/tasks/start.ts';
import type { MachineKey, MachineSpec } from './drivers/driver.ts';
import type { ManualQueue, QueuedJob } from './drivers/manual.ts';

const LIST_MAX = 10_000;

export class ManualJobs implements ManualQueue {
  readonly #db: Queryable;
  readonly #vault: Vault;
  constructor(db: Queryable, vault: Vault) {
    this.#db = db;
    this.#vault = vault;
  }

  of({ order: orderNumber, generation }: MachineKey): Promise<ManualJob[]> {
    return findAll(this.#db, ManualJob, { orderNumber, generation }, { id: 'ASC' });
  }

  all(): Promise<ManualJob[]> {
    return LIST_JOBS_OF_MACHINES.all(this.#db, [LIST_MAX]);
  }

  async add(
    { order, generation }: MachineKey,
    { action, change, power, specDigest }: Pick<QueuedJob, 'action' | 'change' | 'power' | 'specDigest'>,
    spec?: MachineSpec,
  ): Promise<void> {
    const id = newId('job');
    const sealed = spec ? JOB_SPEC.seal(this.#vault, JSON.stringify(spec), id) : null;
    await ADD_MANUAL_JOB.all(this.#db, [id, order, generation, action, change, power, specDigest, sealed]);
  }
}

/** The machine to make, for the operator; null for closed jobs and for jobs that need no specification. */
export const manualSpecOf = (vault: Vault, { id, spec }: Pick<ManualJob, 'id' | 'spec'>): MachineSpec | null =>
  spec && (JSON.parse(JOB_SPEC.open(vault, spec, id)) as MachineSpec);

/** Open jobs first, and the oldest of them first. */
export const listManualJobs = (db: Queryable, limit: number): Promise<ManualJob[]> => LIST_MANUAL_JOBS.all(db, [limit]);

/**
 * Closes an open job, and wakes the task of its server. If its machine is gone, all jobs of that machine close. Another
 * machine can have its addresses by the time an operator reads them.
 * @returns the closed jobs, the given one first; none if it is not open
 */
export async function closeManualJob(
  tx: Transaction,
  id: string,
  state: 'DONE' | 'FAILED',
  note: string | null,
): Promise<ManualJob[]> {
  const open = await LOCK_OPEN_JOBS.all(tx, [id]);
  const job = open.find((one) => one.id === id);
  if (!job) return [];
  const close = async (key: string, to: 'DONE' | 'FAILED', why: string | null) =>
    (await transition(tx, MANUAL_JOB_LIFECYCLE, key, to, {
      set: { note: why, spec: null, closedAt: expression('now()') },
    }))!;
  const closed = [await close(id, state, note)];
  if (job.action === 'DESTROY' && state === 'DONE')
    for (const other of open) if (other !== job) closed.push(await close(other.id, 'FAILED', MACHINE_IS_GONE));
  await signalTask(tx, job.orderNumber);
  return closed;
}
