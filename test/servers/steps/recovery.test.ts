/** Recovery of machines that are never finished, and the claims that last until their absence is confirmed. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { verifyBooks } from '../../../entities/payments/books.ts';
import { DriverError, type MachineKey, type Observation } from '../../../provisioning/servers/drivers/driver.ts';
import { macOf } from '../../../provisioning/servers/placement/spec.ts';
import { OBSERVER_PROCESS } from '../../../provisioning/servers/reconcile/observe.ts';
import { cronSubject } from '../../../provisioning/tasks/schedule.ts';
import { deleteServer } from '../../../resolvers/servers/delete.ts';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { type CustomerShop, finish, openCustomerShop, traces } from '../../setup/customer-shop.ts';
import { eventually, leasedAgain } from '../../setup/freehold.ts';

const ORDER = { serviceCode: 'vps-1', region: 'ams', os: 'debian-13', labels: {}, autoRenew: true };
const order = async ({ context }: CustomerShop) => (await orderServer(context, ORDER)).server.orderNumber;
const addHosts = ({ db }: CustomerShop, ...names: string[]) =>
  db.query(
    `insert into host (name, region_code, kind, driver, vcpus, memory_mb, disk_gb)
      select name, 'ams', 'VPS', 'simulated', 4, 8192, 100 from unnest($1::text[]) name`,
    [names],
  );
const claims = ({ db }: CustomerShop) =>
  db.query<{ machines: number; memory: number; placements: number }>(
    `select sum(machines)::int as machines, sum(claimed_memory_mb)::int as memory,
      (select count(*)::int from placement) as placements from host`,
  );
const read = async ({ db }: CustomerShop, orderNumber: string) =>
  (
    await db.query<{ generation: number; host: string; failureCode: string; status: string }>(
      `select generation, host, status, failure_code as "failureCode" from server where order_number = $1`,
      [orderNumber],
    )
  )[0]!;
const journal = ({ driver }: CustomerShop) => driver.journal().map((line) => line.replace(/SRV-\w+ /, ''));

/** Reports each machine as the test demands, without changing it. */
const seen = ({ driver }: CustomerShop, as: (seen: Observation) => Observation) => {
  const observe = driver.observe.bind(driver);
  driver.observe = async (key: MachineKey, signal: AbortSignal) => as(await observe(key, signal));
};

describe('A machine that gives no proof', () => {
  it('is made once more, on another host with another MAC; then the order is refunded and leaves nothing', async () => {
    const shop = await openCustomerShop(onTestFinished);
    await addHosts(shop, 'a', 'b');
    seen(shop, (one) => ({ ...one, proven: false }));
    const orderNumber = await order(shop);
    await finish(shop, orderNumber, 'FAILED');
    expect(journal(shop)).toEqual(['create 1', 'destroy 1', 'create 2', 'destroy 2']);
    expect(await read(shop, orderNumber)).toMatchObject({ failureCode: 'provisioning_failed' });
    const { transfers, addresses, places } = await traces(shop, orderNumber);
    expect({ transfers, addresses, places }).toEqual({ transfers: ['hold', 'release'], addresses: 0, places: 0 });
    expect(await claims(shop)).toEqual([{ machines: 0, memory: 0, placements: 0 }]);
    expect((await verifyBooks(shop.db)).balanced).toBe(true);
    const macs = [1, 2].map((generation) => macOf({ order: orderNumber, generation }));
    expect(new Set(macs).size).toBe(2);
  });

  it('is made again in its time if it vanishes or is undone, and is replaced after that', async () => {
    const shop = await openCustomerShop(onTestFinished);
    seen(shop, (one) => (one.generation === 1 ? { ...one, phase: 'incomplete', proven: false } : one));
    const orderNumber = await order(shop);
    await finish(shop, orderNumber, 'RUNNING');
    expect(await read(shop, orderNumber)).toMatchObject({ generation: 2 });
    expect(journal(shop)).toEqual(['create 1', 'destroy 1', 'create 2']);
  });

  it('stays as it is while its state is unknown, and keeps its capacity', async () => {
    const shop = await openCustomerShop(onTestFinished);
    await addHosts(shop, 'a');
    let isVisible = false;
    seen(shop, (one) => (isVisible || one.phase === 'absent' ? one : { ...one, phase: 'unknown', proven: false }));
    const orderNumber = await order(shop);
    const worker = shop.provisioning.newWorker();
    worker.start();
    await eventually(async () => (await read(shop, orderNumber)).status === 'PROVISIONING');
    await leasedAgain(shop.db, orderNumber);
    expect(journal(shop)).toEqual(['create 1']);
    expect(await claims(shop)).toEqual([{ machines: 1, memory: 2048, placements: 1 }]);
    isVisible = true;
    await eventually(async () => (await read(shop, orderNumber)).status === 'RUNNING');
    await worker.stop();
    expect(journal(shop)).toEqual(['create 1']);
  });
});

