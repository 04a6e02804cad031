/** Bonuses of money that comes and goes. A payout counts as money that never came. */
import { afterEach, expect, it } from 'vitest';
import * as column from '../../../entities/database/column.ts';
import { statement } from '../../../entities/database/statement.ts';
import { newId } from '../../../entities/ids.ts';
import { proveBooks } from '../../../entities/payments/books.ts';
import { available, lockAccount, post, REVENUE } from '../../../entities/payments/ledger.ts';
import { payableMicros } from '../../../entities/payments/payable.ts';
import { FIND_INSOLVENT, OVERDRAWN_ACCOUNTS_SQL } from '../../../entities/payments/solvency.ts';
import { refund } from '../../../entities/payments/withheld.ts';
import type { Context } from '../../../resolvers/context.ts';
import { adjustBalance } from '../../../resolvers/payments/adjustments.ts';
import { assign, writeOff } from '../../../resolvers/payments/payments.ts';
import { cancel, refundInCoin } from '../../../resolvers/payments/payouts.ts';
import { HALF, openSyncedShop } from './synced-shop.ts';

const { shop, chain, sync, open } = await openSyncedShop();
const { db } = shop;

/** The units of a dollar. */
const USD = HALF / 50n;
const usd = (dollars: number) => BigInt(dollars * 1_000_000);
const OVERDRAWN = statement({ row: column.text() })`${OVERDRAWN_ACCOUNTS_SQL}`;

afterEach(async () => {
  expect((await proveBooks(db)).firstFault).toBeNull();
  expect([...(await OVERDRAWN.all(db)), ...(await FIND_INSOLVENT.all(db))]).toEqual([]);
});

/** Pays dollars, until they are final. */
const payFinally = async (walletAddress: string | null, dollars: number) => {
  chain.pay(walletAddress!, USD * BigInt(dollars));
  chain.mine(101);
  await sync();
};
const topUpFinally = async (dollars: number, accountId: string) => {
  const [context, topUp] = await open(usd(dollars), accountId);
  await payFinally(topUp.walletAddress, dollars);
  return context;
};
const endQuote = async (orderNumber: string) => {
  await db.query('update top_up set expires_at = now() where order_number = $1', [orderNumber]);
  await sync();
};
const payOut = (context: Context, accountId: string, amountUsd: bigint) =>
  refundInCoin(context, {
    accountId,
    amountUsd,
    coin: 'TST',
    key: newId('req'),
    address: 'customer',
    reason: 'Leaves',
  });
/** The available dollars, and those that a payout may take. */
const stateOf = async (accountId: string) =>
  [await shop.balance(accountId), await payableMicros(db, accountId)].map((micros) => Number(micros) / 1_000_000);
const spend = (accountId: string, dollars: number) =>
  db.transaction((tx) =>
    post(tx, accountId, {
      ...{ kind: 'capture', debit: available(accountId), credit: REVENUE, amountMicros: usd(dollars) },
      ...{ externalKey: newId('req'), description: 'Servers' },
    }),
  );
const giveBack = (accountId: string, dollars: number) =>
  db.transaction(async (tx) => {
    await lockAccount(tx, accountId);
    await refund(tx, accountId, { amountMicros: usd(dollars), externalKey: newId('req'), description: 'Servers' });
  });
const adjust = (context: Context, accountId: string, dollars: number) =>
  adjustBalance(context, { accountId, amountMicros: usd(dollars), reason: 'A mistake', key: newId('req') });

it('A top-up earns no bonus for money that left before it is confirmed', async () => {
  const [context, { accountId, orderNumber, walletAddress }] = await open(usd(10_000));
  await payFinally(walletAddress, 9_000);
  await payOut(context, accountId, usd(9_000));
  await endQuote(orderNumber);
  expect(await stateOf(accountId)).toEqual([0, 0]);
});

