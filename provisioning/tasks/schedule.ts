/**
 * Periodic work. Each kind of it is one row of the task table, so one worker of the cluster at a time does it, and ticks
 * that were missed while nobody worked run once.
 */
import type { Database } from '../../entities/database/database.ts';
import { newId } from '../../entities/ids.ts';
import type { Process } from './tasks.ts';

export const PERIODIC_LANE = 'periodic';
const BACKOFF_SECONDS_MAX = 300;

/** The subject of the task of a periodic process. */
export const cronSubject = (process: string): string => `cron:${process}`;

/** A process that is never given up. It begins at the step `start`, and naps until its next tick. */
export const periodic = (steps: Process['steps']): Process => ({
  lane: PERIODIC_LANE,
  attemptsMax: Number.MAX_SAFE_INTEGER,
  backoffSeconds: (attempt) => Math.min(BACKOFF_SECONDS_MAX, 2 ** attempt),
  steps,
});

/** Sees to it that each process has its task; those that have one keep their time. */
export async function schedule(db: Database, processes: string[]): Promise<void> {
  await db.query(
    `insert into task (id, lane, process, subject, account_id, step)
      select id, $3, process, 'cron:' || process, '', 'start' from unnest($1::text[], $2::text[]) as given(id, process)
      on conflict (subject) do nothing`,
    [processes.map(() => newId('task')), processes, PERIODIC_LANE],
  );
}
