/** Payments without an owner, and payments that a chain reverts. The operator decides about them. */
import { describe, expect, it } from 'vitest';
import { proveBooks } from '../../../entities/payments/books.ts';
import type { Context } from '../../../resolvers/context.ts';
import { findTopUp } from '../../../resolvers/payments/billing.ts';
import { assign, writeOff } from '../../../resolvers/payments/payments.ts';
import { receiptOfMonth, receiptOfTopUp } from '../../../resolvers/payments/receipts.ts';
import { HALF, openSyncedShop } from './synced-shop.ts';

const { shop, chain, driver, sync, open, suspense, total } = await openSyncedShop();

describe('A payment in another coin', () => {
  it('stays in suspense, and the operator gets an event', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    const before = await suspense();
    chain.pay(walletAddress!, 7_00000000n, { coin: 'OTHER' });
    chain.mine(2);
    await sync();
    expect((await findTopUp(context, orderNumber)).status).toBe('PENDING');
    expect(await shop.balance(accountId)).toBe(0n);
    expect((await suspense()) - before).toBe(7_000_000n);
    const [payment] = await shop.db.query<{ id: string; status: string }>(
      'select id, status from payment where order_number = $1',
      [orderNumber],
    );
    expect(payment!.status).toBe('UNMATCHED');
    expect(await shop.events(payment!.id)).toEqual(['payment.unmatched']);
  });

  it('is credited once the operator assigns it, and is then reversed and restored like any other', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    const before = await suspense();
    chain.pay(walletAddress!, 7_00000000n, { coin: 'OTHER' });
    chain.mine(2);
    await sync();
    const [payment] = await shop.db.query<{ id: string }>('select id from payment where order_number = $1', [
      orderNumber,
    ]);
    await assign(context, payment!.id, { reason: 'It is hers' });
    expect(await shop.balance(accountId)).toBe(7_000_000n);
    const lost = chain.blocks.slice(-2).flatMap(({ payments }) => payments);
    chain.reorganise(2, { lost: true });
    chain.mine(3);
    await sync();
    expect([await shop.balance(accountId), (await suspense()) - before]).toEqual([0n, 7_000_000n]);
    chain.pool = lost;
    chain.mine(2);
    await sync();
    expect([await shop.balance(accountId), await suspense()]).toEqual([7_000_000n, before]);
  });
});

it('A receipt has the payments in the coin of its top-up alone, and that of the month has all', async () => {
  const [context, { orderNumber, accountId, walletAddress }] = await open();
  chain.pay(walletAddress!, HALF);
  chain.mine(2);
  await sync();
  chain.pay(walletAddress!, 7_00000000n, { coin: 'OTHER' });
  chain.mine(2);
  await sync();
  const [payment] = await shop.db.query<{ id: string }>(
    `select id from payment where order_number = $1 and coin = 'OTHER'`,
    [orderNumber],
  );
  await assign(context, payment!.id, { reason: 'It is hers' });
  const proveReceipts = async (balanceMicros: bigint) => {
    expect((await receiptOfTopUp(context, orderNumber)).totalMicros).toBe(50_000_000n);
    expect((await findTopUp(context, orderNumber)).creditedMicros).toBe(50_000_000n);
    const [{ month }] = (await shop.db.query<{ month: string }>(
      `select to_char(now() at time zone 'UTC', 'YYYY-MM') as month`,
    )) as [{ month: string }];
    expect((await receiptOfMonth(context, month)).totalMicros).toBe(balanceMicros);
    expect(await shop.balance(accountId)).toBe(balanceMicros);
    expect((await proveBooks(shop.db)).firstFault).toBeNull();
  };
  await proveReceipts(57_000_000n);
  chain.reorganise(2, { lost: true });
  chain.mine(3);
  await sync();
  await proveReceipts(50_000_000n);
});

