/** The shares of the places in the lane of payments. A gateway without answers takes its own share only. */
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { startTask } from '../../../entities/tasks/start.ts';
import type { Coin, ObservedPayment } from '../../../provisioning/payments/drivers/driver.ts';
import { SimulatedPayments } from '../../../provisioning/payments/drivers/simulated.ts';
import { SimulatedX402 } from '../../../provisioning/payments/drivers/x402/simulated.ts';
import { x402Task } from '../../../provisioning/payments/task.ts';
import { createTopUp, findTopUp } from '../../../resolvers/payments/billing.ts';
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

const folder = newFolder();
afterAll(() => removeFolder(folder));
const wallet = new SilentWallet('XMR');
const shop = await openShop(afterAll, { payments: [wallet, new Gateway('LTC')], x402: new SimulatedX402({ folder }) });
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
