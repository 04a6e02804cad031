/** Reversed payments whose money was spent: debts, and refunds that wait for the chain. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { newId } from '../../entities/ids.ts';
import { proveBooks } from '../../entities/payments/books.ts';
import { FIND_INSOLVENT } from '../../entities/payments/solvency.ts';
import type { Server } from '../../entities/servers/server.ts';
import type { PaymentDriver } from '../../provisioning/payments/drivers/driver.ts';
import { SimulatedPayments } from '../../provisioning/payments/drivers/simulated.ts';
import { findAccount, findBalance } from '../../resolvers/accounts/account.ts';
import { adjustBalance } from '../../resolvers/payments/adjustments.ts';
import { createTopUp } from '../../resolvers/payments/billing.ts';
import { writeOff } from '../../resolvers/payments/payments.ts';
import { deleteServer } from '../../resolvers/servers/delete.ts';
import { orderServer } from '../../resolvers/servers/order.ts';
import { updateServer } from '../../resolvers/servers/update.ts';
import { contextOf, openShop } from '../setup/shop.ts';
import { openSyncedShop } from './chains/synced-shop.ts';

const { shop, chain, sync, open, total } = await openSyncedShop();
await shop.provisioning.prepare();
const usd = (dollars: number) => BigInt(Math.round(dollars * 1e6));
const later = () => new Date(Date.now() + 700 * 3_600_000);

/** A credited top-up of a new account, whose payment the test can remove. */
async function paid(dollars: number, accountId?: string) {
  const [context, topUp] = await open(usd(dollars), accountId);
  chain.pay(topUp.walletAddress!, usd(dollars));
  chain.mine(2);
  await sync();
  const [payment] = await shop.db.query<{ id: string }>('select id from payment where order_number = $1', [
    topUp.orderNumber,
  ]);
  const of = (name: string) => total(`${name}:${topUp.accountId}`);
  return { context, accountId: topUp.accountId, paymentId: payment!.id, of };
}
/** Removes the payments of the last two blocks. @returns a function that mines them again */
async function remove() {
  const lost = chain.blocks.slice(-2).flatMap(({ payments }) => payments);
  chain.reorganise(2, { lost: true });
  chain.mine(3);
  await sync();
  return async () => {
    chain.pool = lost;
    chain.mine(2);
    await sync();
    await sync();
  };
}
const spend = async (accountId: string, dollars: number, kind: Server['kind'] = 'VPS'): Promise<string> => {
  const set = { kind, priceMonthMicros: usd(dollars), paidUntil: new Date(Date.now() - 1000) };
  const order = await shop.server(accountId, set);
  await shop.tick('renewals');
  expect((await shop.read(order)).status).toBe('RUNNING');
  return order;
};
const wellKept = async () => {
  expect(await proveBooks(shop.db)).toMatchObject({ balanced: true, firstFault: null });
  expect(await FIND_INSOLVENT.all(shop.db)).toEqual([]);
};
const balanceOf = (accountId: string) => findBalance(contextOf(shop, accountId));
const ORDER = { serviceCode: 'vps-1', region: 'ams', os: 'debian-13' };

describe('A reversal', () => {
  it('takes the bonus as well, and gives it back when the payment returns', async () => {
    const bonus = await total('bonus');
    const { context, accountId, paymentId } = await paid(5_000);
    expect(await shop.balance(accountId)).toBe(usd(5_400));
    const restore = await remove();
    expect([await shop.balance(accountId), await total('bonus')]).toEqual([0n, bonus]);
    await writeOff(context, paymentId, 'It was spent twice');
    expect(await shop.balance(accountId)).toBe(0n);
    await wellKept();
    await restore();
    expect(await shop.balance(accountId)).toBe(usd(5_400));
    await wellKept();
  });

  it('leaves nothing of the refund of a server that it had paid for', async () => {
    const { context, accountId, paymentId } = await paid(99);
    const order = await spend(accountId, 96);
    await remove();
    const { refundedMicros } = await deleteServer(context, order);
    expect(refundedMicros).toBeGreaterThan(usd(95));
    expect(await shop.balance(accountId)).toBe(0n);
    await writeOff(context, paymentId, 'It was spent twice');
    expect(await shop.balance(accountId)).toBe(0n);
    await wellKept();
  });

  it('leaves nothing that renews a server of the account', async () => {
    const { context, accountId } = await paid(200);
    const order = await spend(accountId, 90);
    const other = await shop.server(accountId, { priceMonthMicros: usd(50), paidUntil: later() });
    await remove();
    await deleteServer(context, order);
    await shop.db.query(`update server set paid_until = now() where order_number = $1`, [other]);
    await shop.tick('renewals');
    expect((await shop.read(other)).status).toBe('SUSPENDED');
    await wellKept();
  });
});

