/** What comes on a chain that is followed: each payment is credited once, for what it is worth, whatever the chain does. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { proveBooks } from '../../entities/books.ts';
import { verifyBooks } from '../../entities/ledger.ts';
import type { TopUp } from '../../entities/top-up.ts';
import { followProcessName } from '../../provisioning/payments/follow.ts';
import { cancelTopUp, createTopUp, findTopUp } from '../../resolvers/billing.ts';
import type { Context } from '../../resolvers/context.ts';
import { assignPayment, writeOff } from '../../resolvers/payments.ts';
import { newDatabase } from '../database.ts';
import { newFolder, removeFolder } from '../spawn.ts';
import { Chain, ChainDriver } from './chain.ts';
import { contextOf, openShop, type Shop } from './shop.ts';

/** 100 USD for a coin: 50 USD are half a coin. */
const HALF = 50_000_000n;

let shop: Shop;
let chain: Chain;
let driver: ChainDriver;
const folder = newFolder();
afterAll(() => removeFolder(folder));
beforeAll(async () => {
  chain = new Chain();
  driver = new ChainDriver(chain);
  shop = openShop(await newDatabase(afterAll), folder, driver);
});
beforeEach(async () => {
  driver.coinList[0]!.fixedRateMicros = 100_000_000n;
  await follow();
});

const open = async (amountUsd = 50_000_000n, accountId?: string): Promise<[Context, TopUp]> => {
  const context = contextOf(shop, accountId ?? (await shop.account(0n)));
  return [context, await createTopUp(context, { amountUsd, crypto: 'TST' })];
};
/** The chain is looked at, and all that follows from it is done. */
const follow = async (worker = shop.provisioning.newWorker()) => {
  await shop.provisioning.schedule();
  await shop.db.query(`update task set run_at = now() + interval '1 day' where lane = 'periodic'`);
  await shop.db.query(`update task set run_at = now(), leased_by = null where subject = $1`, [
    `cron:${followProcessName('testnet')}`,
  ]);
  await worker.drain('periodic');
};
/** Its half hour is over. */
const expire = async (orderNumber: string) => {
  await shop.db.query(
    `update top_up set expires_at = now() - interval '1 second', created_at = now() - interval '1 hour' where order_number = $1`,
    [orderNumber],
  );
  await shop.db.query(`update payment set seen_at = now() - interval '1 hour' where order_number = $1`, [orderNumber]);
  await shop.db.query('update task set run_at = now() where subject = $1', [orderNumber]);
  await shop.provisioning.newWorker().drain('payments');
  await follow();
};
const suspense = async () => (await verifyBooks(shop.db)).totals.find(({ name }) => name === 'suspense')?.micros ?? 0n;

describe('A payment', () => {
  it('is seen when it is announced, and credited when it has its confirmations', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    const { txId } = chain.pay(walletAddress!, HALF);
    await follow();
    expect(await findTopUp(context, orderNumber)).toMatchObject({
      ...{ status: 'CONFIRMING', receivedCrypto: '0.5', confirmations: 0, txIds: [txId], paymentException: null },
    });
    chain.mine();
    await follow();
    expect(await findTopUp(context, orderNumber)).toMatchObject({ status: 'CONFIRMING', confirmations: 1 });
    expect(await shop.balance(accountId)).toBe(0n);
    chain.mine();
    await follow();
    expect(await findTopUp(context, orderNumber)).toMatchObject({
      ...{ status: 'CONFIRMED', confirmations: 2, creditedMicros: 50_000_000n },
    });
    expect(await shop.balance(accountId)).toBe(50_000_000n);
    expect(await shop.events(orderNumber)).toEqual(['topup.created', 'topup.confirming', 'topup.confirmed']);
  });

  it('is credited once, though it is mined again and again in other blocks, by two workers', async () => {
    const [, { accountId, walletAddress }] = await open();
    chain.pay(walletAddress!, HALF);
    for (let i = 0; i < 5; i++) {
      chain.mine();
      await Promise.all([follow(), follow()]);
      chain.reorganise(1);
      await follow();
      expect(await shop.balance(accountId)).toBe(0n);
    }
    chain.mine(3);
    await Promise.all([follow(), follow(), follow()]);
    expect(await shop.balance(accountId)).toBe(50_000_000n);
  });

  it('that was taken back before it was credited leaves the top-up to expire', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    chain.pay(walletAddress!, HALF);
    chain.mine();
    await follow();
    chain.reorganise(1, { lost: true });
    chain.mine(3);
    await follow();
    expect(await findTopUp(context, orderNumber)).toMatchObject({ status: 'CONFIRMING', txIds: [] });
    await expire(orderNumber);
    expect(await findTopUp(context, orderNumber)).toMatchObject({ status: 'EXPIRED', receivedCrypto: '0' });
    expect(await shop.balance(accountId)).toBe(0n);
  });

  it('in time is worth what was quoted, although it was noticed when the quote was over', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    driver.coinList[0]!.fixedRateMicros = 10_000_000n;
    const at = new Date();
    chain.pay(walletAddress!, HALF);
    await shop.db.query(
      `update top_up set status = 'EXPIRED', expires_at = now() + interval '1 second' where order_number = $1`,
      [orderNumber],
    );
    chain.mine(1, at);
    chain.mine(1);
    await follow();
    expect(await findTopUp(context, orderNumber)).toMatchObject({ status: 'CONFIRMED', paymentException: null });
    expect(await shop.balance(accountId)).toBe(50_000_000n);
  });

  it('that comes late is credited at the rate of the moment', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    await expire(orderNumber);
    expect((await findTopUp(context, orderNumber)).status).toBe('EXPIRED');
    driver.coinList[0]!.fixedRateMicros = 120_000_000n;
    chain.pay(walletAddress!, HALF);
    chain.mine(2);
    await follow();
    expect(await findTopUp(context, orderNumber)).toMatchObject({
      ...{ status: 'CONFIRMED', paymentException: 'LATE', creditedMicros: 60_000_000n },
    });
    expect(await shop.balance(accountId)).toBe(60_000_000n);
  });

  it('waits while nobody knows what it is worth, and is credited when somebody does', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    await expire(orderNumber);
    delete driver.coinList[0]!.fixedRateMicros;
    chain.pay(walletAddress!, HALF);
    chain.mine(3);
    await follow();
    expect(await findTopUp(context, orderNumber)).toMatchObject({ status: 'CONFIRMING', confirmations: 2 });
    await expect(open()).rejects.toMatchObject({ code: 'coin_unavailable' });
    driver.coinList[0]!.fixedRateMicros = 100_000_000n;
    await follow();
    expect(await shop.balance(accountId)).toBe(50_000_000n);
  });
});

