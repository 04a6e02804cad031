/** Orders of hand-made machines. The operator gets each job once, even if workers die on the way. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { verifyBooks } from '../../../entities/payments/books.ts';
import { type ManualAction, ManualDriver } from '../../../provisioning/servers/drivers/manual.ts';
import { ManualJobs } from '../../../provisioning/servers/manual-jobs.ts';
import { deleteServer } from '../../../resolvers/servers/delete.ts';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { updateServer } from '../../../resolvers/servers/update.ts';
import { FUNDS_MICROS, openCustomerShop, startWorker, traces } from '../../setup/customer-shop.ts';
import { eventually, leasedAgain } from '../../setup/freehold.ts';
import { bothKinds } from '../../setup/shop.ts';
import type { OnEnd } from '../../setup/spawn.ts';
import { deathOf, runScript } from '../../setup/spawn.ts';
import { VAULT } from '../../setup/vault.ts';
import { Operator } from './operator.ts';

/** The jobs of the operator, in this order. A new action in the interface causes a type error here. */
const JOBS: Record<ManualAction, string> = {
  CREATE: 'create',
  REBUILD: 'rebuild',
  POWER: 'power off',
  RESIZE: 'resize',
  DESTROY: 'destroy',
};
const CASES = Object.keys(JOBS).flatMap((action) => ['before', 'after'].map((moment) => [moment, action] as const));

async function openOffice(onEnd: OnEnd) {
  const shop = await openCustomerShop(onEnd);
  const drivers = bothKinds(new ManualDriver(new ManualJobs(shop.db, VAULT)));
  const provisioning = shop.newProvisioning({ drivers, proofSeconds: undefined });
  const operator = new Operator(shop.db, VAULT);
  const becomes = (status: string) =>
    eventually(async () => {
      const [found] = await shop.db.query<{ status: string; tasks: number }>(
        'select status, (select count(*)::int from task) as tasks from server',
      );
      return found!.status === status && found!.tasks === 0;
    }, 60);
  return { ...shop, context: { ...shop.context, provisioning }, provisioning, operator, becomes };
}

const startMortalWorker = (url: string, onEnd: OnEnd, environment: Record<string, string>) =>
  runScript(join(import.meta.dirname, 'killed-worker.ts'), { DATABASE_URL: url, ...environment }, onEnd);
const ORDER = { serviceCode: 'vps-1', os: 'debian-13', labels: {}, autoRenew: true };

describe('kill -9 of the worker of a hand-made server', () => {
  it.concurrent.for(CASES)(
    '%s it has written the job %s: the operator does everything once',
    async ([moment, action], { onTestFinished: onEnd }) => {
      const { context, operator, becomes, url, ...shop } = await openOffice(onEnd);
      operator.start();
      onEnd(() => operator.stop());
      const number = (await orderServer(context, ORDER)).server.orderNumber;
      const mortal = startMortalWorker(url, onEnd, { KILL_ACTION: action, KILL_MOMENT: moment });
      const killed = deathOf(mortal, onEnd, () => startWorker(shop, onEnd));
      await becomes('RUNNING');
      await updateServer(context, number, { action: 'REBUILD' });
      await becomes('RUNNING');
      await updateServer(context, number, { powerState: 'OFF' });
      await becomes('STOPPED');
      await updateServer(context, number, { serviceCode: 'vps-2' });
      await becomes('STOPPED');
      expect(operator.machineOf({ order: number, generation: 1 })).toMatchObject({ power: 'off' });
      await deleteServer(context, number);
      await becomes('DELETED');
      expect(await killed).toBe('SIGKILL');
      expect(operator.done).toEqual(Object.values(JOBS));
      expect(await traces(shop, number)).toMatchObject({
        transfers: ['hold', 'capture', 'hold', 'capture', 'refund'],
        ...{ addresses: 0, places: 0 },
      });
      expect((await verifyBooks(shop.db)).balanced).toBe(true);
    },
  );
});

describe('An order of a hand-made server', () => {
  it('waits for the operator without new jobs, and is refunded at its deadline', async ({ onTestFinished: onEnd }) => {
    const { context, operator, becomes, ...shop } = await openOffice(onEnd);
    const number = (await orderServer(context, ORDER)).server.orderNumber;
    startWorker(shop, onEnd);
    const jobs = () =>
      shop.db.query<{ action: string; state: string }>('select action, state from manual_job order by id');
    await eventually(async () => (await jobs()).length);
    // The time for the proof has passed.
    await eventually(async () => {
      await shop.db.query(
        `update task set data = data || '{"proofBy": "2020-01-01T00:00:00Z"}', run_at = now() where data ? 'proofBy'`,
      );
      return (await shop.db.query(`select from task where data ? 'proofBy'`)).length;
    });
    await leasedAgain(shop.db, number);
    expect(await jobs()).toEqual([{ action: 'CREATE', state: 'OPEN' }]);
    await shop.db.query('update task set deadline_at = now()');
    await eventually(async () => (await jobs()).length === 2);
    expect((await traces(shop, number)).balance.available).toBe(FUNDS_MICROS);
    // The operator does the second job first, so the job of the ended order never makes a machine.
    const [destroy] = await shop.db.query<{ id: string }>(`select id from manual_job where action = 'DESTROY'`);
    await operator.close(destroy!.id);
    await becomes('FAILED');
    expect(await jobs()).toEqual([
      { action: 'CREATE', state: 'FAILED' },
      { action: 'DESTROY', state: 'DONE' },
    ]);
    expect(await traces(shop, number)).toMatchObject({ addresses: 0, places: 0 });
  });

  it('costs nothing when the operator makes no machine, also as the second one of a day', async ({
    onTestFinished: onEnd,
  }) => {
    const { context, ...shop } = await openOffice(onEnd);
    for (let i = 0; i < 2; i++) await orderServer(context, ORDER);
    startWorker(shop, onEnd);
    const open = `select from manual_job where action = 'CREATE'`;
    await eventually(async () => (await shop.db.query(open)).length === 2);
    for (const task of await shop.db.query<{ subject: string }>(`select subject from task where process = 'server'`))
      await leasedAgain(shop.db, task.subject);
    await shop.db.query('update task set deadline_at = now()');
    const failed = `select from server where status = 'FAILED'`;
    await eventually(async () => (await shop.db.query(failed)).length === 2);
    expect(await shop.balance(shop.accountId)).toBe(FUNDS_MICROS);
  });
});
