/** Collecting USD Coin, as docs/operate/payments/evm.md prints it. */
import { mnemonicToAccount } from 'viem/accounts';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { openGuide, WORDS } from '../guide.ts';
import { type Anvil, NO_ANVIL, startAnvil } from './anvil.ts';

const XPUB = mnemonicToAccount(WORDS, { path: "m/44'/60'/0'" }).getHdKey().publicExtendedKey;
const deposit = (addressIndex: number) => mnemonicToAccount(WORDS, { addressIndex }).address;
/** The first account of anvil has ether. */
const GAS_KEY = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80';

describe.skipIf(NO_ANVIL)('The guide to collecting USD Coin', () => {
  let anvil: Anvil;
  beforeAll(async () => {
    anvil = await startAnvil();
    return () => anvil.stop();
  });

  it('moves the coins of all numbers, once, also when the operator sends again', async () => {
    const { type, read } = openGuide('evm.md', onTestFinished);
    const safe = anvil.account(7).address;
    const url = { 'http://127.0.0.1:8545': anvil.url };
    const list = () => type('> coins.txt', { ...url, 'xpub6D5eC…': XPUB, 'next=100': 'next=31' });
    const sign = () => type('> signed.jsonl', { 'safe=0x…': `safe=${safe}` });
    const send = () => type('transferWithAuthorization(address', { ...url, 'gasKey=0x…': `gasKey=${GAS_KEY}` });
    await anvil.mint(deposit(0), 5_000_000n);
    await anvil.mint(deposit(30), 7_000_000n);
    list();
    expect(read('coins.txt')).toBe('0 5000000\n30 7000000\n');
    sign();
    expect(send().match(/ success 0x\w{64}$/gm)).toHaveLength(2);
    expect(send()).toBe('');
    expect(await anvil.balance(safe)).toBe(12_000_000n);
    list();
    sign();
    expect([read('coins.txt'), read('signed.jsonl'), send()]).toEqual(['', '', '']);
  });
});
