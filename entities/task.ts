/**
 * Durable work: one row for each thing that something must still be done about. A worker leases it, does the named
 * step, and commits the step's effect together with the next step. provisioning/tasks/tasks.ts has the engine.
 */
import { statement } from './database/statement.ts';
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
} from './database/table.ts';

export const Task = entity(
  'task',
  {
    id: key(),
    /** Lanes have their own concurrency, so that slow machines do not hold up payments. */
    lane: text(),
    process: text(),
    /** What it is about, an order number for example; a thing has one task, so nothing is done to it twice at once. */
    subject: text(),
    accountId: text(),
    step: text(),
    data: defaulting(json<Record<string, unknown>>(), "'{}'"),
    /** When it is due; while leased, when the lease ends. */
    runAt: now(),
    leasedBy: nullable(text()),
    /** Grows with each lease: whoever holds an older one can commit nothing. */
    fence: defaulting(bigint(), 0),
    /** Wake-ups that came; if it grew during a step, the task runs again at once. */
    signals: defaulting(int(), 0),
    attempts: defaulting(int(), 0),
    error: nullable(text()),
    state: defaulting(oneOf('READY', 'DEAD'), "'READY'"),
    deadlineAt: nullable(timestamp()),
    createdAt: now(),
  },
  [
    { name: 'task_subject', columns: ['subject'], unique: true },
    { name: 'task_due', columns: ['lane', 'runAt'], where: `state = 'READY'` },
  ],
);
export type Task = RowOf<typeof Task>;

/** Sends the task of a subject to another step at once; a worker that runs it loses its lease. $1 subject, $2 step. */
export const REDIRECT_TASK = statement(
  {},
  `update task set step = $2, fence = fence + 1, leased_by = null, state = 'READY', attempts = 0, error = null,
    deadline_at = null, run_at = now() where subject = $1`,
);
