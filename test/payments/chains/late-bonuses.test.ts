/** The bonus of a quote ends with the quote, as its rate does. Otherwise free top-ups would keep a promotion for years. */
import { expect, it } from 'vitest';
import { newId } from '../../../entities/ids.ts';
import { proveBooks } from '../../../entities/payments/books.ts';
import { cancelTopUp } from '../../../resolvers/payments/billing.ts';
import { setBonusTiers } from '../../../resolvers/payments/bonus.ts';
import { cancel, refundInCoin } from '../../../resolvers/payments/payouts.ts';
import { HALF, openSyncedShop } from './synced-shop.ts';

const { shop, chain, sync, open } = await openSyncedShop();
const { db } = shop;
const end = (orderNumber: string) =>
  db.query(`update top_up set expires_at = now() - interval '1 minute' where order_number = $1`, [orderNumber]);
const bonusOf = async (orderNumber: string) => {
  const [row] = await db.query('select bonus_micros, bonus_tiers from top_up where order_number = $1', [orderNumber]);
  return row;
};

it.each(['has expired', 'was cancelled'])(
  'A top-up that %s earns no bonus that the operator has ended',
  async (how) => {
    const [context, first] = await open();
    await setBonusTiers(context, [{ minMicros: 30_000_000n, bonusPercent: 50 }]);
    const [, topUp] = await open(undefined, first.accountId);
    if (how === 'was cancelled') await cancelTopUp(context, topUp.orderNumber);
    await end(topUp.orderNumber);
    await sync();
    await setBonusTiers(context, []);
    chain.pay(topUp.walletAddress!, HALF);
    chain.mine(101);
    await sync();
    expect(await shop.balance(topUp.accountId)).toBe(50_000_000n);
    expect(await bonusOf(topUp.orderNumber)).toEqual({ bonusMicros: 0n, bonusTiers: [] });
  },
);

it('A payment that never gets a block keeps no bonus alive', async () => {
  const [context, first] = await open();
  await setBonusTiers(context, [{ minMicros: 30_000_000n, bonusPercent: 50 }]);
  const [, topUp] = await open(undefined, first.accountId);
  const dust = chain.pay(topUp.walletAddress!, 1n);
  await sync();
  await end(topUp.orderNumber);
  await setBonusTiers(context, [{ minMicros: 40_000_000n, bonusPercent: 2 }]);
  chain.pool = [];
  chain.pay(topUp.walletAddress!, HALF);
  chain.mine(101);
  chain.pool = [dust];
  await sync();
  expect(await shop.balance(topUp.accountId)).toBe(51_000_000n);
});

it('A late part of a top-up earns no step that has ended, although that of the whole has not', async () => {
  const [context, first] = await open();
  const whole = { minMicros: 50_000_000n, bonusPercent: 30 };
  await setBonusTiers(context, [{ minMicros: 20_000_000n, bonusPercent: 20 }, whole]);
  const [, topUp] = await open(undefined, first.accountId);
  await end(topUp.orderNumber);
  await sync();
  await setBonusTiers(context, [whole]);
  chain.pay(topUp.walletAddress!, HALF / 2n);
  chain.mine(101);
  await sync();
  expect(await shop.balance(topUp.accountId)).toBe(25_000_000n);
});

it('A late payment gets the bonus of its quote where the present one is higher', async () => {
  const [context, first] = await open();
  await setBonusTiers(context, [{ minMicros: 30_000_000n, bonusPercent: 2 }]);
  const [, topUp] = await open(undefined, first.accountId);
  await end(topUp.orderNumber);
  await sync();
  await setBonusTiers(context, [{ minMicros: 30_000_000n, bonusPercent: 50 }]);
  chain.pay(topUp.walletAddress!, HALF);
  chain.mine(101);
  await sync();
  expect(await shop.balance(topUp.accountId)).toBe(51_000_000n);
});

it('A payment that left the mempool, and comes a year later, earns no bonus that has ended', async () => {
  const [context, first] = await open();
  await setBonusTiers(context, [{ minMicros: 30_000_000n, bonusPercent: 50 }]);
  const [, topUp] = await open(undefined, first.accountId);
  const announced = chain.pay(topUp.walletAddress!, HALF);
  await sync();
  chain.pool = [];
  await sync();
  await db.query(
    `with paid as (update payment set seen_at = seen_at - interval '1 year' where order_number = $1)
      update top_up set created_at = created_at - interval '1 year', expires_at = expires_at - interval '1 year' where order_number = $1`,
    [topUp.orderNumber],
  );
  await sync();
  await setBonusTiers(context, []);
  chain.pool = [announced];
  chain.mine(101);
  await sync();
  expect(await shop.balance(topUp.accountId)).toBe(50_000_000n);
});

it.each(['payout', 'cancelled payout'])(
  'Late money to a top-up that was paid out earns no bonus that has ended, also after a %s',
  async (how) => {
    const [context] = await open();
    await setBonusTiers(context, [{ minMicros: 500_000_000n, bonusPercent: 50 }]);
    const [, { accountId, orderNumber, walletAddress }] = await open(1_000_000_000n);
    const payOut = (amountUsd: bigint) =>
      refundInCoin(context, {
        address: 'customer',
        reason: 'She asks',
        coin: 'TST',
        accountId,
        amountUsd,
        key: newId('req'),
      });
    chain.pay(walletAddress!, HALF * 20n);
    chain.mine(101);
    await sync();
    await payOut(1_000_000_000n);
    await db.query(
      `with paid as (update payment set seen_at = seen_at - interval '1 year' where order_number = $1)
        update top_up set created_at = created_at - interval '1 year', expires_at = expires_at - interval '1 year',
          confirmed_at = confirmed_at - interval '1 year' where order_number = $1`,
      [orderNumber],
    );
    await setBonusTiers(context, []);
    chain.pay(walletAddress!, HALF * 20n);
    chain.mine(101);
    await sync();
    const { id } = await payOut(1_000_000n);
    if (how === 'cancelled payout') await cancel(context, id, 'She stays');
    expect(await shop.balance(accountId)).toBe(how === 'payout' ? 999_000_000n : 1_000_000_000n);
    expect((await proveBooks(db)).firstFault).toBeNull();
  },
);
