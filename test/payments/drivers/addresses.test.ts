/** The settings of gateways, and the payment addresses they derive, checked against published vectors. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { HDKey } from '@scure/bip32';
import { mnemonicToAccount } from 'viem/accounts';
import { describe, expect, it } from 'vitest';
import { readGateways } from '../../../provisioning/payments/gateways.ts';
import { atEnd } from '../../setup/end.ts';
import { newFolder, removeFolder } from '../../setup/spawn.ts';
import { USDC } from './evm/anvil.ts';
import { rateSources } from './gateway-world.ts';

const folder = newFolder();
atEnd(() => removeFolder(folder));
const RATES = rateSources('http://127.0.0.1:9', ['ETH', 'A', 'B', 'USDC', 'BTC', 'LTC', 'DOGE']);
const open = (...gateways: object[]) => {
  const file = join(folder, 'payments.json');
  writeFileSync(file, JSON.stringify({ gateways, rates: RATES }), { mode: 0o600 });
  return readGateways(file).payments;
};

const MNEMONIC = 'abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about';
const keyAt = (path: string) => mnemonicToAccount(MNEMONIC, { path: path as `m/44'/60'/` }).getHdKey();
/** Returns the public key of an account in the format of the chain's wallets. */
const accountOf = (path: string, version = 0x0488b21e) => {
  const { publicKey, chainCode, depth, index, parentFingerprint } = keyAt(path);
  const versions = { public: version, private: 0 };
  const named = { publicKey: publicKey!, chainCode: chainCode!, depth, index, parentFingerprint };
  return new HDKey({ versions, ...named }).publicExtendedKey;
};
const XPUB = accountOf("m/44'/60'/0'");
const [ZPUB_VERSION, DGUB_VERSION] = [0x04b24746, 0x02facafd];
const BTC = "m/84'/0'/0'";
const ZPUB = accountOf(BTC, ZPUB_VERSION);
const NODE = { driver: 'utxo', url: 'http://127.0.0.1:1', user: 'u', password: 'p' };
const EVM = { driver: 'evm', network: 'ethereum', chainId: 1, urls: ['http://127.0.0.1:1'], confirmations: 12 };
const ETHER = { code: 'ETH', name: 'Ether' };
const token = (code: string, contract: string = USDC) => ({ code, name: code, contract, decimals: 6, pegged: true });
const INVOICE = { orderNumber: 'TOP-1', amountMicros: 1n, createdAt: new Date(), expiresAt: new Date() };

describe('Addresses', () => {
  it.each([
    ['bitcoin', ZPUB, 0, 'bitcoin:bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu?amount=0.5'],
    ['bitcoin', accountOf(BTC), 1, 'bitcoin:bc1qnjg0jd8228aq7egyzacy8cys3knf9xvrerkf9g?amount=0.5'],
    ['litecoin', accountOf("m/84'/2'/0'"), 0, 'litecoin:ltc1qjmxnz78nmc8nq77wuxh25n2es7rzm5c2rkk4wh?amount=0.5'],
    ['dogecoin', accountOf("m/44'/3'/0'", DGUB_VERSION), 0, 'dogecoin:DBus3bamQjgJULBJtYXpEzDWQRwF5iwxgC?amount=0.5'],
  ])(
    'of %s match those of wallets (BIP 84, BIP 44), and their URIs follow BIP 21',
    async (chain, xpub, deposit, uri) => {
      const [gateway] = open({ ...NODE, chain, xpub });
      const target = await gateway!.open(
        { ...INVOICE, coin: 'any', amountCrypto: '0.5' },
        deposit,
        AbortSignal.abort(),
      );
      expect(target.paymentUri).toBe(uri);
    },
  );

  it('of Ethereum follow BIP 44 with a checksum (EIP-55), and their URIs follow EIP-681', async () => {
    const [gateway] = open({ ...EVM, xpub: XPUB, native: ETHER });
    const invoice = { ...INVOICE, coin: 'ETH', amountCrypto: '1.5' };
    const { walletAddress, paymentUri } = await gateway!.open(invoice, 0, AbortSignal.abort());
    expect(walletAddress).toBe('0x9858EfFD232B4033E47d90003D41EC34EcaEda94');
    expect(paymentUri).toBe(`ethereum:${walletAddress}@1?value=1500000000000000000`);
  });

  it('of one key share one numbering in every notation of the key, and other keys have their own', () => {
    const sourceOf = (gateway: object) => open(gateway)[0]!.depositSource!('any');
    const source = sourceOf({ ...NODE, chain: 'bitcoin', xpub: ZPUB });
    expect(sourceOf({ ...NODE, chain: 'litecoin', xpub: accountOf(BTC) })).toBe(source);
    expect(sourceOf({ ...EVM, xpub: accountOf(BTC), native: ETHER })).toBe(source);
    expect(sourceOf({ ...EVM, xpub: XPUB, native: ETHER })).not.toBe(source);
  });
});

