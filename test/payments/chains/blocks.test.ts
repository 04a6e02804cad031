/** How a chain is read: what its node says is not always what the chain is. */
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { Database } from '../../../entities/database/database.ts';
import { readBlocks } from '../../../provisioning/payments/chains/blocks.ts';
import type { Block } from '../../../provisioning/payments/drivers/driver.ts';
import { newDatabase } from '../../setup/database.ts';
import { openShop } from '../../setup/shop.ts';
import { Chain, ChainDriver } from './chain.ts';

const { signal } = new AbortController();
const HASH = /^[0-9a-f]{64}$/;

/** One that reads what lies deep at once, and counts what it is asked for. */
class QuickChain extends Chain {
  readonly rangeMax = 500;
  asked = 0;

  override async block(height: number, addresses: ReadonlySet<string>): Promise<Block> {
    this.asked++;
    return super.block(height, addresses);
  }

  async range(from: number, to: number, addresses: ReadonlySet<string>): Promise<Block[]> {
    this.asked++;
    const blocks = await Promise.all(
      this.blocks.slice(from, to + 1).map(({ height }) => super.block(height, addresses)),
    );
    return blocks.filter(({ height, sightings }) => height === from || height === to || sightings.length);
  }
}

let db: Database;
let chain: QuickChain;
beforeEach(async () => {
  db = await newDatabase();
  chain = new QuickChain();
  chain.mine(30);
});
const read = () => readBlocks(db, chain, signal);
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
  it('is begun some blocks below its head, so that its first blocks can be taken back, too', async () => {
    expect(await read()).toBe('reached');
    expect(await noted()).toEqual({ head: 30, height: 30, reached: true });
    chain.reorganise(5);
    chain.mine(6);
    expect(await read()).toBe('reached');
    expect(await tip()).toMatchObject({ height: 31, hash: expect.stringMatching(HASH) });
  });

  it('whose node has lost its last blocks is waited for: nothing is taken back', async () => {
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

  it('that shares no block with what was read is another chain, and is refused', async () => {
    await read();
    const before = await tip();
    chain.blocks = [];
    chain.mine(40);
    await expect(read()).rejects.toThrow('testnet is another chain than before');
    expect(await tip()).toEqual(before);
  });

  it('is taken back to where it parted, however far that is, with what came since', async () => {
    await read();
    await paid('address', 'TOP-1');
    chain.mine(15);
    await read();
    expect(await db.query('select status from payment')).toEqual([{ status: 'MINED' }]);
    chain.reorganise(15, { lost: true });
    chain.mine(16);
    await read();
    expect(await db.query('select status, block_hash from payment')).toEqual([{ status: 'SEEN', block_hash: null }]);
    expect(await tip()).toMatchObject({ height: 46, hash: chain.blocks.at(-1)!.hash });
  });

  it('is read in ranges when days were missed, and what came meanwhile is found', async () => {
    await read();
    chain.asked = 0;
    chain.mine(3_000);
    await paid('address', 'TOP-1');
    chain.mine(3_000);
    expect(await read()).toBe('reached');
    expect(await db.query('select height, status from payment')).toEqual([{ height: 3_031, status: 'MINED' }]);
    // A dozen ranges, and the last 64 blocks one by one.
    expect(chain.asked).toBeLessThan(12 + 64 + 2);
    chain.reorganise(3);
    chain.mine(3);
    expect(await read()).toBe('reached');
  });
});

describe('A coin', () => {
  it('cannot be had before its chain was read, nor when it has not been for long', async () => {
    const { provisioning } = await openShop(onTestFinished, { db, payments: [new ChainDriver(chain)] });
    const behind = async () => [...(await provisioning.chainsBehind(db))];
    expect(await behind()).toEqual(['testnet']);
    await read();
    expect(await behind()).toEqual([]);
    await db.query(`update chain set reached_at = now() - interval '11 minutes'`);
    expect(await behind()).toEqual(['testnet']);
    await read();
    expect(await behind()).toEqual([]);
  });
});
