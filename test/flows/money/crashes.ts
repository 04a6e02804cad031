/** Transactions that crash when the walk says so. */
import type { Database } from '../../../entities/database/database.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';

/** The moments at which a transaction crashes: before it, before its commit, or after the commit, whose result is lost. */
export const CRASH_MOMENTS = ['before', 'inside', 'after'] as const;
export type CrashMoment = (typeof CRASH_MOMENTS)[number];

export class Crash extends Error {}

/** Has the next transaction of a database crash when the walk says so. */
export function crashing(db: Database) {
  let next: CrashMoment | undefined;
  const running = new Set<Promise<unknown>>();
  const transaction = db.transaction.bind(db);
  db.transaction = <T>(work: (tx: Transaction) => Promise<T>): Promise<T> => {
    const result = breaking(work);
    running.add(result);
    return result.finally(() => running.delete(result));
  };
  const breaking = async <T>(work: (tx: Transaction) => Promise<T>): Promise<T> => {
    const now = next;
    next = undefined;
    if (now === 'before') throw new Crash(now);
    const result = await transaction(async (tx) => {
      const done = await work(tx);
      if (now === 'inside') throw new Crash(now);
      return done;
    });
    if (now === 'after') throw new Crash(now);
    return result;
  };
  return {
    next: (moment: CrashMoment) => {
      next = moment;
    },
    calm: () => {
      next = undefined;
    },
    /** Waits for all transactions, even those of requests that died. */
    quiet: () => Promise.allSettled(running),
  };
}
