/** Bonuses that an account spends while other money of it is away, or waits. */
import { afterEach, expect, it } from 'vitest';
import { newId } from '../../../entities/ids.ts';
import { proveBooks } from '../../../entities/payments/books.ts';
import { available, type Posting, post, REVENUE } from '../../../entities/payments/ledger.ts';
import { payableMicros } from '../../../entities/payments/payable.ts';
import type { Context } from '../../../resolvers/context.ts';
import { cancel, refundInCoin } from '../../../resolvers/payments/payouts.ts';
import { HALF, openSyncedShop } from './synced-shop.ts';

const { shop, chain, sync, open } = await openSyncedShop();
const { db } = shop;

/** The units of a dollar. */
const USD = HALF / 50n;
const usd = (dollars: number) => BigInt(dollars * 1_000_000);

afterEach(async () => expect((await proveBooks(db)).firstFault).toBeNull());

const topUpFinally = async (dollars: number, accountId: string) => {
  const [context, { walletAddress }] = await open(usd(dollars), accountId);
  chain.pay(walletAddress!, USD * BigInt(dollars));
  chain.mine(101);
  await sync();
  return context;
};
const payOut = (context: Context, accountId: string, amountUsd: bigint) =>
  refundInCoin(context, {
    ...{ accountId, amountUsd, coin: 'TST', key: newId('req') },
    ...{ address: 'customer', reason: 'Leaves' },
  });
/** The available dollars, and those that a payout may take. */
const stateOf = async (accountId: string) =>
  [await shop.balance(accountId), await payableMicros(db, accountId)].map((micros) => Number(micros) / 1_000_000);
const spending = (accountId: string, dollars: number): Posting => ({
  ...{ kind: 'capture', debit: available(accountId), credit: REVENUE, amountMicros: usd(dollars) },
  ...{ externalKey: newId('req'), description: 'Servers' },
});
const spend = (accountId: string, dollars: number) =>
  db.transaction((tx) => post(tx, accountId, spending(accountId, dollars)));

it('Money that came while a transaction waited for the account counts before that transaction', async () => {
  const accountId = await shop.account(0n);
  await topUpFinally(1_000, accountId);
  await spend(accountId, 1_000);
  await db.transaction(async (tx) => {
    await tx.query('select now()');
    await topUpFinally(90, accountId);
    await post(tx, accountId, spending(accountId, 90));
  });
  expect(await stateOf(accountId)).toEqual([60, 0]);
});

it('A cancelled payout returns the bonuses that its money would have saved', async () => {
  const accountId = await shop.account(0n);
  await topUpFinally(1_000, accountId);
  const context = await topUpFinally(90, accountId);
  const { id } = await payOut(context, accountId, usd(90));
  await spend(accountId, 1_060);
  await cancel(context, id, 'Another address');
  expect(await stateOf(accountId)).toEqual([90, 30]);
});

it('A cancelled payout returns no bonus that was spent before its money came', async () => {
  const accountId = await shop.account(0n);
  await topUpFinally(1_000, accountId);
  await spend(accountId, 1_060);
  const context = await topUpFinally(90, accountId);
  const { id } = await payOut(context, accountId, usd(90));
  await cancel(context, id, 'Another address');
  expect(await stateOf(accountId)).toEqual([90, 90]);
});

it('A payment that its chain removes for a while spends no bonus', async () => {
  const accountId = await shop.account(0n);
  await topUpFinally(1_000, accountId);
  const [, { walletAddress }] = await open(usd(90), accountId);
  chain.pay(walletAddress!, USD * 90n);
  chain.mine(2);
  await sync();
  await spend(accountId, 1_060);
  expect(await stateOf(accountId)).toEqual([90, 0]);
  chain.reorganise(2);
  const lost = chain.pool.splice(0);
  chain.mine(4);
  await sync();
  expect(await stateOf(accountId)).toEqual([0, 0]);
  chain.pool.push(...lost);
  chain.mine(101);
  await sync();
  expect(await stateOf(accountId)).toEqual([90, 30]);
});
