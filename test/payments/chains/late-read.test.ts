/** Announced payments that the worker has not read yet, such as those of a large mempool after a restart. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { findTopUp } from '../../../resolvers/payments/billing.ts';
import { HALF, openSyncedShop } from './synced-shop.ts';

const { shop, chain, sync, open } = await openSyncedShop();

/** Lets the reader of the chain find none of the announced payments yet. */
const unread = () => {
  chain.announced = async () => ({ payments: [], isComplete: false });
  onTestFinished(() => void Reflect.deleteProperty(chain, 'announced'));
};
const read = async () => {
  Reflect.deleteProperty(chain, 'announced');
  await sync();
};
/** Lets the half hour of the top-up pass, and runs its task. */
const end = async (orderNumber: string) => {
  await shop.db.query(
    `update top_up set expires_at = now() - interval '1 minute', created_at = now() - interval '31 minutes' where order_number = $1`,
    [orderNumber],
  );
  await shop.db.query(`update payment set seen_at = now() - interval '2 minutes' where order_number = $1`, [
    orderNumber,
  ]);
  // The process was away for so long.
  await shop.db.query(`update chain set reached_at = now() - interval '5 minutes'`);
};
const due = async (orderNumber: string) => {
  await shop.db.query('update task set run_at = now() where subject = $1', [orderNumber]);
  await shop.provisioning.newWorker().drain('payments');
};

describe('After a restart with a large mempool', () => {
  it('a top-up does not expire before all announcements are read, and does then', async () => {
    const [context, { orderNumber }] = await open();
    unread();
    await end(orderNumber);
    for (let looks = 0; looks < 2; looks++) {
      await sync();
      await due(orderNumber);
      expect((await findTopUp(context, orderNumber)).status).toBe('PENDING');
    }
    await read();
    await due(orderNumber);
    expect((await findTopUp(context, orderNumber)).status).toBe('EXPIRED');
  });

  it('an announced payment that is not read again yet keeps its top-up and its quote', async () => {
    const [context, { orderNumber, accountId, walletAddress }] = await open();
    chain.pay(walletAddress!, HALF);
    await sync();
    expect((await findTopUp(context, orderNumber)).status).toBe('CONFIRMING');
    unread();
    await end(orderNumber);
    await sync();
    await due(orderNumber);
    expect((await findTopUp(context, orderNumber)).status).toBe('CONFIRMING');
    await read();
    chain.mine(2);
    await sync();
    expect(await shop.events(orderNumber)).toEqual(['topup.created', 'topup.confirming', 'topup.confirmed']);
    expect(await shop.balance(accountId)).toBe(50_000_000n);
  });
});
