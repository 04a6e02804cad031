/** An account is suspended while its payment is under way. No order goes on, and the balance keeps the money. */
import { describe, expect, it } from 'vitest';
import { verifyBooks } from '../../entities/payments/books.ts';
import { orderServer } from '../../resolvers/servers/order.ts';
import { FUNDS_MICROS } from '../setup/customer-shop.ts';
import {
  ORDER,
  openX402Shop,
  PRICE,
  paymentForOrder,
  reconcile,
  refusalOf,
  settleOnChain,
  type X402Shop,
} from '../payments/x402/shop.ts';

const suspend = async ({ db }: X402Shop) => {
  await db.query(`update account set suspended_at = now(), suspended_for = 'Spam was sent.'`);
};
const balanceOf = ({ db }: X402Shop) => db.query('select available_micros, held_micros from balance');
const KEPT = [{ availableMicros: FUNDS_MICROS + PRICE, heldMicros: 0n }];

describe('The suspension of an account whose order waits for its payment', () => {
  it('refuses an order that the request would make after the settlement', async ({ onTestFinished }) => {
    const shop = await openX402Shop(onTestFinished);
    const payment = await paymentForOrder(shop.context);
    const settle = shop.chain.settle.bind(shop.chain);
    shop.chain.settle = async (...given) => {
      await suspend(shop);
      return settle(...given);
    };
    const refused = await refusalOf(orderServer(shop.context, ORDER, payment));
    expect(refused).toMatchObject({ code: 'account_suspended', message: expect.stringContaining('has settled') });
    await reconcile(shop, 'FINAL');
    expect(await shop.db.query('select status from server')).toEqual([]);
    expect(await balanceOf(shop)).toEqual(KEPT);
    expect((await verifyBooks(shop.db)).balanced).toBe(true);
  });

  it('refuses an order that the request would make before the outcome is known', async ({ onTestFinished }) => {
    const shop = await openX402Shop(onTestFinished);
    const payment = await paymentForOrder(shop.context);
    shop.chain.mood = 'silent';
    shop.chain.afterSettle = () => suspend(shop);
    const refused = await refusalOf(orderServer(shop.context, ORDER, payment));
    expect(refused).toMatchObject({ code: 'account_suspended', message: expect.stringContaining('to the balance') });
    await settleOnChain(shop);
    await reconcile(shop, 'FINAL');
    expect(await shop.db.query('select status from server')).toEqual([]);
    expect(await balanceOf(shop)).toEqual(KEPT);
    expect((await verifyBooks(shop.db)).balanced).toBe(true);
  });

  it('fails an order that a worker would make after the settlement', async ({ onTestFinished }) => {
    const shop = await openX402Shop(onTestFinished);
    const payment = await paymentForOrder(shop.context);
    shop.chain.mood = 'silent';
    await orderServer(shop.context, ORDER, payment);
    await suspend(shop);
    await settleOnChain(shop);
    await reconcile(shop, 'FINAL');
    const failureMessage = 'The account was suspended before the payment came. The payment is in the balance.';
    expect(await shop.db.query('select status, failure_code, failure_message from server')).toEqual([
      { status: 'FAILED', failureCode: 'payment_failed', failureMessage },
    ]);
    expect(await balanceOf(shop)).toEqual(KEPT);
    expect((await verifyBooks(shop.db)).balanced).toBe(true);
  });
});
