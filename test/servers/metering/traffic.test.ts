/** Traffic above the tier: the warnings, the slow machines, and the paid TB. */
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { FIND_DUE_TRAFFIC } from '../../../entities/servers/metering/traffic.ts';
import { chargeTraffic } from '../../../provisioning/servers/metering/traffic.ts';
import { newDatabase, truncate } from '../../setup/database.ts';
import { atEnd } from '../../setup/end.ts';
import { eventually } from '../../setup/freehold.ts';
import { deathOf, runScript } from '../../setup/spawn.ts';
import { openMeteredShop, setTier, TB, TIER_TB } from './meter-shop.ts';

const db = await newDatabase();
const shop = await openMeteredShop(atEnd, { db });
const { driver, metered, reads, events } = shop;
const PRICE_TB = 3_000_000n;
beforeEach(async () => {
  await truncate(db, 'server, task, meter, event');
  await db.query(`update catalog_item set details = details - 'extraTbMicros' - 'slowMbps' where code = 'vps-1'`);
  driver.speeds.length = 0;
  driver.counters.clear();
});

const sells = () => setTier(shop, { extraTbMicros: Number(PRICE_TB) });
const paid = (orderNumber: string) =>
  db.query(
    `select external_key as key, amount_micros as micros from transfer where kind = 'traffic' and order_number = $1 order by id`,
    [orderNumber],
  );
const thisMonth = new Date().toISOString().slice(0, 7);
const keys = (orderNumber: string, count: number) =>
  Array.from({ length: count }, (_, i) => ({ key: `traffic:${orderNumber}:${thisMonth}:${i + 1}`, micros: PRICE_TB }));

describe('A server', () => {
  it('gets a warning at 80 and at 100 % of its traffic, once each month', async () => {
    const order = await metered(await shop.account(0n));
    await reads(order, { sentBytes: 0.79 * TIER_TB * TB });
    expect(await events(order)).toEqual([]);
    for (const part of [0.8, 0.9, 0.99, 1, 1.1]) await reads(order, { sentBytes: part * TIER_TB * TB });
    expect(await db.query(`select type, data from event where subject = $1 order by id`, [order])).toEqual([
      { type: 'server.traffic_warned', data: { percent: 80, usedGb: 1600 } },
      { type: 'server.traffic_warned', data: { percent: 100, usedGb: 2000 } },
    ]);
    await shop.monthEnds(order);
    await reads(order, { sentBytes: 2 * TIER_TB * TB });
    expect(await events(order)).toEqual(Array(3).fill('server.traffic_warned'));
  });

  it('gets one warning if it passes both marks within a minute', async () => {
    const order = await metered(await shop.account(0n));
    await reads(order, { sentBytes: 3 * TB });
    expect(await db.query(`select data->'percent' as percent from event where subject = $1`, [order])).toEqual([
      { percent: 100 },
    ]);
  });

  it('has no limit if its tier is unmetered', async () => {
    const order = await metered(await shop.account(0n), { kind: 'DEDICATED', serviceCode: 'ded-1' });
    await shop.minute('DEDICATED');
    driver.counters.set(order, { sentBytes: 90 * TB });
    await shop.minute('DEDICATED');
    expect(await events(order)).toEqual([]);
    expect(driver.speeds).toEqual([]);
  });
});

