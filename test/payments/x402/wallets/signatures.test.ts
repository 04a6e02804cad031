/** Signatures of contract wallets (ERC-1271) that have the same bytes for every payment, as the approved hashes of a Safe. */
import { concat, type Hex, hashTypedData, pad } from 'viem';
import { afterEach, describe, expect, it } from 'vitest';
import { verifyBooks } from '../../../../entities/payments/books.ts';
import type { Exclusive } from '../../../../provisioning/payments/drivers/x402/driver.ts';
import type { EvmX402 } from '../../../../provisioning/payments/drivers/x402/evm.ts';
import { readGateways } from '../../../../provisioning/payments/gateways.ts';
import type { TestAccount } from '../../../setup/freehold.ts';
import { NO_ANVIL } from '../../drivers/evm/anvil.ts';
import { openX402World, paymentsFile, type X402World } from '../chain-world.ts';
import { newPayer, type Signed, sign, version2 } from '../clients.ts';
import { AMOUNT, type Signer, signedPayment } from '../signed-payment.ts';
import { walletThatAcceptsIf } from './contract.ts';

const ORDER = { service_code: 'vps-1', hostname: 'web' };
/** PUSH1 4, CALLDATALOAD, SLOAD: a payment that the owner has approved. */
const APPROVED = walletThatAcceptsIf('0x60043554');
/** An approved hash of a Safe: the owner, nothing, and the kind of signature 1. Two owners have approved. */
const SIGNATURE: Hex = concat([pad('0xaa'), pad('0x'), '0x01', pad('0xbb'), pad('0x'), '0x01']);

const exclusive: Exclusive = (work) => work();
const signal = new AbortController().signal;

describe.skipIf(NO_ANVIL)('A payment whose signature has the bytes of another', async () => {
  const world = NO_ANVIL ? (undefined as unknown as X402World) : await openX402World();
  afterEach(() => {
    world.rpc.before = () => {};
  });
  const driver = NO_ANVIL
    ? (undefined as unknown as EvmX402)
    : (readGateways(paymentsFile(world.anvil.url)).x402 as EvmX402);

  /** Makes a wallet whose owner approves each payment on the chain. */
  async function newSafe(): Promise<Signer> {
    const { control, mint } = world.anvil;
    const { address } = newPayer();
    await control.setCode({ address, bytecode: APPROVED });
    await mint(address, 1_000_000_000n);
    const signTypedData = async (message: never) => {
      await control.setStorageAt({ address, index: hashTypedData(message) as never, value: pad('0x1') });
      return SIGNATURE;
    };
    return { address, signTypedData } as Signer;
  }
  const signed = async (account: TestAccount, payer: Signer, order: object = ORDER): Promise<Signed> =>
    sign(await account.rest('POST', '/v1/servers', order), { payer: payer as never });

  it.each(['the same wallet', 'another wallet'])('is sent by its own order, and by no order of %s', async (of) => {
    const payer = await newSafe();
    const [sold, refused] = [
      await signedPayment(driver, payer),
      await signedPayment(driver, of === 'the same wallet' ? payer : await newSafe()),
    ];
    expect(sold.signature).toBe(refused.signature);
    for (const { authorization, signature } of [sold, refused])
      expect(await driver.verify(authorization, signature, signal)).toBeUndefined();
    const { txId } = await driver.settle(sold.authorization, sold.signature, { signal, exclusive });
    expect(await driver.observe(sold.key, txId)).toEqual({ state: 'settled', txId });
    expect(await driver.observe(refused.key)).toEqual({ state: 'open' });
    const { payer: other } = refused;
    const left = await world.anvil.balance(other.address);
    expect(left).toBe(1_000_000_000n - (of === 'the same wallet' ? AMOUNT : 0n));
  });

  it('takes the coins of the sold order beside a refused one', async () => {
    const account = await world.newAccount();
    const [payer, before] = [await newSafe(), await world.totals()];
    const dear = { ...ORDER, hostname: 'two', max_price_usd: 1 };
    const [good, refused] = [version2(await signed(account, payer)), version2(await signed(account, payer))];
    // The node simulates both before one of them is sent.
    const estimates: (() => void)[] = [];
    world.rpc.before = async (method) => {
      if (method === 'eth_estimateGas' && estimates.length < 2)
        await new Promise<void>((go) => estimates.push(go) === 2 && estimates.forEach((one) => void one()));
    };
    const [sold, other] = await Promise.all([
      account.rest('POST', '/v1/servers', ORDER, good),
      account.rest('POST', '/v1/servers', dear, refused),
    ]);
    expect([other.status, other.body.code]).toEqual([422, 'price_exceeds_max']);
    expect([sold.status, sold.headers.has('payment-response')]).toEqual([200, true]);
    const { chain, books } = await world.totals();
    expect([chain - before.chain, books - before.books]).toEqual([AMOUNT, AMOUNT]);
    expect((await verifyBooks(world.db)).balanced).toBe(true);
  });

  it.each([
    ['validBefore', (end: string) => String(Number(end) + 60)],
    ['value', (value: string) => String(Number(value) + 1)],
  ] as const)('is another payment if only its %s differs', async (field, change) => {
    const account = await world.newAccount();
    const first = await signed(account, await newSafe());
    world.rpc.refuse = (method) => (method === 'eth_sendRawTransaction' ? 'transaction underpriced' : undefined);
    expect((await account.rest('POST', '/v1/servers', ORDER, version2(first))).status).toBe(503);
    world.rpc.refuse = () => undefined;
    const authorization = { ...first.payload.authorization };
    authorization[field] = change(authorization[field]!);
    const second = { ...first, payload: { ...first.payload, authorization } };
    const { status, body } = await account.rest('POST', '/v1/servers', ORDER, version2(second));
    expect([status, body.code]).toEqual([422, 'payment_nonce_used']);
    expect((await account.rest('POST', '/v1/servers', ORDER, version2(first))).status).toBe(200);
  });
});
