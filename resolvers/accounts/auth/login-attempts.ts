/** The counts of failed logins: in this process, or in the database for all processes together. */
import { type BegunLogin, beginLogin, endLogin, rememberLogin } from '../../../entities/accounts/login-attempt.ts';
import type { Queryable } from '../../../entities/database/transaction.ts';

export const WINDOW_SECONDS = 15 * 60;

/** A login attempt in keyed hashes. */
export interface HashedLoginAttempt {
  /** The name and the network. */
  pair: string;
  /** The count of a known pair. */
  paired: string;
  /** The counts of an unknown pair. */
  apart: string[];
}

/** A begun login, or the end of the login to wait for, or the milliseconds of a refusal. */
export type Beginning = { end: (failed: boolean) => void } | { wait: Promise<void> } | { refusedMs: number };

export interface LoginAttempts {
  /** Begins a login, if all logins under way could fail without exceeding the limit. */
  begin(attempt: HashedLoginAttempt, max: number): Promise<Beginning>;
  /** Remembers that the name has logged in from the network. */
  remember(pair: string): void;
}

/**
 * The most counters, and the most known pairs. Refused logins make no counter. Each failure costs a password hash, so fewer
 * logins can fail within a window.
 */
const KEPT_MAX = 100_000;

class LoginCounter {
  /** Times in milliseconds since the epoch, oldest first. */
  failures: number[] = [];
  /** The number of attempts that have not ended yet. */
  underWay = 0;
  readonly #waiting: (() => void)[] = [];
  forget(now: number): void {
    while (this.failures.length && this.failures[0]! <= now - WINDOW_SECONDS * 1000) this.failures.shift();
  }
  get isEmpty(): boolean {
    return this.underWay === 0 && this.failures.length === 0;
  }
  /** Waits until an attempt ends. */
  wait(): Promise<void> {
    return new Promise((resume) => this.#waiting.push(resume));
  }
  end(failed: boolean): void {
    this.underWay--;
    if (failed) this.failures.push(Date.now());
    for (const resume of this.#waiting.splice(0)) resume();
  }
}

export class MemoryLoginAttempts implements LoginAttempts {
  readonly #counters = new Map<string, LoginCounter>();
  /** The pairs of name and network that have logged in. */
  readonly #known = new Set<string>();
  readonly #keptMax: number;

  constructor(keptMax = KEPT_MAX) {
    this.#keptMax = keptMax;
  }

  async begin({ pair, paired, apart }: HashedLoginAttempt, max: number): Promise<Beginning> {
    const keys = this.#known.has(pair) ? [paired] : apart;
    const kept = keys.flatMap((key) => this.#counters.get(key) ?? []);
    const now = Date.now();
    for (const counter of kept) counter.forget(now);
    const full = kept.filter(({ failures }) => failures.length >= max);
    if (full.length)
      return { refusedMs: Math.max(...full.map(({ failures }) => failures.at(-max)! + WINDOW_SECONDS * 1000 - now)) };
    const busy = kept.find(({ failures, underWay }) => failures.length + underWay >= max);
    if (busy) return { wait: busy.wait() };
    const counters = keys.map((key) => [key, this.#counter(key)] as const);
    for (const [, counter] of counters) counter.underWay++;
    return {
      end: (failed) => {
        for (const [key, counter] of counters) {
          counter.end(failed);
          if (counter.isEmpty) this.#counters.delete(key);
        }
      },
    };
  }

  remember(pair: string): void {
    if (this.#known.size >= this.#keptMax) this.#known.delete(this.#known.values().next().value!);
    this.#known.add(pair);
  }

  #counter(key: string): LoginCounter {
    const kept = this.#counters.get(key);
    if (kept) return kept;
    const oldest = this.#counters.size >= this.#keptMax && this.#counters.entries().next().value;
    if (oldest && oldest[1].underWay === 0) this.#counters.delete(oldest[0]);
    const counter = new LoginCounter();
    this.#counters.set(key, counter);
    return counter;
  }
}

/** The wait for a login of another process. A login of this process wakes its waiters. */
const POLL_MS = 200;

/**
 * Counts in the database. The process writes the result of a login after its answer; until then the login counts as
 * under way. So no login escapes the count, and no request with a transaction waits for a second connection.
 */
export class SharedLoginAttempts implements LoginAttempts {
  readonly #db: Queryable;
  readonly #onError: (error: unknown) => void;
  /** The waiting logins of this process, and the keys that they wait for. */
  readonly #waiting = new Map<() => void, string[]>();

  constructor(db: Queryable, onError: (error: unknown) => void) {
    this.#db = db;
    this.#onError = onError;
  }

  async begin(attempt: HashedLoginAttempt, max: number): Promise<Beginning> {
    const login = await beginLogin(this.#db, { ...attempt, max, windowSeconds: WINDOW_SECONDS });
    if ('begun' in login) return { end: (failed) => void this.#end(login.begun, failed) };
    if (login.waitSeconds > 0) return { refusedMs: login.waitSeconds * 1000 };
    return { wait: this.#wait([attempt.paired, ...attempt.apart]) };
  }

  #wait(keys: string[]): Promise<void> {
    return new Promise((resume) => {
      const waiter = () => {
        clearTimeout(timer);
        this.#waiting.delete(waiter);
        resume();
      };
      const timer = setTimeout(waiter, POLL_MS * (1 + Math.random()));
      this.#waiting.set(waiter, keys);
    });
  }

  remember(pair: string): void {
    rememberLogin(this.#db, pair).catch(this.#onError);
  }

  async #end(begun: BegunLogin, failed: boolean): Promise<void> {
    await endLogin(this.#db, begun, failed).catch(this.#onError);
    // One login has ended, so one waiting login can begin.
    for (const [wake, keys] of this.#waiting) if (keys.some((key) => begun.keys.includes(key))) return wake();
  }
}