describe('A reversal of one of several payments', () => {
  it('leaves the bonus of the tier that the others reach', async () => {
    const [, topUp] = await open(usd(1_000));
    const { accountId, walletAddress } = topUp;
    for (const dollars of [600, 400]) {
      chain.pay(walletAddress!, usd(dollars));
      chain.mine(2);
      await sync();
    }
    expect(await shop.balance(accountId)).toBe(usd(1_060));
    const restore = await remove();
    expect(await shop.balance(accountId)).toBe(usd(624));
    await wellKept();
    await restore();
    expect(await shop.balance(accountId)).toBe(usd(1_060));
    await wellKept();
  });

  it('takes no bonus that was never given, and gives none for the removed payment', async () => {
    const [, topUp] = await open(usd(1_000));
    chain.pay(topUp.walletAddress!, usd(600));
    chain.mine(2);
    await sync();
    await remove();
    expect((await balanceOf(topUp.accountId)).owedMicros).toBe(0n);
    chain.pay(topUp.walletAddress!, usd(400));
    chain.mine(2);
    await shop.db.query('update top_up set expires_at = now() where order_number = $1', [topUp.orderNumber]);
    await sync();
    expect(await shop.balance(topUp.accountId)).toBe(usd(408));
    await wellKept();
  });
});

describe('A debt', () => {
  /** An account that owes 96 USD. */
  async function indebted() {
    const one = await paid(99);
    const order = await spend(one.accountId, 96);
    const restore = await remove();
    expect(await balanceOf(one.accountId)).toMatchObject({ availableMicros: 0n, owedMicros: usd(96) });
    return { ...one, order, restore };
  }

  it('is paid by the next credits before anything else', async () => {
    const { accountId } = await indebted();
    await paid(50, accountId);
    expect(await balanceOf(accountId)).toMatchObject({ availableMicros: 0n, owedMicros: usd(46) });
    await paid(60, accountId);
    expect(await balanceOf(accountId)).toMatchObject({ availableMicros: usd(14), owedMicros: 0n });
    await wellKept();
  });

  it('refuses orders with an error that names it, and resizes that cost', async () => {
    const { accountId, context, order } = await indebted();
    const refusal = { code: 'insufficient_balance', message: expect.stringContaining('The account owes 96 USD') };
    await expect(orderServer(context, ORDER)).rejects.toMatchObject(refusal);
    const set = (status: string, micros: bigint) =>
      shop.db.query('update server set status = $2, price_month_micros = $3 where order_number = $1', [
        ...[order, status, micros],
      ]);
    await set('STOPPED', 1n);
    await expect(updateServer(contextOf(shop, accountId), order, { serviceCode: 'vps-2' })).rejects.toMatchObject(
      refusal,
    );
    await set('RUNNING', usd(96)); // Otherwise the books would show a price that was never charged.
  });

  it('is paid by an order that fails and by adjustments, with which the operator can forgive it', async () => {
    const { accountId, context } = await paid(50);
    const { server } = await orderServer(context, { ...ORDER, autoRenew: true });
    const [{ held }] = (await shop.db.query('select held_micros as held from balance where account_id = $1', [
      accountId,
    ])) as [{ held: bigint }];
    await remove();
    expect((await balanceOf(accountId)).owedMicros).toBe(held);
    await deleteServer(context, server.orderNumber);
    expect(await balanceOf(accountId)).toMatchObject({ availableMicros: 0n, owedMicros: 0n });
    const other = await indebted();
    const adjustment = { accountId: other.accountId, amountMicros: usd(100), reason: 'Forgiven', key: newId('req') };
    expect((await adjustBalance(other.context, adjustment)).balanceMicros).toBe(usd(4));
    expect((await balanceOf(other.accountId)).owedMicros).toBe(0n);
    await wellKept();
  });

  it('ends when its payment returns, and suspends no account', async () => {
    const { accountId, restore } = await indebted();
    expect((await findAccount(contextOf(shop, accountId))).suspendedFor).toBeNull();
    await restore();
    expect(await balanceOf(accountId)).toMatchObject({ availableMicros: usd(3), owedMicros: 0n });
  });
});

