/** The operator's queue of manual jobs on machines. */

import { ApiError } from '../../entities/errors.ts';
import { OPERATOR_ACCOUNT } from '../../entities/history/audit.ts';
import { recordAll } from '../../entities/history/record.ts';
import { isId } from '../../entities/ids.ts';
import type { ManualJob } from '../../entities/servers/manual-job.ts';
import { closeManualJob, listManualJobs, type MachineSpec, manualSpecOf } from '../../provisioning/index.ts';
import { actorOf, type Context } from '../context.ts';

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
    await recordAll(
      tx,
      closed.map(({ id: subject, orderNumber: order_number, action, state }) => ({
        accountId: OPERATOR_ACCOUNT,
        subject,
        type: 'manual_job.closed',
        actor: actorOf(context),
        data: { order_number, action, state },
      })),
    );
    return closed[0]!;
  });
}
