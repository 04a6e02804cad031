/** Orders whose machines run and give no proof: one a day is free for an account. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { hourlyMicros } from '../../../entities/money.ts';
import { proveBooks } from '../../../entities/payments/books.ts';
import type { MachineTime } from '../../../provisioning/servers/billing/unproven.ts';
import { DriverError, type MachineKey, type Observation } from '../../../provisioning/servers/drivers/driver.ts';
import { cancelServer } from '../../../provisioning/servers/steps/cancel.ts';
import { findBalance } from '../../../resolvers/accounts/account.ts';
import { deleteServer, removeServer } from '../../../resolvers/servers/delete.ts';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { watchBalance } from '../../../resolvers/subscriptions.ts';
import { FUNDS_MICROS, finish, openCustomerShop, startWorker } from '../../setup/customer-shop.ts';
import { eventually, leasedAgain } from '../../setup/freehold.ts';
import { PRICE } from '../../setup/shop.ts';

const ORDER = { serviceCode: 'vps-1', region: 'ams', os: 'debian-13', labels: {}, autoRenew: true };
const HOUR = hourlyMicros(PRICE);

async function openSilentShop() {
  const shop = await openCustomerShop(onTestFinished);
  const observe = shop.driver.observe.bind(shop.driver);
  const seen: Partial<Observation> = { proven: false };
  shop.driver.observe = async (key: MachineKey, signal: AbortSignal) => ({ ...(await observe(key, signal)), ...seen });
  const order = async () => (await orderServer(shop.context, ORDER)).server.orderNumber;
  const failing = async () => {
    const orderNumber = await order();
    await finish(shop, orderNumber, 'FAILED');
    return shop.read(orderNumber);
  };
  const balance = () => shop.balance(shop.accountId);
  /** Makes an order, and stops the worker when its machine has run for so long. */
  const ran = async (minutes: number) => {
    const orderNumber = await order();
    const worker = startWorker(shop, onTestFinished);
    const task = () => shop.db.query<{ data: MachineTime }>('select data from task where subject = $1', [orderNumber]);
    await eventually(async () => (await task())[0]?.data.onSeconds !== undefined);
    await worker.stop();
    await shop.db.query(
      `update task set data = data || jsonb_build_object('onSeconds', $2::int * 60) where subject = $1`,
      [orderNumber, minutes],
    );
    return orderNumber;
  };
  return { shop, order, failing, balance, seen, ran };
}

describe('An order whose machine runs without proof', () => {
  it('is free once a day, and then pays for the begun hours', async () => {
    const { shop, failing, balance } = await openSilentShop();
    expect((await failing()).failureMessage).toBe(
      'The machine could not be delivered. The order was refunded in full.',
    );
    expect(await balance()).toBe(FUNDS_MICROS);
    expect((await failing()).failureMessage).toContain('except for the 0.008219 USD of its hours');
    expect(await balance()).toBe(FUNDS_MICROS - HOUR);
    await shop.db.query(`update server set unproven_at = unproven_at - interval '25 hours'`);
    await failing();
    expect(await balance()).toBe(FUNDS_MICROS - HOUR);
    expect(await proveBooks(shop.db)).toMatchObject({ balanced: true, firstFault: null });
  });

  it('pays for every hour that it ran, also when the customer deletes it', async () => {
    const { shop, ran, failing, balance } = await openSilentShop();
    await failing();
    const { refundedMicros } = await deleteServer(shop.context, await ran(90));
    expect(refundedMicros).toBe(PRICE - 2n * HOUR);
    expect(await balance()).toBe(FUNDS_MICROS - 2n * HOUR);
  });

  it.each<[string, Partial<Observation>]>([
    ['cannot be seen', { phase: 'unknown' }],
    ['is busy', { busy: true }],
    ['is off', { power: 'off' }],
  ])('pays for no hour in which its machine %s', async (_, observation) => {
    const { shop, ran, failing, balance, seen } = await openSilentShop();
    await failing();
    const orderNumber = await ran(30);
    await shop.db.query(
      `update task set data = data || jsonb_build_object(
        'onAt', now() - interval '5 hours', 'proofBy', now() + interval '1 hour')`,
    );
    Object.assign(seen, observation);
    const worker = startWorker(shop, onTestFinished);
    await leasedAgain(shop.db, orderNumber);
    await worker.stop();
    await deleteServer(shop.context, orderNumber);
    expect(await balance()).toBe(FUNDS_MICROS - HOUR);
  });

  it('pays for the hours of its first machine if its engine refuses the second one', async () => {
    const { shop, ran, failing, balance } = await openSilentShop();
    await failing();
    const orderNumber = await ran(90);
    const create = shop.driver.create.bind(shop.driver);
    shop.driver.create = async (spec, signal) => {
      if (spec.generation > 1) throw new DriverError('rejected', 'The engine makes no such machine.');
      return create(spec, signal);
    };
    await finish(shop, orderNumber, 'FAILED');
    expect(await balance()).toBe(FUNDS_MICROS - 2n * HOUR);
    expect(await proveBooks(shop.db)).toMatchObject({ balanced: true, firstFault: null });
  });

  it('is free when its machine never ran', async () => {
    const { shop, failing, balance, seen } = await openSilentShop();
    const create = shop.driver.create.bind(shop.driver);
    shop.driver.create = async (...given) => ({ ...(await create(...given)), ...seen });
    Object.assign(seen, { phase: 'incomplete' });
    for (let i = 0; i < 2; i++) await failing();
    expect(await balance()).toBe(FUNDS_MICROS);
  });

  it('is free when the operator removes it with a refund, and the next one of the day is free, too', async () => {
    const { shop, ran, failing, balance } = await openSilentShop();
    const terms = { orderNumber: await ran(90), refund: true, reason: 'The rack is dead' };
    expect((await removeServer(shop.context, terms)).refundedMicros).toBe(PRICE);
    await failing();
    expect(await balance()).toBe(FUNDS_MICROS);
  });

  it('is free when it is deleted before the machine is made', async () => {
    const { shop, order, failing, balance } = await openSilentShop();
    await failing();
    expect((await deleteServer(shop.context, await order())).refundedMicros).toBe(PRICE);
    expect(await balance()).toBe(FUNDS_MICROS);
  });
});

