/** Payments without an owner, and payments that a chain reverts. The operator decides about them. */
import { describe, expect, it } from 'vitest';
import { proveBooks } from '../../../entities/payments/books.ts';
import { findTopUp } from '../../../resolvers/payments/billing.ts';
import { assign, writeOff } from '../../../resolvers/payments/payments.ts';
import { HALF, openSyncedShop } from './synced-shop.ts';

const { shop, chain, sync, open, suspense, total } = await openSyncedShop();

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
