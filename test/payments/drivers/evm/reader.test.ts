/** The reader of EVM chains. */
import { type Hex, parseEther } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type EvmChain, EvmReader } from '../../../../provisioning/payments/drivers/evm/reader.ts';
import { type Anvil, NO_ANVIL, startAnvil, USDC } from './anvil.ts';
import { type Gate, openGate } from './gate.ts';

const { signal } = new AbortController();
const newAddress = (): Hex => privateKeyToAddress(generatePrivateKey());

describe.skipIf(NO_ANVIL)('An EVM chain', () => {
  let anvil: Anvil;
  let gate: Gate;
  beforeAll(async () => {
    anvil = await startAnvil();
    gate = await openGate(anvil.url);
    afterAll(() => Promise.all([anvil.stop(), gate.stop()]));
    await anvil.mint(anvil.account(0).address, 1_000_000n);
  });
  const readerOf = (settings: Partial<EvmChain> = {}) =>
    new EvmReader({
      ...{ network: 'base', chainId: 8453, urls: [gate.url], batchMax: 10, rangeMax: 1_000, pollSeconds: 1 },
      ...{ native: undefined, tokens: new Map([[USDC.toLowerCase(), 'USDC-BASE']]), ...settings },
    });

  it.each([undefined, 'ETH-BASE'])('gives the same in ranges as block by block; native coin: %s', async (native) => {
    const reader = readerOf({ native });
    const addresses = new Set([newAddress(), newAddress()]);
    const [one, other] = [...addresses] as [Hex, Hex];
    const { height } = await reader.head(signal);
    await anvil.mined(await anvil.transfer(0, one, 5n));
    await anvil.mined(await anvil.wallet(0).sendTransaction({ to: other, value: parseEther('1') }));
    await anvil.mined(await anvil.transfer(0, newAddress(), 7n));
    await anvil.mined(await anvil.transfer(0, one, 0n));
    await anvil.control.mine({ blocks: 20 });
    await anvil.mined(await anvil.transfer(0, other, 6n));
    const { height: head } = await reader.head(signal);
    const single = [];
    for (let n = height + 1; n <= head; n++) single.push(await reader.block(n, addresses, signal));
    const found = single.flatMap(({ payments }) => payments.map(({ units, address }) => [address, units]));
    expect(found).toEqual([[one, 5n], ...(native ? [[other, parseEther('1')]] : []), [other, 6n]]);
    const before = gate.passed;
    const ranged = await reader.range(height + 1, head, addresses, signal);
    expect(gate.passed - before).toBeLessThan(8);
    const [first, last] = [height + 1, head];
    expect(ranged).toEqual(single.filter(({ height: n, payments }) => n === first || n === last || payments.length));
  });

  it('is read in smaller ranges if a node refuses larger ones', async () => {
    const reader = readerOf({ rangeMax: 8 });
    gate.closed = true;
    for (const size of [4, 2, 1, 1]) {
      await expect(reader.range(0, 1, new Set(), signal)).rejects.toThrow('is unreachable');
      expect(reader.rangeMax).toBe(size);
    }
    gate.closed = false;
    for (const size of [2, 4, 8, 8]) {
      await reader.range(0, 1, new Set(), signal);
      expect(reader.rangeMax).toBe(size);
    }
  });

  it('is read for more addresses than one filter may hold', async () => {
    const addresses = new Set(Array.from({ length: 1_100 }, (_, n): Hex => `0x${String(n).padStart(40, '0')}`));
    addresses.add(newAddress());
    const wanted = [...addresses].at(-1) as Hex;
    await anvil.mined(await anvil.transfer(0, wanted, 9n));
    const { height } = await readerOf().head(signal);
    expect((await readerOf().block(height, addresses, signal)).payments).toMatchObject([
      { address: wanted, units: 9n },
    ]);
  });

  it('has no block above its head, and is not read from absent nodes or nodes of other chains', async () => {
    const { height } = await readerOf().head(signal);
    expect(await readerOf().hash(height + 1, signal)).toBeUndefined();
    await expect(readerOf().block(height + 1, new Set(), signal)).rejects.toThrow('does not have that block');
    await expect(readerOf({ chainId: 1 }).head(signal)).rejects.toThrow(
      'The node belongs to the chain 8453, and not to 1',
    );
    const [down, key] = ['http://127.0.0.1:1/secret', 'secret'];
    const none = readerOf({ urls: [down, 'http://127.0.0.1:2'] }).head(signal);
    await expect(none).rejects.toThrow(/node 1: .*; node 2: /);
    await expect(readerOf({ urls: [down] }).head(signal)).rejects.not.toThrow(key);
    expect((await readerOf({ urls: [down, gate.url] }).head(signal)).height).toBe(height);
  });
});
