/** Cancels work that does not end by itself, when the operator asks for it. */
import { exists, remove } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { LOCK_SERVER } from '../../../entities/servers/lock.ts';
import { closeJobsOfGone } from '../../../entities/servers/manual-job.ts';
import { CHANGING } from '../../../entities/servers/server.ts';
import { REDIRECT_TASK, taskChange } from '../../../entities/tasks/start.ts';
import { Task } from '../../../entities/tasks/task.ts';
import { releaseCapacity } from '../placement/capacity.ts';
import { completeDeletion } from './delete.ts';
import { undeliverable } from './outcome.ts';
import { SERVER_LANE, SERVER_PROCESS } from './task.ts';

/**
 * Cancels the task of a server. An order fails and is refunded, and a change falls back. For a machine that is to be removed,
 * the operator vouches that it is gone, so its capacity is released.
 * @returns whether there was a task that can be cancelled
 */
export async function cancelServer(tx: Transaction, orderNumber: string): Promise<boolean> {
  const server = await LOCK_SERVER.first(tx, [orderNumber]);
  // The steps of this task commit under the same lock, so the task cannot change now.
  const hasTask = await exists(tx, Task, { subject: orderNumber, process: SERVER_PROCESS });
  if (!server || !hasTask) return false;
  const { status } = server;
  if (status === 'DELETING' || status === 'FAILED') {
    await closeJobsOfGone(tx, orderNumber);
    if (status === 'DELETING') await completeDeletion(tx, orderNumber);
    else await releaseCapacity(tx, orderNumber);
    await remove(tx, Task, { subject: orderNumber });
    return true;
  }
  const isOrder = status === 'PENDING' || status === 'PROVISIONING';
  if (!isOrder && !CHANGING.has(status)) return false;
  if (isOrder) await undeliverable(tx, server);
  await REDIRECT_TASK.all(tx, [orderNumber, isOrder ? 'clean' : 'restore']);
  tx.changed(taskChange(SERVER_LANE));
  return true;
}
