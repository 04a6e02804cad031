/** The queue of the driver for machines that people make, as rows. What is to be made is sealed until the job is closed. */

import { columnsOf } from '../../entities/database/table.ts';
import type { Queryable, Transaction } from '../../entities/database/transaction.ts';
import { newId } from '../../entities/ids.ts';
import type { Vault } from '../../entities/secrets.ts';
import { ManualJob } from '../../entities/servers/manual-job.ts';
import { signalTask } from '../tasks/tasks.ts';
import type { MachineKey, MachineSpec } from './drivers/driver.ts';
import type { ManualQueue, QueuedJob } from './drivers/manual.ts';

const COLUMNS = columnsOf(ManualJob);
const LIST_MAX = 10_000;
/** What the specification of a job is sealed for. */
const specContext = (id: string) => `manual_job.spec:${id}`;

export class ManualJobs implements ManualQueue {
  readonly #db: Queryable;
  readonly #vault: Vault;
  constructor(db: Queryable, vault: Vault) {
    this.#db = db;
    this.#vault = vault;
  }

  of({ order, generation }: MachineKey): Promise<ManualJob[]> {
    return this.#db.query(`select ${COLUMNS} from manual_job where order_number = $1 and generation = $2 order by id`, [
      order,
      generation,
    ]);
  }

  all(): Promise<ManualJob[]> {
    return this.#db.query(
      `select ${COLUMNS} from manual_job where not exists (
        select from manual_job gone where gone.order_number = manual_job.order_number
          and gone.generation = manual_job.generation and gone.action = 'DESTROY' and gone.state = 'DONE')
      order by id limit ${LIST_MAX}`,
    );
  }

  async add(
    { order, generation }: MachineKey,
    { action, change, power, specDigest }: Pick<QueuedJob, 'action' | 'change' | 'power' | 'specDigest'>,
    spec?: MachineSpec,
  ): Promise<void> {
    const id = newId('job');
    const sealed = spec ? this.#vault.seal(JSON.stringify(spec), specContext(id)) : null;
    await this.#db.query(
      `insert into manual_job (id, order_number, generation, action, change, power, spec_digest, spec)
      values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing`,
      [id, order, generation, action, change, power, specDigest, sealed],
    );
  }
}

/** What is to be made, for the operator; null for jobs that need none, and for closed ones. */
export const manualSpecOf = (vault: Vault, { id, spec }: Pick<ManualJob, 'id' | 'spec'>): MachineSpec | null =>
  spec && (JSON.parse(vault.open(spec, specContext(id))) as MachineSpec);

/** Open jobs first, oldest first among them. */
export const listManualJobs = (db: Queryable, limit: number): Promise<ManualJob[]> =>
  db.query(`select ${COLUMNS} from manual_job order by state <> 'OPEN', id limit $1`, [limit]);

const GONE = 'It is gone.';

/**
 * Closes a job that is open, and has the server go on. With a machine that is gone its other jobs are closed, too: where it
 * was may be another's by the time somebody reads them.
 * @returns the jobs that were closed, the named one first; none if that is not open
 */
export async function closeManualJob(
  tx: Transaction,
  id: string,
  state: 'DONE' | 'FAILED',
  note: string | null,
): Promise<ManualJob[]> {
  const open = await tx.query<ManualJob>(`select ${COLUMNS} from manual_job ${OF_ITS_MACHINE}`, [id]);
  const job = open.find((one) => one.id === id);
  if (!job) return [];
  const isGone = job.action === 'DESTROY' && state === 'DONE';
  const others = isGone ? open.filter((one) => one !== job) : [];
  const closed: ManualJob[] = [];
  for (const [one, to, why] of [[job, state, note] as const, ...others.map((one) => [one, 'FAILED', GONE] as const)])
    closed.push(
      ...(await tx.query<ManualJob>(
        `update manual_job set state = $2, note = $3, spec = null, closed_at = now() where id = $1 returning ${COLUMNS}`,
        [one.id, to, why],
      )),
    );
  await signalTask(tx, job.orderNumber);
  return closed;
}

/** Closes the open jobs of all machines of an order that are gone: their addresses may be those of another by now. */
export const closeJobsOfGone = (tx: Transaction, orderNumber: string): Promise<unknown> =>
  tx.query(
    `with open as (select id from manual_job where state = 'OPEN' and order_number = $1 order by id for update)
      update manual_job set state = 'FAILED', note = $2, spec = null, closed_at = now() from open where manual_job.id = open.id`,
    [orderNumber, GONE],
  );

/** The open jobs of the machine that the job $1 is about, locked. */
const OF_ITS_MACHINE = `
  where state = 'OPEN' and (order_number, generation) = (select order_number, generation from manual_job where id = $1)
  order by id for update`;
