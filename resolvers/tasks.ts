/** Tasks for the operator: list them, retry them, and cancel them. */
import { find } from '../entities/database/table.ts';
import type { Transaction } from '../entities/database/transaction.ts';
import { signalTask } from '../entities/tasks/start.ts';
import { LIST_TASKS, Task, type WorkState } from '../entities/tasks/task.ts';
import { cancelServer } from '../provisioning/index.ts';
import type { Context } from './context.ts';
import { found, invalid } from './errors.ts';
import { recordByOperator } from './record.ts';

export { WORK_STATES } from '../entities/tasks/task.ts';

/** Returns tasks of one state or of all, dead tasks first. */
export const listTasks = ({ db }: Context, limit: number, state?: WorkState | null): Promise<Task[]> =>
  LIST_TASKS[state ?? 'ALL'].all(db, [limit]);

/** Lets a worker run a task at once, with fresh attempts. @throws ApiError not_found */
export async function retryTask(context: Context, subject: string): Promise<Task> {
  return context.db.transaction(async (tx) => {
    const task = await findTask(tx, subject);
    await signalTask(tx, subject);
    await recordTask(tx, context, task, 'retried');
    return (await find(tx, Task, { subject })) ?? task;
  });
}

/**
 * Cancels the work on a server. An order is refunded, and a change is undone. For a deletion, the operator confirms that the
 * machine is gone.
 * @returns the task before that @throws ApiError not_found, or validation_failed for other work
 */
export async function cancelTask(context: Context, subject: string): Promise<Task> {
  return context.db.transaction(async (tx) => {
    const task = await findTask(tx, subject);
    if (!(await cancelServer(tx, subject)))
      throw invalid('subject', 'Only orders, changes and deletions can be cancelled.');
    await recordTask(tx, context, task, 'given up');
    return task;
  });
}

/** @throws ApiError not_found */
async function findTask(tx: Transaction, subject: string): Promise<Task> {
  return found(await find(tx, Task, { subject }));
}

const recordTask = (tx: Transaction, context: Context, { subject, process, step }: Task, what: string) =>
  recordByOperator(tx, context, subject, { type: 'task.updated', data: { what, process, step } });