it('A last dollar brings no bonus for the money that left before', async () => {
  const [context, { accountId, orderNumber, walletAddress }] = await open(usd(10_000));
  chain.pay(walletAddress!, USD * 9_999n);
  chain.mine(1);
  const last = chain.pay(walletAddress!, USD);
  await sync();
  await db.query('update top_up set expires_at = now() where order_number = $1', [orderNumber]);
  chain.pool = [];
  chain.mine(100);
  chain.pool.push(last);
  await sync();
  await payOut(context, accountId, usd(9_999));
  chain.mine(101);
  await sync();
  expect(await stateOf(accountId)).toEqual([1, 1]);
});

it('A dollar that is not final keeps no bonus for the final money that leaves', async () => {
  const [context, { accountId, walletAddress }] = await open(usd(5_000));
  chain.pay(walletAddress!, USD * 4_999n);
  chain.mine(99);
  await sync();
  chain.pay(walletAddress!, USD);
  chain.mine(3);
  await sync();
  expect(await stateOf(accountId)).toEqual([5_400, 4_999]);
  await payOut(context, accountId, usd(4_999));
  chain.mine(101);
  await sync();
  expect(await stateOf(accountId)).toEqual([1, 1]);
});

it('A payout that the operator cancels after the confirmation returns the bonus of its money', async () => {
  const [context, { accountId, orderNumber, walletAddress }] = await open(usd(10_000));
  await payFinally(walletAddress, 9_990);
  const { id } = await payOut(context, accountId, usd(9_000));
  await endQuote(orderNumber);
  // The rest of 990 USD earns 4%, and all of it 8%.
  expect(await stateOf(accountId)).toEqual([1_029.6, 990]);
  await cancel(context, id, 'Stays');
  expect(await stateOf(accountId)).toEqual([10_789.2, 9_990]);
});

it('Spent bonuses keep nothing from the payout of money that came later', async () => {
  const accountId = await shop.account(0n);
  await topUpFinally(10_000, accountId);
  await spend(accountId, 10_750);
  expect(await stateOf(accountId)).toEqual([50, 0]);
  const context = await topUpFinally(90, accountId);
  expect(await stateOf(accountId)).toEqual([140, 90]);
  await payOut(context, accountId, usd(90));
  expect(await stateOf(accountId)).toEqual([50, 0]);
});

it('A refund returns spent bonuses first', async () => {
  const accountId = await shop.account(0n);
  const context = await topUpFinally(10_000, accountId);
  await spend(accountId, 10_800);
  await giveBack(accountId, 700);
  expect(await stateOf(accountId)).toEqual([700, 0]);
  await giveBack(accountId, 300);
  expect(await stateOf(accountId)).toEqual([1_000, 200]);
  await payOut(context, accountId, usd(200));
  // The other 9,800 USD earn 784.
  expect(await stateOf(accountId)).toEqual([784, 0]);
});

it('Old money that an account has spent saves no bonus of money that comes and goes', async () => {
  const accountId = await shop.account(0n);
  for (let i = 0; i < 3; i++) await topUpFinally(90, accountId);
  await spend(accountId, 270);
  for (let i = 0; i < 2; i++) {
    const context = await topUpFinally(10_000, accountId);
    expect(await stateOf(accountId)).toEqual([10_800, 10_000]);
    await payOut(context, accountId, usd(10_000));
    expect(await stateOf(accountId)).toEqual([0, 0]);
  }
});

it('A payout takes what the operator added first, less what the operator took again', async () => {
  const accountId = await shop.account(0n);
  const context = await topUpFinally(10_000, accountId);
  await adjust(context, accountId, 10_000);
  await adjust(context, accountId, -9_000);
  expect(await stateOf(accountId)).toEqual([11_800, 11_000]);
  await payOut(context, accountId, usd(1_000));
  expect(await stateOf(accountId)).toEqual([10_800, 10_000]);
  await payOut(context, accountId, usd(10_000));
  expect(await stateOf(accountId)).toEqual([0, 0]);
});

it('A sum that corrects a deduction is a bonus again, as far as the deduction took one', async () => {
  const accountId = await shop.account(0n);
  const context = await topUpFinally(5_000, accountId);
  await spend(accountId, 4_900);
  await adjust(context, accountId, -500);
  await adjust(context, accountId, 500);
  expect(await stateOf(accountId)).toEqual([500, 100]);
  await payOut(context, accountId, usd(100));
  expect(await stateOf(accountId)).toEqual([294, 0]);
});

