/** Payments at a gateway that the service asks: one call notices them among any number of unpaid top-ups. */
import { beforeAll, describe, expect, it } from 'vitest';
import type { ObservedPayment, Received } from '../../provisioning/payments/drivers/driver.ts';
import { SimulatedPayments } from '../../provisioning/payments/drivers/simulated.ts';
import { noticeName } from '../../provisioning/payments/top-ups/notice.ts';
import { createTopUp, findTopUp } from '../../resolvers/payments/billing.ts';
import { newDatabase } from '../setup/database.ts';
import { atEnd } from '../setup/end.ts';
import { contextOf, openShop } from '../setup/shop.ts';

/** A gateway for which the test makes payments, by order number. */
class Asked extends SimulatedPayments {
  override readonly simulated = false as never;
  readonly paid = new Map<string, ObservedPayment>();
  async received(): Promise<Received[]> {
    return [...this.paid].map(([orderNumber, payment]) => ({
      orderNumber,
      payment,
      confirmations: payment.confirmations!,
    }));
  }
  override async observe({ orderNumber }: { orderNumber: string }): Promise<ObservedPayment[]> {
    return [this.paid.get(orderNumber) ?? []].flat();
  }
}
const gateway = new Asked({ confirmSeconds: 0 });
const shop = await openShop(atEnd, { db: await newDatabase(), payments: [gateway] });
/** Opens a top-up of a new account. */
const open = async () => {
  const context = contextOf(shop, await shop.account(0n));
  const topUp = await createTopUp(context, { amountUsd: 50_000_000n, crypto: 'USDC-BASE' });
  return { ...topUp, status: async () => (await findTopUp(context, topUp.orderNumber)).status };
};
const look = () => shop.tick(noticeName(gateway));
const pay = (orderNumber: string, address: string | null, confirmations = 99, units = 50_000_000n) =>
  gateway.paid.set(orderNumber, {
    ...{ txId: `tx-${orderNumber}`, position: 0, coin: 'USDC-BASE', address: address!, units, confirmations },
  });

describe('Among thousands of unpaid top-ups', () => {
  beforeAll(() =>
    shop.db.query(
      `insert into task (id, lane, process, subject, account_id, party, step, run_at)
       select 'task_' || n, 'payments-free', 'top-up', 'TOP-' || n, 'acct_' || n, 'simulated', 'watch', now() - interval '1 minute'
       from generate_series(1, 3000) as n`,
    ),
  );
  const worker = shop.provisioning.newWorker();
  /** Looks once, and runs the next task. @returns its top-up */
  const observed = async () => {
    await look();
    const [lease] = await worker.lease('payments-free');
    await worker.run(lease!);
    return lease!.task.subject;
  };

  it('the worker observes a paid one first, at its payment and at each confirmation, until its credit', async () => {
    const { orderNumber, walletAddress, confirmationsRequired, status } = await open();
    for (let confirmations = 0; confirmations < confirmationsRequired; confirmations++) {
      pay(orderNumber, walletAddress, confirmations);
      expect([await observed(), await status()]).toEqual([orderNumber, 'CONFIRMING']);
      expect(await observed()).not.toBe(orderNumber);
    }
    pay(orderNumber, walletAddress, confirmationsRequired);
    expect([await observed(), await status()]).toEqual([orderNumber, 'CONFIRMED']);
    pay(orderNumber, walletAddress, confirmationsRequired + 1);
    expect(await observed()).not.toBe(orderNumber);
  });

  it('a payment of less than a dollar waits for its turn', async () => {
    const { orderNumber, walletAddress } = await open();
    pay(orderNumber, walletAddress, 0, 999_999n);
    expect(await observed()).not.toBe(orderNumber);
    pay(orderNumber, walletAddress, 0, 1_000_000n);
    expect(await observed()).toBe(orderNumber);
  });
});

it('A gateway may name the address of a payment, or only say that an invoice is paid', async () => {
  const numbers: string[] = [];
  const told: Received[] = [];
  for (const by of ['address', 'number'] as const) {
    const { orderNumber, walletAddress } = await open();
    numbers.push(orderNumber);
    pay(orderNumber, walletAddress);
    const payment = { txId: `tx-${orderNumber}`, coin: 'USDC-BASE', units: 50_000_000n };
    told.push({ ...(by === 'number' ? { orderNumber } : { address: walletAddress!, payment }), confirmations: 0 });
  }
  await shop.db.query(`update task set run_at = now() + interval '1 hour' where lane = 'payments-free'`);
  gateway.received = async () => told;
  await look();
  const due = `select subject from task where run_at <= now() and subject = any($1) order by subject`;
  const subjects = (await shop.db.query<{ subject: string }>(due, [numbers])).map(({ subject }) => subject);
  expect(subjects).toEqual(numbers.sort());
});
