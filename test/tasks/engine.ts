/** The engine of durable work with a process of the test, for tests without waits. */
import { beforeAll, beforeEach } from 'vitest';
import type { Database } from '../../entities/database/database.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { type NewTask, signalTask, startTask } from '../../entities/tasks/start.ts';
import type { Task } from '../../entities/tasks/task.ts';
import type { Process } from '../../provisioning/tasks/tasks.ts';
import { Worker, type WorkerOptions } from '../../provisioning/tasks/worker.ts';
import { asSuperuser, newDatabase, truncate } from '../setup/database.ts';

export interface Engine {
  db: Database;
  worker: Worker;
  /** The steps, which each test sets. */
  steps: Process['steps'];
  onExhausted: Process['onExhausted'];
  stepSecondsMax: Process['stepSecondsMax'];
}
export const engine = {} as Engine;

/** Opens a database for a test file and empties it before each test. */
export function prepareEngine(): void {
  beforeAll(async () => {
    engine.db = await newDatabase();
    await asSuperuser(engine.db, 'create table effect (what text not null); grant all on effect to public');
  });
  beforeEach(async () => {
    await truncate(engine.db, 'task, effect');
    engine.worker = newWorker();
    engine.steps = {};
    engine.onExhausted = undefined;
    engine.stepSecondsMax = undefined;
  });
}

const process: Process = {
  lane: 'lane',
  attemptsMax: 3,
  backoffSeconds: (attempt) => 100 * attempt,
  get steps() {
    return engine.steps;
  },
  get stepSecondsMax() {
    return engine.stepSecondsMax;
  },
  get onExhausted() {
    return engine.onExhausted;
  },
};
export const newWorker = (options: Partial<WorkerOptions> = {}, db = engine.db, by = process): Worker =>
  new Worker(db, { process: by }, { lanes: { lane: 4 }, ...options });

export const TASK: NewTask = { lane: 'lane', process: 'process', subject: 'thing', accountId: 'acct' };
export const start = (task: Partial<NewTask> = {}, db = engine.db): Promise<void> =>
  db.transaction((tx) => startTask(tx, { ...TASK, ...task }));
export const signal = (subject = 'thing'): Promise<void> => engine.db.transaction((tx) => signalTask(tx, subject));

/** Makes a commit that writes a row. */
export const effect = (what: string) => (tx: Transaction) => tx.query('insert into effect values ($1)', [what]);
export const effects = async (): Promise<string[]> =>
  (await engine.db.query<{ what: string }>('select what from effect')).map(({ what }) => what);

type Row = Pick<Task, 'step' | 'data' | 'state' | 'attempts' | 'error' | 'leasedBy'> & { restSeconds: number };
export async function read(subject = 'thing'): Promise<Row | undefined> {
  const [row] = await engine.db.query<Row>(
    `select step, data, state, attempts, error, leased_by as "leasedBy", extract(epoch from run_at - now())::float8 as "restSeconds"
      from task where subject = $1`,
    [subject],
  );
  return row;
}

/** Makes time pass: all resting tasks are due, and all leases have ended. */
export const later = () => engine.db.query(`update task set run_at = now() - interval '1 second'`);
export const leaseOne = async (by = engine.worker) => (await by.lease('lane'))[0]!;
