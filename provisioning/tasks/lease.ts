/** Leases: how workers take tasks, keep them, and release them. entities/tasks/lease.ts has the statements. */
import type { Queryable, Transaction } from '../../entities/database/transaction.ts';
import {
  END_LEASES,
  END_TASK,
  EXTEND_LEASES,
  GIVE_BACK,
  IS_HELD,
  RELEASE_TASK,
  RETRY_TASK,
  TAKE_LEASES,
  TAKE_LEASES_IN_TURN,
} from '../../entities/tasks/lease.ts';
import type { Task } from '../../entities/tasks/task.ts';
import type { LeasedTask, Outcome, SharedLane } from './tasks.ts';

const ERROR_CHARACTERS_MAX = 500;

/** Another worker holds the task now, or the task is gone. */
export class LeaseLost extends Error {}

/** A signal came during the last step of a task, so the conclusion may be wrong. The worker commits nothing of it. */
export class Signalled extends Error {}

/** The worker that holds leases, and the length of each lease. */
export interface Holder {
  id: string;
  leaseSeconds: number;
}
export type TakenTask = Task & { overdue: boolean | null; leasedAt: Date };

/** A failed attempt. */
export interface Failure {
  error: string;
  restSeconds: number;
  /** Whether an outage of the other side ended it. */
  isOutage: boolean;
}

/** A task that this worker may run until the lease ends. */
export interface Lease {
  task: LeasedTask;
  /** Why the worker gives the task up instead of running it. */
  exhausted: string | undefined;
  abort: AbortController;
  endsAtMs: number;
  startedAtMs: number;
  /** The answers of the other side for which the step waits. */
  awaited: number;
  /** When the worker aborted the step. */
  abortedAtMs?: number;
}

const leaseOf = (holder: Holder, task: LeasedTask) => [task.id, task.fence, holder.id];

interface Wanted {
  lane: string;
  count: number;
  /** The ids of tasks to leave. */
  except: string[];
  /** With shares, parties and accounts take turns. */
  shares?: SharedLane | undefined;
  /** The parties that were served lately, with their places, as JSON. */
  served: string;
}

/** Takes due tasks of a lane. */
export function takeLeases(
  db: Queryable,
  { id, leaseSeconds }: Holder,
  { lane, count, except, shares, served }: Wanted,
): Promise<TakenTask[]> {
  const parameters = [lane, count, leaseSeconds, id, except];
  if (!shares) return TAKE_LEASES.all(db, parameters);
  const { perParty, perAccount = perParty } = shares;
  return TAKE_LEASES_IN_TURN.all(db, [...parameters, perParty, perAccount, served]);
}

/** Extends leases. @returns the ids of the tasks that the worker still holds */
export async function extendLeases(
  db: Queryable,
  { id, leaseSeconds }: Holder,
  tasks: LeasedTask[],
): Promise<Set<string>> {
  const fences = tasks.map(({ fence }) => fence);
  const held = await EXTEND_LEASES.all(db, [tasks.map((task) => task.id), fences, id, leaseSeconds]);
  return new Set(held.map((row) => row.id));
}

/**
 * Writes the outcome of a step, as the last statement of its transaction if it has an effect. It fences the whole transaction: a
 * worker that has lost the lease commits nothing.
 * @throws LeaseLost, or Signalled if the task was to end
 */
export async function release(db: Queryable, holder: Holder, task: LeasedTask, outcome: Outcome): Promise<void> {
  const lease = [...leaseOf(holder, task), task.signals];
  if (outcome.kind === 'done') {
    if (await END_TASK.first(db, lease)) return;
    throw (await IS_HELD.first(db, leaseOf(holder, task))) ? new Signalled() : new LeaseLost();
  }
  const { step = null, data = {}, afterSeconds, party = null } = outcome;
  if (!(await RELEASE_TASK.first(db, [...lease, step, JSON.stringify(data), afterSeconds, party])))
    throw new LeaseLost();
}

/**
 * Lets a failed task rest, until its deadline at the longest. An outage of the other side counts no attempt.
 * @returns whether a signal came since the lease
 * @throws LeaseLost
 */
export async function retryLater(
  tx: Transaction,
  holder: Holder,
  task: LeasedTask,
  { error, restSeconds, isOutage }: Failure,
): Promise<boolean> {
  const printable = error.replaceAll('\0', '').slice(0, ERROR_CHARACTERS_MAX);
  const row = await RETRY_TASK.first(tx, [
    ...leaseOf(holder, task),
    task.signals,
    printable,
    restSeconds,
    isOutage ? 1 : 0,
  ]);
  if (!row) throw new LeaseLost();
  return row.signals !== task.signals;
}

/** Returns the tasks that a worker still holds, so that others run them at once. It does not count as an attempt. */
export async function giveBack(db: Queryable, { id }: Holder): Promise<void> {
  await GIVE_BACK.all(db, [id]);
}

/** The text of an error that the service keeps. */
export const textOf = (error: unknown): string => (error instanceof Error && error.message) || String(error);

/**
 * Ends all leases, so that workers run the tasks again at once. The caller must know that no other worker lives. A worker
 * that does live loses its leases and writes nothing. The attempts still count, because one may have ended the process.
 * @returns how many tasks were leased
 */
export const endLeases = async (db: Queryable): Promise<number> => (await END_LEASES.all(db)).length;
