/** Payments that a wallet reports. The worker asks the wallet until they are final, also when another account got the money. */
import { beforeEach, describe, expect, it } from 'vitest';
import { newId } from '../../entities/ids.ts';
import { proveBooks } from '../../entities/payments/books.ts';
import { READ_GATEWAY } from '../../entities/payments/movement.ts';
import { gatewayOf, type Payment } from '../../entities/payments/payment.ts';
import type { TopUp } from '../../entities/payments/top-up.ts';
import type { Coin, ObservedPayment } from '../../provisioning/payments/drivers/driver.ts';
import { SimulatedPayments } from '../../provisioning/payments/drivers/simulated.ts';
import type { Context } from '../../resolvers/context.ts';
import { createTopUp } from '../../resolvers/payments/billing.ts';
import { assign, giveBack, writeOff } from '../../resolvers/payments/payments.ts';
import { refundInCoin, returnInCoin } from '../../resolvers/payments/payouts.ts';
import { newDatabase, truncate } from '../setup/database.ts';
import { atEnd } from '../setup/end.ts';
import { contextOf, openShop } from '../setup/shop.ts';

/** A wallet with the payments of the test. Its payments need 10 confirmations, and are final with 60. */
class Wallet extends SimulatedPayments {
  override readonly simulated = false as never;
  payments: ObservedPayment[] = [];
  holdAboveMicros: bigint | undefined;
  override coins(): readonly Coin[] {
    const { holdAboveMicros } = this;
    const rules = { finalConfirmations: 60, ...(holdAboveMicros !== undefined && { holdAboveMicros }) };
    return super.coins().map((coin) => (coin.code === 'XMR' ? { ...coin, ...rules } : coin));
  }
  override async observe({ walletAddress }: { walletAddress: string | null }): Promise<ObservedPayment[]> {
    return this.payments.filter(({ address }) => address === walletAddress);
  }
}

const wallet = new Wallet({ confirmSeconds: 0 });
const shop = await openShop(atEnd, { db: await newDatabase(), payments: [wallet] });
const { db } = shop;
beforeEach(async () => {
  await truncate(db, 'task');
  Object.assign(wallet, { payments: [], holdAboveMicros: undefined });
});

/** Opens a top-up of 160 USD in one coin. */
const open = async (): Promise<[Context, TopUp]> => {
  const context = contextOf(shop, await shop.account(0n));
  return [context, await createTopUp(context, { amountUsd: 160_000_000n, crypto: 'XMR' })];
};
const paid = (topUp: TopUp, confirmations: number): ObservedPayment => ({
  ...{ txId: newId('req'), position: 0, coin: 'XMR', address: topUp.walletAddress!, confirmations },
  units: 1_000_000_000_000n,
});
/** Looks once, as if the next poll were due. */
const watch = async () => {
  await db.query(`update task set run_at = now() where lane like 'payments%'`);
  await shop.provisioning.newWorker().drain('payments');
};
const grow = (confirmations: number) => {
  wallet.payments = wallet.payments.map((one) => ({ ...one, confirmations }));
};
const stored = async (txId: string) => (await db.query<Payment>('select * from payment where tx_id = $1', [txId]))[0]!;
const isWatched = async ({ orderNumber }: TopUp) =>
  (await db.query('select from task where subject = $1', [orderNumber])).length > 0;
/** Lets the month pass for which the worker asks about every top-up. */
const age = ({ orderNumber }: TopUp) =>
  db.query(
    `update top_up set created_at = now() - interval '32 days', expires_at = now() - interval '31 days' where order_number = $1`,
    [orderNumber],
  );

/** Pays more than the limit to a top-up. */
async function held() {
  wallet.holdAboveMicros = 100_000_000n;
  const [context, topUp] = await open();
  const payment = paid(topUp, 10);
  wallet.payments = [payment];
  await watch();
  const { id, status } = await stored(payment.txId);
  expect(status).toBe('UNMATCHED');
  return { context, topUp, payment, id };
}

