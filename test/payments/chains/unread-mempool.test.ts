/** Nodes that answer the blocks, and fail at the announced transactions. */
import { afterEach, describe, expect, it } from 'vitest';
import type { ChainNode } from '../../../provisioning/payments/drivers/driver.ts';
import { Nodes } from '../../../provisioning/payments/drivers/nodes.ts';
import { findTopUp } from '../../../resolvers/payments/billing.ts';
import { Chain } from './chain.ts';
import { HALF, openSyncedShop } from './synced-shop.ts';

const second = new Chain();
const { shop, chain, sync, open } = await openSyncedShop((first) => ({
  network: 'testnet',
  nodes: new Nodes<ChainNode>([first, second]),
}));
second.blocks = chain.blocks;

const fail = (...nodes: Chain[]) => {
  for (const node of nodes) node.announced = () => Promise.reject(new Error('The mempool cannot be read.'));
};
afterEach(async () => {
  for (const node of [chain, second]) Reflect.deleteProperty(node, 'announced');
  await sync();
});
const keptChain = async () =>
  (await shop.db.query<{ problem: string | null; reachedAt: Date }>('select problem, reached_at from chain'))[0]!;
const warnings = () => shop.db.query(`select id from event where type = 'gateway.warned'`);

describe('A mempool that no node can read', () => {
  it('delays no payment in a block', async () => {
    const [, { accountId, walletAddress }] = await open();
    fail(chain, second);
    chain.pay(walletAddress!, HALF);
    chain.mine(2);
    await sync();
    expect(await shop.balance(accountId)).toBe(50_000_000n);
  });

  it('keeps announced payments and the time of the last whole look', async () => {
    const [context, { orderNumber, walletAddress }] = await open();
    chain.pay(walletAddress!, HALF);
    second.pool = chain.pool;
    await sync();
    const hourAgo = new Date(Date.now() - 3_600_000);
    await shop.db.query('update chain set reached_at = $1', [hourAgo]);
    fail(chain, second);
    await sync();
    expect(await findTopUp(context, orderNumber)).toMatchObject({ status: 'CONFIRMING' });
    expect((await keptChain()).reachedAt).toEqual(hourAgo);
    [chain.pool, second.pool] = [[], []];
  });

  it('warns the operator once at the third look, until a node reads it', async () => {
    const before = (await warnings()).length;
    fail(chain, second);
    await sync();
    expect((await keptChain()).problem).toBeNull();
    await sync();
    await sync();
    expect((await keptChain()).problem).toMatch(/node \d: The mempool cannot be read/);
    expect((await warnings()).length).toBe(before + 1);
    Reflect.deleteProperty(second, 'announced');
    await sync();
    expect((await keptChain()).problem).toBeNull();
  });
});

it('A mempool that one node cannot read is read by the next node', async () => {
  const [context, { orderNumber, walletAddress }] = await open();
  fail(chain);
  second.pay(walletAddress!, HALF);
  await sync();
  expect(await findTopUp(context, orderNumber)).toMatchObject({ status: 'CONFIRMING' });
  second.pool = [];
});
