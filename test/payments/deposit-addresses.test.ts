/** Deposit addresses: how many an account gets, when it gets one again, and their numbers after a restore. */
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { Database } from '../../entities/database/database.ts';
import { isDatabaseAway } from '../../entities/database/transaction.ts';
import { nextDeposit } from '../../entities/payments/deposit.ts';
import type { TopUp } from '../../entities/payments/top-up.ts';
import type { Context } from '../../resolvers/context.ts';
import { cancelTopUp, createTopUp } from '../../resolvers/payments/billing.ts';
import { assign } from '../../resolvers/payments/payments.ts';
import { newDatabaseUrl } from '../setup/database.ts';
import { administer, withDatabase } from '../setup/postgres.ts';
import { HALF, openSyncedShop } from './chains/synced-shop.ts';

const { shop, chain, driver, sync, open } = await openSyncedShop();
const { db } = shop;
const UNPAID_MAX = 3;

/** An account with a lower limit. */
const newCustomer = async (): Promise<Context> => {
  const [context, { orderNumber }] = await open();
  await cancelTopUp(context, orderNumber);
  const viewer = { ...context.viewer!, isLogin: true };
  return { ...context, viewer, limits: { ...context.limits, unpaidTopupsPerDay: UNPAID_MAX } };
};
const openFor = (context: Context): Promise<TopUp> => createTopUp(context, { amountUsd: 50_000_000n, crypto: 'TST' });
/** Lets days pass for the top-ups of an account. */
const age = ({ viewer }: Context, days: number) =>
  db.query(
    `update top_up set created_at = created_at - make_interval(days => $2), expires_at = expires_at - make_interval(days => $2)
      where account_id = $1`,
    [viewer!.accountId, days],
  );
const numberOf = async ({ orderNumber }: TopUp): Promise<number | null> =>
  (await db.query<{ deposit: number | null }>('select deposit from top_up where order_number = $1', [orderNumber]))[0]!
    .deposit;

/** Lets a function run whenever the driver opens an invoice, until the test ends. */
function whenOpening(run: () => Promise<void>) {
  const open = driver.open;
  onTestFinished(() => {
    driver.open = open;
  });
  driver.open = async (...invoice) => {
    await run();
    return open.apply(driver, invoice);
  };
}

describe('A top-up that gets no address', () => {
  it('because the database is lost has the error of the database, which a client repeats', async () => {
    const context = await newCustomer();
    const [{ name }] = (await db.query<{ name: string }>('select current_database() as name')) as [{ name: string }];
    const server = inject('postgresUrl');
    whenOpening(async () => {
      await administer(server, `alter database ${name} allow_connections false`);
      await administer(server, `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`);
    });
    const fault = await openFor(context).catch((error: unknown) => error);
    await administer(server, `alter database ${name} allow_connections true`);
    expect(fault).toSatisfy(isDatabaseAway);
  });

  it('because its gateway is lost has an error of the coin', async () => {
    const context = await newCustomer();
    whenOpening(() => Promise.reject(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })));
    await expect(openFor(context)).rejects.toMatchObject({ code: 'coin_unavailable' });
  });
});

