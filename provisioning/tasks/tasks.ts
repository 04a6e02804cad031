/**
 * Durable work. A worker runs each step at least once, and the effect of a step is committed exactly once.
 *
 * A task is a row: a subject, a process, and the next step. A worker leases the row and calls the step outside of any
 * transaction. One transaction then writes the effect of the step and the next step. It fails if the worker has lost the
 * lease. So all work of a step outside of its commit must be safe to repeat.
 *
 * A subject has one task, so two steps never act on it at once.
 */
import type { Transaction } from '../../entities/database/transaction.ts';

/** A task during its lease, as its step gets it. */
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
  /** Attempts at the step, including this one. */
  attempts: number;
  /** The earlier attempts of them that an outage of the other side ended. */
  outages: number;
  deadlineAt: Date | null;
  createdAt: Date;
  /** Returns the time of the database, as far as the process can tell without asking it again. */
  now(): Date;
  /** Aborts when the worker loses the lease or stops, or when the deadline passes. */
  aborted: AbortSignal;
  /** Waits for the other side. Meanwhile the place of the step in a shared lane is free for another task. */
  waitFor<T>(answer: Promise<T>): Promise<T>;
}

/** Writes the effect of a step in the transaction that writes the next step. The worker may call it again. */
export type Commit = (tx: Transaction) => Promise<unknown>;

/** The result of a step for its task. */
export interface Outcome {
  kind: 'hop' | 'nap' | 'done';
  /** Undefined: the same step. */
  step?: string;
  /** The worker merges it into the data of the task. */
  data?: object;
  afterSeconds: number;
  /** The engine, host or gateway that the task calls from now on. Default: the same. */
  party?: string;
  commit?: Commit;
}

interface Going {
  commit?: Commit;
  data?: object;
}

/** Continues with another step, at once or later. */
export const hop = (step: string, { afterSeconds = 0, ...going }: Going & { afterSeconds?: number } = {}): Outcome => ({
  kind: 'hop',
  step,
  afterSeconds,
  ...going,
});

/** Runs the same step again later, or at the next signal. */
export const nap = (seconds: number, going: Going = {}): Outcome => ({ kind: 'nap', afterSeconds: seconds, ...going });

/**
 * Ends the task. A signal during the step means that the conclusion may be wrong. The worker then commits nothing and runs the
 * step again.
 */
export const done = ({ commit }: { commit?: Commit } = {}): Outcome => ({ kind: 'done', afterSeconds: 0, commit });

/**
 * Thrown by a commit that finds a change made during the step. The transaction rolls back, and the worker repeats the step at
 * once. Several conflicts in a row count as a failed attempt.
 */
export class Conflict extends Error {
  override readonly name = 'Conflict';
}

/** A process has named steps. Each step names the next one. */
export interface Process {
  lane: string;
  /** Failed attempts at one step, including deaths of workers, until the worker gives the task up. Default 25. */
  attemptsMax?: number;
  /** Whether an error is an outage of the other side. It counts no attempt, so the task waits for its end or the deadline. */
  isOutage?: (error: unknown) => boolean;
  /** Seconds to rest after a failed attempt. Default: doubling from 2 seconds to an hour, with jitter. */
  backoffSeconds?: (attempt: number) => number;
  /** The most seconds of a step. Default: those of the worker. */
  stepSecondsMax?: number;
  /** The worker calls steps outside of any transaction. */
  steps: Record<string, (task: LeasedTask) => Promise<Outcome>>;
  /**
   * The worker calls it in the transaction that gives up an exhausted task, or a task past its deadline. It may return a
   * step, such as a refund, which gets fresh attempts and no deadline. It may also return the failed step, which then repeats
   * without end. Without a step, the task is DEAD until a signal comes. If it throws, the worker repeats it later.
   */
  onExhausted?: (task: LeasedTask, tx: Transaction, error: string) => Promise<string | undefined> | Promise<void>;
}

/** The number of tasks of a lane that a worker runs at once. A lane that calls customers' hosts also has shares. */
export type Lane = number | SharedLane;

/** A lane in which the parties take turns, so that a slow host delays only its own tasks. A party is an engine, a host, a gateway or an account. */
export interface SharedLane {
  places: number;
  /** The most tasks of one party that a worker runs at once. */
  perParty: number;
  /** The most tasks of one account at one party. Default: `perParty`. */
  perAccount?: number;
  /** The most tasks that give their place to another because their step waits for an answer, or is slow. */
  waiting: number;
}

/** A part of provisioning, as the worker uses it. */
export interface WorkerPart {
  readonly processes: Record<string, Process>;
  readonly lanes: Record<string, Lane>;
  /** The processes that run periodically. */
  readonly periodic: readonly string[];
}

export const ATTEMPTS_MAX = 25;
const BACKOFF_SECONDS_MAX = 3600;

/** Returns a pause in seconds that doubles with each attempt, by default from 2 to 3600. The jitter spreads tasks that failed together. */
export const backoffSeconds = (attempt: number, { first = 1, most = BACKOFF_SECONDS_MAX } = {}): number =>
  Math.min(most, first * 2 ** attempt) * (0.75 + Math.random() / 2);
