/**
 * Durable work. A step is done at least once, and what it commits is in the database exactly once.
 *
 * A task is a row: a subject, a process, and the step that is next. A worker leases the row, calls the step outside
 * of any transaction, and then writes the step's effect and the next step in one transaction, which is refused if
 * the lease was lost meanwhile. So whatever a step does outside of its commit must be safe to repeat.
 *
 * A subject has one task, so nothing is done to it twice at once.
 */
import type { Transaction } from '../../entities/database/transaction.ts';

export { type NewTask, signalTask, startTask, taskChange } from '../../entities/tasks/start.ts';

/** A task as its step sees it. */
export interface LeasedTask {
  id: string;
  lane: string;
  process: string;
  subject: string;
  accountId: string;
  step: string;
  data: Record<string, unknown>;
  fence: bigint;
  signals: number;
  /** This one is counted: 1 at the first. */
  attempts: number;
  deadlineAt: Date | null;
  createdAt: Date;
  /** Aborts when going on is useless: the lease was lost, the deadline has passed, or the worker stops. */
  aborted: AbortSignal;
}

/** Writes the effect of a step, in the transaction that also writes the next step. It may be called again. */
export type Commit = (tx: Transaction) => Promise<unknown>;

/** What becomes of a task after a step. */
export interface Outcome {
  kind: 'hop' | 'nap' | 'done';
  /** Undefined: the same step again. */
  step?: string;
  /** Merged into the data of the task. */
  data?: object;
  afterSeconds: number;
  commit?: Commit;
}

interface Going {
  commit?: Commit;
  data?: object;
}

/** Goes on with another step, at once or later. */
export const hop = (step: string, { afterSeconds = 0, ...going }: Going & { afterSeconds?: number } = {}): Outcome => ({
  kind: 'hop',
  step,
  afterSeconds,
  ...going,
});

/** The same step again later, or as soon as somebody signals. */
export const nap = (seconds: number, going: Going = {}): Outcome => ({ kind: 'nap', afterSeconds: seconds, ...going });

/**
 * Nothing is left to be done: the task goes. If a signal came during the step, the conclusion may be wrong: then
 * nothing is committed, and the step runs again on the world as it is now.
 */
export const done = ({ commit }: { commit?: Commit } = {}): Outcome => ({ kind: 'done', afterSeconds: 0, commit });

/**
 * Thrown by a commit that finds that the world moved while the step ran. The transaction rolls back and the step
 * runs again at once; only if that happens again and again, it counts as a failed attempt.
 */
export class Conflict extends Error {
  override readonly name = 'Stale';
}

/** Named steps. Each names the next, so the process needs no description of its order. */
export interface Process {
  lane: string;
  /** Failed attempts at one step, deaths of workers among them, after which the task is given up. Default 25. */
  attemptsMax?: number;
  /** The pause after a failed attempt. Default: doubling from 2 seconds to an hour, with jitter. */
  backoffSeconds?: (attempt: number) => number;
  /** Called outside of any transaction. */
  steps: Record<string, (task: LeasedTask) => Promise<Outcome>>;
  /**
   * Called in the transaction that ends a task whose attempts are used up, or whose deadline has passed. It may
   * return a step to go on with, such as a refund: that one has fresh attempts and no deadline. The step that has
   * just failed may be returned too: it is tried for ever. Without a step the task is DEAD until it is signalled.
   * If it throws, nothing is written, and the task is given up again later.
   */
  onExhausted?: (task: LeasedTask, tx: Transaction, error: string) => Promise<string | undefined> | Promise<void>;
}

/** A part of provisioning, as the worker sees it. */
export interface WorkerPart {
  readonly processes: Record<string, Process>;
  /** How many tasks of each lane a worker runs at once. */
  readonly lanes: Record<string, number>;
  /** The processes that run periodically. */
  readonly periodic: readonly string[];
}

export const ATTEMPTS_MAX = 25;
const BACKOFF_SECONDS_MAX = 3600;

/** The default pause after a failed attempt. The jitter keeps what failed together from coming back together. */
export const backoffSeconds = (attempt: number): number =>
  Math.min(BACKOFF_SECONDS_MAX, 2 ** attempt) * (0.75 + Math.random() / 2);
