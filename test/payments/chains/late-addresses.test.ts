/** Payments to deposit addresses long after their top-ups, or on another network than theirs. */
import { describe, expect, it } from 'vitest';
import { proveBooks } from '../../../entities/payments/books.ts';
import type { Payment } from '../../../entities/payments/payment.ts';
import { cancelTopUp, findTopUp } from '../../../resolvers/payments/billing.ts';
import { assign } from '../../../resolvers/payments/payments.ts';
import { HALF, openSyncedShop } from './synced-shop.ts';

const { shop, chain, driver, sync, open } = await openSyncedShop();
const { db } = shop;
const paymentsOf = (orderNumber: string) =>
  db.query<Payment>('select * from payment where order_number = $1 order by id', [orderNumber]);
/** Makes the top-up one of another network. */
const moveAway = (orderNumber: string, confirmations: number) =>
  db.query(
    `update top_up set network = 'othernet', crypto = 'ELSE', confirmations_required = $2 where order_number = $1`,
    [orderNumber, confirmations],
  );

describe('A payment to the address of a top-up', () => {
  it('is credited three years after the top-up, and leaves a row and an event', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    await cancelTopUp(context, orderNumber);
    await db.query(
      `update top_up set created_at = now() - interval '3 years', expires_at = now() - interval '3 years' where order_number = $1`,
      [orderNumber],
    );
    for (const round of [1, 2]) {
      chain.pay(walletAddress!, HALF);
      chain.mine(3);
      await sync();
      const payments = await paymentsOf(orderNumber);
      expect(payments.map(({ status }) => status)).toEqual(Array(round).fill('CREDITED'));
      expect(await shop.events(payments.at(-1)!.id)).toEqual(['payment.late']);
    }
    expect(await findTopUp(context, orderNumber)).toMatchObject({ status: 'CONFIRMED', paymentException: 'LATE' });
    expect(await shop.balance(accountId)).toBe(100_000_000n);
    expect((await proveBooks(db)).firstFault).toBeNull();
  });

  it('of another network waits for the operator, who assigns it', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    driver.coinList.push({ ...driver.coinList[0]!, code: 'ELSE', network: 'othernet' });
    await moveAway(orderNumber, 9);
    chain.pay(walletAddress!, HALF);
    chain.mine(3);
    await sync();
    const [{ id, status, creditedMicros } = {} as Payment] = await paymentsOf(orderNumber);
    expect([status, creditedMicros, await shop.balance(accountId)]).toEqual(['UNMATCHED', 50_000_000n, 0n]);
    expect(await shop.events(id)).toEqual(['payment.unmatched']);
    const assigned = () => assign(context, id, { reason: 'Paid on the other network' });
    const lost = chain.blocks.slice(-3).flatMap(({ payments }) => payments);
    chain.reorganise(3, { lost: true });
    chain.mine(3);
    chain.pool = lost;
    chain.mine(1);
    await sync();
    await expect(assigned()).rejects.toThrow('The payment has 1 of 2 confirmations.');
    chain.mine(1);
    await sync();
    await assigned();
    expect(await shop.balance(accountId)).toBe(50_000_000n);
    expect((await proveBooks(db)).firstFault).toBeNull();
  });

  it('of another network needs the confirmations of that network', async () => {
    const [, { orderNumber, walletAddress }] = await open();
    driver.coinList.push({ ...driver.coinList[0]!, code: 'ELSE', network: 'othernet' });
    await moveAway(orderNumber, 1);
    chain.pay(walletAddress!, HALF);
    for (const status of ['CONFIRMING', 'UNMATCHED']) {
      chain.mine(1);
      await sync();
      expect(await paymentsOf(orderNumber)).toMatchObject([{ status }]);
    }
  });
});