describe('A reorganisation that reverts a credited payment', () => {
  it('reverses the whole payment, which the account owes until the payment is mined again', async () => {
    const [, { accountId, walletAddress }] = await open();
    const before = await suspense();
    chain.pay(walletAddress!, HALF);
    chain.mine(2);
    await sync();
    await shop.server(accountId, { paidUntil: new Date(Date.now() - 1000) });
    await shop.tick('renewals');
    const rest = await shop.balance(accountId);
    expect(rest).toBe(44_000_000n);
    const lost = structuredClone(chain.blocks.slice(-2));
    chain.reorganise(2, { lost: true });
    chain.mine(3);
    await sync();
    expect(await shop.balance(accountId)).toBe(0n);
    expect((await suspense()) - before).toBe(HALF);
    const debt = () =>
      shop.db.query(
        'select owed_micros as micros, suspended_at from balance join account on id = account_id where id = $1',
        [accountId],
      );
    expect(await debt()).toEqual([{ micros: 6_000_000n, suspendedAt: null }]);
    chain.pool = lost.flatMap(({ payments }) => payments);
    chain.mine(2);
    await sync();
    await sync();
    expect(await shop.balance(accountId)).toBe(rest);
    expect(await debt()).toEqual([{ micros: 0n, suspendedAt: null }]);
    expect(await suspense()).toBe(before);
    expect(await shop.balanced()).toBe(true);
  });

  it('lets the operator write the payment off, and still credits it if it comes afterwards', async () => {
    const [context, { accountId, walletAddress }] = await open();
    const names = ['suspense', 'owed', 'gateway:testnet'];
    const totals = () => Promise.all(names.map(total));
    const [suspended, debts, came] = (await totals()) as [bigint, bigint, bigint];
    chain.pay(walletAddress!, HALF);
    chain.mine(2);
    await sync();
    await shop.server(accountId, { paidUntil: new Date(Date.now() - 1000) });
    await shop.tick('renewals');
    const [payment] = await shop.db.query<{ id: string }>('select id from payment where account_id = $1', [accountId]);
    const write = () => writeOff(context, payment!.id, 'It was double-spent');
    await expect(write()).rejects.toMatchObject({ code: 'validation_failed' });
    const blocks = structuredClone(chain.blocks.slice(-2));
    chain.reorganise(2, { lost: true });
    chain.mine(3);
    await sync();
    for (let i = 0; i < 2; i++) expect((await write()).status).toBe('WRITTEN_OFF');
    expect(await totals()).toEqual([suspended, debts - 6_000_000n, came]);
    expect(await proveBooks(shop.db)).toMatchObject({ balanced: true, firstFault: null });
    expect(await shop.events(payment!.id)).toEqual(['payment.reversed', 'payment.written_off']);
    chain.pool = blocks.flatMap(({ payments }) => payments);
    chain.mine(2);
    await sync();
    expect(await shop.balance(accountId)).toBe(44_000_000n);
    expect(await totals()).toEqual([suspended, debts, came - 50_000_000n]);
    expect(await proveBooks(shop.db)).toMatchObject({ balanced: true, firstFault: null });
  });

  it('lets the operator write off a final one by the name of its state, until a block has it again', async () => {
    const [context, { accountId, walletAddress }] = await open();
    chain.pay(walletAddress!, HALF);
    chain.mine(1);
    const lied = structuredClone(chain.blocks.at(-1)!.payments);
    for (const blocks of [1, 100]) {
      chain.mine(blocks);
      await sync();
    }
    const [payment] = await shop.db.query<{ id: string }>('select id from payment where account_id = $1', [accountId]);
    const write = (status?: 'FINAL' | 'CREDITED') => writeOff(context, payment!.id, 'The node lied', status);
    await expect(write()).rejects.toThrow('A payment that is FINAL cannot be written off');
    await expect(write('CREDITED')).rejects.toThrow('The payment is FINAL meanwhile. Look at it again.');
    const answers = await Promise.all([write('FINAL'), write('FINAL')]);
    expect(answers.map(({ status }) => status)).toEqual(['WRITTEN_OFF', 'WRITTEN_OFF']);
    await sync();
    expect(await shop.balance(accountId)).toBe(0n);
    expect(await shop.events(payment!.id)).toEqual(['payment.reversed', 'payment.written_off']);
    expect(await proveBooks(shop.db)).toMatchObject({ balanced: true, firstFault: null });
    chain.pool = lied;
    chain.mine(2);
    await sync();
    expect(await shop.balance(accountId)).toBe(HALF);
    expect(await proveBooks(shop.db)).toMatchObject({ balanced: true, firstFault: null });
  });

  it('changes nothing if another block holds the payment at once', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    chain.pay(walletAddress!, HALF);
    chain.mine(2);
    await sync();
    chain.reorganise(2);
    chain.mine(1);
    await sync();
    expect(await shop.balance(accountId)).toBe(50_000_000n);
    expect((await findTopUp(context, orderNumber)).status).toBe('CONFIRMED');
    expect(
      (await shop.db.query('select 1 from account where id = $1 and suspended_at is null', [accountId])).length,
    ).toBe(1);
  });
});

