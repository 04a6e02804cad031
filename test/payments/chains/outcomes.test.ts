/** A transaction that pays something else when a reorganisation puts it into another block, as contracts can. */
import { describe, expect, it } from 'vitest';
import { proveBooks } from '../../../entities/payments/books.ts';
import type { Payment } from '../../../entities/payments/payment.ts';
import { FIND_INSOLVENT } from '../../../entities/payments/solvency.ts';
import { findTopUp } from '../../../resolvers/payments/billing.ts';
import { assign, creditTransaction } from '../../../resolvers/payments/payments.ts';
import type { Paid } from './chain.ts';
import { HALF, openSyncedShop } from './synced-shop.ts';

const { shop, chain, sync, open, suspense } = await openSyncedShop();
const { db } = shop;

/** The states and units of the payments of a top-up, the oldest first. */
const paymentsOf = async (orderNumber: string) =>
  (await db.query<Payment>('select * from payment where order_number = $1 order by id', [orderNumber])).map(
    ({ status, units }) => [status, BigInt(units)],
  );
/** Replaces the last blocks. In the new ones the transaction pays these outputs. */
async function replace(depth: number, outputs: readonly Paid[], blocks = depth + 1) {
  chain.reorganise(depth, { lost: true });
  chain.pool = [...outputs];
  chain.mine(blocks);
  await sync();
}
const prove = async () => {
  expect((await proveBooks(db)).firstFault).toBeNull();
  expect(await FIND_INSOLVENT.all(db)).toEqual([]);
};

describe('A transaction with another outcome in another block', () => {
  it.each([
    [10n * HALF, 1n],
    [1n, 10n * HALF],
  ])('counts with its present outcome, if it had no credit yet: %i becomes %i', async (before, after) => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    const paid = chain.pay(walletAddress!, before);
    chain.mine(1);
    await sync();
    expect(await paymentsOf(orderNumber)).toEqual([['CONFIRMING', before]]);
    await replace(1, [{ ...paid, units: after }], 3);
    expect(await paymentsOf(orderNumber)).toEqual([
      ['DROPPED', before],
      ['CREDITED', after],
    ]);
    expect(await shop.balance(accountId)).toBe(after === 1n ? 1n : 500_000_000n);
    expect((await findTopUp(context, orderNumber)).txIds).toEqual([paid.txId]);
    await prove();
  });

  it('is credited to the owner whom the present block pays, and both top-ups show that', async () => {
    const [[one, first], [other, second]] = [await open(), await open()];
    const paid = chain.pay(first.walletAddress!, HALF);
    chain.mine(1);
    await sync();
    await replace(1, [{ ...paid, address: second.walletAddress! }], 3);
    expect([await shop.balance(first.accountId), await shop.balance(second.accountId)]).toEqual([0n, 50_000_000n]);
    expect(await findTopUp(one, first.orderNumber)).toMatchObject({ receivedCrypto: '0', txIds: [] });
    expect(await findTopUp(other, second.orderNumber)).toMatchObject({ status: 'CONFIRMED', receivedCrypto: '0.5' });
    await prove();
  });

  it('reverses its credit, is credited anew, and gets its first credit back with its first outcome', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    const paid = chain.pay(walletAddress!, HALF);
    chain.mine(3);
    await sync();
    const less = { ...paid, units: HALF / 5n };
    await replace(3, [less], 1);
    expect(await paymentsOf(orderNumber)).toEqual([['CREDITED', HALF]]);
    chain.mine(4);
    await sync();
    const now = [
      ['REVERSED', HALF],
      ['CREDITED', HALF / 5n],
    ];
    expect(await paymentsOf(orderNumber)).toEqual(now);
    expect([await shop.balance(accountId), await suspense()]).toEqual([10_000_000n, 50_000_000n]);
    await creditTransaction(context, { network: 'testnet', txId: paid.txId, reason: 'She asks' });
    await sync();
    expect(await paymentsOf(orderNumber)).toEqual(now);
    await prove();
    await replace(5, [paid], 7);
    expect(await paymentsOf(orderNumber)).toEqual([
      ['CREDITED', HALF],
      ['REVERSED', HALF / 5n],
    ]);
    expect(await shop.balance(accountId)).toBe(50_000_000n);
    await prove();
  });

  it('leaves its first outcome in suspense, where the operator cannot assign it any more', async () => {
    const [context, { orderNumber, walletAddress }] = await open();
    const paid = chain.pay(walletAddress!, 7n * HALF, { coin: 'OTHER' });
    chain.mine(2);
    await sync();
    await replace(2, [{ ...paid, units: 2n * HALF }], 4);
    expect(await paymentsOf(orderNumber)).toEqual([
      ['UNMATCHED', 7n * HALF],
      ['UNMATCHED', 2n * HALF],
    ]);
    const [first, second] = await db.query<Payment>('select * from payment where order_number = $1 order by id', [
      orderNumber,
    ]);
    await expect(assign(context, first!.id, { reason: 'No' })).rejects.toThrow('The chain has removed the payment.');
    expect(await assign(context, second!.id, { reason: 'Yes' })).toMatchObject({ status: 'ASSIGNED' });
    await prove();
  });

  it('counts with the sum of its present outputs, also at other positions', async () => {
    const [, { orderNumber, accountId, walletAddress }] = await open();
    const paid = chain.pay(walletAddress!, HALF);
    const at = (...units: bigint[]): Paid[] => units.map((one, position) => ({ ...paid, position, units: one }));
    const outcomes = [at(3n, 5n, HALF), at(HALF), at(4n, HALF / 2n), at(1n, 2n), at(1n, 1n, 1n).slice(1), at(9n, HALF)];
    chain.mine(3);
    await sync();
    for (const [index, outcome] of [...outcomes, ...outcomes.toReversed()].entries()) {
      await replace(index + 3, outcome);
      const live = (await paymentsOf(orderNumber)).filter(([status]) => status === 'CREDITED');
      const sum = outcome.reduce((total, { units }) => total + units, 0n);
      expect(live.reduce((total, [, units]) => total + (units as bigint), 0n)).toBe(sum);
      expect(await shop.balance(accountId)).toBe(sum);
      await prove();
    }
  });
});
