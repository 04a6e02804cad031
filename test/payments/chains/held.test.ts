/** Payments above the limit of their gateway, which wait in suspense until the operator decides. */
import { beforeEach, describe, expect, it } from 'vitest';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { proveBooks } from '../../../entities/payments/books.ts';
import type { Payment } from '../../../entities/payments/payment.ts';
import { FIND_INSOLVENT } from '../../../entities/payments/solvency.ts';
import { importSent } from '../../../provisioning/payments/wallet/import.ts';
import { cancelPayout, exportPayouts } from '../../../provisioning/payments/wallet/payouts.ts';
import { findBalance } from '../../../resolvers/accounts/account.ts';
import { findTopUp } from '../../../resolvers/payments/billing.ts';
import { assign, giveBack, writeOff } from '../../../resolvers/payments/payments.ts';
import { refundInCoin, returnInCoin } from '../../../resolvers/payments/payouts.ts';
import { reportsOf } from '../../setup/lock-order.ts';
import { openSyncedShop } from './synced-shop.ts';

const { shop, chain, driver, sync, open, suspense } = await openSyncedShop();
const { db } = shop;
/** Two coins, worth 200 USD. */
const UNITS = 2_00000000n;

beforeEach(() => {
  driver.coinList[0]!.holdAboveMicros = 150_000_000n;
});
const balanced = async () => {
  expect((await proveBooks(db)).firstFault).toBeNull();
  expect(await FIND_INSOLVENT.all(db)).toEqual([]);
};

/** Pays more than the limit to a top-up of 200 USD. */
async function held() {
  const [context, topUp] = await open(200_000_000n);
  const { txId } = chain.pay(topUp.walletAddress!, UNITS);
  chain.mine(2);
  await sync();
  const [payment] = await db.query<Payment>('select * from payment where tx_id = $1', [txId]);
  return { context, topUp, payment: payment!, txId };
}

describe('A payment above the limit of its gateway', () => {
  it('waits in suspense, and the operator gets an event', async () => {
    const before = await suspense();
    const { topUp, payment } = await held();
    expect(payment).toMatchObject({ status: 'UNMATCHED', creditedMicros: 200_000_000n });
    expect([await shop.balance(topUp.accountId), (await suspense()) - before]).toEqual([0n, 200_000_000n]);
    expect(await shop.events(payment.id)).toEqual(['payment.held']);
    await sync();
    expect(await shop.balance(topUp.accountId)).toBe(0n);
    await balanced();
  });

  it('is credited with its bonus once the operator assigns it, also after the quote', async () => {
    for (const isOver of [false, true]) {
      const { context, topUp, payment } = await held();
      const { orderNumber, accountId } = topUp;
      if (isOver) {
        await db.query(`update top_up set expires_at = now() - interval '1 second' where order_number = $1`, [
          orderNumber,
        ]);
        await db.query(`update payment set seen_at = now() - interval '1 minute' where id = $1`, [payment.id]);
        await sync();
      }
      for (let i = 0; i < 2; i++)
        expect(await assign(context, payment.id, { reason: 'The coins are real' })).toMatchObject({
          status: 'ASSIGNED',
        });
      expect(await findTopUp(context, orderNumber)).toMatchObject({
        ...{ status: 'CONFIRMED', paymentException: null },
        ...{ receivedCrypto: '2', creditedMicros: 204_000_000n },
      });
      expect(await shop.balance(accountId)).toBe(204_000_000n);
      await balanced();
    }
  });

  it('gets its part of the bonus also after the top-up confirmed with a smaller payment', async () => {
    for (const together of [false, true]) {
      const [context, { orderNumber, accountId, walletAddress }] = await open(200_000_000n);
      chain.pay(walletAddress!, 1_000000n);
      chain.mine(together ? 1 : 2);
      if (!together) await sync();
      const { txId } = chain.pay(walletAddress!, UNITS - 1_000000n);
      chain.mine(2);
      if (!together) await sync();
      await db.query('update top_up set expires_at = $2 where order_number = $1', [orderNumber, new Date()]);
      await sync();
      await sync();
      expect(await findTopUp(context, orderNumber)).toMatchObject({ status: 'CONFIRMED', creditedMicros: 1_000_000n });
      await balanced();
      const [payment] = await db.query<Payment>('select * from payment where tx_id = $1', [txId]);
      await assign(context, payment!.id, { reason: 'The coins are real' });
      expect(await findTopUp(context, orderNumber)).toMatchObject({ creditedMicros: 204_000_000n });
      expect(await shop.balance(accountId)).toBe(204_000_000n);
      await balanced();
    }
  });

  it('goes to another account without a bonus, and loses its credit if the chain removes it', async () => {
    const { context, topUp, payment } = await held();
    const other = await shop.account(0n);
    await assign(context, payment.id, { accountId: other, reason: 'Hers' });
    expect([await shop.balance(other), await shop.balance(topUp.accountId)]).toEqual([200_000_000n, 0n]);
    chain.reorganise(2, { lost: true });
    chain.mine(3);
    await sync();
    expect(await shop.balance(other)).toBe(0n);
    await balanced();
  });

  it('can be returned or written off', async () => {
    const before = await suspense();
    const [one, two] = [await held(), await held()];
    chain.mine(100);
    await sync();
    await giveBack(one.context, one.payment.id, { returnTxId: 'back', reason: 'Too much' });
    await writeOff(two.context, two.payment.id, 'Worthless token');
    expect(await suspense()).toBe(before);
    expect(await shop.balance(one.topUp.accountId)).toBe(0n);
    await balanced();
  });

  it('is not held by the sum of several, or at the limit itself', async () => {
    driver.coinList[0]!.holdAboveMicros = 200_000_000n;
    const { payment } = await held();
    expect(payment.status).toBe('CREDITED');
  });
});