describe('An account', () => {
  it('opens so many top-ups a day without a payment, and learns when it may go on', async () => {
    const context = await newCustomer();
    const second = await openFor(context);
    await cancelTopUp(context, second.orderNumber);
    const third = await openFor(context);
    const refused = await openFor(context).catch((fault) => fault);
    expect(refused).toMatchObject({ code: 'topup_limit_reached', extras: { retryAfter: expect.any(Number) } });
    expect(refused.message).toMatch(/^An account opens 3 top-ups in 24 hours .* Pay one of them, or wait until \d{4}-/);
    expect(refused.extras.retryAfter / 3600).toBeCloseTo(24, 1);
    await cancelTopUp(context, third.orderNumber);
    await expect(openFor(context)).rejects.toMatchObject({ code: 'topup_limit_reached' });
    chain.pay(third.walletAddress!, HALF);
    chain.mine(2);
    await sync();
    const { orderNumber } = await openFor(context);
    await cancelTopUp(context, orderNumber);
    await expect(openFor(context)).rejects.toMatchObject({ code: 'topup_limit_reached' });
    await age(context, 1);
    await openFor(context);
  });

  it('keeps a part of them for its logins, and none of them keeps it from a payment by x402', async () => {
    const login = await newCustomer();
    const key = { ...login, viewer: { ...login.viewer!, isLogin: false } };
    const { orderNumber } = await openFor(key);
    await cancelTopUp(key, orderNumber);
    const refused = await openFor(key).catch((fault) => fault);
    expect(refused).toMatchObject({
      code: 'topup_limit_reached',
      message: expect.stringContaining('Only its logins open the last 1 of these'),
    });
    const kept = await openFor(login);
    await cancelTopUp(login, kept.orderNumber);
    await expect(openFor(login)).rejects.toMatchObject({ code: 'topup_limit_reached' });
    const paying = createTopUp(key, { amountUsd: 50_000_000n }, { mode: 'X402' });
    await expect(paying).rejects.toMatchObject({ code: 'coin_unavailable' });
  });

  it('opens others while dust reaches the addresses of its old top-ups', async () => {
    const [key, first] = await open();
    const old = [first];
    while (old.length < key.limits.pendingTopups) {
      await cancelTopUp(key, old.at(-1)!.orderNumber);
      old.push(await openFor(key));
    }
    await cancelTopUp(key, old.at(-1)!.orderNumber);
    await age(key, 40);
    for (const { walletAddress } of old) chain.pay(walletAddress!, 1n);
    await sync();
    const states = await db.query('select distinct status from top_up where account_id = $1', [key.viewer!.accountId]);
    expect(states).toEqual([{ status: 'CONFIRMING' }]);
    expect(await openFor(key)).toMatchObject({ status: 'PENDING' });
  });

  it('makes no room for further top-ups by dust, but by a dollar', async () => {
    const opened = await newCustomer();
    const context = { ...opened, limits: { ...opened.limits, pendingTopups: 1 } };
    const { orderNumber, walletAddress } = await openFor(context);
    for (const units of [1n, HALF / 50n - 2n]) {
      chain.pay(walletAddress!, units);
      chain.mine(2);
      await sync();
      await expect(openFor(context)).rejects.toMatchObject({ code: 'topup_limit_reached' });
    }
    // The half hour ends, and the top-up keeps what came.
    await db.query(`update top_up set expires_at = now() where order_number = $1`, [orderNumber]);
    await sync();
    const third = await openFor(context);
    await cancelTopUp(context, third.orderNumber);
    await expect(openFor(context)).rejects.toThrow('24 hours');
    chain.pay(walletAddress!, 1n);
    chain.mine(2);
    await sync();
    await openFor(context);
  });

  it('takes no more numbers than it may open top-ups by requests at once', async () => {
    const context = await newCustomer();
    const next = async () =>
      (await db.query<{ next: number }>('select next from deposit where source = $1', [driver.depositSource()]))[0]!
        .next;
    const before = await next();
    const answers = await Promise.allSettled(Array.from({ length: 12 }, () => openFor(context)));
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(UNPAID_MAX - 1);
    expect((await next()) - before).toBe(UNPAID_MAX - 1);
  });

  it('gets its own unpaid address again after a month, and a later payment belongs to the later top-up', async () => {
    const context = await newCustomer();
    const before = await openFor(context);
    await cancelTopUp(context, before.orderNumber);
    const number = await numberOf(before);
    await age(context, 30);
    expect((await openFor(context)).walletAddress).not.toBe(before.walletAddress);
    await age(context, 2);
    const other = await newCustomer();
    expect((await openFor(other)).walletAddress).not.toBe(before.walletAddress);
    // The first top-up of the account comes first.
    const [first, again] = [await openFor(context), await openFor(context)];
    expect([again.walletAddress, await numberOf(again), await numberOf(before)]).toEqual([
      ...[before.walletAddress, number, null],
    ]);
    expect(first.walletAddress).not.toBe(again.walletAddress);
    const { txId } = chain.pay(again.walletAddress!, HALF);
    chain.mine(2);
    await sync();
    const paid = await db.query('select order_number, status from payment where tx_id = $1', [txId]);
    expect(paid).toEqual([{ orderNumber: again.orderNumber, status: 'CREDITED' }]);
  });

  it('gets no address again that ever got a coin, also if the operator gave that to another account', async () => {
    const context = await newCustomer();
    const topUp = await openFor(context);
    await cancelTopUp(context, topUp.orderNumber);
    const { txId } = chain.pay(topUp.walletAddress!, 2n * HALF, { coin: 'OTHER' });
    chain.mine(2);
    await sync();
    const [{ id } = { id: '' }] = await db.query<{ id: string }>('select id from payment where tx_id = $1', [txId]);
    await age(context, 32);
    const addresses = [(await openFor(context)).walletAddress, (await openFor(context)).walletAddress];
    expect(addresses).not.toContain(topUp.walletAddress);
    await assign(context, id, { accountId: await shop.account(0n), reason: 'Hers' });
    await age(context, 1);
    expect((await openFor(context)).walletAddress).not.toBe(topUp.walletAddress);
  });

  it('gets a fresh address if the number belongs to another extended key now', async () => {
    const context = await newCustomer();
    await age(context, 32);
    const { open: derive } = driver;
    driver.open = async (invoice, deposit) => {
      const { paymentUri } = await derive.call(driver, invoice, deposit);
      return { walletAddress: `other-key-${deposit}`, paymentUri };
    };
    onTestFinished(() => void Reflect.deleteProperty(driver, 'open'));
    const [{ next } = { next: 0 }] = await db.query<{ next: number }>('select next from deposit');
    expect((await openFor(context)).walletAddress).toBe(`other-key-${next}`);
  });

  it('never gets one address for two top-ups at once', async () => {
    const context = await newCustomer();
    await age(context, 32);
    const opened = await Promise.all([openFor(context), openFor(context), openFor(context)]);
    expect(new Set(opened.map(({ walletAddress }) => walletAddress)).size).toBe(3);
  });
});

