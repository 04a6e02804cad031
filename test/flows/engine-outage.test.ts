/** An engine that is away during all kinds of work costs none of it. Seconds stand for minutes. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { verifyBooks } from '../../entities/payments/books.ts';
import { deleteServer } from '../../resolvers/servers/delete.ts';
import { orderServer } from '../../resolvers/servers/order.ts';
import { updateServer } from '../../resolvers/servers/update.ts';
import type { Fault } from '../servers/drivers/faulty-driver.ts';
import { openFaultyShop, startWorker } from '../setup/customer-shop.ts';
import { eventually } from '../setup/freehold.ts';
import { LIMITS } from '../setup/shop.ts';

const ORDER = { serviceCode: 'vps-1', os: 'debian-13', labels: {}, autoRenew: true };
/** How long the engine is away, in seconds. The deadlines of orders and changes are 30 minutes here, too. */
const AWAY_SECONDS = 8;

/** The manners in which an engine can be away. */
const OUTAGES: Record<string, (call: number) => Fault> = {
  'refuses every call': () => ({ kind: 'fail', code: 'unreachable' }),
  'carries calls out and loses their answers': (call) =>
    call % 3 ? { kind: 'fail', code: 'unreachable' } : { kind: 'lose' },
};

describe('An engine that is away during 20 orders, 5 resizes, 5 rebuilds, 5 reboots and 5 deletions', () => {
  it.each(Object.entries(OUTAGES))('and %s costs none of them', async (_, faultOf) => {
    const shop = await openFaultyShop(onTestFinished, {
      fundsMicros: 10n ** 9n,
      proofSeconds: { VPS: 5, DEDICATED: 5 },
      pollSeconds: 0.2,
      log: () => {},
    });
    const context = { ...shop.context, limits: { ...LIMITS, servers: 100 } };
    const worker = startWorker(shop, onTestFinished);
    const order = async () => (await orderServer(context, ORDER)).server.orderNumber;
    const orders = async (count: number) => {
      const made: string[] = [];
      while (made.length < count) made.push(await order());
      return made;
    };
    const statuses = async (numbers: string[]) =>
      (
        await shop.db.query<{ status: string }>(
          'select distinct status from server where order_number = any($1) order by 1',
          [numbers],
        )
      ).map(({ status }) => status);
    const settled = (numbers: string[], status: string) =>
      eventually(async () => (await statuses(numbers)).join() === status);

    const present = await orders(20);
    await settled(present, 'RUNNING');
    const [resized, rebuilt, rebooted, deleted] = [0, 5, 10, 15].map((from) => present.slice(from, from + 5)) as [
      string[],
      string[],
      string[],
      string[],
    ];
    for (const number of resized) await updateServer(context, number, { powerState: 'OFF' });
    await settled(resized, 'STOPPED');

    let calls = 0;
    shop.faulty.fault = () => faultOf(++calls);
    const ordered = await orders(20);
    for (const number of resized) await updateServer(context, number, { serviceCode: 'vps-2' });
    for (const number of rebuilt) await updateServer(context, number, { action: 'REBUILD', os: 'debian-12' });
    for (const number of rebooted) await updateServer(context, number, { action: 'REBOOT' });
    for (const number of deleted) await deleteServer(context, number);
    const back = performance.now() + AWAY_SECONDS * 1000;
    await eventually(async () => performance.now() > back);
    expect(calls).toBeGreaterThan(40);
    const meanwhile = await statuses([...present, ...ordered]);
    expect(meanwhile).toEqual(['DELETING', 'PROVISIONING', 'REBOOTING', 'REBUILDING', 'RESIZING']);

    shop.faulty.fault = () => undefined;
    await settled([...ordered, ...rebuilt, ...rebooted], 'RUNNING');
    await settled(resized, 'STOPPED');
    await settled(deleted, 'DELETED');
    await eventually(async () => !(await shop.db.query(`select from task where subject not like 'cron:%'`)).length);
    await worker.stop();
    for (const number of resized) expect(await shop.read(number)).toMatchObject({ serviceCode: 'vps-2', change: null });
    for (const number of rebuilt) expect(await shop.read(number)).toMatchObject({ os: 'debian-12', change: null });
    const failed = await shop.db.query(`select from event where type in ('server.failed', 'server.action_failed')`);
    expect(failed).toEqual([]);
    expect(await shop.db.query(`select from server where generation > 1`)).toEqual([]);
    expect(await shop.driver.list()).toHaveLength(35);
    expect((await verifyBooks(shop.db)).balanced).toBe(true);
  });
});
