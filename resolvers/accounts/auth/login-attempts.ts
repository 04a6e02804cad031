/** Where failed logins are counted: in this process, or in the database, for all processes together. */

import { type BegunLogin, beginLogin, endLogin, rememberLogin } from '../../../entities/accounts/login-attempt.ts';
import type { Queryable } from '../../../entities/database/transaction.ts';

export const WINDOW_SECONDS = 15 * 60;

/** A login attempt in keyed hashes. */
export interface HashedLoginAttempt {
  pair: string;
  /** The name and the network, for a pair that is not known. */
  apart: string[];
}

/** A login that has begun, one that has to wait for others, or one that is refused for so many milliseconds. */
export type Beginning = { end: (failed: boolean) => void } | { wait: Promise<void> } | { refusedMs: number };

export interface LoginAttempts {
  /** Begins a login, if as many as are under way could fail without one too many. */
  begin(attempt: HashedLoginAttempt, max: number): Promise<Beginning>;
  /** Remembers that the name has logged in from the network. */
  remember(pair: string): void;
}

/** More than can fail within a window: each failure costs a password hash. */
const KEPT_MAX = 100_000;

class LoginCounter {
  /** Milliseconds since the epoch, oldest first. */
  failures: number[] = [];
  /** Attempts of which it is not known yet how they end. */
  underWay = 0;
  readonly #waiting: (() => void)[] = [];
  forget(now: number): void {
    while (this.failures.length && this.failures[0]! <= now - WINDOW_SECONDS * 1000) this.failures.shift();
  }
  /** Until an attempt ends. */
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
  /** Pairs of name and network that have logged in. */
  readonly #known = new Set<string>();

  async begin({ pair, apart }: HashedLoginAttempt, max: number): Promise<Beginning> {
    const counters = (this.#known.has(pair) ? [pair] : apart).map((key) => this.#counter(key));
    const now = Date.now();
    for (const counter of counters) counter.forget(now);
    const full = counters.filter(({ failures }) => failures.length >= max);
    if (full.length)
      return { refusedMs: Math.max(...full.map(({ failures }) => failures.at(-max)! + WINDOW_SECONDS * 1000 - now)) };
    const busy = counters.find(({ failures, underWay }) => failures.length + underWay >= max);
    if (busy) return { wait: busy.wait() };
    for (const counter of counters) counter.underWay++;
    return {
      end: (failed) => {
        for (const counter of counters) counter.end(failed);
      },
    };
  }

  remember(pair: string): void {
    if (this.#known.size >= KEPT_MAX) this.#known.delete(this.#known.values().next().value!);
    this.#known.add(pair);
  }

  #counter(key: string): LoginCounter {
    const kept = this.#counters.get(key);
    if (kept) return kept;
    const oldest = this.#counters.size >= KEPT_MAX && this.#counters.entries().next().value;
    if (oldest && oldest[1].underWay === 0) this.#counters.delete(oldest[0]);
    const counter = new LoginCounter();
    this.#counters.set(key, counter);
    return counter;
  }
}

/** How long to wait for a login of another process; one of this process tells when it ends. */
const POLL_MS = 200;

/**
 * Counts in the database. How a login ended is written after its answer: until then it counts as under way, so that none
 * slips by, and nobody who holds a transaction waits for another connection.
 */
export class SharedLoginAttempts implements LoginAttempts {
  readonly #db: Queryable;
  readonly #onError: (error: unknown) => void;
  /** Those of this process that wait, by the keys that they wait for. */
  readonly #waiting = new Map<() => void, string[]>();

  constructor(db: Queryable, onError: (error: unknown) => void) {
    this.#db = db;
    this.#onError = onError;
  }

  async begin({ pair, apart }: HashedLoginAttempt, max: number): Promise<Beginning> {
    const login = await beginLogin(this.#db, { pair, apart, max, windowSeconds: WINDOW_SECONDS });
    if ('begun' in login) return { end: (failed) => void this.#end(login.begun, failed) };
    if (login.waitSeconds > 0) return { refusedMs: login.waitSeconds * 1000 };
    return { wait: this.#wait([pair, ...apart]) };
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
    // One has ended, so one can begin.
    for (const [wake, keys] of this.#waiting) if (keys.some((key) => begun.keys.includes(key))) return wake();
  }
}
