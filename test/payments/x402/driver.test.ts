/** Direct tests of the x402 driver: the conclusions that it draws from the chain. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { encodeAbiParameters, encodeEventTopics, type Hex, type LocalAccount, type Log, pad, parseAbi } from 'viem';
import { describe, expect, it } from 'vitest';
import { fateIn } from '../../../provisioning/payments/drivers/x402/chain.ts';
import type { Exclusive, SettleOptions } from '../../../provisioning/payments/drivers/x402/driver.ts';
import { EvmX402 } from '../../../provisioning/payments/drivers/x402/evm.ts';
import { readGateways } from '../../../provisioning/payments/gateways.ts';
import { atEnd } from '../../setup/end.ts';
import { type Anvil, NO_ANVIL, startAnvil, USDC } from '../drivers/evm/anvil.ts';
import { startRpcProxy } from '../drivers/evm/rpc-proxy.ts';
import { PAY_TO } from '../payments-file.ts';
import { paymentsFile } from './chain-world.ts';
import { newPayer } from './clients.ts';
import { AMOUNT, type Signer, signedPayment } from './signed-payment.ts';

const exclusive: Exclusive = (work) => work();
const signal = new AbortController().signal;

/** Opens a driver with these settings. */
const driverOf = (anvil: Anvil, settings: object = {}): EvmX402 =>
  readGateways(paymentsFile(anvil.url, settings)).x402 as EvmX402;

/** Puts an owner's contract wallet (ERC-1271) on the chain. */
async function contractWallet(anvil: Anvil, owner: LocalAccount): Promise<Signer> {
  const { address } = newPayer();
  const { runtime } = JSON.parse(
    readFileSync(join(import.meta.dirname, '../drivers/evm/contract-wallet.json'), 'utf8'),
  );
  await anvil.control.setCode({ address, bytecode: runtime });
  await anvil.control.setStorageAt({ address, index: 0, value: pad(owner.address) });
  const signTypedData = async (message: never) => `${await owner.signTypedData(message)}00`;
  return { address, signTypedData } as Signer;
}

