/**
 * Runs tasks. Any number of workers, in any number of processes, share the work. One worker at a time leases a task and
 * extends the lease while the step runs. If a worker dies, its leases end and other workers continue. If the worker still
 * lives, the fence refuses its commits. It also refuses those of an aborted step that does not end. The worker releases
 * the task of such a step and gives its place in the lane to another task.
 *
 * A worker looks each second for lanes with due tasks, by one query. The bus and the end of each step only wake it earlier.
 * Without a database it waits.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../entities/database/database.ts';
import type { Queryable } from '../../entities/database/transaction.ts';
import { logFault } from '../../entities/monitoring/log.ts';
import { freeLane } from '../../entities/tasks/lane.ts';
import { taskChange } from '../../entities/tasks/start.ts';
import { DueLanes } from './due-lanes.ts';
import { extendLeases, giveBack, type Lease, LeaseLost, release, type TakenTask, takeLeases, textOf } from './lease.ts';
import { Runner } from './runner.ts';
import { ServedParties } from './served-parties.ts';
import { ATTEMPTS_MAX, type Lane, type LeasedTask, type Outcome, type Process } from './tasks.ts';
import { Wakeup } from './wakeup.ts';

/** Seconds that one call of a step may take, and seconds to end after its abort. Longer work naps between calls. */
const [STEP_SECONDS_MAX, GRACE_SECONDS] = [900, 30];
/** Milliseconds after which a step in a shared lane gives its place to another task, even without `waitFor`. */
const PATIENCE_MS = 500;
/** Milliseconds until a full lane looks for free places again. */
const FULL_MS = 20;
/** The pause after a lease, in multiples of its own time, and in milliseconds at most. */
const [PAUSES, PAUSE_MS_MAX] = [8, 50];

export interface WorkerOptions {
  lanes: Record<string, Lane>;
  /** Also the time until other workers take over from a dead worker. Default 30. */
  leaseSeconds?: number;
  /** Default 1. */
  pollSeconds?: number;
  /** The worker aborts a step after `stepSeconds`, and abandons it `graceSeconds` later. Default 900 and 30. */
  stepSeconds?: number;
  graceSeconds?: number;
  /** Called with errors of the worker itself, such as an unreachable database. */
  onError?: (error: unknown) => void;
}

export class Worker {
  readonly id: string = randomUUID();
  readonly leaseSeconds: number;
  readonly #db: Database;
  readonly #processes: ReadonlyMap<string, Process>;
  readonly #lanes: Record<string, Lane>;
  readonly #pollSeconds: number;
  readonly #stepSeconds: number;
  readonly #graceMs: number;
  readonly #onError: (error: unknown) => void;
  readonly #runner: Runner;
  readonly #wakeups = new Map<string, Wakeup>();
  readonly #pollWakeup = new Wakeup();
  readonly #due: DueLanes;
  /** The running leases. Each promise is fulfilled when the run ends. */
  readonly #busy = new Map<Lease, Promise<void>>();
  /** Steps that do not end. They can commit nothing. */
  readonly #abandoned = new Set<Lease>();
  /** By lane. */
  readonly #served = new Map<string, ServedParties>();
  readonly #stopped = new AbortController();
  #stopping = false;
  #loops: Promise<void>[] = [];
  #stopListening = () => {};