describe('The numbers of addresses', () => {
  const nextOf = async (): Promise<number> => (await db.query<{ next: number }>('select next from deposit'))[0]!.next;

  it('leave a gap after a restore, since the copy is another database', async () => {
    const url = await newDatabaseUrl();
    const original = await Database.open(url);
    for (const number of [0, 1, 2]) expect(await nextDeposit(original, 'key')).toBe(number);
    await original.close();
    const name = new URL(url).pathname.slice(1);
    const owner = inject('postgresUrl');
    await administer(owner, `create database ${name}_restored template ${name}`);
    onTestFinished(() => administer(owner, `drop database ${name}_restored with (force)`));
    const restored = await Database.open(withDatabase(url, `${name}_restored`));
    onTestFinished(() => restored.close());
    for (const number of [1_003, 1_004]) expect(await nextDeposit(restored, 'key')).toBe(number);
  });

  it('leave a gap after ten minutes without a look at the chain, as in the copy of an older folder', async () => {
    const context = await newCustomer();
    const before = await nextOf();
    chain.mine(1);
    await sync();
    expect(await nextOf()).toBe(before);
    await db.query(`update chain set reached_at = now() - interval '11 minutes'`);
    await expect(openFor(context)).rejects.toMatchObject({ code: 'coin_unavailable' });
    chain.mine(1);
    await sync();
    expect(await nextOf()).toBe(before + 1_000);
    expect((await openFor(context)).walletAddress).toBe(`address-${before + 1_000}`);
  });
});
