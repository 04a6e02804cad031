/** Bonuses and payouts, and a tiny payment to the address of a top-up whose bonus the account has already. */
import { decodePaymentSignatureHeader } from '@x402/core/http';
import { expect, it, onTestFinished } from 'vitest';
import * as column from '../../entities/database/column.ts';
import { statement } from '../../entities/database/statement.ts';
import { newId } from '../../entities/ids.ts';
import { proveBooks } from '../../entities/payments/books.ts';
import { available, post, REVENUE } from '../../entities/payments/ledger.ts';
import { payableMicros } from '../../entities/payments/payable.ts';
import { OVERDRAWN_ACCOUNTS_SQL } from '../../entities/payments/solvency.ts';
import { accountOf } from '../../resolvers/context.ts';
import { adjustBalance } from '../../resolvers/payments/adjustments.ts';
import { createTopUp } from '../../resolvers/payments/billing.ts';
import { setBonusTiers } from '../../resolvers/payments/bonus.ts';
import { cancel, refundInCoin } from '../../resolvers/payments/payouts.ts';
import { openTown } from '../flows/money/town.ts';
import { work } from '../flows/money/worker.ts';
import { HALF, openSyncedShop } from './chains/synced-shop.ts';

const { shop, chain, sync, open } = await openSyncedShop();
const { db } = shop;

const OVERDRAWN = statement({ row: column.text() })`${OVERDRAWN_ACCOUNTS_SQL}`;
const given = { address: 'customer', reason: 'She leaves', coin: 'TST' };

/** Pays the coins of a top-up, until they are final. */
const payFinally = async (walletAddress: string, units: bigint) => {
  chain.pay(walletAddress, units);
  chain.mine(101);
  await sync();
};
const payableOf = (accountId: string) => payableMicros(db, accountId);

it('An account spends its bonuses last, and a payout of all its own money takes them back', async () => {
  const [context, { accountId, walletAddress }] = await open(1_000_000_000n);
  await payFinally(walletAddress!, HALF * 20n);
  expect(await shop.balance(accountId)).toBe(1_060_000_000n);
  const payOut = (amountUsd: bigint) => refundInCoin(context, { ...given, accountId, amountUsd, key: newId('req') });
  await expect(payOut(1_000_000_001n)).rejects.toMatchObject({
    code: 'insufficient_balance',
    message: 'The account can get 1000 USD. Payouts leave out bonuses, and payments that are not final.',
  });
  await payOut(1_000_000_000n);
  expect([await shop.balance(accountId), await payableOf(accountId)]).toEqual([0n, 0n]);
  const [, { walletAddress: second }] = await open(1_000_000_000n, accountId);
  await payFinally(second!, HALF * 20n);
  expect([await shop.balance(accountId), await payableOf(accountId)]).toEqual([1_060_000_000n, 1_000_000_000n]);
  const adjustment = { accountId, amountMicros: 5_000_000n, reason: 'An outage', key: newId('req') };
  await adjustBalance(context, adjustment);
  expect(await payableOf(accountId)).toBe(1_005_000_000n);
  expect((await proveBooks(db)).firstFault).toBeNull();
});

it('A top-up keeps the bonus that the rest of its money earns, and a cancelled payout returns the other part', async () => {
  const [context, { accountId, walletAddress }] = await open(1_000_000_000n);
  await payFinally(walletAddress!, HALF * 20n);
  await db.transaction((tx) =>
    post(tx, accountId, {
      ...{ kind: 'capture', debit: available(accountId), credit: REVENUE, amountMicros: 200_000_000n },
      ...{ externalKey: newId('req'), description: 'A server' },
    }),
  );
  const payOut = (amountUsd: bigint) => refundInCoin(context, { ...given, accountId, amountUsd, key: newId('req') });
  const half = await payOut(500_000_000n);
  expect([await shop.balance(accountId), await payableOf(accountId)]).toEqual([320_000_000n, 300_000_000n]);
  expect((await proveBooks(db)).firstFault).toBeNull();
  await cancel(context, half.id, 'She stays');
  expect([await shop.balance(accountId), await payableOf(accountId)]).toEqual([860_000_000n, 800_000_000n]);
  await payOut(300_000_000n);
  await payOut(500_000_000n);
  expect([await shop.balance(accountId), await payableOf(accountId)]).toEqual([4_000_000n, 0n]);
  expect((await proveBooks(db)).firstFault).toBeNull();
});