describe('A machine above its traffic', () => {
  it('is slow from then on, until the next month', async () => {
    const order = await metered(await shop.account(100n * PRICE_TB));
    await reads(order, { sentBytes: TIER_TB * TB });
    expect(driver.speeds).toEqual([]);
    await reads(order, { sentBytes: TIER_TB * TB + 1 });
    for (let i = 0; i < 3; i++) await shop.minute();
    expect(driver.speeds).toEqual([`${order} 10`]);
    await shop.monthEnds(order);
    for (let i = 0; i < 3; i++) await shop.minute();
    expect(driver.speeds).toEqual([`${order} 10`, `${order} 1000`]);
    expect(await paid(order)).toEqual([]);
  });

  it('has the slow speed of its tier, also after a rebuild made it fast', async () => {
    await setTier(shop, { slowMbps: 5 });
    const order = await metered(await shop.account(0n));
    await reads(order, { sentBytes: 3 * TB });
    await shop.minute();
    await driver.setSpeed({ order, generation: 1 }, 1000);
    for (let i = 0; i < 2; i++) await shop.minute();
    expect(driver.speeds.map((line) => line.split(' ')[1])).toEqual(['5', '1000', '5']);
  });

  it('keeps a speed that is neither that of its tier nor the slow one, within its traffic', async () => {
    const order = await metered(await shop.account(0n));
    await reads(order, { portMbps: 400 });
    expect(driver.speeds).toEqual([]);
  });

  it('pays for each begun TB once, if its tier sells more', async () => {
    await sells();
    const account = await shop.account(10n * PRICE_TB);
    const order = await metered(account);
    for (const sent of [2, 2.1, 2.9, 3, 3.1, 3.1, 5.5]) await reads(order, { sentBytes: sent * TB });
    expect(await paid(order)).toEqual(keys(order, 4));
    expect(await shop.balance(account)).toBe(6n * PRICE_TB);
    expect(driver.speeds).toEqual([]);
    const charged = await db.query(
      `select data from event where subject = $1 and type = 'server.traffic_charged' order by id`,
      [order],
    );
    expect(charged).toEqual([
      { data: { amountUsd: 3, usedGb: 2100 } },
      { data: { amountUsd: 3, usedGb: 3100 } },
      { data: { amountUsd: 6, usedGb: 5500 } },
    ]);
    expect(await shop.balanced()).toBe(true);
  });

  it('is slow without money, and never takes more than the balance', async () => {
    await sells();
    const account = await shop.account(2n * PRICE_TB - 1n);
    const order = await metered(account);
    await reads(order, { sentBytes: 4.5 * TB });
    await shop.minute();
    expect(await paid(order)).toEqual(keys(order, 1));
    expect(await shop.balance(account)).toBe(PRICE_TB - 1n);
    expect(driver.speeds).toEqual([`${order} 10`]);
    await shop.fund(account, 2n * PRICE_TB);
    for (let i = 0; i < 2; i++) await shop.minute();
    expect(await paid(order)).toEqual(keys(order, 3));
    expect(driver.speeds).toEqual([`${order} 10`, `${order} 1000`]);
  });

  it('shares one balance with the other servers of its account', async () => {
    await sells();
    const account = await shop.account(3n * PRICE_TB);
    const [one, other] = [await metered(account), await metered(account)];
    driver.counters.set(one, { sentBytes: 3.5 * TB });
    driver.counters.set(other, { sentBytes: 3.5 * TB });
    await shop.minute();
    expect((await paid(one)).length + (await paid(other)).length).toBe(3);
    expect(await shop.balance(account)).toBe(0n);
  });

  it('is slow if the server does not renew itself, because nothing else may charge it either', async () => {
    await sells();
    const account = await shop.account(10n * PRICE_TB);
    const order = await metered(account, { autoRenew: false });
    await reads(order, { sentBytes: 3 * TB });
    expect(driver.speeds).toEqual([`${order} 10`]);
    expect(await shop.balance(account)).toBe(10n * PRICE_TB);
  });

  it('is slow if its tier sells more for nothing', async () => {
    await setTier(shop, { extraTbMicros: 0 });
    const order = await metered(await shop.account(PRICE_TB));
    await reads(order, { sentBytes: 3 * TB });
    expect(driver.speeds).toEqual([`${order} 10`]);
  });

  it('pays once if two workers charge at the same time', async () => {
    await sells();
    const account = await shop.account(10n * PRICE_TB);
    const order = await metered(account);
    await db.query('update meter set used_bytes = 3500000000000 where order_number = $1', [order]);
    const due = await FIND_DUE_TRAFFIC.all(db, [10, 'VPS']);
    await Promise.all([1, 2].map(() => db.transaction((tx) => chargeTraffic(tx, due))));
    expect(await paid(order)).toEqual(keys(order, 2));
    expect(await events(order)).toEqual(['server.traffic_warned', 'server.traffic_charged']);
  });

  it.each(['committing', 'committed'])('pays once although its worker is killed: %s', async (moment) => {
    await sells();
    const account = await shop.account(10n * PRICE_TB);
    const order = await metered(account);
    await db.query('update meter set used_bytes = 3500000000000 where order_number = $1', [order]);
    await db.query(`update task set run_at = now(), step = 'charge' where subject = 'cron:meter-vps'`);
    const environment = { DATABASE_URL: shop.url, FOLDER: shop.folder, MOMENT: moment };
    const killed = runScript(join(import.meta.dirname, 'killed-meter.ts'), environment, onTestFinished);
    expect(await deathOf(killed)).toBe('SIGKILL');
    expect(await paid(order)).toHaveLength(moment === 'committed' ? 2 : 0);
    await db.query(`update task set leased_by = null, run_at = now() where subject = 'cron:meter-vps'`);
    await shop.provisioning.newWorker().drain('periodic');
    await eventually(async () => (await paid(order)).length === 2);
    expect(await paid(order)).toEqual(keys(order, 2));
    expect(await events(order)).toEqual(['server.traffic_warned', 'server.traffic_charged']);
    expect(await shop.balance(account)).toBe(8n * PRICE_TB);
  });
});