it('A payment that belongs to no top-up leaves without the bonus of an older one', async () => {
  const accountId = await shop.account(0n);
  await topUpFinally(1_000, accountId);
  await spend(accountId, 1_060);
  const [context, { walletAddress, orderNumber }] = await open(usd(1_000), accountId);
  chain.pay(walletAddress!, USD * 500n, { coin: 'OTHER' });
  chain.mine(101);
  await sync();
  const [{ id }] = (await db.query('select id from payment where order_number = $1', [orderNumber])) as [
    { id: string },
  ];
  await assign(context, id, { reason: 'Another coin' });
  await sync();
  const [, payable] = await stateOf(accountId);
  expect(payable).toBeGreaterThan(0);
  await payOut(context, accountId, usd(payable!));
  expect(await stateOf(accountId)).toEqual([0, 0]);
});

it('A payout that would take back a spent bonus is refused, and makes no debt', async () => {
  const accountId = await shop.account(0n);
  await topUpFinally(1_000, accountId);
  await spend(accountId, 1_060);
  const context = await topUpFinally(90, accountId);
  // The clock of the database had gone back.
  await db.query(
    `update payment set credited_at = credited_at - interval '1 day' where account_id = $1 and credited_micros = $2`,
    [accountId, usd(90)],
  );
  await expect(payOut(context, accountId, usd(90))).rejects.toMatchObject({
    code: 'insufficient_balance',
    message: 'The payout takes back bonuses that the account has spent. Request a smaller payout.',
  });
  expect(await stateOf(accountId)).toEqual([90, 90]);
});

it('A payout takes its bonus back from refunds that wait, right after their payment is final', async () => {
  const [context, { accountId, walletAddress, orderNumber }] = await open(usd(1_000));
  chain.pay(walletAddress!, USD * 1_000n);
  chain.mine(3);
  await sync();
  await spend(accountId, 900);
  await giveBack(accountId, 890);
  await db.query(`update payment set status = 'FINAL', final_at = now() where order_number = $1`, [orderNumber]);
  expect(await stateOf(accountId)).toEqual([160, 160]);
  await payOut(context, accountId, usd(160));
  expect(await stateOf(accountId)).toEqual([0, 0]);
  expect(await db.query('select withheld_micros, owed_micros from balance where account_id = $1', [accountId])).toEqual(
    [
      // The other 840 USD earn 33.6 instead of 60.
      { withheldMicros: usd(890) - usd(26.4), owedMicros: 0n },
    ],
  );
});

it('A refund waits for a final payment that its gateway reports no more, and for the bonus of that payment', async () => {
  const accountId = await shop.account(0n);
  await topUpFinally(1_000, accountId);
  await spend(accountId, 1_060);
  const miss = (since: string) =>
    db.query(`update payment set missing_since = ${since} where account_id = $1`, [accountId]);
  await miss('now()');
  await giveBack(accountId, 1_060);
  expect(await stateOf(accountId)).toEqual([0, 0]);
  await miss('null');
  await shop.tick('renewals');
  expect(await stateOf(accountId)).toEqual([1_060, 1_000]);
});

it.each([
  ['a payment that is not final', 90, 3, 114],
  ['a bonus', 202, 101, 2],
])('The proof of the books stays right when %s pays the debt of a payout', async (_, lost, blocks, left) => {
  await topUpFinally(1_000, await shop.account(0n));
  const accountId = await shop.account(0n);
  const context = await topUpFinally(lost, accountId);
  await payOut(context, accountId, usd(lost));
  const [payment] = await db.query<{ id: string }>('select id from payment where account_id = $1', [accountId]);
  await writeOff(context, payment!.id, 'A node lied', 'FINAL');
  const [, { walletAddress }] = await open(usd(200), accountId);
  chain.pay(walletAddress!, USD * 200n);
  chain.mine(blocks);
  await sync();
  expect(await stateOf(accountId)).toEqual([left, 0]);
});
