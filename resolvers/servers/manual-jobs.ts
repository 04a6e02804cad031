/** The operator's queue of manual jobs on machines. */
import { ApiError } from '../../entities/errors.ts';
import { isId } from '../../entities/ids.ts';
import type { ManualJob } from '../../entities/servers/manual-job.ts';
import { closeManualJob, listManualJobs, type MachineSpec, manualSpecOf } from '../../provisioning/index.ts';
import type { Context } from '../context.ts';
import { recordByOperator } from '../record.ts';

export type { MachineSpec, ManualJob };

/** Open jobs first, and the oldest of them first. */
export const findManualJobs = ({ db }: Context, limit: number): Promise<ManualJob[]> => listManualJobs(db, limit);

/** The machine to make, with its secrets; null for closed jobs and for jobs that need none. */
export const findManualSpec = ({ vault }: Context, job: ManualJob): MachineSpec | null => manualSpecOf(vault, job);

/** Closes a job, done or failed, and wakes the task of its server. @throws ApiError not_found */
export async function endManualJob(
  context: Context,
  id: string,
  state: 'DONE' | 'FAILED',
  note: string | null,
): Promise<ManualJob> {
  if (!isId('job', id)) throw new ApiError('not_found');
  return context.db.transaction(async (tx) => {
    const closed = await closeManualJob(tx, id, state, note);
    if (!closed.length) throw new ApiError('not_found', 'No open job has this id.');
    for (const job of closed)
      await recordByOperator(tx, context, job.id, {
        type: 'manual_job.closed',
        data: { order_number: job.orderNumber, action: job.action, state: job.state },
      });
    return closed[0]!;
  });
}
