/** What workers find of drivers, and what the status says when there are no workers. */
import { afterAll, expect, it } from 'vitest';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { SimulatedPayments } from '../../../provisioning/payments/drivers/simulated.ts';
import type { X402Driver, X402Health } from '../../../provisioning/payments/drivers/x402/driver.ts';
import { SimulatedDriver } from '../../../provisioning/servers/drivers/simulated.ts';
import { driverHealthProcess } from '../../../provisioning/servers/reconcile/driver-health.ts';
import { newDatabase } from '../../setup/database.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { openShop } from '../../setup/shop.ts';

class PartlyReached extends SimulatedDriver {
  override async reachable(region?: string): Promise<boolean> {
    if (region === 'zrh') throw new Error('No route to Zürich');
    return region !== 'kef';
  }
}

it('a driver that says no, or fails, is out in that region alone', async () => {
  class Payments extends SimulatedPayments {
    reachable = async () => false;
  }
  const driver = (folder: string) => new PartlyReached({ folder, bootSeconds: 0 });
  const shop = await openShop(afterAll, { driver, payments: [new Payments({ confirmSeconds: 0 })] });
  await shop.tick('driver-health');
  expect(await shop.db.query('select component, status from health order by 1')).toEqual([
    { component: 'machines-ams', status: 'operational' },
    { component: 'machines-buh', status: 'operational' },
    { component: 'machines-kef', status: 'major_outage' },
    { component: 'machines-zrh', status: 'major_outage' },
    { component: 'payments', status: 'major_outage' },
  ]);
});

it('an engine that is braked counts as partly out, though it answers', async () => {
  const shop = await openShop(afterAll);
  await shop.db.query(`insert into brake (driver, reason) values ('simulated', 'test')`);
  await shop.tick('driver-health');
  const found = await shop.db.query<{ status: string }>(
    `select distinct status from health where component <> 'payments'`,
  );
  expect(found).toEqual([{ status: 'partial_outage' }]);
});

it('a region of which a host is offline is partly out', async () => {
  const shop = await openShop(afterAll);
  await shop.db.query(
    `insert into host (name, region_code, kind, driver, state, vcpus, memory_mb, disk_gb)
      select state, region, 'VPS', 'simulated', state, 1, 1, 1 from (values ('OFFLINE', 'zrh'), ('DRAINING', 'ams')) given (state, region)`,
  );
  await shop.tick('driver-health');
  expect(await shop.db.query(`select component from health where status = 'partial_outage'`)).toEqual([
    { component: 'machines-zrh' },
  ]);
});

it('what will keep payments by x402 from being settled is told to the operator, once while it is so', async () => {
  const db = await newDatabase(afterAll);
  let health: X402Health = { reachable: true };
  const x402 = { health: async () => health } as unknown as X402Driver;
  const { steps } = driverHealthProcess(db, { machines: [], payments: [], x402 });
  const tick = async () => {
    const outcome = await steps.start!({ aborted: new AbortController().signal } as never);
    await db.transaction(async (tx) => (outcome as { commit: (tx: Transaction) => unknown }).commit(tx));
  };
  const told = async () =>
    (
      await db.query<{ warning: string }>(`select data->>'warning' as warning from event where type = 'gateway.warned'`)
    ).map(({ warning }) => warning);
  await tick();
  expect(await told()).toEqual([]);
  health = { reachable: true, warning: 'Little gas.' };
  await tick();
  await tick();
  expect(await told()).toEqual(['Little gas.']);
  health = { reachable: true };
  await tick();
  health = { reachable: false, warning: 'No gas.' };
  await tick();
  expect((await told()).sort()).toEqual(['Little gas.', 'No gas.']);
  const [payments] = await db.query(`select status from health where component = 'payments'`);
  expect(payments).toEqual({ status: 'major_outage' });
});

it('without a worker the status says so, at once if there never was one, else as soon as work is late', async () => {
  const { anonymous, db } = await startFreehold({ ROLES: 'api' });
  const workers = async () => {
    const { body } = await anonymous('GET', '/v1/transparency/status');
    return [body.indicator, body.components.find(({ id }: { id: string }) => id === 'workers').status];
  };
  expect(await workers()).toEqual(['major', 'major_outage']);
  const { provisioning } = await openShop(afterAll, { db });
  await provisioning.schedule();
  expect(await workers()).toEqual(['none', 'operational']);
  await db.query(`update task set run_at = now() - interval '70 seconds' where subject = 'cron:driver-health'`);
  expect(await workers()).toEqual(['minor', 'degraded_performance']);
  await db.query(`update task set run_at = now() - interval '11 minutes'`);
  expect(await workers()).toEqual(['major', 'major_outage']);
});