describe('The address of a payout', () => {
  const [SEGWIT, TAPROOT] = [
    'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4',
    'bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0',
  ];
  it.each([
    ['bitcoin', SEGWIT, SEGWIT],
    ['bitcoin', SEGWIT.toUpperCase(), SEGWIT],
    ['bitcoin', TAPROOT.toUpperCase(), TAPROOT],
    ['bitcoin', '1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2', '1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2'],
    ['litecoin', '3MSvaVbVFFLML86rt5eqgA9SvW23upaXdY', 'MTf4tP1TCNBn8dNkyxeBVoPrFCcVzxJvvh'],
    ['litecoin', 'MTf4tP1TCNBn8dNkyxeBVoPrFCcVzxJvvh', 'MTf4tP1TCNBn8dNkyxeBVoPrFCcVzxJvvh'],
    ['dogecoin', 'DBus3bamQjgJULBJtYXpEzDWQRwF5iwxgC', 'DBus3bamQjgJULBJtYXpEzDWQRwF5iwxgC'],
    ['a mixed case of bitcoin', SEGWIT.replace('q', 'Q'), undefined],
    ['bitcoin with a typing error', `${SEGWIT.slice(0, -1)}5`, undefined],
    [
      'bitcoin with the checksum of another version',
      'bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqh2y7hd',
      undefined,
    ],
    ['bitcoin for litecoin', 'LVg2kJoFNg45Nbpy53h7Fe1wKyeXVRhMH9', undefined],
    ['dogecoin for bitcoin', SEGWIT, undefined],
    ['litecoin with no address', '', undefined],
  ])('of %s is spelled as its node does: %s', (of, given, spelled) => {
    const chain = /bitcoin|litecoin|dogecoin/.exec(of)![0];
    const [gateway] = open({ ...NODE, chain, xpub: accountOf(BTC) });
    expect(gateway!.spell!(given)).toBe(spelled);
  });
});

describe('A gateway', () => {
  it.each([
    ['a private key', { ...EVM, xpub: keyAt("m/44'/60'/0'").privateExtendedKey, native: ETHER }, 'PRIVATE key'],
    ['no key', { ...EVM, xpub: 'xpub', native: ETHER }, 'xpub is not an extended public key'],
    [
      'a key with a typing error',
      { ...EVM, xpub: `${XPUB.slice(0, -1)}x`, native: ETHER },
      'not an extended public key',
    ],
    ['a key for other addresses', { ...EVM, xpub: ZPUB, native: ETHER }, 'xpub begins with zpub'],
    ['no coin', { ...EVM, xpub: XPUB }, 'neither tokens nor the native coin'],
    ['a contract twice', { ...EVM, xpub: XPUB, tokens: [token('A'), token('B', USDC.toLowerCase())] }, 'same contract'],
    ['an invalid contract', { ...EVM, xpub: XPUB, tokens: [token('A', '0x1')] }, '/tokens/0/contract'],
    ['a code in lower case', { ...EVM, xpub: XPUB, tokens: [token('usdc')] }, '/tokens/0/code'],
    ['no node', { ...EVM, xpub: XPUB, native: ETHER, urls: [] }, '/urls'],
    ['another chain', { ...NODE, xpub: ZPUB, chain: 'ether' }, '/chain'],
    ['no password', { ...NODE, xpub: ZPUB, chain: 'bitcoin', password: undefined }, 'either cookieFile or both'],
    ['password and cookie', { ...NODE, xpub: ZPUB, chain: 'bitcoin', cookieFile: '/x' }, 'either cookieFile or both'],
  ])('with %s is refused, without a word about its keys', (_, gateway, sentence) => {
    expect(() => open(gateway)).toThrow(sentence);
    expect(() => open(gateway)).not.toThrow(String((gateway as { xpub: string }).xpub).slice(20, 60) || 'nothing');
  });

  it('holds payments above 10,000 USD, or above the amount of its file', () => {
    const holdOf = (more: object) =>
      open({ ...EVM, xpub: XPUB, native: ETHER, ...more })[0]!.coins()[0]!.holdAboveMicros;
    expect([holdOf({}), holdOf({ holdAboveUsd: 2_500.5 })]).toEqual([10_000_000_000n, 2_500_500_000n]);
    expect(() => holdOf({ holdAboveUsd: 0 })).toThrow('/gateways/0/holdAboveUsd must be > 0');
  });

  it('cannot read the chain of another gateway', () => {
    const gateway = { ...EVM, xpub: XPUB };
    expect(() => open({ ...gateway, native: ETHER }, { ...gateway, tokens: [token('USDC')] })).toThrow(
      'two gateways have coins of ethereum, and one of them reads its chain',
    );
  });

  it('cannot read a chain whose coins a processor reports', () => {
    const chain = { ...NODE, xpub: ZPUB, chain: 'bitcoin' };
    const method = { method: 'BTC-CHAIN', code: 'LTC', name: 'Bitcoin', network: 'bitcoin', decimals: 8 };
    const store = { driver: 'btcpay', url: 'https://127.0.0.1', store: 'a', api_key: 'k', methods: [method] };
    for (const both of [
      [chain, store],
      [store, chain],
    ])
      expect(() => open(...both)).toThrow('two gateways have coins of bitcoin, and one of them reads its chain');
    const lightning = { ...method, method: 'BTC-LN', network: 'lightning' };
    expect(open(chain, { ...store, methods: [lightning] })).toHaveLength(2);
  });
});
