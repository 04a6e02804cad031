/**
 * Leases: the statements by which workers take tasks, keep them, and let them go. A write to a task names
 * its lease: the task, the fence and the worker. A lease that has ended writes nothing.
 */

import { columnsOf } from '../../entities/database/table.ts';
import type { Queryable, Transaction } from '../../entities/database/transaction.ts';
import { Task } from '../../entities/task.ts';
import type { LeasedTask, Outcome } from './tasks.ts';

const ERROR_CHARACTERS_MAX = 500;

/** The task is somebody else's by now, or gone. */
export class LeaseLost extends Error {}

/** A signal came during the last step of a task, so that its conclusion may be wrong. Nothing of it is committed. */
export class Signalled extends Error {}

/** Who holds leases, and for how long at a time. */
export interface Holder {
  id: string;
  leaseSeconds: number;
}
export type TakenTask = Task & { overdue: boolean | null };

/** A task that this worker may run until the lease ends. */
export interface Lease {
  task: LeasedTask;
  /** Why the task is to be given up instead of being run. */
  exhausted: string | undefined;
  abort: AbortController;
  endsAtMs: number;
  startedAtMs: number;
  /** Since when it should have ended. */
  abortedAtMs?: number;
}

/** The parameters $1 to $3 name a lease. */
const HELD = 'id = $1 and fence = $2 and leased_by = $3';
const leaseOf = (holder: Holder, task: LeasedTask) => [task.id, task.fence, holder.id];

/** Takes up to so many due tasks of a lane, but none of those that are named. */
export const takeLeases = (
  db: Queryable,
  { id, leaseSeconds }: Holder,
  { lane, count, except }: { lane: string; count: number; except: string[] },
): Promise<TakenTask[]> => db.query<TakenTask>(TAKE, [lane, count, leaseSeconds, id, except]);
// Times are kept in rounded milliseconds, so what is due now may seem to be due in half a millisecond.
const TAKE = `
  with due as (
    select id from task where lane = $1 and state = 'READY' and run_at <= now() + interval '1 millisecond' and id <> all($5::text[])
    order by run_at limit $2 for update skip locked)
  update task set run_at = now() + $3::float8 * interval '1 second', leased_by = $4, fence = fence + 1, attempts = attempts + 1
  from due where task.id = due.id
  returning ${columnsOf(Task)}, deadline_at <= now() as overdue`;

/**
 * Extends leases. A row that is locked, by its own commit for example, is left for the next time: waiting for one
 * would let all others end.
 * @returns the ids of the tasks that are still held
 */
export async function extendLeases(
  db: Queryable,
  { id, leaseSeconds }: Holder,
  tasks: LeasedTask[],
): Promise<Set<string>> {
  const held = await db.query<{ id: string }>(EXTEND, [
    tasks.map((task) => task.id),
    tasks.map(({ fence }) => fence),
    id,
    leaseSeconds,
  ]);
  return new Set(held.map((row) => row.id));
}
const EXTEND = `
  with held as (
    select task.id from task join unnest($1::text[], $2::bigint[]) as mine (id, fence) on task.id = mine.id and task.fence = mine.fence
    where leased_by = $3),
  free as (select id from task where id in (select id from held) and leased_by = $3 for update skip locked),
  extended as (update task set run_at = now() + $4::float8 * interval '1 second' from free where task.id = free.id)
  select id from held`;

/**
 * Writes what comes after a step, as the last statement of its transaction. It fences the whole of it: a worker that has
 * lost the lease commits nothing.
 * @throws LeaseLost, or Signalled if the task was to end
 */
export async function release(tx: Transaction, holder: Holder, task: LeasedTask, outcome: Outcome): Promise<void> {
  const lease = [...leaseOf(holder, task), task.signals];
  if (outcome.kind === 'done') {
    const gone = await tx.query(`delete from task where ${HELD} and signals = $4 returning id`, lease);
    if (gone.length) return;
    const held = await tx.query(`select from task where ${HELD}`, lease.slice(0, 3));
    throw held.length ? new Signalled() : new LeaseLost();
  }
  const { step = null, data = {}, afterSeconds } = outcome;
  const kept = await tx.query(RELEASE, [...lease, step, JSON.stringify(data), afterSeconds]);
  if (!kept.length) throw new LeaseLost();
}
const RELEASE = `
  update task set step = coalesce($5, step), data = data || $6::jsonb, attempts = 0, error = null, leased_by = null,
    run_at = case signals when $4 then least(now() + $7::float8 * interval '1 second', deadline_at) else now() end
  where ${HELD} returning id`;

/**
 * Lets a task that failed rest, at the longest until its deadline; at once again if a signal came.
 * @returns whether one came since the lease
 * @throws LeaseLost
 */
export async function retryLater(
  tx: Transaction,
  holder: Holder,
  task: LeasedTask,
  { error, restSeconds }: { error: string; restSeconds: number },
): Promise<boolean> {
  const printable = error.replaceAll('\0', '').slice(0, ERROR_CHARACTERS_MAX);
  const [row] = await tx.query<{ signals: number }>(RETRY, [
    ...leaseOf(holder, task),
    task.signals,
    printable,
    restSeconds,
  ]);
  if (!row) throw new LeaseLost();
  return row.signals !== task.signals;
}
const RETRY = `
  update task set leased_by = null, error = $5, run_at = case signals
    when $4 then least(now() + $6::float8 * interval '1 second', case when deadline_at > now() then deadline_at end)
    else now() end
  where ${HELD} returning signals`;

/** Gives back whatever a worker still holds, for others to run at once. It was no attempt. */
export async function giveBack(db: Queryable, { id }: Holder): Promise<void> {
  await db.query(
    'update task set leased_by = null, run_at = now(), attempts = greatest(attempts - 1, 0) where leased_by = $1',
    [id],
  );
}

/** What is kept of an error. */
export const textOf = (error: unknown): string => (error instanceof Error && error.message) || String(error);

/**
 * Ends all leases, so that their tasks run again at once. Only for a caller who knows that no other worker lives. If one
 * does all the same, it loses its leases and writes nothing. The attempts stay counted: one of them may have been the death.
 * @returns how many tasks were leased
 */
export async function endLeases(db: Queryable): Promise<number> {
  const ended = await db.query(
    'update task set leased_by = null, run_at = now() where leased_by is not null returning id',
  );
  return ended.length;
}