describe('A top-up', () => {
  it('that is paid in parts credits each, and is confirmed when it has all', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    chain.pay(walletAddress!, HALF / 2n);
    chain.mine(2);
    await follow();
    expect(await findTopUp(context, orderNumber)).toMatchObject({ status: 'CONFIRMING', receivedCrypto: '0.25' });
    expect(await shop.balance(accountId)).toBe(25_000_000n);
    chain.pay(walletAddress!, HALF / 2n);
    chain.mine(2);
    await follow();
    expect(await findTopUp(context, orderNumber)).toMatchObject({ status: 'CONFIRMED', paymentException: null });
    expect(await shop.balance(accountId)).toBe(50_000_000n);
  });

  it('that was paid too little is confirmed with that when it expires, with the bonus of what came', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open(1_000_000_000n);
    chain.pay(walletAddress!, HALF * 4n);
    chain.mine(2);
    await follow();
    expect((await findTopUp(context, orderNumber)).status).toBe('CONFIRMING');
    await expire(orderNumber);
    expect(await findTopUp(context, orderNumber)).toMatchObject({
      ...{ status: 'CONFIRMED', paymentException: 'UNDERPAID', bonusMicros: 4_000_000n, creditedMicros: 204_000_000n },
    });
    expect(await shop.balance(accountId)).toBe(204_000_000n);
  });

  it('that was paid too much is credited in full: the rest at the lower of the two rates, without bonus', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open(100_000_000n);
    driver.coinList[0]!.fixedRateMicros = 50_000_000n;
    chain.pay(walletAddress!, HALF * 4n);
    chain.mine(2);
    await follow();
    expect(await findTopUp(context, orderNumber)).toMatchObject({ status: 'CONFIRMED', paymentException: 'OVERPAID' });
    expect(await shop.balance(accountId)).toBe(100_000_000n + 50_000_000n + 2_000_000n);
  });

  it('that is confirmed stays so, and what comes to its address is credited all the same', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    for (let i = 0; i < 2; i++) {
      chain.pay(walletAddress!, HALF);
      chain.mine(2);
      await follow();
    }
    expect(await findTopUp(context, orderNumber)).toMatchObject({
      ...{ status: 'CONFIRMED', paymentException: 'OVERPAID', receivedCrypto: '1', creditedMicros: 100_000_000n },
    });
    expect(await shop.balance(accountId)).toBe(100_000_000n);
    expect(await shop.events(orderNumber)).toHaveLength(3);
  });

  it('that is cancelled while money comes loses nothing', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    chain.pay(walletAddress!, HALF);
    await Promise.allSettled([follow(), cancelTopUp(context, orderNumber)]);
    chain.mine(2);
    await follow();
    expect((await findTopUp(context, orderNumber)).status).toBe('CONFIRMED');
    expect(await shop.balance(accountId)).toBe(50_000_000n);
  });
});