describe('A dedicated order that the customer deletes before its delivery', () => {
  const DEDICATED = { ...ORDER, serviceCode: 'ded-1' };
  const DEDICATED_PRICE = 99_000_000n;
  const DEDICATED_HOUR = hourlyMicros(DEDICATED_PRICE);

  /** A shop with money for so many servers. Their machines give no proof, and stay until `wiped`. */
  async function openWipingShop(servers: bigint) {
    const fundsMicros = servers * DEDICATED_PRICE;
    const shop = await openCustomerShop(onTestFinished, { fundsMicros, proofSeconds: { VPS: 60, DEDICATED: 60 } });
    const destroy = shop.driver.destroy.bind(shop.driver);
    const observe = shop.driver.observe.bind(shop.driver);
    shop.driver.observe = async (...given) => ({ ...(await observe(...given)), proven: false });
    let isWiping = true;
    shop.driver.destroy = async (key, signal) =>
      isWiping ? { ...key, phase: 'incomplete', busy: true, proven: false } : destroy(key, signal);
    const worker = startWorker(shop, onTestFinished);
    const is = (orderNumber: string, status: string) =>
      eventually(async () => (await shop.read(orderNumber)).status === status);
    const order = async () => (await orderServer(shop.context, DEDICATED)).server.orderNumber;
    /** Orders a server, and deletes it while it is being made. */
    const deleted = async () => {
      const orderNumber = await order();
      await is(orderNumber, 'PROVISIONING');
      expect((await deleteServer(shop.context, orderNumber)).refundedMicros).toBe(0n);
      return orderNumber;
    };
    const wiped = async (...orderNumbers: string[]) => {
      isWiping = false;
      await shop.db.query('update task set run_at = now()');
      for (const orderNumber of orderNumbers) await is(orderNumber, 'DELETED');
    };
    const money = async () => {
      const { availableMicros, pendingMicros } = await findBalance(shop.context);
      return { availableMicros, pendingMicros };
    };
    /** Waits until a look saw the machine of an order run. */
    const ran = (orderNumber: string) =>
      eventually(async () => {
        const found = await shop.db.query<{ data: MachineTime }>('select data from task where subject = $1', [
          orderNumber,
        ]);
        return found[0]?.data.onSeconds !== undefined;
      });
    const failed = async (orderNumber: string) => {
      await is(orderNumber, 'PROVISIONING');
      await shop.db.query('update task set deadline_at = now() where subject = $1', [orderNumber]);
      await is(orderNumber, 'FAILED');
    };
    return { shop, worker, order, deleted, ran, failed, wiped, money };
  }

  it('has its price held until its host is free, so that money orders no other host', async () => {
    const { shop, order, deleted, wiped, money } = await openWipingShop(1n);
    const first = await deleted();
    expect(await money()).toEqual({ availableMicros: 0n, pendingMicros: DEDICATED_PRICE });
    await expect(order()).rejects.toMatchObject({ code: 'insufficient_balance' });
    await wiped(first);
    expect(await money()).toEqual({ availableMicros: DEDICATED_PRICE, pendingMicros: 0n });
    expect(await proveBooks(shop.db)).toMatchObject({ balanced: true, firstFault: null });
  });

  it('is free once a day, and then pays for the begun hours from the order until its host is free', async () => {
    const { shop, deleted, wiped, money } = await openWipingShop(3n);
    const both = [await deleted(), await deleted()];
    // The wipes take two days, and the deletions were on one day.
    await shop.db.query(`update server set unproven_at = unproven_at - interval '48 hours',
      created_at = created_at - interval '49.5 hours'`);
    const later = await deleted();
    await wiped(...both, later);
    expect(await money()).toEqual({
      availableMicros: 3n * DEDICATED_PRICE - 50n * DEDICATED_HOUR,
      pendingMicros: 0n,
    });
    expect(await proveBooks(shop.db)).toMatchObject({ balanced: true, firstFault: null });
  });

  it('tells those who watch the balance that its price waits', async () => {
    const { shop, order } = await openWipingShop(1n);
    const orderNumber = await order();
    await eventually(async () => (await shop.read(orderNumber)).status === 'PROVISIONING');
    const seen = await watchBalance(shop.context);
    expect((await seen.next()).value).toMatchObject({ pendingMicros: 0n });
    await deleteServer(shop.context, orderNumber);
    for await (const { pendingMicros } of seen) if (pendingMicros === DEDICATED_PRICE) break;
  });

  it('pays its price at most', async () => {
    const { shop, deleted, wiped, money } = await openWipingShop(2n);
    const both = [await deleted(), await deleted()];
    await shop.db.query(`update server set created_at = created_at - interval '900 hours'`);
    await wiped(...both);
    expect(await money()).toEqual({ availableMicros: DEDICATED_PRICE, pendingMicros: 0n });
    expect(await proveBooks(shop.db)).toMatchObject({ balanced: true, firstFault: null });
  });

  it('gets all its money back at once while no machine is being made', async () => {
    const { shop, worker, order } = await openWipingShop(1n);
    await worker.stop();
    for (let i = 0; i < 2; i++)
      expect((await deleteServer(shop.context, await order())).refundedMicros).toBe(DEDICATED_PRICE);
  });

  it('gets its money back when its host is free, and once, if the order failed before', async () => {
    const { shop, worker, order, ran, failed, wiped, money } = await openWipingShop(1n);
    const orderNumber = await order();
    await ran(orderNumber);
    await failed(orderNumber);
    const held = { availableMicros: 0n, pendingMicros: DEDICATED_PRICE };
    expect(await money()).toEqual(held);
    await expect(order()).rejects.toMatchObject({ code: 'insufficient_balance' });
    expect((await deleteServer(shop.context, orderNumber)).refundedMicros).toBe(0n);
    expect(await money()).toEqual(held);
    await wiped(orderNumber);
    expect(await money()).toEqual({ availableMicros: DEDICATED_PRICE, pendingMicros: 0n });
    await worker.stop();
    expect(await proveBooks(shop.db)).toMatchObject({ balanced: true, firstFault: null });
  });

  it('gets its money back when its host is free, too, if the operator cancels it after its machine ran', async () => {
    const { shop, order, ran, wiped, money } = await openWipingShop(1n);
    const orderNumber = await order();
    await ran(orderNumber);
    await shop.db.transaction((tx) => cancelServer(tx, orderNumber));
    expect(await money()).toEqual({ availableMicros: 0n, pendingMicros: DEDICATED_PRICE });
    await wiped();
    await eventually(async () => (await money()).pendingMicros === 0n);
    expect(await money()).toEqual({ availableMicros: DEDICATED_PRICE, pendingMicros: 0n });
  });

  it('pays the hours of its failure and none of its wipe, if another order of the day was free', async () => {
    const { shop, order, ran, failed, wiped, money } = await openWipingShop(2n);
    for (let i = 0; i < 2; i++) {
      const orderNumber = await order();
      await ran(orderNumber);
      await failed(orderNumber);
    }
    const charged = DEDICATED_HOUR;
    expect(await money()).toEqual({ availableMicros: 0n, pendingMicros: 2n * DEDICATED_PRICE - charged });
    await shop.db.query(`update server set created_at = created_at - interval '50 hours'`);
    await wiped();
    await eventually(async () => (await money()).pendingMicros === 0n);
    expect(await money()).toEqual({ availableMicros: 2n * DEDICATED_PRICE - charged, pendingMicros: 0n });
    expect(await proveBooks(shop.db)).toMatchObject({ balanced: true, firstFault: null });
  });

  it('gets its money back at once if the order failed before its machine ran', async () => {
    const { shop, order, failed, money } = await openWipingShop(1n);
    const create = shop.driver.create.bind(shop.driver);
    shop.driver.create = async (...given) => ({ ...(await create(...given)), phase: 'incomplete' });
    const observe = shop.driver.observe.bind(shop.driver);
    shop.driver.observe = async (...given) => ({ ...(await observe(...given)), phase: 'incomplete' });
    const orderNumber = await order();
    await failed(orderNumber);
    expect(await money()).toEqual({ availableMicros: DEDICATED_PRICE, pendingMicros: 0n });
  });

  it('gets all its money back at once if the operator removes it with a refund; the next one is free', async () => {
    const { shop, order, ran, deleted, wiped, money } = await openWipingShop(2n);
    const orderNumber = await order();
    await ran(orderNumber);
    const terms = { orderNumber, refund: true, reason: 'The rack is dead' };
    expect((await removeServer(shop.context, terms)).refundedMicros).toBe(DEDICATED_PRICE);
    await wiped(orderNumber, await deleted());
    expect(await money()).toEqual({ availableMicros: 2n * DEDICATED_PRICE, pendingMicros: 0n });
    expect(await proveBooks(shop.db)).toMatchObject({ balanced: true, firstFault: null });
  });
});
