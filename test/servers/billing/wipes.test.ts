/** Deleted dedicated servers, whose money returns when their hosts are free. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { proveBooks } from '../../../entities/payments/books.ts';
import { FIND_INSOLVENT } from '../../../entities/payments/solvency.ts';
import { giveKept } from '../../../entities/payments/withheld.ts';
import { cancelServer } from '../../../provisioning/servers/steps/cancel.ts';
import { findBalance } from '../../../resolvers/accounts/account.ts';
import { findUsage } from '../../../resolvers/accounts/usage.ts';
import { deleteServer } from '../../../resolvers/servers/delete.ts';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { updateServer } from '../../../resolvers/servers/update.ts';
import { openCustomerShop, startWorker } from '../../setup/customer-shop.ts';
import { eventually } from '../../setup/freehold.ts';

const ORDER = { serviceCode: 'ded-1', region: 'ams', os: 'debian-13', labels: {}, autoRenew: false };
const DEDICATED_PRICE = 99_000_000n;
const LEFT = 1_000_000n;

/** A shop with money for one dedicated server. The machines of deleted ones stay until `wiped`. */
async function openWipingShop() {
  const shop = await openCustomerShop(onTestFinished, { fundsMicros: DEDICATED_PRICE + LEFT });
  const destroy = shop.driver.destroy.bind(shop.driver);
  let isWiping = true;
  shop.driver.destroy = async (key, signal) =>
    isWiping ? { ...key, phase: 'incomplete', busy: true, proven: false } : destroy(key, signal);
  startWorker(shop, onTestFinished);
  const is = (orderNumber: string, status: string) =>
    eventually(async () => (await shop.read(orderNumber)).status === status);
  const running = async () => {
    const { orderNumber } = (await orderServer(shop.context, ORDER)).server;
    await is(orderNumber, 'RUNNING');
    return orderNumber;
  };
  const wiped = async (orderNumber: string) => {
    isWiping = false;
    await shop.db.query('update task set run_at = now()');
    await is(orderNumber, 'DELETED');
  };
  const money = async () => {
    const { availableMicros, pendingMicros } = await findBalance(shop.context);
    return { availableMicros, pendingMicros };
  };
  const balanced = async () => {
    expect((await proveBooks(shop.db)).firstFault).toBeNull();
    expect(await FIND_INSOLVENT.all(shop.db)).toEqual([]);
  };
  return { shop, is, running, wiped, money, balanced };
}

describe('The refund of a deleted dedicated server', () => {
  it('waits until its host is free, so that its money orders no other host', async () => {
    const { shop, running, wiped, money, balanced } = await openWipingShop();
    const orderNumber = await running();
    const { refundedMicros } = await deleteServer(shop.context, orderNumber);
    expect(refundedMicros).toBeGreaterThan(DEDICATED_PRICE - LEFT);
    expect(await money()).toEqual({ availableMicros: LEFT, pendingMicros: refundedMicros });
    await expect(orderServer(shop.context, ORDER)).rejects.toMatchObject({ code: 'insufficient_balance' });
    await balanced();
    await wiped(orderNumber);
    expect(await money()).toEqual({ availableMicros: LEFT + refundedMicros, pendingMicros: 0n });
    await balanced();
  });

  it('has the amount of the deletion, however long the wipe takes and however often the customer deletes', async () => {
    const { shop, is, running, wiped, money, balanced } = await openWipingShop();
    const orderNumber = await running();
    await updateServer(shop.context, orderNumber, { powerState: 'OFF' });
    await is(orderNumber, 'STOPPED');
    const { refundedMicros } = await deleteServer(shop.context, orderNumber);
    await shop.db.query(`update server set created_at = created_at - interval '9 days',
      paid_until = paid_until - interval '9 days', updated_at = updated_at - interval '9 days'`);
    expect((await deleteServer(shop.context, orderNumber)).refundedMicros).toBe(0n);
    expect(await money()).toEqual({ availableMicros: LEFT, pendingMicros: refundedMicros });
    await wiped(orderNumber);
    expect(await money()).toEqual({ availableMicros: LEFT + refundedMicros, pendingMicros: 0n });
    await balanced();
  });

  it('arrives once when the operator vouches that the machine is gone', async () => {
    const { shop, is, running, money, balanced } = await openWipingShop();
    const orderNumber = await running();
    const { refundedMicros } = await deleteServer(shop.context, orderNumber);
    await shop.db.transaction((tx) => cancelServer(tx, orderNumber));
    await shop.db.transaction((tx) => giveKept(tx, `refund:${orderNumber}`));
    await is(orderNumber, 'DELETED');
    expect(await money()).toEqual({ availableMicros: LEFT + refundedMicros, pendingMicros: 0n });
    await balanced();
  });

  it('is one change of the balance in the usage, with the unused hours', async () => {
    const { shop, running, wiped } = await openWipingShop();
    const orderNumber = await running();
    const { refundedMicros } = await deleteServer(shop.context, orderNumber);
    await wiped(orderNumber);
    const { data } = await findUsage(shop.context, { limit: 10 }, {});
    expect(data.filter(({ kind }) => kind === 'refund')).toEqual([
      expect.objectContaining({ orderNumber, amountMicros: refundedMicros, hours: 729 }),
    ]);
  });
});
