/** A worker remembers the parties that it has served, so that a flood of many parties delays no newcomer. */
import { expect, it } from 'vitest';
import { takeLeases } from '../../provisioning/tasks/lease.ts';
import { hop } from '../../provisioning/tasks/tasks.ts';
import { asSuperuser } from '../setup/database.ts';
import { engine, newWorker, prepareEngine, start } from './engine.ts';

prepareEngine();

/** Starts the tasks of a party, each of which has many steps. */
async function startParty(party: string, count: number): Promise<void> {
  for (let n = 0; n < count; n++) await start({ subject: `${party} ${n}`, accountId: party });
}

it('A newcomer comes before parties that were served since it waits, however many tasks they have', async () => {
  const ran: string[] = [];
  engine.steps = {
    start: async ({ accountId }) => {
      ran.push(accountId);
      return hop('start');
    },
  };
  const worker = newWorker({ lanes: { lane: { places: 1, perParty: 1, waiting: 0 } } });
  const runOne = async () => worker.run((await worker.lease('lane'))[0]!);
  for (let n = 0; n < 40; n++) await startParty(`flood ${n}`, 3);
  for (let n = 0; n < 50; n++) await runOne();
  expect(new Set(ran.slice(0, 40)).size).toBe(40);
  await startParty('newcomer', 1);
  // The tasks of the flood have waited for longer.
  await asSuperuser(engine.db, `update task set run_at = run_at - interval '1 hour' where account_id <> 'newcomer'`);
  await runOne();
  expect(ran.at(-1)).toBe('newcomer');
});

it('A task that is leased within the last millisecond before its deadline is overdue', async () => {
  await start();
  const leases = await engine.db.transaction(async (tx) => {
    // The clock of a transaction stands still. The column has milliseconds.
    const soon = `date_trunc('milliseconds', now()) + interval '1 millisecond'`;
    await tx.query(`update task set run_at = ${soon}, deadline_at = ${soon}`);
    return takeLeases(tx, { id: 'worker', leaseSeconds: 30 }, { lane: 'lane', count: 1, except: [], served: '' });
  });
  expect(leases.map(({ overdue }) => overdue)).toEqual([true]);
});