describe.skipIf(NO_ANVIL)('The x402 driver', async () => {
  const anvil = NO_ANVIL ? (undefined as unknown as Anvil) : await startAnvil();
  atEnd(() => anvil?.stop());
  const settled = async (driver: EvmX402, payer?: Signer) => {
    const payment = await signedPayment(driver, payer);
    await anvil.mint(payment.payer.address, AMOUNT);
    const { authorization, signature, key } = payment;
    expect(await driver.verify(authorization, signature, signal)).toBeUndefined();
    const { txId } = await driver.settle(authorization, signature, { signal, exclusive });
    return { key, txId: txId! };
  };

  it('finds a payment without its transaction, even in small ranges of blocks', async () => {
    const driver = driverOf(anvil, { logBlocks: 3 });
    const { key, txId } = await settled(driver);
    await anvil.control.mine({ blocks: 20 });
    expect(await driver.observe(key)).toEqual({ state: 'settled', txId });
  });

  it('finds a use in the hour before the payment arrived, and no earlier one', async () => {
    const driver = driverOf(anvil, { logBlocks: 3 });
    const { key, txId } = await settled(driver);
    await anvil.control.mine({ blocks: 20 });
    const arrived = (minutes: number) => ({ ...key, createdAt: new Date(key.createdAt.getTime() + minutes * 60_000) });
    expect(await driver.observe(arrived(50))).toEqual({ state: 'settled', txId });
    const unseen = { state: 'open', isUnseen: true };
    expect(await driver.observe(arrived(70))).toEqual(unseen);
    // Waiting would show no older block.
    const startedAt = performance.now();
    expect(await driver.observeSubmitted(arrived(70))).toEqual(unseen);
    expect(performance.now() - startedAt).toBeLessThan(20_000);
  });

  it('accepts a contract wallet with the signature of its owner, and with no other', async () => {
    const driver = driverOf(anvil);
    const [owner, thief] = [newPayer(), newPayer()];
    const wallet = await contractWallet(anvil, owner);
    const { key, txId } = await settled(driver, wallet);
    expect(await driver.observe(key, txId)).toEqual({ state: 'settled', txId });
    expect(await anvil.balance(wallet.address)).toBe(0n);
    await anvil.mint(wallet.address, AMOUNT);
    const { signTypedData } = await contractWallet(anvil, thief);
    const { authorization, signature } = await signedPayment(driver, { address: wallet.address, signTypedData });
    expect(await driver.verify(authorization, signature, signal)).toBe('invalid_exact_evm_signature');
    expect(await driver.settle(authorization, signature, { signal, exclusive })).toEqual({
      unsent: true,
      refused: 'invalid_exact_evm_signature',
    });
  });

  it.each(['transaction underpriced', 'insufficient funds for gas * price + value', 'nonce too low'])(
    'keeps its transaction if one node failed after it passed it on, and the other says: %s',
    async (refusal) => {
      const [one, two] = [await startRpcProxy(anvil.url), await startRpcProxy(anvil.url)];
      one.before = async (method, params) => {
        if (method !== 'eth_sendRawTransaction') return;
        await anvil.client.request({ method, params } as never);
        throw new Error('lost');
      };
      two.refuse = (method) => (method === 'eth_sendRawTransaction' ? refusal : undefined);
      const driver = driverOf(anvil, { rpcUrls: [one.url, two.url], settleSeconds: 0.5 });
      const count = () => anvil.client.getTransactionCount({ address: anvil.account(0).address });
      const before = await count();
      const { key, txId } = await settled(driver);
      expect(await driver.observe(key)).toEqual({ state: 'settled', txId });
      expect(await count()).toBe(before + 1);
      await Promise.all([one.stop(), two.stop()]);
    },
  );

  it('has sent nothing if each node refuses its transaction', async () => {
    const node = await startRpcProxy(anvil.url);
    node.refuse = (method) => (method === 'eth_sendRawTransaction' ? 'transaction underpriced' : undefined);
    const driver = driverOf(anvil, { rpcUrls: [node.url, node.url], settleSeconds: 0.5 });
    const { txId } = await settled(driver);
    expect(txId).toBeUndefined();
    await node.stop();
  });

  it('waits for the configured depth of a payment', async () => {
    const driver = driverOf(anvil, { confirmations: 3 });
    const { key, txId } = await settled(driver);
    expect(await driver.observe(key, txId)).toEqual({ state: 'open' });
    await anvil.control.mine({ blocks: 2 });
    for (const hint of [txId, undefined]) expect(await driver.observe(key, hint)).toEqual({ state: 'settled', txId });
  });

  it('waits for a safe block if the payment is large', async () => {
    const driver = driverOf(anvil, { safeAboveUsd: 5 });
    const { key, txId } = await settled(driver);
    expect(await driver.observe(key, txId)).toEqual({ state: 'open' });
    await anvil.control.mine({ blocks: 70 });
    expect(await driver.observe(key, txId)).toEqual({ state: 'settled', txId });
  });

  it('forgets a payment after a reorganisation has reverted it', async () => {
    const driver = driverOf(anvil);
    const snapshot = await anvil.control.snapshot();
    const { key, txId } = await settled(driver);
    expect((await driver.observe(key, txId)).state).toBe('settled');
    await anvil.control.revert({ id: snapshot });
    expect(await driver.observe(key, txId)).toEqual({ state: 'open' });
  });

  it('settles again with the nonce that a reorganisation has freed', async () => {
    const driver = driverOf(anvil);
    const payment = await signedPayment(driver);
    await anvil.mint(payment.payer.address, AMOUNT);
    const settle = async (options?: Pick<SettleOptions, 'again'>) =>
      driver.settle(payment.authorization, payment.signature, { signal, exclusive, ...options });
    const snapshot = await anvil.control.snapshot();
    const first = await settle();
    await anvil.control.revert({ id: snapshot });
    const { txId } = await settle({ again: { txId: first.txId } });
    expect(await driver.observe(payment.key, txId)).toEqual({ state: 'settled', txId });
  });

  it('settles again while other payments are under way, but not while its own is', async ({ onTestFinished }) => {
    const driver = driverOf(anvil, { settleSeconds: 0.3 });
    const [lost, other] = [await signedPayment(driver), await signedPayment(driver)];
    for (const { payer } of [lost, other]) await anvil.mint(payer.address, AMOUNT);
    const settle = ({ authorization, signature }: typeof lost, by = driver, again?: SettleOptions['again']) =>
      by.settle(authorization, signature, { signal, exclusive, again });
    const snapshot = await anvil.control.snapshot();
    const { txId } = await settle(lost);
    await anvil.control.revert({ id: snapshot });
    await anvil.control.setAutomine(false);
    onTestFinished(() => anvil.control.setAutomine(true));
    const replica = driverOf(anvil, { settleSeconds: 0.3 });
    expect(await settle(other, replica)).toMatchObject({ txId: expect.any(String) });
    const { txId: next } = await settle(lost, driver, { txId });
    expect(next).toBeDefined();
    expect(await settle(lost, driver, { txId: next })).toEqual({ unsent: true });
    await anvil.control.mine({ blocks: 1 });
    expect(await driver.observe(lost.key, next)).toEqual({ state: 'settled', txId: next });
  });

  it('sends nothing while no node knows whether its transaction is pending', async ({ onTestFinished }) => {
    const node = await startRpcProxy(anvil.url);
    onTestFinished(() => node.stop());
    const driver = driverOf(anvil, { rpcUrls: [node.url] });
    const { authorization, signature } = await signedPayment(driver);
    node.refuse = (method) => (method === 'eth_getTransactionByHash' ? 'internal error' : undefined);
    const again = { txId: `0x${'1'.repeat(64)}` };
    expect(await driver.settle(authorization, signature, { signal, exclusive, again })).toEqual({ unsent: true });
  });

  it('ignores a payment with another payer, payee or amount', async () => {
    const driver = driverOf(anvil);
    const { key, txId } = await settled(driver);
    expect(await driver.observe({ ...key, payer: newPayer().address }, txId)).toEqual({ state: 'open' });
    expect(await driver.observe({ ...key, payTo: newPayer().address }, txId)).toEqual({ state: 'open' });
    // The driver gives up only when no reorganisation can bring the payment.
    await anvil.control.mine({ blocks: 2, interval: 60 });
    expect(await driver.observe({ ...key, payTo: newPayer().address }, txId)).toEqual({ state: 'open' });
    await anvil.control.mine({ blocks: 70 });
    expect(await driver.observe({ ...key, payTo: newPayer().address }, txId)).toEqual({ state: 'dead' });
    expect(await driver.observe({ ...key, amountMicros: AMOUNT + 1n }, txId)).toEqual({ state: 'dead' });
  });

  it('reports its health: good, low on gas, out of gas, or on the wrong chain', async () => {
    const wallet = anvil.account(0).address;
    const gas = (value: bigint) => anvil.control.setBalance({ address: wallet, value });
    const driver = driverOf(anvil);
    expect(await driver.health(signal)).toEqual({ reachable: true });
    const before = await anvil.client.getBalance({ address: wallet });
    await gas(10n ** 15n);
    expect(await driver.health(signal)).toMatchObject({ reachable: true, warning: expect.stringContaining('gas') });
    await gas(0n);
    expect((await driver.health(signal)).reachable).toBe(false);
    const { authorization, signature, payer } = await signedPayment(driver);
    await anvil.mint(payer.address, AMOUNT);
    expect(await driver.settle(authorization, signature, { signal, exclusive })).toEqual({ unsent: true });
    await gas(before);
    expect((await driverOf(anvil, { network: 'base-sepolia', asset: USDC }).health(signal)).reachable).toBe(false);
  });

  it('refuses a gas wallet that is also the payee', async () => {
    const driver = driverOf(anvil, { payTo: anvil.account(0).address });
    await expect(driver.health(signal)).rejects.toThrow('payTo is the gas wallet');
  });
});