describe('A held payment that the operator gave to another account', () => {
  it('becomes final with its confirmations, like that of its own account', async () => {
    for (const isOwn of [true, false]) {
      const { context, topUp, payment, id } = await held();
      const accountId = isOwn ? topUp.accountId : await shop.account(0n);
      await assign(context, id, { accountId, reason: 'The coins are real' });
      await watch();
      expect((await stored(payment.txId)).status).toBe('ASSIGNED');
      grow(60);
      await watch();
      expect(await stored(payment.txId)).toMatchObject({ status: 'FINAL', accountId, finalAt: expect.any(Date) });
    }
  });

  it('is reported as missing and as found', async () => {
    const { context, payment, id } = await held();
    await assign(context, id, { accountId: await shop.account(0n), reason: 'Hers' });
    wallet.payments = [];
    await watch();
    expect((await stored(payment.txId)).missingSince).not.toBeNull();
    wallet.payments = [{ ...payment, confirmations: 60 }];
    await watch();
    expect(await stored(payment.txId)).toMatchObject({ missingSince: null, status: 'FINAL' });
    expect(await shop.events(id)).toEqual(expect.arrayContaining(['payment.missing', 'payment.found']));
  });

  it('is reported as missing in suspense, too, and leaves no coins when the operator writes it off then', async () => {
    const { context, payment, id } = await held();
    const units = async () => (await READ_GATEWAY.all(db, [gatewayOf(await stored(payment.txId))]))[0]?.units ?? '0';
    const before = BigInt(await units());
    wallet.payments = [];
    await watch();
    expect(await stored(payment.txId)).toMatchObject({ status: 'UNMATCHED', missingSince: expect.any(Date) });
    wallet.payments = [payment];
    await watch();
    expect(await stored(payment.txId)).toMatchObject({ status: 'UNMATCHED', missingSince: null });
    wallet.payments = [];
    await watch();
    await writeOff(context, id, 'Gone');
    expect(before - BigInt(await units())).toBe(payment.units);
    expect((await proveBooks(db)).firstFault).toBeNull();
  });

  it('is final at once if it was final in suspense, also after the month of its top-up', async () => {
    const { context, topUp, payment, id } = await held();
    grow(60);
    await watch();
    const { finalAt } = await stored(payment.txId);
    await age(topUp);
    await watch();
    expect(await isWatched(topUp)).toBe(false);
    const accountId = await shop.account(0n);
    for (let i = 0; i < 2; i++)
      expect(await assign(context, id, { accountId, reason: 'Hers' })).toMatchObject({ status: 'FINAL', finalAt });
    expect(await shop.balance(accountId)).toBe(160_000_000n);
    expect(await shop.balanced()).toBe(true);
  });
});

describe('A payment that its wallet reports no more', () => {
  it('is neither assigned nor returned from suspense until the wallet reports it again', async () => {
    const { context, payment, id } = await held();
    grow(60);
    await watch();
    const shown = wallet.payments;
    wallet.payments = [];
    await watch();
    const given = { accountId: await shop.account(0n), reason: 'Hers' };
    await expect(assign(context, id, given)).rejects.toThrow('The gateway does not report the payment any more');
    await expect(giveBack(context, id, { returnTxId: 'back', reason: 'No' })).rejects.toThrow('does not report');
    const back = { paymentId: id, key: id, address: '4customer', reason: 'No' };
    await expect(returnInCoin(context, back)).rejects.toThrow('does not report');
    wallet.payments = shown;
    await watch();
    expect((await assign(context, id, given)).status).toBe('FINAL');
    expect(payment.units).toBe(1_000_000_000_000n);
  });

  it.each([10, 60])(
    'is written off by the operator with %d confirmations, and restored with its return',
    async (many) => {
      const [context, topUp] = await open();
      const payment = paid(topUp, many);
      wallet.payments = [payment];
      await watch();
      const { id, status } = await stored(payment.txId);
      expect(status).toBe(many === 60 ? 'FINAL' : 'CREDITED');
      const { accountId } = topUp;
      const before = await shop.balance(accountId);
      expect(before).toBeGreaterThan(160_000_000n);
      await expect(writeOff(context, id, 'Gone')).rejects.toThrow('cannot be written off');
      wallet.payments = [];
      await watch();
      const coins = { accountId, coin: 'XMR', amountUsd: 10_000_000n, key: id, address: '4customer', reason: 'No' };
      await expect(refundInCoin(context, coins)).rejects.toThrow('can get 0 USD');
      for (let i = 0; i < 2; i++) expect((await writeOff(context, id, 'Gone')).status).toBe('WRITTEN_OFF');
      expect(await shop.balance(accountId)).toBe(0n);
      expect((await proveBooks(db)).firstFault).toBeNull();
      wallet.payments = [payment];
      await watch();
      expect(await shop.balance(accountId)).toBe(before);
      expect(await stored(payment.txId)).toMatchObject({ status, missingSince: null });
      expect(await shop.events(id)).toEqual(
        expect.arrayContaining(['payment.reversed', 'payment.written_off', 'payment.restored']),
      );
      expect((await proveBooks(db)).firstFault).toBeNull();
    },
  );
});

