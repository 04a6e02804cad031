/** The receipts of many payments in one block, from nodes that limit their calls. */
import { type Hex, toHex } from 'viem';
import { generatePrivateKey, mnemonicToAccount, privateKeyToAddress } from 'viem/accounts';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { EvmReader } from '../../../../provisioning/payments/drivers/evm/reader.ts';
import { atEnd } from '../../../setup/end.ts';
import { finderOf } from '../../chains/chain.ts';
import { openGatewayWorld } from '../gateway-world.ts';
import { type Anvil, NO_ANVIL, startAnvil, USDC } from './anvil.ts';
import { type LimitedNode, openLimitedNode } from './node-limits.ts';

const { signal } = new AbortController();
const newAddress = (): Hex => privateKeyToAddress(generatePrivateKey());
const XPUB = mnemonicToAccount('legal winner thank year wave sausage worth useful legal winner thank yellow', {
  path: "m/44'/60'/0'",
}).getHdKey().publicExtendedKey;
const DUST = 300;
const WHOLE = 'eth_getBlockReceipts';
const ALONE = 'eth_getTransactionReceipt';
/** PUSH0 PUSH0 REVERT */
const REVERTS: Hex = '0x5f5ffd';

describe.skipIf(NO_ANVIL)('A block with many payments', () => {
  let anvil: Anvil;
  let node: LimitedNode;
  beforeAll(async () => {
    anvil = await startAnvil();
    node = await openLimitedNode(anvil.url);
    atEnd(() => Promise.all([anvil.stop(), node.stop()]));
    await anvil.mint(anvil.account(0).address, 1_000_000_000n);
  });
  beforeEach(() => {
    Object.assign(node, {
      left: Number.POSITIVE_INFINITY,
      refuses: () => undefined,
      change: (_: string, r: unknown) => r,
    });
  });

  const readerOf = () =>
    new EvmReader({
      ...{ network: 'base', chainId: 8453, url: node.url, batchMax: 10, rangeMax: 1_000, native: 'ETH-BASE' },
      tokens: new Map([[USDC.toLowerCase(), { code: 'USDC-BASE', decimals: 6 }]]),
    });
  /** Mines one block with these transactions, and so many payments of 1 wei. @returns its height */
  const mineDust = async (to: Hex, count: number, others: () => Promise<unknown> = async () => {}) => {
    const { address: from } = anvil.account(1);
    const nonce = await anvil.client.getTransactionCount({ address: from });
    await anvil.control.setAutomine(false);
    try {
      await others();
      for (let n = 0; n < count; n++) {
        const transaction = { from, to, nonce: toHex(nonce + n), value: '0x1', gas: '0x5208' };
        await anvil.client.request({ method: 'eth_sendTransaction' as never, params: [transaction] as never });
      }
      await anvil.control.mine({ blocks: 1 });
    } finally {
      await anvil.control.setAutomine(true);
    }
    const { number, transactions } = await anvil.client.getBlock();
    expect(transactions.length).toBeGreaterThanOrEqual(count);
    return Number(number);
  };
  const refuseWhole = (code: number) => (method: string) =>
    method === WHOLE ? { code, message: `the method ${method} does not exist/is not available` } : undefined;

  it('delays no other payment although the node limits its calls', async () => {
    const limited = await openLimitedNode(anvil.url);
    atEnd(() => limited.stop());
    const token = { code: 'USDC-BASE', name: 'USD Coin', contract: USDC, decimals: 6, pegged: true };
    const gateway = {
      ...{ driver: 'evm', network: 'base', chainId: 8453, urls: [limited.url], xpub: XPUB, confirmations: 2 },
      ...{ pollSeconds: 0.2, native: { code: 'ETH-BASE', name: 'Ether on Base' }, tokens: [token] },
    };
    const world = await openGatewayWorld([gateway], { 'USDC-BASE': 1, 'ETH-BASE': 2_500 });
    const [attacker, customer] = [await world.newAccount(), await world.newAccount()];
    const dusty = await world.open(attacker, 30, 'ETH-BASE');
    const topUp = await world.open(customer, 50, 'USDC-BASE');
    limited.left = 100;
    const refill = setInterval(() => Object.assign(limited, { left: Math.min(100, limited.left + 10) }), 500);
    atEnd(() => clearInterval(refill));
    const pay = () => anvil.transfer(0, topUp.wallet_address as Hex, 50_000_000n);
    await mineDust(dusty.wallet_address as Hex, DUST, pay);
    await anvil.control.mine({ blocks: 2 });
    await world.becomes(customer, topUp, { status: 'confirmed', credited_usd: 50 });
    await world.becomes(attacker, dusty, { status: 'confirming', received_crypto: '0.0000000000000003' });
    clearInterval(refill);
  });

  it('takes as many calls as one with a few', async () => {
    const address = newAddress();
    const taken: number[] = [];
    for (const count of [4, DUST]) {
      const [height, reader] = [await mineDust(address, count), readerOf()];
      await reader.head(signal);
      node.calls = [];
      expect((await reader.block(height, finderOf([address]), signal)).payments).toHaveLength(count);
      taken.push(node.calls.length);
    }
    expect(taken).toEqual([4, 4]);
  });

  it('has the same payments from a node that refuses the receipts of blocks, or leaves some out', async () => {
    const [address, reverting] = [newAddress(), newAddress()];
    await anvil.control.setCode({ address: reverting, bytecode: REVERTS });
    const value = { value: 7n, gas: 50_000n };
    const height = await mineDust(address, 5, async () => {
      for (const units of [3n, 4n]) await anvil.transfer(0, address, units);
      await anvil.wallet(2).sendTransaction({ to: reverting, ...value });
      await anvil.wallet(3).sendTransaction({ to: address, ...value });
    });
    const find = finderOf([address, reverting]);
    const read = async () => {
      node.calls = [];
      const one = await readerOf().block(height, find, signal);
      const alone = node.calls.filter((method) => method === ALONE).length;
      expect((await readerOf().range(height - 1, height, find, signal)).at(-1)).toEqual(one);
      return { one, alone };
    };
    const whole = await read();
    expect(whole.alone).toBe(0);
    expect(whole.one.payments.map(({ position, units }) => [position, units]).sort()).toEqual(
      [[0, 3n], [0, 4n], [-1, 7n], ...Array(5).fill([-1, 1n])].sort(),
    );
    for (const code of [-32601, -32000]) {
      node.refuses = refuseWhole(code);
      expect(await read()).toEqual({ ...whole, alone: 9 });
    }
    node.refuses = () => undefined;
    const broken = () => {
      throw new Error('The answer is too long.');
    };
    const changes: [(all: object[]) => unknown, number][] = [
      [(all) => all.slice(0, 6), 3],
      [() => null, 9],
      [broken, 9],
    ];
    for (const [change, alone] of changes) {
      node.change = (method, result) => (method === WHOLE ? change(result as object[]) : result);
      expect(await read()).toEqual({ ...whole, alone });
    }
  });

  it('is not read with the receipts of another block', async () => {
    const address = newAddress();
    const height = await mineDust(address, 5);
    const blockHash = `0x${'1'.repeat(64)}`;
    node.change = (method, result) =>
      method === WHOLE ? (result as object[]).map((one) => ({ ...one, blockHash })) : result;
    const reader = readerOf();
    const read = () => reader.block(height, finderOf([address]), signal);
    await expect(read()).rejects.toThrow('base changed while the worker read');
    node.change = (_, result) => result;
    expect((await read()).payments).toHaveLength(5);
  });

  it('is read in several tries if a node lacks the receipts of blocks, and limits its calls', async () => {
    const address = newAddress();
    const height = await mineDust(address, DUST);
    node.refuses = refuseWhole(-32601);
    const reader = readerOf();
    await reader.head(signal);
    node.calls = [];
    let tries = 0;
    const read = async (): Promise<unknown[]> => {
      node.left = 45;
      const found = await reader.block(height, finderOf([address]), signal).catch((fault: Error) => fault);
      if (++tries > 20 || !(found instanceof Error)) return (found as { payments: unknown[] }).payments;
      expect(found).toMatchObject({ status: 429 });
      return read();
    };
    expect(await read()).toHaveLength(DUST);
    expect(tries).toBe(8);
    expect(node.calls.filter((method) => method === ALONE)).toHaveLength(DUST);
  });

  it('has other payments after a reorganisation, although some of its receipts were read before', async () => {
    const address = newAddress();
    node.refuses = refuseWhole(-32601);
    const reader = readerOf();
    const find = finderOf([address]);
    const height = await mineDust(address, 20);
    node.left = 20;
    await expect(reader.block(height, find, signal)).rejects.toMatchObject({ status: 429 });
    node.left = Number.POSITIVE_INFINITY;
    await anvil.control.request({ method: 'anvil_reorg', params: [1, []] } as never);
    expect((await reader.block(height, find, signal)).payments).toEqual([]);
    const again = await mineDust(address, 20);
    expect((await reader.block(again, find, signal)).payments).toHaveLength(20);
  });
});
