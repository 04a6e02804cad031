/**
 * Reads that callers share. A change wakes all callers who wait for a row. One read serves those with the same view of it, so
 * many callers cost the database no more than one.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { sharing } from '../entities/caller.ts';
import type { Database } from '../entities/database/database.ts';

/** Between two reads of one view. Changes that follow each other faster share a read, too. */
const PAUSE_MS = 50;

interface Reads {
  /** The reads that have not begun. */
  waiting: Map<string, Promise<unknown>>;
  /** The last read of each view, with the pause after it. */
  last: Map<string, Promise<void>>;
}
const ALL = new WeakMap<Database, Reads>();

/**
 * Returns the result of a read that begins after this call.
 * @param view names what the read finds, and for which account
 * @throws the error of the read
 */
export function sharedRead<T>(db: Database, view: string, read: () => Promise<T>): Promise<T> {
  const reads = ALL.get(db) ?? { waiting: new Map(), last: new Map() };
  ALL.set(db, reads);
  const { waiting, last } = reads;
  const begin = () => {
    waiting.delete(view);
    const result = sharing(read);
    const pause = result.then(rest, rest).then(() => {
      if (last.get(view) === pause) last.delete(view);
    });
    last.set(view, pause);
    return result;
  };
  const next = waiting.get(view) ?? Promise.resolve(last.get(view)).then(begin);
  waiting.set(view, next);
  return next as Promise<T>;
}

const rest = (): Promise<void> => sleep(PAUSE_MS, undefined, { ref: false });