describe('What was paid in another coin', () => {
  it('is kept in suspense, and the operator is told', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    const before = await suspense();
    chain.pay(walletAddress!, 7_00000000n, { coin: 'OTHER' });
    chain.mine(2);
    await follow();
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

  it('is credited when the operator assigns it, and goes and comes with its block like any other', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    const before = await suspense();
    chain.pay(walletAddress!, 7_00000000n, { coin: 'OTHER' });
    chain.mine(2);
    await follow();
    const [payment] = await shop.db.query<{ id: string }>('select id from payment where order_number = $1', [
      orderNumber,
    ]);
    await assignPayment(context, payment!.id, 'It is hers');
    expect(await shop.balance(accountId)).toBe(7_000_000n);
    const lost = chain.blocks.slice(-2).flatMap(({ sightings }) => sightings);
    chain.reorganise(2, { lost: true });
    chain.mine(3);
    await follow();
    expect([await shop.balance(accountId), (await suspense()) - before]).toEqual([0n, 7_000_000n]);
    chain.pool = lost;
    chain.mine(2);
    await follow();
    expect([await shop.balance(accountId), await suspense()]).toEqual([7_000_000n, before]);
  });
});

describe('A reorganisation that takes back what was credited', () => {
  it('takes what the balance still has into suspense, stops the account, and gives it back when it is mined again', async () => {
    const [, { accountId, walletAddress }] = await open();
    const before = await suspense();
    chain.pay(walletAddress!, HALF);
    chain.mine(2);
    await follow();
    await shop.server(accountId, { paidUntil: new Date(Date.now() - 1000) });
    await shop.tick('renewals');
    const rest = await shop.balance(accountId);
    expect(rest).toBe(44_000_000n);
    const lost = structuredClone(chain.blocks.slice(-2));
    chain.reorganise(2, { lost: true });
    chain.mine(3);
    await follow();
    expect(await shop.balance(accountId)).toBe(0n);
    expect((await suspense()) - before).toBe(rest);
    const suspended = () =>
      shop.db.query('select 1 from account where id = $1 and suspended_at is not null', [accountId]);
    expect(await suspended()).toHaveLength(1);
    chain.pool = lost.flatMap(({ sightings }) => sightings);
    chain.mine(2);
    await follow();
    await follow();
    expect(await shop.balance(accountId)).toBe(rest);
    expect(await suspense()).toBe(before);
    expect(await shop.balanced()).toBe(true);
  });

  it('is written off when nobody waits for it any more, and credited all the same if it comes after that', async () => {
    const [context, { accountId, walletAddress }] = await open();
    const total = async (name: string) =>
      (await proveBooks(shop.db)).totals.find((one) => one.name === name)?.micros ?? 0n;
    const names = ['suspense', 'adjustment', 'gateway:testnet'];
    const totals = () => Promise.all(names.map(total));
    const [suspended, lost, came] = (await totals()) as [bigint, bigint, bigint];
    chain.pay(walletAddress!, HALF);
    chain.mine(2);
    await follow();
    await shop.server(accountId, { paidUntil: new Date(Date.now() - 1000) });
    await shop.tick('renewals');
    const [payment] = await shop.db.query<{ id: string }>('select id from payment where account_id = $1', [accountId]);
    const write = () => writeOff(context, payment!.id, 'It was double-spent');
    await expect(write()).rejects.toMatchObject({ code: 'validation_failed' });
    const blocks = structuredClone(chain.blocks.slice(-2));
    chain.reorganise(2, { lost: true });
    chain.mine(3);
    await follow();
    for (let i = 0; i < 2; i++) expect((await write()).status).toBe('WRITTEN_OFF');
    expect(await totals()).toEqual([suspended, lost - 6_000_000n, came]);
    expect(await proveBooks(shop.db)).toMatchObject({ balanced: true, firstFault: null });
    expect(await shop.events(payment!.id)).toEqual(['payment.reversed', 'payment.written_off']);
    chain.pool = blocks.flatMap(({ sightings }) => sightings);
    chain.mine(2);
    await follow();
    expect(await shop.balance(accountId)).toBe(44_000_000n);
    expect(await totals()).toEqual([suspended, lost, came - 50_000_000n]);
    expect(await proveBooks(shop.db)).toMatchObject({ balanced: true, firstFault: null });
  });

  it('and mines it in another block at once changes nothing', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    chain.pay(walletAddress!, HALF);
    chain.mine(2);
    await follow();
    chain.reorganise(2);
    chain.mine(1);
    await follow();
    expect(await shop.balance(accountId)).toBe(50_000_000n);
    expect((await findTopUp(context, orderNumber)).status).toBe('CONFIRMED');
    expect(
      (await shop.db.query('select 1 from account where id = $1 and suspended_at is null', [accountId])).length,
    ).toBe(1);
  });
});