it('A payout of a bonus is a fault of the books', async () => {
  const [context, { accountId, walletAddress }] = await open(1_000_000_000n);
  await payFinally(walletAddress!, HALF * 20n);
  const { id } = await refundInCoin(context, { ...given, accountId, amountUsd: 1_000_000_000n, key: newId('req') });
  expect((await OVERDRAWN.all(db)).map(({ row }) => row)).not.toContain(accountId);
  await db.query('update payout set amount_micros = amount_micros + 1 where id = $1', [id]);
  expect((await OVERDRAWN.all(db)).map(({ row }) => row)).toContain(accountId);
  await db.query('update payout set amount_micros = amount_micros - 1 where id = $1', [id]);
});

it('A tiny payment leaves the books right after the payout of a final payment', async () => {
  const [context, { accountId, walletAddress }] = await open(1_000_000_000n);
  await payFinally(walletAddress!, HALF * 20n);
  await refundInCoin(context, { ...given, accountId, amountUsd: 1_000_000_000n, key: newId('req') });
  expect((await proveBooks(db)).firstFault).toBeNull();
  chain.pay(walletAddress!, 1_000n);
  chain.mine(2);
  await sync();
  expect(await shop.balance(accountId)).toBe(1_000n);
  expect((await proveBooks(db)).firstFault).toBeNull();
});

it('A tiny payment keeps nothing else from a payout', async () => {
  const [, { accountId, walletAddress }] = await open(1_000_000_000n);
  const payable = () => payableOf(accountId);
  chain.pay(walletAddress!, HALF * 10n);
  chain.mine(101);
  await sync();
  expect(await payable()).toBe(500_000_000n);
  chain.pay(walletAddress!, HALF * 10n);
  chain.mine(2);
  await sync();
  expect([await shop.balance(accountId), await payable()]).toEqual([1_060_000_000n, 500_000_000n]);
  chain.mine(101);
  await sync();
  chain.pay(walletAddress!, 1_000n);
  chain.mine(2);
  await sync();
  expect(await payable()).toBe(1_000_000_000n);
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

it('A payment by x402 that the balance has had for a year earns no bonus of today', async () => {
  const { shop: town, contexts, coins } = await openTown(onTestFinished);
  const context = contexts[0]!;
  await setBonusTiers(context, []);
  const amountUsd = 100_000_000n;
  const asked = await createTopUp(context, { amountUsd }, { mode: 'X402' }).catch((error) => error);
  const signature = coins.sign(asked, `0x${'1'.padStart(40, '0')}`, 300, false);
  const request = () =>
    createTopUp({ ...context, requestId: newId('req'), signal: AbortSignal.abort() }, { amountUsd }, { signature });
  // The wallet refuses the transfer of the service. Then its owner submits the same authorization.
  coins.mood = 'refuses';
  await expect(request()).rejects.toMatchObject({ code: 'payment_rejected' });
  coins.mood = 'settles';
  const { authorization, signature: signed } = decodePaymentSignatureHeader(signature).payload as never as {
    authorization: Parameters<typeof coins.settle>[0];
    signature: string;
  };
  await coins.settle({ ...authorization, value: BigInt(authorization.value) }, signed);
  await work(town);
  coins.secure();
  await work(town);
  expect(await town.balance(accountOf(context))).toBe(100_000_000n);
  await town.db.query(`update payment set seen_at = seen_at - interval '1 year'`);
  await setBonusTiers(context, [{ minMicros: 30_000_000n, bonusPercent: 50 }]);
  expect(await request()).toMatchObject({ status: 'CONFIRMED', bonusMicros: 0n });
  expect(await town.balance(accountOf(context))).toBe(100_000_000n);
  expect((await proveBooks(town.db)).firstFault).toBeNull();
});
