/** The health of drivers, and the status page without workers. */
import { expect, it } from 'vitest';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { SimulatedPayments } from '../../../provisioning/payments/drivers/simulated.ts';
import type { X402Driver, X402Health } from '../../../provisioning/payments/drivers/x402/driver.ts';
import { SimulatedDriver } from '../../../provisioning/servers/drivers/simulated.ts';
import { driverHealthProcess } from '../../../provisioning/servers/reconcile/driver-health.ts';
import { actOfOperator, newDatabase } from '../../setup/database.ts';
import { atEnd } from '../../setup/end.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { openShop } from '../../setup/shop.ts';

class PartlyReached extends SimulatedDriver {
  override async reachable(region?: string): Promise<boolean> {
    if (region === 'zrh') throw new Error('No route to Zürich');
    return region !== 'kef';
  }
}

it('a driver that answers false, or fails, is out only in that region', async () => {
  class Payments extends SimulatedPayments {
    reachable = async () => false;
  }
  const driver = (folder: string) => new PartlyReached({ folder, bootSeconds: 0 });
  const shop = await openShop(atEnd, { driver, payments: [new Payments({ confirmSeconds: 0 })] });
  await shop.tick('driver-health');
  expect(await shop.db.query('select component, status from health order by 1')).toEqual([
    { component: 'machines-ams', status: 'operational' },
    { component: 'machines-buh', status: 'operational' },
    { component: 'machines-kef', status: 'major_outage' },
    { component: 'machines-zrh', status: 'major_outage' },
    { component: 'payments', status: 'major_outage' },
  ]);
});

it('an engine with an open circuit breaker is partly out, even if it answers', async () => {
  const shop = await openShop(atEnd);
  await shop.db.query(`insert into brake (driver, reason) values ('simulated', 'test')`);
  await shop.tick('driver-health');
  const found = await shop.db.query<{ status: string }>(
    `select distinct status from health where component <> 'payments'`,
  );
  expect(found).toEqual([{ status: 'partial_outage' }]);
});

it('a region with an offline host is partly out', async () => {
  const shop = await openShop(atEnd);
  await shop.db.query(
    `insert into host (name, region_code, kind, driver, state, vcpus, memory_mb, disk_gb)
      select state, region, 'VPS', 'simulated', state, 1, 1, 1 from (values ('OFFLINE', 'zrh'), ('DRAINING', 'ams')) given (state, region)`,
  );
  await shop.tick('driver-health');
  expect(await shop.db.query(`select component from health where status = 'partial_outage'`)).toEqual([
    { component: 'machines-zrh' },
  ]);
});

it('the operator gets one warning while payments by x402 are at risk', async () => {
  const db = await newDatabase();
  let health: X402Health = { reachable: true };
  const x402 = { health: async () => health } as unknown as X402Driver;
  const { steps } = driverHealthProcess(db, { engines: { all: async () => [] }, payments: [], x402 });
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

it('the status page reports a missing worker, at once if none ever ran, otherwise when work is late', async () => {
  const { anonymous, db } = await startFreehold({ ROLES: 'api' });
  const workers = async () => {
    actOfOperator(db);
    const { body } = await anonymous('GET', '/v1/transparency/status');
    return [body.indicator, body.components.find(({ id }: { id: string }) => id === 'workers').status];
  };
  expect(await workers()).toEqual(['major', 'major_outage']);
  const { provisioning } = await openShop(atEnd, { db });
  await provisioning.schedule();
  expect(await workers()).toEqual(['none', 'operational']);
  await db.query(`update task set run_at = now() - interval '70 seconds' where subject = 'cron:driver-health'`);
  expect(await workers()).toEqual(['minor', 'degraded_performance']);
  await db.query(`update task set run_at = now() - interval '11 minutes'`);
  expect(await workers()).toEqual(['major', 'major_outage']);
});
