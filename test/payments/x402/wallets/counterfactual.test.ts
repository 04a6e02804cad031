/** Contract wallets that a factory deploys with their first payment (ERC-6492), for gas of the service. */
import {
  concat,
  getCreate2Address,
  type Hex,
  type LocalAccount,
  pad,
  serializeErc6492Signature,
  size,
  toHex,
} from 'viem';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { Exclusive } from '../../../../provisioning/payments/drivers/x402/driver.ts';
import type { EvmX402 } from '../../../../provisioning/payments/drivers/x402/evm.ts';
import { readGateways } from '../../../../provisioning/payments/gateways.ts';
import { atEnd } from '../../../setup/end.ts';
import { type Anvil, NO_ANVIL, startAnvil } from '../../drivers/evm/anvil.ts';
import { startRpcProxy } from '../../drivers/evm/rpc-proxy.ts';
import { PAY_TO } from '../../payments-file.ts';
import { paymentsFile } from '../chain-world.ts';
import { newPayer } from '../clients.ts';
import { AMOUNT, type Signer, signedPayment } from '../signed-payment.ts';
import { FACTORY, MULTICALL3, runtimeOf } from './contract.ts';

/** A copy of the factory at another address. */
const OTHER_FACTORY: Hex = '0x00000000000000000000000000000000000fac70';
const SALT = pad('0x');

const exclusive: Exclusive = (work) => work();
const signal = new AbortController().signal;
const WALLET = runtimeOf('contract-wallet');

/** Returns the init code of a wallet: it stores the owner in the first slot and returns the runtime code. */
const walletOf = (owner: Hex): Hex =>
  concat([
    concat(['0x73', owner, '0x5f55']), // PUSH20 owner, PUSH0, SSTORE
    concat(['0x61', toHex(size(WALLET), { size: 2 })]), // PUSH2 size
    '0x8060215f39', // DUP1, PUSH1 33 (where the code begins), PUSH0, CODECOPY
    '0x5ff3', // PUSH0, RETURN
    WALLET,
  ]);

interface FutureWallet extends Signer {
  /** The call data for its factory. */
  deployment: Hex;
}

/** Makes an owner's contract wallet that does not exist yet. Its signature contains the deployment. */
function futureWallet(owner: LocalAccount, factory: Hex = FACTORY, signer: LocalAccount = owner): FutureWallet {
  const bytecode = walletOf(owner.address);
  const deployment = concat([SALT, bytecode]);
  return {
    address: getCreate2Address({ from: factory, salt: SALT, bytecode }),
    deployment,
    signTypedData: (async (message: never) =>
      serializeErc6492Signature({
        address: factory,
        data: deployment,
        signature: `${await signer.signTypedData(message)}00`,
      })) as Signer['signTypedData'],
  };
}

