/** Collecting coins of Bitcoin's family, as docs/operate/payments/bitcoin-family.md prints it. */
import { createHmac } from 'node:crypto';
import { mnemonicToAccount } from 'viem/accounts';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { CHAINS } from '../../../../provisioning/payments/drivers/utxo/chains.ts';
import { openGuide, WORDS } from '../guide.ts';
import { type Litecoind, NO_LITECOIND, startLitecoind } from './litecoind.ts';

// The types of viem know the paths of Ethereum alone.
const ACCOUNT = mnemonicToAccount(WORDS, { path: "m/84'/2'/0'" as `m/44'/60'/${string}` }).getHdKey();
const deposit = (number: number): string =>
  CHAINS['litecoin-regtest']!.addressOf(ACCOUNT.derive(`m/0/${number}`).publicKey!);
/** More coins than one transaction takes. */
const COINS = 1_500;

describe.skipIf(NO_LITECOIND)("The guide to collecting coins of Bitcoin's family", () => {
  let node: Litecoind;
  beforeAll(async () => {
    node = await startLitecoind();
    return () => node.stop();
  });
  const open = () => {
    const login = `-regtest -rpcport=${new URL(node.url).port} -rpcuser=till -rpcpassword=secret`;
    const program = `#!/bin/sh\nexec /usr/bin/litecoin-cli ${login} "$@"\n`;
    return openGuide('bitcoin-family.md', onTestFinished, { 'litecoin-cli': program });
  };

  it('prints a password, and the line by which a node knows it', () => {
    const [line, password] = open().type('rpcauth=').split('\n');
    const [, salt, hash] = /^rpcauth=freehold:([0-9a-f]{32})\$([0-9a-f]{64})$/.exec(line!)!;
    expect(createHmac('sha256', salt!).update(password!).digest('hex')).toBe(hash);
  });

  it('moves thousands of coins of all numbers, in several transactions', async () => {
    const guide = open();
    const key = guide.type('0x043587cf', { 'xpub6DTPd…': ACCOUNT.publicExtendedKey }).trim();
    expect(key).toMatch(/^tpub/);
    const amounts = Object.fromEntries(Array.from({ length: COINS }, (_, number) => [deposit(number), 0.01]));
    await node.rpc('sendmany', '', amounts);
    const safe = await node.rpc<string>('getnewaddress');
    const moved = [];
    for (let round = 0; round < 2; round++) {
      await node.mine(1);
      guide.type('scantxoutset', { 'xpub6DTPd…': key, 'next=100': `next=${COINS}` });
      guide.type('createrawtransaction', { 'ltc1q…': safe });
      guide.type('signrawtransactionwithkey', { 'prefix=b0': 'prefix=ef' });
      expect(JSON.parse(guide.read('signed.json')).complete).toBe(true);
      const txId = guide.type('sendrawtransaction').trim();
      const { vin } = await node.rpc<{ vin: object[] }>('getrawtransaction', txId, true);
      moved.push(vin.length);
    }
    await node.mine(1);
    expect(moved).toEqual([1_455, COINS - 1_455]);
    guide.type('scantxoutset', { 'xpub6DTPd…': key, 'next=100': `next=${COINS}` });
    expect(JSON.parse(guide.read('coins.json')).unspents).toEqual([]);
  });
});