  constructor(
    db: Database,
    processes: Record<string, Process>,
    { lanes, leaseSeconds = 30, pollSeconds = 1, onError = logFault, ...limits }: WorkerOptions,
  ) {
    const { stepSeconds = STEP_SECONDS_MAX, graceSeconds = GRACE_SECONDS } = limits;
    this.#stepSeconds = stepSeconds;
    this.#graceMs = graceSeconds * 1000;
    this.leaseSeconds = leaseSeconds;
    this.#db = db;
    this.#processes = new Map(Object.entries(processes));
    this.#lanes = lanes;
    this.#pollSeconds = pollSeconds;
    this.#onError = onError;
    this.#due = new DueLanes(db, Object.keys(lanes), leaseSeconds, onError);
    this.#runner = new Runner({
      db,
      holder: this,
      processes: this.#processes,
      release: (within, task, outcome) => this.release(within, task, outcome),
      onRest: (lane, seconds) => this.#wakeAfter(lane, seconds),
      onError,
    });
  }

  start(): void {
    for (const lane of Object.keys(this.#lanes)) this.#wakeups.set(lane, new Wakeup());
    this.#stopListening = this.#db.bus.listen(({ id }) => this.#wake(id), { kind: 'task' });
    this.#loops = [this.#poll(), ...Object.keys(this.#lanes).map((lane) => this.#serve(lane))];
    void this.#keepLeases();
  }

  /** Returns the number of abandoned steps that still run. */
  abandoned(lane?: string): number {
    return [...this.#abandoned].filter(({ task }) => !lane || task.lane === lane).length;
  }

  /** Takes no new tasks, lets running steps end within the grace period, and returns the other tasks. */
  async stop(graceSeconds = 10): Promise<void> {
    this.#stopping = true;
    this.#stopListening();
    this.#wake(null);
    await Promise.race([this.#settled(), sleep(graceSeconds * 1000, undefined, { ref: false })]);
    this.#stopped.abort();
    await giveBack(this.#db, this).catch(this.#onError);
    this.#db.bus.publish(Object.keys(this.#lanes).map(taskChange));
    for (const { abort } of this.#busy.keys()) abort.abort(new Error('The worker stops.'));
  }

  /** For tests: runs all due tasks, or those of a lane, one after the other, without timers. @returns the number of steps */
  async drain(lane?: string): Promise<number> {
    let ran = 0;
    for (const one of lane ? [lane, freeLane(lane)] : Object.keys(this.#lanes)) {
      for (;;) {
        const [lease] = await this.lease(one);
        if (!lease) break;
        await this.run(lease);
        ran++;
      }
    }
    return ran;
  }

  /** Leases due tasks of a lane, except tasks that this worker still runs after it lost their leases. */
  async lease(lane: string, count = 1): Promise<Lease[]> {
    const startedAtMs = performance.now();
    const endsAtMs = startedAtMs + this.leaseSeconds * 1000;
    const except = [...this.#busy.keys()].map(({ task }) => task.id);
    const given = this.#lanes[lane];
    const shares = typeof given === 'object' ? given : undefined;
    const served = this.#served.get(lane) ?? new ServedParties();
    const taken = await takeLeases(this.#db, this, {
      lane,
      count,
      except,
      shares,
      served: shares ? served.places() : '',
    });
    if (shares) this.#served.set(lane, served);
    for (const { party, accountId } of taken) served.note(party ?? accountId);
    return taken.map((row) => {
      const abort = new AbortController();
      const now = () => new Date(row.leasedAt.getTime() + performance.now() - startedAtMs);
      const waitFor = <T>(answer: Promise<T>): Promise<T> => {
        lease.awaited++;
        return answer.finally(() => lease.awaited--);
      };
      const task = { ...row, now, aborted: abort.signal, waitFor };
      const lease = { task, exhausted: this.#exhausted(row), abort, endsAtMs, startedAtMs, awaited: 0 };
      return lease;
    });
  }

  #exhausted({ overdue, attempts, outages, process, error }: TakenTask): string | undefined {
    const before = error ? ` Before: ${error}` : '';
    if (overdue) return `The deadline has passed.${before}`;
    const attemptsMax = this.#processes.get(process)?.attemptsMax ?? ATTEMPTS_MAX;
    return attempts - outages > attemptsMax ? `None of ${attemptsMax} attempts ended.${before}` : undefined;
  }

  /** Runs one step and writes its outcome. Never rejects: if the write fails, another attempt follows. */
  run(lease: Lease): Promise<void> {
    return this.#runner.run(lease);
  }

  /** Writes the outcome of a step. Tests override it. @throws LeaseLost or Signalled */
  protected release(db: Queryable, task: LeasedTask, outcome: Outcome): Promise<void> {
    return release(db, this, task, outcome);
  }

  /** Wakes the lanes with due tasks until the worker stops. */
  async #poll(): Promise<void> {
    while (!this.#stopping) {
      await this.#pollWakeup.wait(this.#pollSeconds);
      if (this.#stopping) return;
      const due = await this.#due.look().catch(this.#onError);
      for (const lane of due ?? []) this.#wake(lane);
    }
  }

  /** Keeps a lane busy until the worker stops. */
  async #serve(lane: string): Promise<void> {
    const wakeup = this.#wakeups.get(lane)!;
    while (!this.#stopping) {
      const room = this.#room(lane);
      const asked = performance.now();
      const leases = room > 0 ? await this.lease(lane, room).catch(this.#onError) : undefined;
      const answered = performance.now();
      if (this.#stopping) return; // stop() returns the leases
      for (const lease of leases ?? []) {
        const end = () => {
          this.#busy.delete(lease);
          this.#abandoned.delete(lease);
          wakeup.wake();
        };
        this.#busy.set(lease, this.run(lease).then(end));
      }
      const isFull = room <= 0 || leases?.length === room;
      await wakeup.wait(isFull ? Math.min(this.#pollSeconds, FULL_MS / 1000) : undefined);
      // Each lease reads all due tasks of the lane. The tasks that end meanwhile share the next one. Long leases leave half of
      // the time of the database to others.
      const tookMs = answered - asked;
      const pauseMs = Math.max(tookMs, Math.min(PAUSE_MS_MAX, PAUSES * tookMs)) - (performance.now() - answered);
      if (pauseMs > 0 && !this.#stopping) await sleep(pauseMs);
    }
  }

  /** Returns the free room of a lane. Abandoned steps beyond half of the lane take room from others. */
  #room(lane: string): number {
    const given = this.#lanes[lane] ?? 1;
    const { places, waiting } = typeof given === 'object' ? given : { places: given, waiting: 0 };
    const most = places - Math.max(0, this.abandoned(lane) - Math.ceil(places / 2));
    const busy = [...this.#busy.keys()].filter(({ task }) => task.lane === lane);
    const longAgo = performance.now() - PATIENCE_MS;
    const waits = busy.filter(({ awaited, startedAtMs }) => awaited > 0 || startedAtMs < longAgo).length;
    return most - busy.length + Math.min(waits, waiting);
  }

  async #settled(): Promise<void> {
    await Promise.all(this.#loops);
    await Promise.all(this.#busy.values());
  }

  async #keepLeases(): Promise<void> {
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      await sleep((this.leaseSeconds / 3) * 1000, undefined, { signal }).catch(() => {});
      if (this.#busy.size && !signal.aborted) await this.#heartbeat([...this.#busy.keys()]);
    }
  }

  /** Extends the held leases and aborts the lost ones. Without an answer of the database, the end of the lease decides. */
  async #heartbeat(leases: Lease[]): Promise<void> {
    const endsAtMs = performance.now() + this.leaseSeconds * 1000;
    const tasks = leases.map(({ task }) => task);
    const held = await extendLeases(this.#db, this, tasks).catch(this.#onError);
    for (const lease of leases) {
      const { task, abort, startedAtMs } = lease;
      if (held?.has(task.id)) lease.endsAtMs = endsAtMs;
      else if (held || lease.endsAtMs < performance.now()) abort.abort(new LeaseLost('The lease was lost.'));
      if (task.deadlineAt && task.deadlineAt < task.now()) abort.abort(new Error('The deadline has passed.'));
      const stepSeconds = this.#processes.get(task.process)?.stepSecondsMax ?? this.#stepSeconds;
      if (performance.now() - startedAtMs > stepSeconds * 1000) abort.abort(new Error('The step takes too long.'));
      if (!abort.signal.aborted) continue;
      lease.abortedAtMs ??= performance.now();
      if (performance.now() - lease.abortedAtMs >= this.#graceMs) void this.#abandon(lease);
    }
  }

  /** Abandons a step that does not end. Its lane continues, and a worker runs its task again. */
  async #abandon(lease: Lease): Promise<void> {
    if (!this.#busy.delete(lease)) return;
    const { task, abort } = lease;
    this.#abandoned.add(lease);
    this.#wake(task.lane);
    const why = `${textOf(abort.signal.reason)} The step does not end.`;
    const count = `Abandoned in the lane "${task.lane}": ${this.abandoned(task.lane)}.`;
    this.#onError(new Error(`${task.subject}, step "${task.step}" of "${task.process}": ${why} ${count}`));
    await this.#runner.retry(task, why);
  }

  #wake(lane: string | null): void {
    for (const [name, wakeup] of this.#wakeups) if (lane === null || lane === name) wakeup.wake();
    if (lane === null) this.#pollWakeup.wake();
  }

  /** Wakes the lane after a rest that is shorter than the poll. The end of the run already wakes it for a rest of 0. */
  #wakeAfter(lane: string, seconds: number): void {
    if (seconds > 0 && seconds < this.#pollSeconds) setTimeout(() => this.#wake(lane), seconds * 1000 + 1).unref();
  }
}
