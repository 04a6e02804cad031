/** The reading of a chain through nodes that are not always right. */
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { Database } from '../../../entities/database/database.ts';
import type { Doubt } from '../../../provisioning/payments/chains/blocks.ts';
import { look } from '../../../provisioning/payments/chains/look.ts';
import type { Block, FindDeposits } from '../../../provisioning/payments/drivers/driver.ts';
import { newDatabase } from '../../setup/database.ts';
import { openShop } from '../../setup/shop.ts';
import { Chain, ChainDriver } from './chain.ts';

const { signal } = new AbortController();
const HASH = /^[0-9a-f]{64}$/;

/** A chain that reads old blocks in one range, and counts its requests. */
class QuickChain extends Chain {
  readonly rangeMax = 500;
  asked = 0;

  override async block(height: number, find: FindDeposits): Promise<Block> {
    this.asked++;
    return super.block(height, find);
  }

  async range(from: number, to: number, find: FindDeposits): Promise<Block[]> {
    this.asked++;
    const blocks = await Promise.all(this.blocks.slice(from, to + 1).map(({ height }) => super.block(height, find)));
    return blocks.filter(({ height, payments }) => height === from || height === to || payments.length);
  }
}

let db: Database;
let chain: QuickChain;
beforeEach(async () => {
  db = await newDatabase();
  chain = new QuickChain();
  chain.mine(30);
});
let doubted: Doubt | undefined;
const read = async () => {
  const { state, doubt } = await look(db, chain, { doubted, signal });
  doubted = doubt;
  return state;
};
const tip = async () =>
  (
    await db.query<{ height: number; hash: string }>(
      'select height, hash from chain_block order by height desc limit 1',
    )
  )[0];
const noted = async () => (await db.query('select head, height, reached_at is not null as reached from chain'))[0];
const paid = async (address: string, orderNumber: string) => {
  await db.query(
    `insert into top_up (id, account_id, order_number, status, mode, amount_micros, bonus_micros, crypto, network, amount_crypto,
        received_crypto, rate_micros, wallet_address, confirmations, confirmations_required, credited_micros)
      values ($2, 'acct', $2, 'PENDING', 'CRYPTO', 1, 0, 'TST', 'testnet', '1', '0', 1, $1, 0, 2, 0)`,
    [address, orderNumber],
  );
  return chain.pay(address, 1n);
};

describe('A chain', () => {
  it('is read from some blocks below its head, so that its first blocks can be reverted, too', async () => {
    expect(await read()).toBe('reached');
    expect(await noted()).toEqual({ head: 30, height: 30, reached: true });
    chain.reorganise(5);
    chain.mine(6);
    expect([await read(), await read()]).toEqual(['waiting', 'reached']);
    expect(await tip()).toMatchObject({ height: 31, hash: expect.stringMatching(HASH) });
  });

  it('keeps its blocks while its node has lost the last ones', async () => {
    await read();
    const { hash } = (await tip())!;
    const { blocks } = chain;
    chain.blocks = blocks.slice(0, 2);
    expect(await read()).toBe('waiting');
    expect(await tip()).toEqual({ height: 30, hash });
    chain.blocks = blocks;
    chain.mine(1);
    expect(await read()).toBe('reached');
    expect((await tip())!.height).toBe(31);
  });

  it('is refused as another chain if it shares no block with the blocks that were read', async () => {
    await read();
    const before = await tip();
    chain.blocks = [];
    chain.mine(40);
    await expect(read()).rejects.toThrow('testnet is another chain than before');
    expect(await tip()).toEqual(before);
  });

  it('is reverted to the block where it forked, at any depth, with all payments since', async () => {
    await read();
    await paid('address', 'TOP-1');
    chain.mine(15);
    await read();
    expect(await db.query('select status from payment')).toEqual([{ status: 'CONFIRMING' }]);
    chain.reorganise(15, { lost: true });
    chain.mine(16);
    for (let looks = 0; looks < 2; looks++) await read();
    expect(await db.query('select status, block_hash from payment')).toEqual([{ status: 'DROPPED', blockHash: null }]);
    expect(await tip()).toMatchObject({ height: 46, hash: chain.blocks.at(-1)!.hash });
  });

  it('is read in ranges after an absence of days, with all payments since', async () => {
    await read();
    chain.asked = 0;
    chain.mine(3_000);
    await paid('address', 'TOP-1');
    chain.mine(3_000);
    expect(await read()).toBe('reached');
    expect(await db.query('select height, status from payment')).toEqual([{ height: 3_031, status: 'CONFIRMING' }]);
    // A dozen ranges, and the last 64 blocks one by one.
    expect(chain.asked).toBeLessThan(12 + 64 + 2);
    chain.reorganise(3);
    chain.mine(4);
    expect([await read(), await read()]).toEqual(['waiting', 'reached']);
  });
});

describe('A block that was read', () => {
  it('stays while its node has another one of the same height as its head, which may just be late', async () => {
    await read();
    const before = await tip();
    chain.reorganise(1);
    chain.mine(1);
    for (let looks = 0; looks < 3; looks++) expect(await read()).toBe('waiting');
    expect(await tip()).toEqual(before);
    chain.mine(1);
    expect([await read(), await read()]).toEqual(['waiting', 'reached']);
  });

  it('stays while its node only lacks it', async () => {
    await read();
    const before = await tip();
    chain.mine(2);
    chain.hash = async () => undefined;
    for (let looks = 0; looks < 3; looks++) await expect(read()).rejects.toThrow('The node lacks the block 30');
    expect(await tip()).toEqual(before);
  });

  it('is gone only after two looks in a row have found the same fork under heads that do not sink', async () => {
    await read();
    const before = await tip();
    const { blocks } = chain;
    for (const depth of [3, 4]) {
      chain.blocks = [...blocks];
      chain.reorganise(depth);
      chain.mine(9 - depth);
      expect(await read()).toBe('waiting');
    }
    chain.reorganise(2);
    chain.mine(1);
    expect(await read()).toBe('waiting');
    expect(await tip()).toEqual(before);
    chain.blocks = blocks;
    chain.mine(1);
    expect(await read()).toBe('reached');
    expect((await tip())!.height).toBe(31);
  });
});

describe('A coin', () => {
  it('is unavailable before its chain was read, and after a long absence of the chain', async () => {
    const { provisioning } = await openShop(onTestFinished, { db, payments: [new ChainDriver(chain)] });
    const behind = async () => [...(await provisioning.payments.chainsBehind(db))];
    expect(await behind()).toEqual(['testnet']);
    await read();
    expect(await behind()).toEqual([]);
    await db.query(`update chain set reached_at = now() - interval '11 minutes'`);
    expect(await behind()).toEqual(['testnet']);
    await read();
    expect(await behind()).toEqual([]);
  });
});
