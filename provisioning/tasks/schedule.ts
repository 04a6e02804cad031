/**
 * Periodic work. Each periodic process is one task, so one worker of the cluster runs it at a time. After an outage of all
 * workers, the process runs once and does not repeat the missed ticks.
 */
import type { Database } from '../../entities/database/database.ts';
import { newId } from '../../entities/ids.ts';
import { START_PERIODIC } from '../../entities/tasks/start.ts';
import type { Process } from './tasks.ts';

export const PERIODIC_LANE = 'periodic';
const BACKOFF_SECONDS_MAX = 300;

/** Returns the subject of a periodic process's task. */
export const cronSubject = (process: string): string => `cron:${process}`;

/** Makes a process that workers never give up. It begins with the step `start` and naps until its next tick. */
export const periodic = (steps: Process['steps']): Process => ({
  lane: PERIODIC_LANE,
  attemptsMax: Number.MAX_SAFE_INTEGER,
  backoffSeconds: (attempt) => Math.min(BACKOFF_SECONDS_MAX, 2 ** attempt),
  steps,
});

/** Starts a task for each process without one. Existing tasks keep their time. */
export async function schedule(db: Database, processes: string[]): Promise<void> {
  await START_PERIODIC.all(db, [processes.map(() => newId('task')), processes, PERIODIC_LANE]);
}