describe('A refund of captured money', () => {
  const withheldOf = async (accountId: string) =>
    (
      await shop.db.query<{ micros: bigint }>('select withheld_micros as micros from balance where account_id = $1', [
        accountId,
      ])
    )[0]!.micros;
  const finish = () => shop.db.query(`update payment set status = 'FINAL', final_at = now() where status = 'CREDITED'`);

  it('waits until the payments of the account are final', async () => {
    const { accountId, context } = await paid(200);
    const order = await spend(accountId, 90);
    const { refundedMicros } = await deleteServer(context, order);
    const { availableMicros, pendingMicros } = await balanceOf(accountId);
    expect([availableMicros, pendingMicros]).toEqual([usd(114), refundedMicros]);
    await shop.tick('renewals');
    expect(await withheldOf(accountId)).toBe(refundedMicros);
    await finish();
    await shop.tick('renewals');
    expect([await shop.balance(accountId), await withheldOf(accountId)]).toEqual([usd(114) + refundedMicros, 0n]);
    await wellKept();
  });

  it('waits for the host of a dedicated server first, and then until the payments are final', async () => {
    const { accountId, context } = await paid(200);
    const order = await spend(accountId, 90, 'DEDICATED');
    const { refundedMicros } = await deleteServer(context, order);
    const money = async () => {
      const { availableMicros, pendingMicros } = await balanceOf(accountId);
      return [availableMicros, pendingMicros, await withheldOf(accountId)];
    };
    expect(await money()).toEqual([usd(114), refundedMicros, 0n]);
    await wellKept();
    await shop.provisioning.newWorker().drain('servers');
    expect(await money()).toEqual([usd(114), refundedMicros, refundedMicros]);
    await finish();
    await shop.tick('renewals');
    expect(await money()).toEqual([usd(114) + refundedMicros, 0n, 0n]);
    await wellKept();
  });

  it('pays the debt of a payment that the chain removed during the wipe', async () => {
    const { accountId, context } = await paid(99);
    const { refundedMicros } = await deleteServer(context, await spend(accountId, 96, 'DEDICATED'));
    await remove();
    expect((await balanceOf(accountId)).owedMicros).toBe(usd(96));
    await shop.provisioning.newWorker().drain('servers');
    expect((await balanceOf(accountId)).owedMicros).toBe(usd(96) - refundedMicros);
    await wellKept();
  });

  it('waits only as far as such payments and their bonus reach', async () => {
    const { accountId, context } = await paid(400);
    await finish();
    await paid(100, accountId);
    const { refundedMicros } = await deleteServer(context, await spend(accountId, 300));
    expect(await withheldOf(accountId)).toBe(usd(102));
    expect(await shop.balance(accountId)).toBe(usd(408 + 102 - 300 - 102) + refundedMicros);
    await wellKept();
  });

  it('is taken first when the payment is reversed', async () => {
    const { accountId, context } = await paid(99);
    const { refundedMicros } = await deleteServer(context, await spend(accountId, 96));
    await remove();
    expect([await withheldOf(accountId), await shop.balance(accountId)]).toEqual([0n, 0n]);
    expect((await balanceOf(accountId)).owedMicros).toBe(usd(96) - refundedMicros);
    await wellKept();
  });
});

describe('A refund of money from a processor', () => {
  it('waits until the processor reports enough confirmations', async () => {
    let enough = 60;
    const simulated = new SimulatedPayments({ confirmSeconds: 0 });
    const driver: PaymentDriver = {
      name: 'processor',
      simulated: false,
      coins: () => simulated.coins().map((coin) => ({ ...coin, finalConfirmations: enough })),
      open: simulated.open.bind(simulated),
      observe: simulated.observe.bind(simulated),
    };
    const other = await openShop(onTestFinished, { payments: [driver] });
    const accountId = await other.account(0n);
    const context = contextOf(other, accountId);
    await createTopUp(context, { amountUsd: usd(50), crypto: 'BTC' });
    const look = async () => {
      await other.db.query(`update task set run_at = now() where lane like 'payments%'`);
      await other.provisioning.newWorker().drain('payments');
      await other.tick('renewals');
    };
    await look();
    const { refundedMicros } = await deleteServer(context, await other.server(accountId, { paidUntil: later() }));
    expect(await findBalance(context)).toMatchObject({ availableMicros: usd(50), pendingMicros: refundedMicros });
    enough = 1;
    await look();
    expect(await findBalance(context)).toMatchObject({ availableMicros: usd(50) + refundedMicros, pendingMicros: 0n });
  });
});