describe.skipIf(NO_ANVIL)('A contract wallet before its deployment', async () => {
  const anvil = NO_ANVIL ? (undefined as unknown as Anvil) : await startAnvil();
  atEnd(() => anvil?.stop());
  let driver!: EvmX402;
  const driverAt = (url: string) =>
    readGateways(paymentsFile(url, { walletFactories: [FACTORY.toLowerCase()] })).x402 as EvmX402;
  beforeEach(async () => {
    driver = driverAt(anvil.url);
    await anvil.control.setCode({ address: MULTICALL3, bytecode: runtimeOf('multicall') });
    const bytecode = (await anvil.client.getCode({ address: FACTORY }))!;
    await anvil.control.setCode({ address: OTHER_FACTORY, bytecode });
  });

  /** Mints coins for the wallet, and returns a payment with its signature. */
  async function payment(wallet: Signer) {
    await anvil.mint(wallet.address, AMOUNT);
    const { authorization, signature, key } = await signedPayment(driver, wallet);
    return {
      key,
      verify: () => driver.verify(authorization, signature, signal),
      settle: () => driver.settle(authorization, signature, { signal, exclusive }),
    };
  }
  const isDeployed = async ({ address }: Signer) => (await anvil.client.getCode({ address })) !== undefined;
  /** The number of transactions of the gas wallet. */
  const sent = () => anvil.client.getTransactionCount({ address: anvil.account(0).address });

  it('is deployed with its first payment by an allowed factory', async () => {
    const wallet = futureWallet(newPayer());
    const { key, verify, settle } = await payment(wallet);
    const before = await anvil.balance(PAY_TO);
    expect([await verify(), await isDeployed(wallet)]).toEqual([undefined, false]);
    const { txId } = await settle();
    expect(await driver.observe(key, txId)).toEqual({ state: 'settled', txId });
    expect(await isDeployed(wallet)).toBe(true);
    expect([await anvil.balance(wallet.address), await anvil.balance(PAY_TO)]).toEqual([0n, before + AMOUNT]);
  });

  it('pays again with the same kind of signature after its deployment, without its factory', async () => {
    const wallet = futureWallet(newPayer());
    await (await payment(wallet)).settle();
    const before = await sent();
    const { key, verify, settle } = await payment(wallet);
    expect(await verify()).toBeUndefined();
    const { txId } = await settle();
    expect([await driver.observe(key, txId), await sent()]).toEqual([{ state: 'settled', txId }, before + 1]);
  });

  it('is refused with an unknown factory, before any transaction', async () => {
    const wallet = futureWallet(newPayer(), OTHER_FACTORY);
    const { key, verify, settle } = await payment(wallet);
    const before = await sent();
    expect(await verify()).toBe('eip6492_factory_not_allowed');
    expect(await settle()).toEqual({ unsent: true, refused: 'eip6492_factory_not_allowed' });
    expect(await driver.observe(key)).toEqual({ state: 'open' });
    expect([await sent(), await isDeployed(wallet), await anvil.balance(wallet.address)]).toEqual([
      before,
      false,
      AMOUNT,
    ]);
  });

  it('is neither deployed nor charged for a signature of another key', async () => {
    const wallet = futureWallet(newPayer(), FACTORY, newPayer());
    const { key, verify, settle } = await payment(wallet);
    const before = await sent();
    expect(await verify()).toBe('invalid_exact_evm_transaction_simulation_failed');
    expect(await settle()).toEqual({ unsent: true, refused: 'invalid_exact_evm_transaction_simulation_failed' });
    expect(await driver.observe(key)).toEqual({ state: 'open' });
    expect([await sent(), await isDeployed(wallet), await anvil.balance(wallet.address)]).toEqual([
      before,
      false,
      AMOUNT,
    ]);
  });

  it('pays even if another sender deploys it after the verification', async () => {
    const wallet = futureWallet(newPayer());
    const { key, verify, settle } = await payment(wallet);
    expect(await verify()).toBeUndefined();
    const hash = await anvil.wallet(5).sendTransaction({ to: FACTORY, data: wallet.deployment, chain: anvil.chain });
    await anvil.client.waitForTransactionReceipt({ hash });
    const { txId } = await settle();
    expect(await driver.observe(key, txId)).toEqual({ state: 'settled', txId });
  });

  it('has paid nothing if the chain disappears after the deployment, and pays when the chain is back', async () => {
    const rpc = await startRpcProxy(anvil.url);
    onTestFinished(() => rpc.stop());
    driver = driverAt(rpc.url);
    const wallet = futureWallet(newPayer());
    const { key, verify, settle } = await payment(wallet);
    expect(await verify()).toBeUndefined();
    rpc.before = async () => {
      if (await isDeployed(wallet)) throw new Error('away');
    };
    expect(await settle()).toEqual({ unsent: true, wastedGas: expect.any(BigInt) });
    rpc.before = () => {};
    expect([await driver.observe(key), await anvil.balance(wallet.address)]).toEqual([{ state: 'open' }, AMOUNT]);
    const { txId } = await settle();
    expect(await driver.observe(key, txId)).toEqual({ state: 'settled', txId });
  });
});
