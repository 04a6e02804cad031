/** The price of a tier reaches its present servers after a notice, at a renewal. */
import { beforeEach, expect, it } from 'vitest';
import { proveBooks } from '../../../entities/payments/books.ts';
import { repriceServers, withdrawReprice } from '../../../resolvers/catalog/reprice.ts';
import { setPrice } from '../../../resolvers/catalog/tiers.ts';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { updateServer } from '../../../resolvers/servers/update.ts';
import { finish, openCustomerShop } from '../../setup/customer-shop.ts';
import { atEnd } from '../../setup/end.ts';

const shop = await openCustomerShop(atEnd, { fundsMicros: 1_000_000_000n });
const { db, accountId } = shop;
const operator = {
  ...shop.context,
  viewer: { ...shop.context.viewer!, accountId: null, kind: 'operator' as const, credentialId: 'operator', name: null },
};
const price = (usd: bigint) => setPrice(operator, 'vps-1', { priceMonthMicros: usd * 1_000_000n });
const reprice = (days: number) => repriceServers(operator, 'vps-1', days);
const ordered = async () => {
  const { server } = await orderServer(shop.context, { serviceCode: 'vps-1', os: 'debian-13', autoRenew: true });
  await finish(shop, server.orderNumber, 'RUNNING');
  return server.orderNumber;
};
/** Moves the time on, so that the notice ended an hour ago, or the paid time ended now. */
const pass = (what: 'next_price_from' | 'paid_until', order: string) =>
  db.query(
    `update server set ${what} = now() - ${what === 'paid_until' ? `interval '0'` : `interval '1 hour'`}
    where order_number = $1`,
    [order],
  );
const charges = async (order: string) =>
  (
    await db.query<{ micros: bigint }>(
      `select amount_micros as micros from transfer where order_number = $1 and kind = 'renewal' order by id`,
      [order],
    )
  ).map(({ micros }) => Number(micros) / 1e6);
const news = async (order: string) =>
  (
    await db.query<{ data: Record<string, unknown> }>(
      `select data from event where subject = $1 and type = 'server.updated' and data ? 'nextPriceMonthUsd' order by id`,
      [order],
    )
  ).map(({ data }) => data);
const balanced = async () => (await proveBooks(db)).firstFault;

beforeEach(() => price(6n));

it('A higher price counts from the first renewal after the notice, and the customer hears of it at once', async () => {
  const order = await ordered();
  await price(9n);
  expect(await reprice(14)).toMatchObject({ servers: 1, priceMonthMicros: 9_000_000n });
  const from = (await shop.read(order)).nextPriceFrom!;
  expect(await news(order)).toEqual([{ nextPriceMonthUsd: 9, nextPriceFrom: from.toISOString() }]);
  const told = await db.query<{ title: string; body: string }>('select title, body from message');
  expect(told).toMatchObject([{ title: 'Price of vps-1', body: expect.stringContaining('costs 9 USD') }]);
  const [{ days }] = (await db.query<{ days: number }>(
    `select round(extract(epoch from next_price_from - now()) / 86400)::int as days from server where order_number = $1`,
    [order],
  )) as [{ days: number }];
  expect(days).toBe(14);
  expect((await reprice(30)).servers).toBe(0);

  await pass('paid_until', order);
  await shop.tick('renewals');
  expect(await charges(order)).toEqual([6]);
  await pass('next_price_from', order);
  await pass('paid_until', order);
  await shop.tick('renewals');
  expect(await charges(order)).toEqual([6, 9]);
  expect(await shop.read(order)).toMatchObject({
    ...{ priceMonthMicros: 9_000_000n, nextPriceMicros: null, nextPriceFrom: null },
  });
  expect(await balanced()).toBeNull();
});

it('A higher price without two weeks of notice is refused, and no server hears of it', async () => {
  const order = await ordered();
  await price(7n);
  await expect(reprice(13)).rejects.toMatchObject({
    message: 'A higher price needs a notice of 14 days or more.',
  });
  await expect(reprice(366)).rejects.toMatchObject({ code: 'validation_failed' });
  await expect(repriceServers(operator, 'ams', 14)).rejects.toMatchObject({ code: 'unknown_service_code' });
  expect(await news(order)).toEqual([]);
});