it('A machine moves to another host if its host has no room; the order fails without another', async () => {
  const shop = await openCustomerShop(onTestFinished);
  await addHosts(shop, 'full', 'roomy');
  const create = shop.driver.create.bind(shop.driver);
  shop.driver.create = async (spec, signal) => {
    if (spec.host !== 'roomy') throw new DriverError('no_capacity', 'no room, for the test');
    return create(spec, signal);
  };
  await shop.db.query(`update host set memory_mb = memory_mb * 100 where name = 'full'`);
  const orderNumber = await order(shop);
  await finish(shop, orderNumber, 'RUNNING');
  expect(await read(shop, orderNumber)).toMatchObject({ host: 'roomy', generation: 2 });
  expect(await claims(shop)).toEqual([{ machines: 1, memory: 2048, placements: 1 }]);

  await shop.db.query(`update host set state = 'DRAINING' where name = 'roomy'`);
  const refused = await order(shop);
  await finish(shop, refused, 'FAILED');
  expect((await traces(shop, refused)).transfers).toEqual(['hold', 'release']);
  expect(await claims(shop)).toEqual([{ machines: 1, memory: 2048, placements: 1 }]);
});

describe('A machine that is stuck', () => {
  it('is turned off, reported and replaced, and keeps its claim until its absence is confirmed', async () => {
    const shop = await openCustomerShop(onTestFinished, { refused: ['stuck'] });
    await addHosts(shop, 'a', 'b');
    const orderNumber = await order(shop);
    await finish(shop, orderNumber, 'RUNNING');
    const { host, generation } = await read(shop, orderNumber);
    expect(generation).toBe(2);
    const placed = await shop.db.query<{ generation: number; host: string }>(
      'select generation, host from placement order by generation',
    );
    expect(placed).toEqual([
      { generation: 1, host: host === 'a' ? 'b' : 'a' },
      { generation: 2, host },
    ]);
    const found = () => shop.db.query('select kind, generation, resolved_at is null as open from finding');
    expect(await found()).toEqual([{ kind: 'STUCK', generation: 1, open: true }]);

    const look = async () => {
      await shop.provisioning.schedule();
      await shop.db.query('update task set run_at = now(), leased_by = null where subject = $1', [
        cronSubject(OBSERVER_PROCESS),
      ]);
      await shop.provisioning.newWorker().drain('periodic');
    };
    await look();
    expect(await claims(shop)).toEqual([{ machines: 2, memory: 4096, placements: 2 }]);
    shop.driver.refused = [];
    await shop.driver.destroy({ order: orderNumber, generation: 1 }, new AbortController().signal);
    await look();
    expect(await claims(shop)).toEqual([{ machines: 1, memory: 2048, placements: 1 }]);
    expect(await found()).toEqual([{ kind: 'STUCK', generation: 1, open: false }]);
  });

  it('is removed with the others when the server is deleted, and delays the deletion until then', async () => {
    const shop = await openCustomerShop(onTestFinished, { refused: ['stuck'] });
    await addHosts(shop, 'a', 'b');
    const orderNumber = await order(shop);
    await finish(shop, orderNumber, 'RUNNING');
    await deleteServer(shop.context, orderNumber);
    const worker = shop.provisioning.newWorker();
    worker.start();
    await eventually(async () => journal(shop).includes('destroy 2'));
    await eventually(async () => (await shop.db.query('select 1 from task where error is not null')).length > 0);
    expect((await read(shop, orderNumber)).status).toBe('DELETING');
    expect(await claims(shop)).toEqual([{ machines: 2, memory: 4096, placements: 2 }]);
    shop.driver.refused = [];
    await shop.db.query('update task set run_at = now() where leased_by is null');
    await eventually(async () => (await read(shop, orderNumber)).status === 'DELETED');
    await worker.stop();
    expect(await claims(shop)).toEqual([{ machines: 0, memory: 0, placements: 0 }]);
    expect((await traces(shop, orderNumber)).addresses).toBe(0);
  });

  it('fails the order if no other host has room, and is removed', async () => {
    const shop = await openCustomerShop(onTestFinished, { refused: ['stuck'] });
    await addHosts(shop, 'a');
    await shop.db.query('update host set memory_mb = 2048');
    const orderNumber = await order(shop);
    const worker = shop.provisioning.newWorker();
    worker.start();
    await eventually(async () => (await read(shop, orderNumber)).status === 'FAILED');
    expect((await traces(shop, orderNumber)).transfers).toEqual(['hold', 'release']);
    shop.driver.refused = [];
    await eventually(
      async () => (await shop.db.query(`select 1 from task where subject = $1`, [orderNumber])).length === 0,
    );
    await worker.stop();
    expect(await claims(shop)).toEqual([{ machines: 0, memory: 0, placements: 0 }]);
  });
});