it('The pending balance has what came and lacks confirmations, and neither the rest of the quote nor held payments', async () => {
  const [context, { walletAddress, accountId }] = await open(200_000_000n);
  const pending = async () => (await findBalance(context)).pendingMicros;
  chain.pay(walletAddress!, 1n);
  chain.mine(1);
  await sync();
  expect(await pending()).toBe(1n);
  chain.pay(walletAddress!, 50_000_000n);
  await sync();
  expect(await pending()).toBe(50_000_001n);
  chain.mine(2);
  await sync();
  expect([await pending(), await shop.balance(accountId)]).toEqual([0n, 50_000_001n]);
  chain.pay(walletAddress!, UNITS);
  await sync();
  expect(await pending()).toBe(200_000_000n);
  chain.mine(2);
  await sync();
  expect([await pending(), await shop.balance(accountId)]).toEqual([0n, 50_000_001n]);
  await balanced();
});

describe('A return of a held payment that was cancelled, and sent all the same', () => {
  /** Cancels the exported return of a held payment. */
  async function cancelled() {
    const one = await held();
    chain.mine(101);
    await sync();
    const given = { paymentId: one.payment.id, key: one.payment.id, address: 'sender', reason: 'Too much' };
    const { id } = await returnInCoin(one.context, given);
    await exportPayouts(db, SYSTEM);
    await db.transaction((tx) => cancelPayout(tx, id, 'The coins are real', SYSTEM));
    const send = () => importSent(db, [{ id, txId: chain.pay('sender', UNITS).txId }], SYSTEM);
    const moneyOf = async () => {
      const { availableMicros, owedMicros } = await findBalance(one.context);
      return [availableMicros, owedMicros];
    };
    return { ...one, accountId: one.topUp.accountId, send, moneyOf };
  }
  /** Also gives the payment to its account. */
  async function assigned() {
    const one = await cancelled();
    expect((await assign(one.context, one.payment.id, { reason: 'Hers' })).status).toBe('FINAL');
    return one;
  }

  it('takes the payment and its bonus', async () => {
    const { send, moneyOf, topUp, context } = await assigned();
    expect(await moneyOf()).toEqual([204_000_000n, 0n]);
    await send();
    expect(await moneyOf()).toEqual([0n, 0n]);
    expect(await findTopUp(context, topUp.orderNumber)).toMatchObject({ creditedMicros: 200_000_000n });
    await balanced();
  });

  it('takes other payments of the account as far as a payout had taken that one', async () => {
    const { send, moneyOf, context, accountId } = await assigned();
    const [, { walletAddress }] = await open(120_000_000n, accountId);
    chain.pay(walletAddress!, 1_20000000n);
    chain.mine(101);
    await sync();
    await db.query(`update payment set credited_at = credited_at - interval '1 day' where units = '120000000'`);
    const given = {
      accountId,
      coin: 'TST',
      amountUsd: 40_000_000n,
      address: 'customer',
      reason: 'Some',
      key: accountId,
    };
    await refundInCoin(context, given);
    // The rests of 160 and 120 USD earn 2% each.
    expect(await moneyOf()).toEqual([(160_000_000n * 102n + 120_000_000n * 102n) / 100n, 0n]);
    await send();
    expect(await moneyOf()).toEqual([80_000_000n, 0n]);
    await balanced();
  });

  it('locks its rows in the one order, also if the payment came by x402', async () => {
    const { send, accountId, payment } = await cancelled();
    const [, { walletAddress }] = await open(50_000_000n, accountId);
    chain.pay(walletAddress!, 50000000n);
    chain.mine(101);
    await sync();
    const cameBy = (mode: string, position: number | null) =>
      db.query('update payment set mode = $2, position = $3 where id = $1', [payment.id, mode, position]);
    await cameBy('X402', null);
    await db.query(
      `insert into x402_authorization (payment_id, payer, nonce, asset, valid_before, signature_digest, sealed_payment, lease_until, sends)
        values ($1, 'payer', 'nonce', 'asset', now(), '', '', now(), 1)`,
      [payment.id],
    );
    expect(await reportsOf(send)).toEqual([]);
    expect(await db.query('select sealed_payment from x402_authorization')).toEqual([{ sealedPayment: null }]);
    await cameBy('CRYPTO', payment.position);
    await balanced();
  });
});
