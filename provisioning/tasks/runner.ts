/**
 * Runs one step of a leased task. One transaction commits the effect of the step and the next step. It locks the task last, as
 * all transactions do (entities/database/lock-order.ts).
 */
import { onBehalfOf } from '../../entities/caller.ts';
import type { Database } from '../../entities/database/database.ts';
import { update } from '../../entities/database/table.ts';
import type { Queryable, Transaction } from '../../entities/database/transaction.ts';
import { transition } from '../../entities/history/transition.ts';
import { ABANDONED_STEPS, LOST_LEASES, STEPS } from '../../entities/monitoring/measures.ts';
import { placeOfTask, traced } from '../../entities/monitoring/traces.ts';
import { CONTINUE_TASK } from '../../entities/tasks/lease.ts';
import { taskChange } from '../../entities/tasks/start.ts';
import { TASK_LIFECYCLE, Task } from '../../entities/tasks/task.ts';
import { type Failure, type Holder, type Lease, LeaseLost, retryLater, Signalled, textOf } from './lease.ts';
import { ATTEMPTS_MAX, backoffSeconds, Conflict, type LeasedTask, nap, type Outcome, type Process } from './tasks.ts';

/** How often the runner repeats a step at once after conflicts, before the conflict counts as a failed attempt. */
const CONFLICT_REPEATS_MAX = 5;
/** Seconds of rest for a task whose process or step this version does not know. A newer version may know it. */
const UNKNOWN_REST_SECONDS = 15;

export interface RunnerOptions {
  db: Database;
  /** The worker that holds the leases. */
  holder: Holder;
  processes: ReadonlyMap<string, Process>;
  /** Writes the outcome of a step and fences its transaction. */
  release(db: Queryable, task: LeasedTask, outcome: Outcome): Promise<void>;
  /** Called with the rest of a task in seconds. */
  onRest(lane: string, seconds: number): void;
  onError(error: unknown): void;
}

export class Runner {
  readonly #options: RunnerOptions;

  constructor(options: RunnerOptions) {
    this.#options = options;
  }

  /** Runs a step and writes its outcome. Never rejects: if the write fails, another attempt follows. */
  run(lease: Lease): Promise<void> {
    return onBehalfOf({ kind: 'task', group: lease.task.accountId }, () => this.#run(lease));
  }

  async #run({ task, exhausted }: Lease): Promise<void> {
    const process = this.#options.processes.get(task.process);
    try {
      if (!process) await this.#putAside(task, `This version has no process "${task.process}".`);
      else if (exhausted) await this.#fail(task, process, exhausted, true);
      else if (!Object.hasOwn(process.steps, task.step))
        await this.#putAside(task, `The process "${task.process}" has no step "${task.step}" in this version.`);
      else await this.#trace(task, (note) => this.#perform(task, process, note));
    } catch (error) {
      this.#report(task, error); // the lease ends, and the task runs again
    }
  }

  /** Lets a task with an endless step rest, as after a failed attempt. Never rejects. */
  async retry(task: LeasedTask, error: string): Promise<void> {
    ABANDONED_STEPS.add(task.lane);
    const process = this.#options.processes.get(task.process);
    const failed = process && this.#fail(task, process, error, false);
    await failed?.catch((fault) => this.#report(task, fault));
  }

  #report(task: LeasedTask, error: unknown): void {
    if (error instanceof LeaseLost) LOST_LEASES.add(task.lane);
    else this.#options.onError(error);
  }

  /** Does the work of a step within a span. @param work gets a function that notes its end */
  #trace(task: LeasedTask, work: (note: (outcome: string) => void) => Promise<void>): Promise<void> {
    const { id, lane, process, step } = task;
    return traced(
      'internal',
      `step ${process} ${step}`,
      (span) => {
        span.note({
          'freehold.task_id': id,
          'freehold.lane': lane,
          'freehold.process': process,
          'freehold.step': step,
        });
        return work((outcome) => span.note({ 'freehold.outcome': outcome }));
      },
      placeOfTask(task),
    );
  }

  async #perform(task: LeasedTask, process: Process, note: (outcome: string) => void): Promise<void> {
    for (let repeats = 0; ; repeats++) {
      try {
        const outcome = await process.steps[task.step]!(task);
        await this.#conclude(task, outcome);
        STEPS.add(task.lane, 'done');
        note('done');
        return this.#options.onRest(task.lane, outcome.afterSeconds);
      } catch (error) {
        if (error instanceof LeaseLost) throw error;
        // The step runs again and reads the change that the signal announces.
        if (error instanceof Signalled) return this.#conclude(task, nap(0));
        if (error instanceof Conflict && repeats < CONFLICT_REPEATS_MAX && !task.aborted.aborted) {
          STEPS.add(task.lane, 'conflict');
          continue;
        }
        const isOutage = process.isOutage?.(error) ?? false;
        STEPS.add(task.lane, isOutage ? 'outage' : 'failed');
        note(isOutage ? 'outage' : 'failed');
        const isLast = !isOutage && task.attempts - task.outages >= (process.attemptsMax ?? ATTEMPTS_MAX);
        return this.#fail(task, process, textOf(error), isLast, isOutage);
      }
    }
  }

  /** Writes the effect of a step, and then its outcome. */
  #conclude(task: LeasedTask, outcome: Outcome): Promise<void> {
    const { db, release } = this.#options;
    const { commit } = outcome;
    // The release is one statement, which needs no transaction.
    if (!commit) return release(db, task, outcome);
    return db.transaction(async (tx) => {
      await commit(tx);
      await release(tx, task, outcome);
    });
  }

  /** Retries later, or gives up. After a signal during the attempt, it always retries. */
  async #fail(task: LeasedTask, process: Process, error: string, final: boolean, isOutage = false): Promise<void> {
    const { db, holder, onRest } = this.#options;
    const restSeconds = (process.backoffSeconds ?? backoffSeconds)(task.attempts);
    const rest = (reason: string) =>
      db.transaction((tx) =>
        retryLater(tx, holder, task, { error: reason, restSeconds, isOutage }).then(() => undefined),
      );
    if (!final) await rest(error);
    else
      await db
        .transaction((tx) => this.#exhaust(tx, task, process, { error, restSeconds, isOutage }))
        .catch((fault) => {
          if (fault instanceof LeaseLost) throw fault;
          return rest(fault instanceof Signalled ? error : `Giving up failed: ${textOf(fault)} Before: ${error}`);
        });
    onRest(task.lane, restSeconds);
  }

  /** @throws LeaseLost, or Signalled if a signal came during the last attempt */
  async #exhaust(tx: Transaction, task: LeasedTask, process: Process, failure: Failure): Promise<void> {
    const step = await process.onExhausted?.(task, tx, failure.error);
    if (await retryLater(tx, this.#options.holder, task, failure)) throw new Signalled();
    if (!step) {
      await transition(tx, TASK_LIFECYCLE, task.subject, 'DEAD');
      return;
    }
    await CONTINUE_TASK.all(tx, [task.id, step]);
    tx.changed(taskChange(task.lane));
  }

  /** Lets a task rest that this version cannot run. The rest counts as no attempt. */
  async #putAside(task: LeasedTask, error: string): Promise<void> {
    const { db, holder } = this.#options;
    await db.transaction(async (tx) => {
      await retryLater(tx, holder, task, { error, restSeconds: UNKNOWN_REST_SECONDS, isOutage: false });
      await update(tx, Task, { id: task.id }, { attempts: 0 });
    });
  }
}
