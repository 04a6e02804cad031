/** Deadlines: an order ends in time. Its capacity is free when its machine is confirmed absent, its addresses a minute later. */
import { describe, expect, it } from 'vitest';
import { deleteServer } from '../../../resolvers/servers/delete.ts';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { type CustomerShop, FUNDS_MICROS, finish, openFaultyShop, traces } from '../../setup/customer-shop.ts';
import { eventually } from '../../setup/freehold.ts';
import type { OnEnd } from '../../setup/spawn.ts';
import type { Fault } from '../drivers/faulty-driver.ts';

const ORDER = { serviceCode: 'vps-1', region: 'ams', os: 'debian-13', autoRenew: true };

async function openFaulty(onEnd: OnEnd) {
  const shop = await openFaultyShop(onEnd);
  await shop.db.query(
    `insert into host (name, region_code, kind, driver, vcpus, memory_mb, disk_gb) values ('a', 'ams', 'VPS', 'faulty', 8, 16384, 1000)`,
  );
  const { orderNumber } = (await orderServer(shop.context, ORDER)).server;
  return { shop, faulty: shop.faulty, orderNumber };
}
const statusOf = async ({ db }: CustomerShop, orderNumber: string) =>
  (await db.query<{ status: string }>('select status from server where order_number = $1', [orderNumber]))[0]!.status;
/** All claims together: addresses, places, and machines of the host. */
async function held(shop: CustomerShop, orderNumber: string) {
  const { addresses, places } = await traces(shop, orderNumber);
  const [host] = await shop.db.query<{ machines: number }>('select machines from host');
  return [addresses, places, host!.machines];
}
const addressesOf = async ({ db }: CustomerShop) =>
  (await db.query<{ address: string }>('select address from address where held_by is not null order by 1')).map(
    ({ address }) => address,
  );

const UNCERTAIN: Fault[] = [
  { kind: 'fail', code: 'unreachable' },
  { kind: 'fail', code: 'failed' },
  { kind: 'fail', code: 'stuck' },
  { kind: 'lie', observation: { phase: 'unknown' } },
  { kind: 'lie', observation: { phase: 'incomplete' } },
  { kind: 'lie', observation: { phase: 'present' } },
];

describe.concurrent('A server that is deleted keeps its addresses, its place and its host', () => {
  for (const fault of UNCERTAIN) {
    it(`while the engine reports its machine as: ${JSON.stringify(fault)}`, async ({ onTestFinished }) => {
      const { shop, faulty, orderNumber } = await openFaulty(onTestFinished);
      await finish(shop, orderNumber, 'RUNNING');
      const had = await addressesOf(shop);
      expect(had).toHaveLength(2);
      let [asked, isLying] = [0, true];
      faulty.fault = (call) => {
        if (call !== 'destroy' || !isLying) return undefined;
        asked++;
        return fault;
      };
      await deleteServer(shop.context, orderNumber);
      const worker = shop.provisioning.newWorker();
      worker.start();
      const atOnce = () => shop.db.query('update task set run_at = now() where leased_by is null');
      await eventually(async () => (await atOnce()) && asked >= 4);
      expect(await statusOf(shop, orderNumber)).toBe('DELETING');
      expect(await addressesOf(shop)).toEqual(had);
      expect(await held(shop, orderNumber)).toEqual([2, 1, 1]);

      isLying = false;
      await eventually(async () => (await atOnce()) && (await statusOf(shop, orderNumber)) === 'DELETED');
      await worker.stop();
      expect(await held(shop, orderNumber)).toEqual([0, 0, 0]);
      const resting = await shop.db.query<{ seconds: number }>(
        `select extract(epoch from free_at - now())::float8 as seconds from address where address = any($1)`,
        [had],
      );
      for (const { seconds } of resting) expect(seconds).toBeGreaterThan(0);
      // The next one gets others, until these have rested. On a busy machine that is soon.
      await shop.db.query(`update address set free_at = free_at + interval '1 hour'`);
      const next = (await orderServer(shop.context, ORDER)).server.orderNumber;
      await finish(shop, next, 'RUNNING');
      expect((await addressesOf(shop)).filter((address) => had.includes(address))).toEqual([]);
    });
  }
});

it.concurrent('Only 25 addresses of a family rest for one account, those of its latest machines', async ({
  onTestFinished,
}) => {
  const { shop, orderNumber } = await openFaulty(onTestFinished);
  await finish(shop, orderNumber, 'RUNNING');
  const had = await addressesOf(shop);
  await shop.db.query(
    `update address set rests_for = $1, free_at = now() + interval '5 minutes'
     where region_code = 'ams' and held_by is null and family = 'IPV4'`,
    [shop.context.viewer!.accountId],
  );
  await deleteServer(shop.context, orderNumber);
  await finish(shop, orderNumber, 'DELETED');
  const resting = await shop.db.query<{ address: string }>(
    `select address from address where free_at > now() and family = 'IPV4' and region_code = 'ams'`,
  );
  expect(resting).toHaveLength(25);
  expect(resting.map(({ address }) => address)).toContain(had.find((address) => !address.includes(':')));
});

it.concurrent('An order with an unknown machine is refunded at its deadline, and keeps its capacity until the absence is confirmed', async ({
  onTestFinished,
}) => {
  const { shop, faulty, orderNumber } = await openFaulty(onTestFinished);
  const gone: Fault = { kind: 'lie', observation: { phase: 'unknown' } };
  let isVisible = false;
  const isMade = () => shop.driver.journal().includes(`create ${orderNumber} 1`);
  faulty.fault = (call) => (!isVisible && isMade() && (call === 'observe' || call === 'destroy') ? gone : undefined);
  const worker = shop.provisioning.newWorker();
  worker.start();
  await eventually(async () => (await statusOf(shop, orderNumber)) === 'PROVISIONING');
  await eventually(async () => shop.driver.journal().includes(`create ${orderNumber} 1`));
  const minutes = async (number: string) =>
    (
      await shop.db.query<{ minutes: number }>(
        `select extract(epoch from deadline_at - created_at)::float8 / 60 as minutes from task where subject = $1`,
        [number],
      )
    )[0]?.minutes;
  expect(await minutes(orderNumber)).toBeCloseTo(30, 0);

  await shop.db.query('update task set deadline_at = now() where subject = $1', [orderNumber]);
  await eventually(async () => (await statusOf(shop, orderNumber)) === 'FAILED');
  const { transfers, balance } = await traces(shop, orderNumber);
  expect([transfers, balance]).toEqual([['hold', 'release'], { available: FUNDS_MICROS, held: 0n }]);
  expect(await held(shop, orderNumber)).toEqual([2, 1, 1]);

  isVisible = true;
  await shop.db.query('update task set run_at = now() where leased_by is null');
  await eventually(async () => (await addressesOf(shop)).length === 0);
  await worker.stop();
  expect(await held(shop, orderNumber)).toEqual([0, 0, 0]);
  expect(await shop.driver.list()).toEqual([]);
});