describe('The settings of x402', () => {
  const open = (settings: object) => () => new EvmX402({ ...USUAL, ...settings } as never);
  const USUAL = { network: 'base', payTo: PAY_TO, gasKeyFile: '/gas-key' };

  it.each([
    [{ facilitatorUrl: 'https://facilitator.example' }, 'Exactly one of gasKeyFile and facilitatorUrl'],
    [{ gasKeyFile: undefined }, 'Exactly one of gasKeyFile and facilitatorUrl'],
    [{ network: 'eip155:10' }, 'eip155:10 is not a known network, so asset is required.'],
  ])('are refused with a reason: %j', (settings, sentence) => {
    expect(open(settings)).toThrow(sentence);
  });

  it.each([
    [{ payTo: '0x1' }, '/x402/payTo must match pattern'],
    [{ rpcUrls: [] }, '/x402/rpcUrls must NOT have fewer than 1 items'],
    [{ network: 'ethereum' }, '/x402/network must match pattern'],
    [{ gas: 1 }, '/x402 must NOT have additional properties'],
  ])('are checked: %j', (settings, sentence) => {
    const file = paymentsFile('http://127.0.0.1:1', settings);
    expect(() => readGateways(file)).toThrow(sentence);
  });

  it('must name the token of an unknown chain', () => {
    const asset = USDC;
    const { terms } = open({ network: 'eip155:10', asset, domain: { name: 'USDC', version: '2' }, coin: 'USDC-OP' })();
    expect(terms).toMatchObject({ network: 'eip155:10', networkV1: undefined, coin: 'USDC-OP', asset });
  });
});

