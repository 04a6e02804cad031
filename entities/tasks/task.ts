/** Tasks: durable work, one row for each thing that a worker must still act on. provisioning/tasks runs them. */
import {
  bigint,
  defaulting,
  entity,
  int,
  json,
  key,
  now,
  nullable,
  oneOf,
  type RowOf,
  text,
  timestamp,
} from '../database/table.ts';
import type { SilentLifecycle } from '../history/lifecycle.ts';

const TASK_STATES = ['READY', 'DEAD'] as const;

export const Task = entity(
  'task',
  {
    id: key(),
    /** Each lane has its own concurrency, so that slow machines do not delay payments. */
    lane: text(),
    process: text(),
    /** What the task is about, such as an order number. A subject has one task, so two workers never act on it at once. */
    subject: text(),
    accountId: text(),
    step: text(),
    data: defaulting(json<Record<string, unknown>>(), "'{}'"),
    /** When the task is due. During a lease: when the lease ends. */
    runAt: now(),
    leasedBy: nullable(text()),
    /** Grows with each lease. The holder of an older lease can commit nothing. */
    fence: defaulting(bigint(), 0),
    /** How many signals came. If the count grew during a step, the task runs again at once. */
    signals: defaulting(int(), 0),
    attempts: defaulting(int(), 0),
    error: nullable(text()),
    state: defaulting(oneOf(...TASK_STATES), "'READY'"),
    deadlineAt: nullable(timestamp()),
    createdAt: now(),
  },
  [
    { name: 'task_subject', columns: ['subject'], unique: true },
    { name: 'task_due', columns: ['lane', 'runAt'], where: `state = 'READY'` },
  ],
);
export type Task = RowOf<typeof Task>;

/** A dead task waits for a signal, or for the operator. A signal to a ready task keeps it ready. */
export const TASK_LIFECYCLE: SilentLifecycle<Task, Task['state']> = {
  table: Task,
  key: 'id',
  state: 'state',
  transitions: { READY: ['READY', 'DEAD'], DEAD: ['READY'] },
};
