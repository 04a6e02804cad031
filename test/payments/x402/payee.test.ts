/** The payee of x402, which the service checks when it starts. */
import { HDKey } from '@scure/bip32';
import { mnemonicToAccount } from 'viem/accounts';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { Database } from '../../../entities/database/database.ts';
import { readGateways } from '../../../provisioning/payments/gateways.ts';
import { Payments } from '../../../provisioning/payments/index.ts';
import { newDatabaseUrl } from '../../setup/database.ts';
import { atEnd } from '../../setup/end.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { newFolder, removeFolder } from '../../setup/spawn.ts';
import { VAULT } from '../../setup/vault.ts';
import { USDC } from '../drivers/evm/anvil.ts';
import { rateSources } from '../drivers/gateway-world.ts';
import { PAY_TO, paymentsFileIn, secretFileIn } from '../payments-file.ts';
import { paymentsFile } from './chain-world.ts';

const MNEMONIC = 'test test test test test test test test test test test junk';
const addressAt = (index: number) => mnemonicToAccount(MNEMONIC, { addressIndex: index }).address;
/** The gas wallet of the payments file. */
const GAS_WALLET = addressAt(0);
/** The addresses of the gateway: those of `addressAt`. */
const XPUB = (() => {
  const { publicKey, chainCode } = mnemonicToAccount(MNEMONIC, { path: "m/44'/60'/0'" as never }).getHdKey();
  return new HDKey({ publicKey: publicKey!, chainCode: chainCode! }).publicExtendedKey;
})();
const NODE = 'http://127.0.0.1:1';
const ETHER = { ...{ code: 'USDC', name: 'USDC', contract: USDC }, decimals: 6, pegged: true };
const EVM = {
  ...{ driver: 'evm', network: 'base', chainId: 8453, urls: [NODE] },
  xpub: XPUB,
  confirmations: 12,
  tokens: [ETHER],
};

describe('The payee of x402', () => {
  let db!: Database;
  beforeAll(async () => {
    db = await Database.open(await newDatabaseUrl());
    atEnd(() => db.close());
  });
  /** The payments of a service with an EVM gateway and this payee. */
  function paymentsTo(payTo: string): Payments {
    const folder = newFolder();
    onTestFinished(() => removeFolder(folder));
    paymentsFileIn(folder, NODE);
    const x402 = { network: 'base', payTo, rpcUrls: [NODE], gasKeyFile: `${folder}/gas-key` };
    const file = { gateways: [EVM], rates: rateSources(NODE, ['USDC']), x402 };
    const gateways = readGateways(secretFileIn(folder, 'both.json', JSON.stringify(file)));
    return new Payments({ db, vault: VAULT, ...gateways, pollSeconds: 1 });
  }

  it('may be any address of the operator', async () => {
    await expect(paymentsTo(PAY_TO).prepare()).resolves.toBeUndefined();
  });

  it.each([
    ['the next deposit address', addressAt(1)],
    ['a later deposit address, in another spelling', addressAt(70).toLowerCase()],
  ])('must not be %s of a gateway', async (_, payTo) => {
    await expect(paymentsTo(payTo).prepare()).rejects.toThrow(
      /payTo of x402 is 0x.*, which is deposit address \d+ of an xpub/,
    );
  });

  it('must not be the address of a top-up, also of a former gateway', async () => {
    const payTo = '0x2222222222222222222222222222222222222abc';
    await db.query(
      `insert into top_up (id, account_id, order_number, status, mode, amount_micros, bonus_micros, crypto, network,
        amount_crypto, received_crypto, rate_micros, wallet_address, confirmations, confirmations_required, credited_micros)
       values ('top_1', 'acct_1', 'TOP-1', 'EXPIRED', 'CRYPTO', 1, 0, 'ETH', 'optimism', '1', '0', 1, $1, 0, 1, 0)`,
      [payTo.toUpperCase().replace('0X', '0x')],
    );
    await expect(paymentsTo(payTo).prepare()).rejects.toThrow('which is the deposit address of a top-up');
  });

  it('is never given out as a deposit address', async () => {
    const payTo = addressAt(250);
    const payments = paymentsTo(payTo);
    const invoice = {
      ...{ orderNumber: 'TOP-2', coin: 'USDC', amountMicros: 1n, amountCrypto: '1' },
      ...{ createdAt: new Date(), expiresAt: new Date() },
    };
    await payments.openInvoice(db, 'acct_1', invoice);
    await db.query('update deposit set next = 250');
    await expect(payments.openInvoice(db, 'acct_1', invoice)).rejects.toThrow('x402 pays to it.');
    expect((await payments.openInvoice(db, 'acct_1', invoice)).walletAddress).toBe(addressAt(251));
  });

  it('must not be the gas wallet, and the service does not start with it', async () => {
    const file = paymentsFile(NODE, { payTo: GAS_WALLET });
    await expect(startFreehold({ PAYMENTS_FILE: file, ALLOW_SIMULATED: 'true' })).rejects.toThrow(
      'payTo is the gas wallet',
    );
  });
});
