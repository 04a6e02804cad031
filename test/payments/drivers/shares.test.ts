/** The shares of the places in the lane of payments. A gateway without answers takes its own share only. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { freeLane, PAYMENT_LANE } from '../../../entities/tasks/lane.ts';
import { startTask } from '../../../entities/tasks/start.ts';
import type { Coin, ObservedPayment } from '../../../provisioning/payments/drivers/driver.ts';
import { SimulatedPayments } from '../../../provisioning/payments/drivers/simulated.ts';
import { SimulatedX402 } from '../../../provisioning/payments/drivers/x402/simulated.ts';
import { x402Task } from '../../../provisioning/payments/task.ts';
import { createTopUp, findTopUp } from '../../../resolvers/payments/billing.ts';
import { atEnd } from '../../setup/end.ts';
import { eventually } from '../../setup/freehold.ts';
import { contextOf, openShop } from '../../setup/shop.ts';
import { newFolder, removeFolder } from '../../setup/spawn.ts';

/** The gateway of one coin. */
class Gateway extends SimulatedPayments {
  override readonly name: 'simulated';
  readonly #code: string;
  constructor(code: string) {
    super({ confirmSeconds: 0 });
    this.#code = code;
    this.name = `gateway of ${code}` as 'simulated';
  }
  override coins(): readonly Coin[] {
    return super.coins().filter(({ code }) => code === this.#code);
  }
}

/** The gateway of Monero, which answers nothing. */
class SilentWallet extends Gateway {
  /** The calls that wait. */
  waiting = 0;
  override observe(_topUp: unknown, signal: AbortSignal): Promise<ObservedPayment[]> {
    this.waiting++;
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  }
}

/** A gateway without any payment. */
class UnpaidWallet extends Gateway {
  override observe = async (): Promise<ObservedPayment[]> => [];
}

const folder = newFolder();
atEnd(() => removeFolder(folder));
const wallet = new SilentWallet('XMR');
const shop = await openShop(atEnd, { payments: [wallet, new Gateway('LTC')], x402: new SimulatedX402({ folder }) });
const open = async (crypto: string) => {
  const context = contextOf(shop, await shop.account(0n));
  return { context, ...(await createTopUp(context, { amountUsd: 160_000_000n, crypto })) };
};

describe('With many top-ups at a wallet that does not answer', () => {
  it('a worker confirms top-ups of another gateway, and runs tasks of x402', async () => {
    for (let count = 0; count < 20; count++) await open('XMR');
    const worker = shop.provisioning.newWorker();
    worker.start();
    onTestFinished(() => worker.stop(0));
    await eventually(async () => wallet.waiting > 5);
    const { context, accountId, orderNumber } = await open('LTC');
    const task = x402Task({ id: 'pay_unknown', accountId });
    await shop.db.transaction((tx) => startTask(tx, task));
    await eventually(async () => (await findTopUp(context, orderNumber)).status === 'CONFIRMED');
    await eventually(async () => !(await shop.db.query('select from task where subject = $1', [task.subject])).length);
    expect(wallet.waiting).toBe(6);
  });
});

it('A worker asks less often for the payments of a top-up that waits for long', async () => {
  const own = await openShop(onTestFinished, { payments: [new UnpaidWallet('XMR')], pollSeconds: 2 });
  const worker = own.provisioning.newWorker();
  const context = contextOf(own, await own.account(0n));
  const { orderNumber } = await createTopUp(context, { amountUsd: 160_000_000n, crypto: 'XMR' });
  const pauses: number[] = [];
  for (const minutes of [0, 20]) {
    await own.db.query(`update top_up set created_at = now() - $1 * interval '1 minute' where order_number = $2`, [
      minutes,
      orderNumber,
    ]);
    await own.db.query('update task set run_at = now() where subject = $1', [orderNumber]);
    const [lease] = await worker.lease(freeLane(PAYMENT_LANE));
    await worker.run(lease!);
    const [task] = await own.db.query<{ seconds: number }>(
      'select extract(epoch from run_at - now())::float8 as seconds from task where subject = $1',
      [orderNumber],
    );
    pauses.push(task!.seconds);
  }
  expect(pauses[0]).toBeLessThan(5);
  expect(pauses[1]).toBeGreaterThan(50);
});