describe('The logs of an authorization', () => {
  const ABI = parseAbi([
    'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
    'event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)',
    'event Transfer(address indexed from, address indexed to, uint256 value)',
  ]);
  const payer = newPayer().address;
  const [nonce, other] = [`0x${'11'.repeat(32)}`, `0x${'22'.repeat(32)}`] as Hex[] as [Hex, Hex];
  const log = (eventName: 'AuthorizationUsed' | 'AuthorizationCanceled' | 'Transfer', args: object, value?: bigint) =>
    ({
      address: USDC,
      topics: encodeEventTopics({ abi: ABI, eventName, args } as never),
      data: value === undefined ? '0x' : encodeAbiParameters([{ type: 'uint256' }], [value]),
    }) as Log;
  const used = (of: Hex) => log('AuthorizationUsed', { authorizer: payer, nonce: of });
  const moved = (to: Hex, value = AMOUNT) => log('Transfer', { from: payer, to }, value);
  const fate = (...logs: Log[]) => fateIn(logs, USDC, { payer, nonce, payTo: PAY_TO, amountMicros: AMOUNT });

  it.each<[string, Log[], string | undefined]>([
    ['decide nothing without its nonce', [moved(PAY_TO)], undefined],
    ['prove its payment', [used(nonce), moved(PAY_TO)], 'paid'],
    ['prove its cancellation', [log('AuthorizationCanceled', { authorizer: payer, nonce })], 'spent'],
    ['prove a payment to another payee', [used(nonce), moved(payer)], 'spent'],
    ['prove a payment of another amount', [used(nonce), moved(PAY_TO, 1n)], 'spent'],
    ['distinguish two payments in a transaction', [used(nonce), moved(payer), used(other), moved(PAY_TO)], 'spent'],
    ['prove both payments in a transaction', [used(other), moved(PAY_TO), used(nonce), moved(PAY_TO)], 'paid'],
    ['decide nothing for another token', [{ ...used(nonce), address: payer }, moved(PAY_TO)], undefined],
  ])('%s', (_, logs, expected) => {
    expect(fate(...logs)).toBe(expected);
  });
});
