/** A tiny payment to the address of a top-up whose bonus has already been spent or paid out. */
import { expect, it } from 'vitest';
import { newId } from '../../entities/ids.ts';
import { proveBooks } from '../../entities/payments/books.ts';
import { FIND_PAYABLE } from '../../entities/payments/withheld.ts';
import { refundInCoin } from '../../resolvers/payments/payouts.ts';
import { HALF, openSyncedShop } from './chains/synced-shop.ts';

const { shop, chain, sync, open } = await openSyncedShop();
const { db } = shop;

const given = { address: 'customer', reason: 'She leaves', coin: 'TST' };

it('A tiny payment leaves the books right after the payout of a final payment and its bonus', async () => {
  const [context, { accountId, walletAddress }] = await open(1_000_000_000n);
  chain.pay(walletAddress!, HALF * 20n);
  // Coins for the bonus.
  const [, { walletAddress: others }] = await open(1_000_000_000n);
  chain.pay(others!, HALF * 20n);
  chain.mine(101);
  await sync();
  expect(await shop.balance(accountId)).toBe(1_060_000_000n);
  await refundInCoin(context, { ...given, accountId, amountUsd: 1_060_000_000n, key: newId('req') });
  expect((await proveBooks(db)).firstFault).toBeNull();
  chain.pay(walletAddress!, 1_000n);
  chain.mine(2);
  await sync();
  expect(await shop.balance(accountId)).toBe(1_000n);
  expect((await proveBooks(db)).firstFault).toBeNull();
});

it('A tiny payment keeps no final bonus from the customer, and a bonus waits for the payments that it needs', async () => {
  const [, { accountId, walletAddress }] = await open(1_000_000_000n);
  const payable = async () => (await FIND_PAYABLE.first(db, [accountId]))!.micros;
  chain.pay(walletAddress!, HALF * 10n);
  chain.mine(101);
  await sync();
  expect(await payable()).toBe(500_000_000n);
  chain.pay(walletAddress!, HALF * 10n);
  chain.mine(2);
  await sync();
  // The final half earns 4% by itself, and the whole has 6%.
  expect([await shop.balance(accountId), await payable()]).toEqual([1_060_000_000n, 520_000_000n]);
  chain.mine(101);
  await sync();
  chain.pay(walletAddress!, 1_000n);
  chain.mine(2);
  await sync();
  expect(await payable()).toBe(1_060_000_000n);
});

it('A payment that comes back brings the bonus that its top-up lost by it before the confirmation', async () => {
  const [, { orderNumber, accountId, walletAddress }] = await open(1_000_000_000n);
  chain.pay(walletAddress!, HALF * 10n);
  chain.mine(2);
  await sync();
  chain.reorganise(2);
  const lost = chain.pool.splice(0);
  chain.pay(walletAddress!, HALF * 10n);
  chain.mine(4);
  await sync();
  await db.query('update top_up set expires_at = now() where order_number = $1', [orderNumber]);
  await sync();
  // A payment of 500 USD earns 4%, and both earn 6%.
  expect(await shop.balance(accountId)).toBe(520_000_000n);
  chain.pool.push(...lost);
  chain.mine(2);
  await sync();
  expect(await shop.balance(accountId)).toBe(1_060_000_000n);
  const topUps = await db.query('select bonus_micros, credited_micros from top_up where order_number = $1', [
    orderNumber,
  ]);
  expect(topUps).toEqual([{ bonusMicros: 60_000_000n, creditedMicros: 1_060_000_000n }]);
  expect((await proveBooks(db)).firstFault).toBeNull();
});
