/** Payments that payouts send back, when the operator sends a cancelled payout all the same. */
import { describe, expect, it } from 'vitest';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { proveBooks } from '../../../entities/payments/books.ts';
import type { Payment } from '../../../entities/payments/payment.ts';
import { importSent } from '../../../provisioning/payments/wallet/import.ts';
import { exportPayouts } from '../../../provisioning/payments/wallet/payouts.ts';
import { assign } from '../../../resolvers/payments/payments.ts';
import { cancel, finish, returnInCoin } from '../../../resolvers/payments/payouts.ts';
import { HALF, openSyncedShop } from './synced-shop.ts';

const { shop, chain, driver, sync, open, total, suspense } = await openSyncedShop();
const { db } = shop;
const { signal } = new AbortController();

/** Returns a payment by a payout, cancels it after its export, and returns the payment by a second payout. */
async function returnedTwice() {
  const [context, { walletAddress, accountId }] = await open();
  chain.pay(walletAddress!, 40n * HALF, { coin: 'OTHER' });
  chain.mine(102);
  await sync();
  const read = async () =>
    (
      await db.query<Pick<Payment, 'id' | 'status' | 'returnTxId'>>(
        'select id, status, return_tx_id from payment where account_id = $1',
        [accountId],
      )
    )[0]!;
  const { id: paymentId } = await read();
  const back = (address: string) =>
    returnInCoin(context, { paymentId, key: `${paymentId} ${address}`, address, reason: 'Wrong coin' });
  const first = await back('typo');
  await exportPayouts(db, SYSTEM);
  await cancel(context, first.id, 'She wants another address');
  const second = await back('right');
  return { context, read, back, paymentId, first: first.id, second: second.id };
}
const send = (id: string, txId: string) => importSent(db, [{ id, txId }], SYSTEM);
const replace = (id: string, txId: string) => importSent(db, [{ id, txId }], SYSTEM, { drivers: [driver], signal });

describe('A return of a payment that was cancelled, and sent all the same', () => {
  it('names the payment its transaction if no other one returns that', async () => {
    const { context, read, first, second } = await returnedTwice();
    await cancel(context, second, 'Not yet');
    await send(first, 'alone');
    expect(await read()).toMatchObject({ status: 'RETURNED', returnTxId: 'alone' });
  });
});

describe('A second return of a payment whose first one was sent all the same', () => {
  it('is cancelled without a return of the money into suspense', async () => {
    const before = [await suspense(), await total('exchange')];
    const { context, read, back, paymentId, first, second } = await returnedTwice();
    await send(first, 'first of two');
    expect((await read()).returnTxId).toBeNull();
    await exportPayouts(db, SYSTEM);
    await cancel(context, second, 'The first one was sent');
    expect(await read()).toMatchObject({ status: 'RETURNED', returnTxId: 'first of two' });
    expect(await exportPayouts(db, SYSTEM)).toEqual([]);
    await expect(back('a third')).rejects.toThrow('only an UNMATCHED payment');
    await expect(assign(context, paymentId, { reason: 'Hers' })).rejects.toThrow('cannot be assigned');
    await finish(context, first);
    expect([await suspense(), await total('exchange')]).toEqual(before);
    expect((await proveBooks(db)).firstFault).toBeNull();
  });

  it('names the payment its own transaction, and no later one of the first return', async () => {
    const { read, second, first } = await returnedTwice();
    await exportPayouts(db, SYSTEM);
    await send(second, 'second');
    await send(first, 'first');
    await replace(first, 'first again');
    expect((await read()).returnTxId).toBe('second');
    await replace(second, 'second again');
    await send(second, 'second again');
    expect((await read()).returnTxId).toBe('second again');
  });
});
