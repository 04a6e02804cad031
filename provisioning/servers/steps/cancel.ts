/** Cancels work that does not end by itself, when the operator asks for it. */
import { find, remove } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { LOCK_SERVER } from '../../../entities/servers/lock.ts';
import { closeJobsOfGone } from '../../../entities/servers/manual-job.ts';
import { REDIRECT_TASK, taskChange } from '../../../entities/tasks/start.ts';
import { Task } from '../../../entities/tasks/task.ts';
import { SERVER_LANE, SERVER_PROCESS, UNDO } from '../task.ts';
import { abandon } from './outcome.ts';
import { release } from './remove.ts';
import { forgetRemedy } from './settle.ts';

/**
 * Cancels the task of a server. An order fails and is refunded, and a change is undone. For a machine that is to be removed,
 * the operator vouches that it is gone, so its capacity is released. A machine that should not change stays as it is.
 * @returns whether there was a task that can be cancelled
 */
export async function cancelServer(tx: Transaction, orderNumber: string): Promise<boolean> {
  const server = await LOCK_SERVER.first(tx, [orderNumber]);
  // The steps of this task commit under the same lock, so the task cannot change now.
  const task = await find(tx, Task, { subject: orderNumber, process: SERVER_PROCESS });
  if (!server || !task || server.status === 'SUSPENDED') return false;
  if (await abandon(tx, server, task.data)) {
    await REDIRECT_TASK.all(tx, [orderNumber, UNDO]);
    tx.changed(taskChange(SERVER_LANE));
    return true;
  }
  if (server.status === 'DELETING' || server.status === 'FAILED') {
    await closeJobsOfGone(tx, orderNumber);
    await release(tx, server);
  }
  await forgetRemedy(tx, server);
  await remove(tx, Task, { subject: orderNumber });
  return true;
}
