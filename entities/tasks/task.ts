/** Tasks: durable work, with a row for each subject on which a worker must still act. provisioning/tasks runs them. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, defaulting, entity, nullable, type RowOf } from '../database/table.ts';
import type { Lifecycle } from '../history/lifecycle.ts';

const TASK_STATES = ['READY', 'DEAD'] as const;

export const Task = entity('task', {
  id: column.key(),
  /** Each lane has its own concurrency, so that slow machines do not delay payments. */
  lane: column.text(),
  process: column.text(),
  /** The resource of the task, such as an order number. A subject has one task, so two workers never act on it at once. */
  subject: column.text(),
  accountId: column.text(),
  /** The other side that it calls, such as an engine, a host or a gateway. Null: its account. The parties of a lane take turns. */
  party: nullable(column.text()),
  step: column.text(),
  data: defaulting(column.json<Record<string, unknown>>(), "'{}'"),
  /** When the task is due. During a lease: when the lease ends. */
  runAt: column.now(),
  leasedBy: nullable(column.text()),
  /** Grows with each lease. The holder of an older lease can commit nothing. */
  fence: defaulting(column.bigint(), 0),
  /** How many signals came. If the count grew during a step, the task runs again at once. */
  signals: defaulting(column.int(), 0),
  /** Whether one came since the last lease. Somebody waits for such a task, so it comes before the others of its party. */
  signalled: defaulting(column.boolean(), 'false'),
  /** Attempts at the step, with the present one. */
  attempts: defaulting(column.int(), 0),
  /** The attempts of them that an outage of the other side ended. They do not count. */
  outages: defaulting(column.int(), 0),
  error: nullable(column.text()),
  state: defaulting(column.oneOf(...TASK_STATES), "'READY'"),
  deadlineAt: nullable(column.timestamp()),
  createdAt: column.now(),
});
export type Task = RowOf<typeof Task>;

/** A dead task waits for a signal, or for the operator. A signal to a ready task keeps it ready. */
export const TASK_LIFECYCLE: Lifecycle<Task, Task['state']> = {
  table: Task,
  key: 'subject',
  state: 'state',
  transitions: { READY: ['READY', 'DEAD'], DEAD: ['READY'] },
};

/** States of a task as the operator sees them. */
export const WORK_STATES = ['STUCK', 'RUNNING', 'WAITING'] as const;
export type WorkState = (typeof WORK_STATES)[number];

const listTasks = (condition: string) =>
  statement(Task.columns)`select ${columnsOf(Task)} from task where ${condition} order by task.state, run_at limit $1`;
/** Return $1 tasks of a state, or of all states, dead tasks first. */
export const LIST_TASKS = {
  ALL: listTasks('true'),
  STUCK: listTasks(`state = 'DEAD' or error is not null`),
  RUNNING: listTasks(`state = 'READY' and leased_by is not null`),
  WAITING: listTasks(`state = 'READY' and leased_by is null and error is null`),
};
