/** What the operator does with work that does not come to its end by itself. */

import { columnsOf } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { CHANGING, lockServerSql, Server } from '../../../entities/servers/server.ts';
import { taskChange } from '../../tasks/tasks.ts';
import { closeJobsOfGone } from '../manual-jobs.ts';
import { releaseCapacity } from '../placement/capacity.ts';
import { completeDeletion } from './delete.ts';
import { fail, UNDELIVERABLE } from './outcome.ts';
import { SERVER_LANE, SERVER_PROCESS } from './task.ts';

/**
 * Gives up what is being done for a server. An order fails and is paid back, a change falls back. Where a machine is to be
 * removed, the operator vouches that it is gone: what it held is free.
 * @returns whether there was such work that can be given up
 */
export async function cancelServer(tx: Transaction, orderNumber: string): Promise<boolean> {
  const [server] = await tx.query<Server>(lockServerSql(columnsOf(Server)), [orderNumber]);
  // A step of this task commits under the same lock, so the task stays as it is.
  const [task] = await tx.query('select from task where subject = $1 and process = $2', [orderNumber, SERVER_PROCESS]);
  if (!server || !task) return false;
  if (server.status === 'DELETING' || server.status === 'FAILED') {
    await closeJobsOfGone(tx, orderNumber);
    if (server.status === 'DELETING') await completeDeletion(tx, orderNumber);
    else await releaseCapacity(tx, orderNumber);
    await tx.query('delete from task where subject = $1', [orderNumber]);
    return true;
  }
  const isOrder = server.status === 'PENDING' || server.status === 'PROVISIONING';
  if (!isOrder && !CHANGING.has(server.status)) return false;
  if (isOrder) await fail(tx, server, 'provisioning_failed', UNDELIVERABLE);
  // Whoever works on it now has lost its lease by that.
  await tx.query(
    `update task set step = $2, fence = fence + 1, leased_by = null, state = 'READY', attempts = 0, error = null,
      deadline_at = null, run_at = now() where subject = $1`,
    [orderNumber, isOrder ? 'clean' : 'restore'],
  );
  tx.changed(taskChange(SERVER_LANE));
  return true;
}
