/** The work that is left to do, and what the operator does with work that does not come to its end. */

import { columnsOf } from '../entities/database/table.ts';
import type { Transaction } from '../entities/database/transaction.ts';
import { ApiError } from '../entities/errors.ts';
import { OPERATOR_ACCOUNT } from '../entities/history/audit.ts';
import { record } from '../entities/history/record.ts';
import { Task } from '../entities/tasks/task.ts';
import { cancelServer, signalTask } from '../provisioning/index.ts';
import { actorOf, type Context } from './context.ts';
import { invalid } from './errors.ts';

export const WORK_STATES = ['STUCK', 'RUNNING', 'WAITING'] as const;
export type WorkState = (typeof WORK_STATES)[number];

const WHERE: Record<WorkState, string> = {
  STUCK: `state = 'DEAD' or error is not null`,
  RUNNING: `state = 'READY' and leased_by is not null`,
  WAITING: `state = 'READY' and leased_by is null and error is null`,
};

/** Work that is due, sleeping or dead; the dead first. */
export const listTasks = ({ db }: Context, limit: number, state?: WorkState | null): Promise<Task[]> =>
  db.query(
    `select ${columnsOf(Task)} from task ${state ? `where ${WHERE[state]}` : ''} order by task.state, run_at limit $1`,
    [limit],
  );

/** Has it tried again at once, with fresh attempts. @throws ApiError not_found */
export async function retryTask(context: Context, subject: string): Promise<Task> {
  return context.db.transaction(async (tx) => {
    const task = await findTask(tx, subject);
    await signalTask(tx, subject);
    await recordTask(tx, context, task, 'retried');
    return (await readTask(tx, subject)) ?? task;
  });
}

/**
 * Gives up what is being done for a server: an order is paid back, a change falls back, and where a machine is to be
 * removed the operator vouches that it is gone.
 * @returns the task as it was @throws ApiError not_found, or validation_failed for what is never given up
 */
export async function cancelTask(context: Context, subject: string): Promise<Task> {
  return context.db.transaction(async (tx) => {
    const task = await findTask(tx, subject);
    if (!(await cancelServer(tx, subject)))
      throw invalid('subject', 'Only orders, changes and deletions can be given up.');
    await recordTask(tx, context, task, 'given up');
    return task;
  });
}

/** @throws ApiError not_found */
async function findTask(tx: Transaction, subject: string): Promise<Task> {
  const task = await readTask(tx, subject);
  if (!task) throw new ApiError('not_found');
  return task;
}

async function readTask(tx: Transaction, subject: string): Promise<Task | undefined> {
  const [task] = await tx.query<Task>(`select ${columnsOf(Task)} from task where subject = $1`, [subject]);
  return task;
}

const recordTask = (tx: Transaction, context: Context, { subject, process, step }: Task, what: string) =>
  record(tx, OPERATOR_ACCOUNT, subject, {
    type: 'task.updated',
    actor: actorOf(context),
    data: { what, process, step },
  });
