/** Payments at a gateway that the service asks: one call notices them among any number of unpaid top-ups. */
import { expect, it } from 'vitest';
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
  calls = 0;
  async received(): Promise<Received[]> {
    this.calls++;
    return [...this.paid].map(([orderNumber, { txId }]) => ({ orderNumber, txId }));
  }
  override async observe({ orderNumber }: { orderNumber: string }): Promise<ObservedPayment[]> {
    return [this.paid.get(orderNumber) ?? []].flat();
  }
}
const gateway = new Asked({ confirmSeconds: 0 });
const shop = await openShop(atEnd, { db: await newDatabase(), payments: [gateway] });
const context = contextOf(shop, await shop.account(0n));
const open = () => createTopUp(context, { amountUsd: 50_000_000n, crypto: 'USDC-BASE' });
const look = () => shop.tick(noticeName(gateway));
const pay = (orderNumber: string, address: string | null) =>
  gateway.paid.set(orderNumber, {
    ...{ txId: `tx-${orderNumber}`, position: 0, coin: 'USDC-BASE', address: address!, units: 50_000_000n },
    confirmations: 99,
  });

it('The worker observes a paid top-up before thousands of unpaid ones, and once', async () => {
  const { orderNumber, walletAddress } = await open();
  await shop.db.query(
    `insert into task (id, lane, process, subject, account_id, party, step, run_at)
     select 'task_' || n, 'payments-free', 'top-up', 'TOP-' || n, 'acct_' || n, 'simulated', 'watch', now() - interval '1 minute'
     from generate_series(1, 3000) as n`,
  );
  const worker = shop.provisioning.newWorker();
  pay(orderNumber, walletAddress);
  await look();
  const [lease] = await worker.lease('payments-free');
  expect(lease!.task.subject).toBe(orderNumber);
  await worker.run(lease!);
  expect((await findTopUp(context, orderNumber)).status).toBe('CONFIRMED');
  const signals = async () =>
    (await shop.db.query<{ signals: number }>('select signals from task where subject = $1', [orderNumber]))[0]!
      .signals;
  const before = await signals();
  await look();
  expect([await signals(), gateway.calls]).toEqual([before, 2]);
});

it('A gateway may name the address of a payment, or only say that an invoice is paid', async () => {
  const numbers: string[] = [];
  const told: Received[] = [];
  for (const by of ['address', 'number'] as const) {
    const { orderNumber, walletAddress } = await open();
    numbers.push(orderNumber);
    pay(orderNumber, walletAddress);
    told.push(by === 'number' ? { orderNumber } : { address: walletAddress!, txId: `tx-${orderNumber}` });
  }
  await shop.db.query(`update task set run_at = now() + interval '1 hour' where lane = 'payments-free'`);
  gateway.received = async () => told;
  await look();
  const due = `select subject from task where run_at <= now() and subject = any($1) order by subject`;
  const subjects = (await shop.db.query<{ subject: string }>(due, [numbers])).map(({ subject }) => subject);
  expect(subjects).toEqual(numbers.sort());
});