describe('The receipt of a top-up', () => {
  const shown = async (context: Context, orderNumber: string) => {
    const { totalMicros, lines } = await receiptOfTopUp(context, orderNumber);
    const { creditedMicros, receivedCrypto, status, txIds } = await findTopUp(context, orderNumber);
    return {
      lines: lines.map(({ description, amountMicros, amountCrypto, txId }) =>
        [description, amountMicros / 1_000_000n, amountCrypto, txId].join(' '),
      ),
      total: totalMicros,
      topUp: [creditedMicros, receivedCrypto, status, txIds.length],
    };
  };

  it('shows each removal and each return of a payment, and its total is the credited sum', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open(100_000_000n);
    const { txId } = chain.pay(walletAddress!, 2n * HALF);
    chain.mine(2);
    await sync();
    const lines = [`Top-up in TST 100 1 ${txId}`, 'Bonus 2  '];
    const full = [102_000_000n, '1', 'CONFIRMED', 1];
    expect(await shown(context, orderNumber)).toEqual({ lines, total: 102_000_000n, topUp: full });
    for (let turn = 0; turn < 2; turn++) {
      chain.reorganise(2);
      const lost = chain.pool.splice(0);
      chain.mine(4);
      await sync();
      lines.push(`Removed by its chain -100 -1 ${txId}`, 'Bonus of a removed payment -2  ');
      const gone = [0n, '0', 'CONFIRMED', 0];
      expect(await shown(context, orderNumber)).toEqual({ lines, total: 0n, topUp: gone });
      chain.pool.push(...lost);
      chain.mine(2);
      await sync();
      lines.push(`Back on its chain 100 1 ${txId}`, 'Bonus 2  ');
      expect(await shown(context, orderNumber)).toEqual({ lines, total: 102_000_000n, topUp: full });
    }
    expect(await shop.balance(accountId)).toBe(102_000_000n);
    expect((await proveBooks(shop.db)).firstFault).toBeNull();
  });

  it('counts a payment that its chain removes before the top-up is confirmed', async () => {
    const [context, { orderNumber, walletAddress }] = await open(100_000_000n);
    chain.pay(walletAddress!, HALF);
    chain.mine(2);
    await sync();
    chain.reorganise(2, { lost: true });
    chain.pay(walletAddress!, 2n * HALF);
    chain.mine(4);
    await sync();
    const { lines, total, topUp } = await shown(context, orderNumber);
    expect([lines.length, total, topUp]).toEqual([4, 102_000_000n, [102_000_000n, '1', 'CONFIRMED', 1]]);
  });

  it('shows coin, amount and transaction of a held payment that the operator assigned', async ({ onTestFinished }) => {
    driver.coinList[0]!.holdAboveMicros = 150_000_000n;
    onTestFinished(() => {
      delete driver.coinList[0]!.holdAboveMicros;
    });
    const [context, { orderNumber, walletAddress }] = await open(200_000_000n);
    const { txId } = chain.pay(walletAddress!, 4n * HALF);
    chain.mine(2);
    await sync();
    const [payment] = await shop.db.query<{ id: string }>('select id from payment where tx_id = $1', [txId]);
    await assign(context, payment!.id, { reason: 'Looked at' });
    expect((await shown(context, orderNumber)).lines).toEqual([`Top-up in TST 200 2 ${txId}`, 'Bonus 4  ']);
  });
});
