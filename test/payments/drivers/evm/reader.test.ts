/** The reader of EVM chains. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Hex, parseEther } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type EvmChain, EvmReader } from '../../../../provisioning/payments/drivers/evm/reader.ts';
import { Nodes } from '../../../../provisioning/payments/drivers/nodes.ts';
import { atEnd } from '../../../setup/end.ts';
import { finderOf } from '../../chains/chain.ts';
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
    atEnd(() => Promise.all([anvil.stop(), gate.stop()]));
    await anvil.mint(anvil.account(0).address, 1_000_000n);
  });
  const readerOf = (settings: Partial<EvmChain> = {}) =>
    new EvmReader({
      ...{ network: 'base', chainId: 8453, url: gate.url, batchMax: 10, rangeMax: 1_000 },
      ...{
        native: undefined,
        tokens: new Map([[USDC.toLowerCase(), { code: 'USDC-BASE', decimals: 6 }]]),
        ...settings,
      },
    });

  it.each([undefined, 'ETH-BASE'])('gives the same in ranges as block by block; native coin: %s', async (native) => {
    const reader = readerOf({ native });
    const [one, other] = [newAddress(), newAddress()];
    const find = finderOf([one, other]);
    const { height } = await reader.head(signal);
    await anvil.mined(await anvil.transfer(0, one, 5n));
    await anvil.mined(await anvil.wallet(0).sendTransaction({ to: other, value: parseEther('1') }));
    await anvil.mined(await anvil.transfer(0, newAddress(), 7n));
    await anvil.mined(await anvil.transfer(0, one, 0n));
    await anvil.control.mine({ blocks: 20 });
    await anvil.mined(await anvil.transfer(0, other, 6n));
    const { height: head } = await reader.head(signal);
    const single = [];
    for (let n = height + 1; n <= head; n++) single.push(await reader.block(n, find, signal));
    const found = single.flatMap(({ payments }) => payments.map(({ units, address }) => [address, units]));
    expect(found).toEqual([[one, 5n], ...(native ? [[other, parseEther('1')]] : []), [other, 6n]]);
    const before = gate.passed;
    const ranged = await reader.range(height + 1, head, find, signal);
    expect(gate.passed - before).toBeLessThan(8);
    const [first, last] = [height + 1, head];
    expect(ranged).toEqual(single.filter(({ height: n, payments }) => n === first || n === last || payments.length));
  });

  it('gives the same if a node has no receipt for a transfer, as with bridges', async () => {
    const hide = (answer: { id: number; result?: { logs?: unknown } }) =>
      answer.result?.logs === undefined ? answer : { ...answer, result: null };
    const server = createServer(async (request, response) => {
      const body = (await request.toArray()).join('');
      const headers = { 'content-type': 'application/json' };
      const answers = await (await fetch(anvil.url, { method: 'POST', headers, body })).json();
      response.end(JSON.stringify(Array.isArray(answers) ? answers.map(hide) : hide(answers as never)));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close().closeAllConnections());
    const address = newAddress();
    await anvil.control.setAutomine(false);
    const hashes = [await anvil.transfer(0, newAddress(), 4n), await anvil.transfer(0, address, 5n)];
    await anvil.control.mine({ blocks: 1 });
    await anvil.control.setAutomine(true);
    await Promise.all(hashes.map(anvil.mined));
    const { height } = await readerOf().head(signal);
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const find = finderOf([address]);
    const whole = await readerOf().block(height, find, signal);
    expect(whole.payments).toMatchObject([{ txId: hashes[1], position: 0, units: 5n }]);
    expect(await readerOf({ url }).block(height, find, signal)).toEqual(whole);
    expect((await readerOf({ url }).range(height - 1, height, find, signal)).at(-1)).toEqual(whole);
  });

  it('is read in smaller ranges if a node refuses larger ones', async () => {
    const reader = readerOf({ rangeMax: 8 });
    gate.closed = true;
    for (const size of [4, 2, 1, 1]) {
      await expect(reader.range(0, 1, finderOf([]), signal)).rejects.toThrow('is unreachable');
      expect(reader.rangeMax).toBe(size);
    }
    gate.closed = false;
    for (const size of [2, 3, 4, 5, 7, 8, 8]) {
      await reader.range(0, 1, finderOf([]), signal);
      expect(reader.rangeMax).toBe(size);
    }
  });

  it('is asked as often for 72,000 addresses as for 10', async () => {
    const wanted = newAddress();
    await anvil.mined(await anvil.transfer(0, wanted, 9n));
    const requests: number[] = [];
    for (const count of [10, 72_000]) {
      const others = Array.from({ length: count }, (_, n): Hex => `0x${String(n).padStart(40, '0')}`);
      const reader = readerOf({ native: 'ETH-BASE' });
      const { height } = await reader.head(signal);
      const before = gate.passed;
      const { payments } = await reader.block(height, finderOf([...others, wanted]), signal);
      expect(payments).toMatchObject([{ address: wanted, units: 9n }]);
      requests.push(gate.passed - before);
    }
    expect(requests[1]).toBe(requests[0]);
  });

  it('tells the block of a transaction, and its last final block', async () => {
    const reader = readerOf();
    const hash = await anvil.transfer(0, newAddress(), 5n);
    await anvil.mined(hash);
    const { height } = await reader.head(signal);
    expect(await reader.heightOf(hash, signal)).toBe(height);
    expect(await reader.heightOf(`0x${'0'.repeat(64)}`, signal)).toBeUndefined();
    await anvil.control.mine({ blocks: 70 });
    const final = await reader.finalHeight(signal);
    expect([final! >= height, final! < height + 70]).toEqual([true, true]);
  });

  it('has no block above its head, and is not read from absent nodes or nodes of other chains', async () => {
    const { height } = await readerOf().head(signal);
    expect(await readerOf().hash(height + 1, signal)).toBeUndefined();
    await expect(readerOf().block(height + 1, finderOf([]), signal)).rejects.toThrow('does not have that block');
    await expect(readerOf({ chainId: 1 }).head(signal)).rejects.toThrow(
      'The node belongs to the chain 8453, and not to 1',
    );
    const [down, key] = ['http://127.0.0.1:1/secret', 'secret'];
    const nodesOf = (...urls: string[]) => new Nodes(urls.map((url) => readerOf({ url })));
    const headOf = (...urls: string[]) => nodesOf(...urls).ask(signal, (node) => node.head(signal));
    await expect(headOf(down, 'http://127.0.0.1:2')).rejects.toThrow(/node 1: .*; node 2: /);
    await expect(headOf(down)).rejects.not.toThrow(key);
    expect((await headOf(down, gate.url)).height).toBe(height);
  });
});
