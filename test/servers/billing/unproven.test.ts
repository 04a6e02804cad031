/** Orders whose machines run and give no proof: one a day is free for an account. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { hourlyMicros } from '../../../entities/money.ts';
import { proveBooks } from '../../../entities/payments/books.ts';
import type { MachineTime } from '../../../provisioning/servers/billing/unproven.ts';
import type { MachineKey, Observation } from '../../../provisioning/servers/drivers/driver.ts';
import { deleteServer } from '../../../resolvers/servers/delete.ts';
import { orderServer } from '../../../resolvers/servers/order.ts';
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

  it('is free when its machine never ran', async () => {
    const { shop, failing, balance, seen } = await openSilentShop();
    const create = shop.driver.create.bind(shop.driver);
    shop.driver.create = async (...given) => ({ ...(await create(...given)), ...seen });
    Object.assign(seen, { phase: 'incomplete' });
    for (let i = 0; i < 2; i++) await failing();
    expect(await balance()).toBe(FUNDS_MICROS);
  });

  it('is free when it is deleted before the machine is made', async () => {
    const { shop, order, failing, balance } = await openSilentShop();
    await failing();
    expect((await deleteServer(shop.context, await order())).refundedMicros).toBe(PRICE);
    expect(await balance()).toBe(FUNDS_MICROS);
  });
});
