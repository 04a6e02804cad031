/** Nodes that answer, and get no new blocks. They prove nothing about the present. */
import { afterEach, describe, expect, it } from 'vitest';
import type { ChainNode } from '../../../provisioning/payments/drivers/driver.ts';
import { Nodes } from '../../../provisioning/payments/drivers/nodes.ts';
import { findTopUp } from '../../../resolvers/payments/billing.ts';
import { Chain } from './chain.ts';
import { HALF, openSyncedShop } from './synced-shop.ts';

const MINUTE_MS = 60_000;
const first = new Chain();
const { shop, chain, sync, open } = await openSyncedShop((second) => ({
  ...{ network: 'testnet', staleSeconds: 60 },
  nodes: new Nodes<ChainNode>([first, second]),
}));
first.blocks = chain.blocks;

/** Lets both nodes, or the first one, get no new blocks. Their last block is ten minutes old. */
const stop = (...nodes: Chain[]) => {
  for (const node of nodes)
    node.blocks = node.blocks.map((block) => ({ ...block, at: new Date(Date.now() - 10 * MINUTE_MS) }));
};
/** Lets both nodes show the same chain again, with a new block. */
const resume = () => {
  chain.mine();
  first.blocks = chain.blocks;
};
afterEach(async () => {
  resume();
  await sync();
});
const problem = async () => (await shop.db.query<{ problem: string | null }>('select problem from chain'))[0]!.problem;
const warnings = () => shop.db.query(`select id from event where type = 'gateway.warned'`);
/** Lets the half hour of the top-up end now, and runs its task. */
const end = async (orderNumber: string) => {
  await shop.db.query(`update top_up set expires_at = now() where order_number = $1`, [orderNumber]);
  await due(orderNumber);
};
const due = async (orderNumber: string) => {
  await shop.db.query('update task set run_at = now() where subject = $1', [orderNumber]);
  await shop.provisioning.newWorker().drain('payments');
};

describe('A preferred node that has stopped', () => {
  it('is passed over, so the other node shows payments', async () => {
    stop(first);
    const [, { accountId, walletAddress }] = await open();
    chain.pay(walletAddress!, HALF);
    chain.mine(2);
    await sync();
    expect([await shop.balance(accountId), await problem()]).toEqual([50_000_000n, null]);
  });

  it('is read when the other node fails, and warns the operator', async () => {
    stop(first);
    chain.head = () => Promise.reject(new Error('It is away.'));
    await sync();
    Reflect.deleteProperty(chain, 'head');
    expect(await problem()).toMatch(/newest block of testnet is \d+, of 2/);
  });
});

describe('When all nodes have stopped', () => {
  it('no top-up expires, and the operator is warned once, until a block comes', async () => {
    const [context, { orderNumber }] = await open();
    const before = (await warnings()).length;
    stop(first, chain);
    await end(orderNumber);
    await sync();
    await sync();
    await due(orderNumber);
    expect((await findTopUp(context, orderNumber)).status).toBe('PENDING');
    expect(await problem()).toMatch(/newest block of testnet is \d+, of 2.*Z\.; node \d/);
    expect((await warnings()).length).toBe(before + 1);
    resume();
    await sync();
    await due(orderNumber);
    expect((await findTopUp(context, orderNumber)).status).toBe('EXPIRED');
    expect(await problem()).toBeNull();
  });

  it('the service reads the one with more blocks', async () => {
    chain.mine(3);
    first.blocks = chain.blocks.slice(0, -3);
    stop(first, chain);
    await sync();
    const [{ height }] = (await shop.db.query('select height from chain')) as [{ height: number }];
    expect(height).toBe(chain.blocks.length - 1);
  });

  it('a payment in time keeps its quote, because the service did not read its time without it', async () => {
    const [, { orderNumber, accountId, walletAddress }] = await open();
    const hoursAgo = (hours: number) => new Date(Date.now() - hours * 60 * MINUTE_MS);
    await shop.db.query('update top_up set created_at = $2, expires_at = $3 where order_number = $1', [
      ...[orderNumber, hoursAgo(5), hoursAgo(4.5)],
    ]);
    await shop.db.query('update chain set reached_at = $1', [hoursAgo(5)]);
    stop(first, chain);
    await sync();
    chain.pay(walletAddress!, HALF);
    chain.mine(1, hoursAgo(4.7));
    resume();
    await sync();
    expect(await shop.balance(accountId)).toBe(50_000_000n);
    expect(
      (await shop.db.query('select payment_exception from top_up where order_number = $1', [orderNumber]))[0],
    ).toEqual({
      paymentException: null,
    });
  });
});