it('A price that another operator has set meanwhile is not announced', async () => {
  const order = await ordered();
  await price(4n);
  const [seen] = await db.query<{ version: number }>(`select version from catalog_item where code = 'vps-1'`);
  await price(1n);
  await expect(repriceServers(operator, 'vps-1', 0, seen!.version)).rejects.toMatchObject({
    message: expect.stringMatching(/^Another operator has changed vps-1/),
  });
  expect(await news(order)).toEqual([]);
  await repriceServers(operator, 'vps-1', 0, seen!.version + 1);
  expect(await news(order)).toHaveLength(1);
});

it('A lower price needs no notice, and a server that resumes takes it as well', async () => {
  const [first, second] = [await ordered(), await ordered()];
  await price(4n);
  await reprice(0);
  await pass('paid_until', first);
  await shop.tick('renewals');
  expect(await charges(first)).toEqual([4]);

  await updateServer(shop.context, second, { autoRenew: false });
  await pass('paid_until', second);
  await shop.tick('renewals');
  expect((await shop.read(second)).status).toBe('SUSPENDED');
  const before = await shop.balance(accountId);
  await updateServer(shop.context, second, { autoRenew: true });
  await finish(shop, second, 'RUNNING');
  expect(await shop.balance(accountId)).toBe(before - 4_000_000n);
  expect(await balanced()).toBeNull();
});

it('The old price ends an announcement, and so does a resize', async () => {
  const [first, second] = [await ordered(), await ordered()];
  await price(8n);
  await reprice(20);
  await updateServer(shop.context, second, { powerState: 'OFF' });
  await finish(shop, second, 'STOPPED');
  await updateServer(shop.context, second, { serviceCode: 'vps-2' });
  await finish(shop, second, 'STOPPED');
  expect(await shop.read(second)).toMatchObject({ priceMonthMicros: 12_000_000n, nextPriceFrom: null });
  await price(6n);
  await reprice(14);
  expect(await shop.read(first)).toMatchObject({ priceMonthMicros: 6_000_000n, nextPriceMicros: null });
  expect((await news(first)).at(-1)).toEqual({ nextPriceMonthUsd: null });
});

it('A server that resizes to the tier takes the announced price', async () => {
  const grown = await ordered();
  await updateServer(shop.context, grown, { powerState: 'OFF' });
  await finish(shop, grown, 'STOPPED');
  await updateServer(shop.context, grown, { serviceCode: 'vps-2' });
  const [{ repriced }] = (await db.query<{ repriced: number }>(
    `select count(*)::int as repriced from server where service_code = 'vps-2' or change ->> 'serviceCode' = 'vps-2'`,
  )) as [{ repriced: number }];
  await setPrice(operator, 'vps-2', { priceMonthMicros: 15_000_000n });
  await expect(repriceServers(operator, 'vps-2', 13)).rejects.toMatchObject({ code: 'validation_failed' });
  expect(await repriceServers(operator, 'vps-2', 14)).toMatchObject({ servers: repriced });
  expect((await repriceServers(operator, 'vps-2', 14)).servers).toBe(0);
  expect((await withdrawReprice(operator, 'vps-2')).servers).toBe(repriced);
  expect((await repriceServers(operator, 'vps-2', 14)).servers).toBe(repriced);
  expect((await news(grown)).at(-1)).toMatchObject({ nextPriceMonthUsd: 15 });
  await finish(shop, grown, 'STOPPED');
  expect(await shop.read(grown)).toMatchObject({
    ...{ serviceCode: 'vps-2', priceMonthMicros: 12_000_000n, nextPriceMicros: 15_000_000n },
    nextPriceFrom: expect.any(Date),
  });
  await setPrice(operator, 'vps-2', { priceMonthMicros: 12_000_000n });
});

/** Another shop, and the acts of its operator. */
async function openAnother() {
  const another = await openCustomerShop(atEnd, { fundsMicros: 100_000_000n });
  const its = { ...another.context, viewer: operator.viewer };
  return {
    ...another,
    price: (usd: bigint) => setPrice(its, 'vps-1', { priceMonthMicros: usd * 1_000_000n }),
    order: async () =>
      (await orderServer(another.context, { serviceCode: 'vps-1', os: 'debian-13', autoRenew: true })).server
        .orderNumber,
    reprice: (days: number) => repriceServers(its, 'vps-1', days),
    withdraw: (code = 'vps-1') => withdrawReprice(its, code),
  };
}

