/** The clock of the database is wrong for a moment. The functions of a schema before PostgreSQL's own ones stand for the clock. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { Database } from '../../entities/database/database.ts';
import { asOwner, newDatabaseUrl, truncate } from '../setup/database.ts';
import { atEnd } from '../setup/end.ts';
import { eventually } from '../setup/freehold.ts';
import { newWorker, start } from './engine.ts';

const url = new URL(await newDatabaseUrl());
url.searchParams.set('options', '-c search_path=public,pg_catalog');
const db = await Database.open(url.href);
atEnd(() => db.close());
await asOwner(
  db,
  `create table public.clock (ahead interval not null);
   insert into public.clock values ('0');
   grant select on public.clock to public;
   create function public.now() returns timestamptz language sql stable as 'select pg_catalog.now() + ahead from public.clock';
   create function public.clock_timestamp() returns timestamptz language sql volatile as 'select pg_catalog.clock_timestamp() + ahead from public.clock'`,
);
const setAhead = (ahead: string) => asOwner(db, 'update public.clock set ahead = $1::interval', [ahead]);

/** A worker whose task rests for a minute after each step. @returns how many steps there were */
function workerOf(errors: unknown[], leaseSeconds = 30) {
  let steps = 0;
  const process = {
    lane: 'lane',
    steps: { start: async () => ({ kind: 'nap' as const, afterSeconds: 60, data: { steps: ++steps } }) },
  };
  const worker = newWorker({ pollSeconds: 0.05, leaseSeconds, onError: (error) => errors.push(error) }, db, process);
  worker.start();
  onTestFinished(() => worker.stop());
  return () => steps;
}

/** Waits for a step, and for its release: before that, the task does not rest yet. */
async function stepRests(steps: () => number, step: number): Promise<void> {
  await eventually(async () => steps() === step);
  await eventually(async () => (await db.query('select from task where leased_by is not null')).length === 0);
}

it('Tasks that went to rest by a clock that was ahead are due when the clock is right', async () => {
  const errors: unknown[] = [];
  await start({}, db);
  const steps = workerOf(errors);
  await stepRests(steps, 1);
  await setAhead('40 days');
  await stepRests(steps, 2);
  await setAhead('0');
  await eventually(async () => steps() === 3, 20);
  // On a busy machine, the worker may have looked at one of the times only.
  await eventually(async () => {
    if (/The clock of the database went back from/.test(String(errors))) return true;
    for (const ahead of ['40 days', '0']) {
      await setAhead(ahead);
      await sleep(1_000);
    }
  });
});

it('A worker that starts later finds them, too, and leaves tasks that rest for a day', async () => {
  await db.query(`update task set run_at = now() + interval '1 day', leased_by = null`);
  const daily = workerOf([]);
  await sleep(500);
  expect(daily()).toBe(0);
  await db.query(`update task set run_at = now() + interval '40 days', leased_by = null`);
  const steps = workerOf([]);
  await eventually(async () => steps() === 1, 20);
});

it('A lease that a worker took by a clock that was ahead ends soon after the death of that worker', async () => {
  await truncate(db, 'task');
  await start({}, db);
  await setAhead('40 days');
  const [lease] = await newWorker({ leaseSeconds: 0.5 }, db).lease('lane');
  expect(lease?.task.subject).toBe('thing');
  await setAhead('0');
  const steps = workerOf([], 0.5);
  await eventually(async () => steps() >= 1, 20);
});
