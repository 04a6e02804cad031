/** The counts of failed logins in the database: for all processes together, and also after a restart. */
import { type BegunLogin, beginLogin, endLogin, rememberLogin } from '../../../entities/accounts/login-attempt.ts';
import { forAllCallers } from '../../../entities/caller.ts';
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

/** The wait for a login of another process. A login of this process wakes its waiters. */
const POLL_MS = 200;

/**
 * Counts in the database. The process writes the result of a login after its answer; until then the login counts as
 * under way. So no login escapes the count, and no request with a transaction waits for a second connection.
 */
export class LoginAttempts {
  readonly #db: Queryable;
  readonly #onError: (error: unknown) => void;
  /** The waiting logins of this process, and the keys that they wait for. */
  readonly #waiting = new Map<() => void, string[]>();

  constructor(db: Queryable, onError: (error: unknown) => void) {
    this.#db = db;
    this.#onError = onError;
  }

  /** Begins a login, if all logins under way could fail without exceeding the limit. */
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

  /** Remembers that the name has logged in from the network. */
  async remember(pair: string): Promise<void> {
    await forAllCallers(() => rememberLogin(this.#db, pair)).catch(this.#onError);
  }

  async #end(begun: BegunLogin, failed: boolean): Promise<void> {
    // The caller's other statements must not keep the failure from the count.
    await forAllCallers(() => endLogin(this.#db, begun, failed)).catch(this.#onError);
    // One login has ended, so one waiting login can begin.
    for (const [wake, keys] of this.#waiting) if (keys.some((key) => begun.keys.includes(key))) return wake();
  }
}
