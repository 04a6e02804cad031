/** Payments for cancelled top-ups, and the effects of a confirmed top-up. */
import { beforeEach, describe, expect, it } from 'vitest';
import { newId } from '../../entities/ids.ts';
import type { TopUp } from '../../entities/payments/top-up.ts';
import type { ObservedPayment } from '../../provisioning/payments/drivers/driver.ts';
import { SimulatedPayments } from '../../provisioning/payments/drivers/simulated.ts';
import type { Context } from '../../resolvers/context.ts';
import { cancelTopUp, createTopUp, findTopUp } from '../../resolvers/payments/billing.ts';
import { newDatabase, truncate } from '../setup/database.ts';
import { atEnd } from '../setup/end.ts';
import { contextOf, HOUR_MS, openShop } from '../setup/shop.ts';

/** A chain for which the test makes payments. The test can act between its observation and the record of it. */
class Chain extends SimulatedPayments {
  override readonly simulated = false as never;
  payments: ObservedPayment[] = [];
  /** Runs after an observation, before the worker gets its result. */
  looked: () => Promise<unknown> = async () => {};
  override async observe(): Promise<ObservedPayment[]> {
    const seen = this.payments;
    await this.looked();
    return seen;
  }
}
const paid = (confirmations = 99): ObservedPayment[] => [
  { txId: newId('req'), position: 0, coin: 'USDC-BASE', address: '', units: 50_000_000n, confirmations },
];

const chain = new Chain({ confirmSeconds: 0 });
const shop = await openShop(atEnd, { db: await newDatabase(), payments: [chain] });
beforeEach(async () => {
  await truncate(shop.db, 'task');
  Object.assign(chain, { payments: [], looked: async () => {} });
});

const open = async (): Promise<[Context, TopUp]> => {
  const context = contextOf(shop, await shop.account(0n));
  return [context, await createTopUp(context, { amountUsd: 50_000_000n, crypto: 'USDC-BASE' })];
};
/** Runs the tasks of payments until none is due. */
const watch = async () => {
  await shop.db.query(`update task set run_at = now() where lane like 'payments%'`);
  await shop.provisioning.newWorker().drain('payments');
};

describe('A cancelled top-up', () => {
  it('is confirmed as late if its payment still comes', async () => {
    const [context, { orderNumber, accountId }] = await open();
    await shop.provisioning.newWorker().lease('payments-free'); // the first check runs at once
    expect((await cancelTopUp(context, orderNumber)).status).toBe('CANCELLED');
    await shop.db.query('update task set leased_by = null');
    await watch();
    expect(await findTopUp(context, orderNumber)).toMatchObject({ status: 'CANCELLED', paymentException: null });
    chain.payments = paid();
    await watch();
    expect(await findTopUp(context, orderNumber)).toMatchObject({
      status: 'CONFIRMED',
      paymentException: 'LATE',
      receivedCrypto: '50',
    });
    expect(await shop.balance(accountId)).toBe(50_000_000n);
    expect(await shop.events(orderNumber)).toEqual(
      ['created', 'cancelled', 'confirming', 'confirmed'].map((state) => `topup.${state}`),
    );
  });

  it('is late, too, if the cancellation falls between an observation and its record', async () => {
    const [context, { orderNumber, accountId }] = await open();
    chain.payments = paid();
    chain.looked = async () => {
      chain.looked = async () => {};
      await cancelTopUp(context, orderNumber);
    };
    await watch();
    expect(await findTopUp(context, orderNumber)).toMatchObject({ status: 'CONFIRMED', paymentException: 'LATE' });
    expect(await shop.balance(accountId)).toBe(50_000_000n);
  });

  it('cannot have a payment already', async () => {
    const [context, { orderNumber }] = await open();
    chain.payments = paid(0);
    await watch().catch(() => {});
    expect((await findTopUp(context, orderNumber)).status).toBe('CONFIRMING');
    await expect(cancelTopUp(context, orderNumber)).rejects.toMatchObject({ code: 'topup_not_cancellable' });
  });

  it('is cancelled once by ten concurrent requests', async () => {
    const [context, { orderNumber }] = await open();
    const answers = await Promise.allSettled(Array.from({ length: 10 }, () => cancelTopUp(context, orderNumber)));
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(await shop.events(orderNumber)).toEqual(['topup.created', 'topup.cancelled']);
  });
});

describe('A confirmed top-up', () => {
  it('resumes the suspended servers that the balance covers', async () => {
    const [, { accountId }] = await open();
    const at = new Date(Date.now() - 24 * HOUR_MS);
    const order = await shop.server(accountId, {
      ...{ status: 'SUSPENDED', suspendedAt: at, suspendedFrom: 'RUNNING', paidUntil: at },
    });
    chain.payments = paid();
    await watch();
    expect((await shop.read(order)).status).toBe('SUSPENDED');
    await shop.provisioning.newWorker().drain('periodic');
    await shop.work();
    expect((await shop.read(order)).status).toBe('RUNNING');
    expect(await shop.balance(accountId)).toBe(44_000_000n);
    expect(await shop.balanced()).toBe(true);
  });
});