it('The operator takes an announcement back over servers with several prices, and the customers hear of it', async () => {
  const another = await openAnother();
  const old = await another.order();
  await another.price(7n);
  const young = await another.order();
  await another.price(9n);
  await another.reprice(30);
  await another.price(7n);
  const next = async () =>
    (await Promise.all([old, young].map((one) => another.read(one)))).map(({ nextPriceMicros }) => nextPriceMicros);
  expect(await next()).toEqual([9_000_000n, 9_000_000n]);
  expect(await another.withdraw()).toMatchObject({ servers: 2 });
  expect(await next()).toEqual([null, null]);
  const events = await another.db.query(
    `select data from event where subject = $1 and data ? 'nextPriceMonthUsd' order by id`,
    [old],
  );
  expect(events.at(-1)).toEqual({ data: { nextPriceMonthUsd: null } });
  expect(await another.db.query('select body from message')).toContainEqual({
    body: expect.stringContaining('The announced price of the tier vps-1 does not come.'),
  });
  expect(await another.withdraw()).toMatchObject({ servers: 0 });
  await expect(another.withdraw('ams')).rejects.toMatchObject({ code: 'unknown_service_code' });
});

it('The operator cannot take a promised lower price back, and the server pays it for a month', async () => {
  const another = await openAnother();
  await another.price(10n);
  const order = await another.order();
  await finish(another, order, 'RUNNING');
  await another.price(5n);
  expect(await another.reprice(0)).toMatchObject({ servers: 1, promised: 0 });
  const promise = { priceMonthMicros: 10_000_000n, nextPriceMicros: 5_000_000n };
  expect(await another.withdraw()).toMatchObject({ servers: 0, promised: 0 });
  for (const [usd, days] of [
    [10n, 14],
    [9n, 14],
    [4n, 365],
  ] as const) {
    await another.price(usd);
    expect(await another.reprice(days)).toMatchObject({ servers: 0, promised: 1 });
    expect(await another.read(order)).toMatchObject(promise);
  }
  await another.price(4n);
  expect(await another.reprice(0)).toMatchObject({ servers: 1, promised: 0 });
  await another.db.query('update server set paid_until = now() where order_number = $1', [order]);
  await another.tick('renewals');
  expect(await another.read(order)).toMatchObject({ priceMonthMicros: 4_000_000n, nextPriceMicros: null });
  await another.price(9n);
  await expect(another.reprice(0)).rejects.toMatchObject({
    message: 'A higher price needs a notice of 14 days or more.',
  });
  expect(await another.reprice(14)).toMatchObject({ servers: 1, promised: 0 });
});

it('A price that an account cannot pay suspends the server, as the old one would', async () => {
  const poor = await openCustomerShop(atEnd, { fundsMicros: 13_000_000n });
  const { server } = await orderServer(poor.context, { serviceCode: 'vps-1', os: 'debian-13', autoRenew: true });
  await finish(poor, server.orderNumber, 'RUNNING');
  await poor.db.query(
    `update server set next_price_micros = 8000000, next_price_from = now() - interval '1 hour', paid_until = now()
      where order_number = $1`,
    [server.orderNumber],
  );
  await poor.tick('renewals');
  expect((await poor.read(server.orderNumber)).status).toBe('SUSPENDED');
  expect(await poor.balance(poor.accountId)).toBe(7_000_000n);
});

it('A price starts for the rebuilding servers alone whose account pays it', async () => {
  const poor = await openCustomerShop(atEnd, { fundsMicros: 20_000_000n });
  const orders: string[] = [];
  for (let i = 0; i < 2; i++) {
    const { server } = await orderServer(poor.context, { serviceCode: 'vps-1', os: 'debian-13', autoRenew: true });
    await finish(poor, server.orderNumber, 'RUNNING');
    orders.push(server.orderNumber);
  }
  for (const order of orders) await updateServer(poor.context, order, { action: 'REBUILD' });
  await poor.db.query(
    `update server set next_price_micros = 8000000, next_price_from = now() - interval '1 hour', paid_until = now()`,
  );
  await poor.tick('renewals');
  for (const order of orders) await finish(poor, order, 'RUNNING');
  const prices = await Promise.all(orders.map(async (order) => (await poor.read(order)).priceMonthMicros));
  expect(prices.sort()).toEqual([6_000_000n, 8_000_000n]);
  expect((await proveBooks(poor.db)).firstFault).toBeNull();
});