describe('The worker asks about a top-up after its month', () => {
  it('until a late payment that it credited is final', async () => {
    const [, topUp] = await open();
    await watch();
    await age(topUp);
    const payment = paid(topUp, 10);
    wallet.payments = [payment];
    await watch();
    expect((await stored(payment.txId)).status).toBe('CREDITED');
    expect(await isWatched(topUp)).toBe(true);
    grow(60);
    await watch();
    expect((await stored(payment.txId)).status).toBe('FINAL');
    expect(await isWatched(topUp)).toBe(false);
  });

  it('until its wallet reports a missing payment again', async () => {
    const [, topUp] = await open();
    const payment = paid(topUp, 60);
    wallet.payments = [payment];
    await watch();
    wallet.payments = [];
    await watch();
    await age(topUp);
    await watch();
    expect(await isWatched(topUp)).toBe(true);
    wallet.payments = [payment];
    await watch();
    expect([await stored(payment.txId), await isWatched(topUp)]).toMatchObject([{ missingSince: null }, false]);
  });

  it('until a held payment is final, so that the operator can return it', async () => {
    const { context, topUp, payment, id } = await held();
    await age(topUp);
    await watch();
    expect(await isWatched(topUp)).toBe(true);
    grow(60);
    await watch();
    expect(await isWatched(topUp)).toBe(false);
    await giveBack(context, id, { returnTxId: 'back', reason: 'Too much' });
    expect((await stored(payment.txId)).status).toBe('RETURNED');
  });

  it('until a payment that another account got is final', async () => {
    const { context, topUp, payment, id } = await held();
    await assign(context, id, { accountId: await shop.account(0n), reason: 'Hers' });
    await age(topUp);
    await watch();
    expect(await isWatched(topUp)).toBe(true);
    grow(60);
    await watch();
    expect([(await stored(payment.txId)).status, await isWatched(topUp)]).toEqual(['FINAL', false]);
  });
});

it('The worker asks about a payment that never confirms less often, the longer its invoice is over', async () => {
  const [, topUp] = await open();
  wallet.payments = [{ ...paid(topUp, 0), units: 1n }];
  const pauseAfter = async (age: string) => {
    await db.query(`update top_up set expires_at = now() - $2::interval where order_number = $1`, [
      ...[topUp.orderNumber, age],
    ]);
    await watch();
    const [task] = await db.query<{ minutes: number; status: string }>(
      `select round(extract(epoch from run_at - now()) / 60)::int as minutes, status
        from task join top_up on order_number = subject where subject = $1`,
      [topUp.orderNumber],
    );
    return task;
  };
  const status = 'CONFIRMING';
  expect(await pauseAfter('-30 minutes')).toEqual({ minutes: 10, status });
  expect(await pauseAfter('12 hours')).toEqual({ minutes: 30, status });
  expect(await pauseAfter('20 days')).toEqual({ minutes: 60, status });
});
