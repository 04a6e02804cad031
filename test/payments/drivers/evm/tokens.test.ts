/** The tokens of a chain must have the decimals that the operator says, and keep their code. */
import type { Hex } from 'viem';
import { mnemonicToAccount } from 'viem/accounts';
import { beforeAll, describe, expect, it } from 'vitest';
import { look } from '../../../../provisioning/payments/chains/look.ts';
import { EVM } from '../../../../provisioning/payments/drivers/evm/evm.ts';
import { newDatabase } from '../../../setup/database.ts';
import { atEnd } from '../../../setup/end.ts';
import { type Anvil, NO_ANVIL, startAnvil, USDC } from './anvil.ts';

const TOKEN: Hex = '0xfde4C96c8593536E31F229EA8f37b2ADa2699bb2';
const { signal } = new AbortController();
const xpub = mnemonicToAccount('legal winner thank year wave sausage worth useful legal winner thank yellow', {
  path: "m/44'/60'/0'",
}).getHdKey().publicExtendedKey;

describe.skipIf(NO_ANVIL)('A token', () => {
  let anvil: Anvil;
  beforeAll(async () => {
    anvil = await startAnvil({ tokens: [TOKEN] });
    atEnd(() => anvil.stop());
  });

  /** A driver as a start of the service makes it. */
  const readerOf = (network: string, token: object) =>
    EVM.open({
      ...{
        network,
        chainId: 8453,
        urls: [anvil.url],
        xpub,
        confirmations: 1,
        pollSeconds: 1,
        staleSeconds: 300,
        batchMax: 10,
        rangeMax: 100,
      },
      tokens: [{ code: 'USDC', name: 'USD Coin', pegged: true, contract: TOKEN, decimals: 6, ...token }],
    }).chains![0]!;

  it('with other decimals than the payments file says, or without a contract, keeps its chain from being read', async () => {
    const db = await newDatabase();
    const readWith = (token: object) => look(db, readerOf('base', token), { signal });
    await expect(readWith({ decimals: 18 })).rejects.toThrow(
      `The token USDC (${TOKEN.toLowerCase()}) has 6 decimals, and the payments file says 18.`,
    );
    await expect(readWith({ contract: '0x00000000000000000000000000000000000c0145' })).rejects.toThrow(
      'has no decimals, and the payments file says 6.',
    );
    expect(await db.query('select height from chain_block')).toEqual([]);
    expect((await readWith({})).state).toBe('reached');
  });

  it('with other code than at the first start keeps its chain from being read, until the operator pins that code', async () => {
    const db = await newDatabase();
    const restart = (token: object = {}) => look(db, readerOf('base', token), { signal });
    const [{ codeHash: before } = { codeHash: '' }] = await restart().then(() =>
      db.query<{ codeHash: string }>('select code_hash from token_code'),
    );
    await restart();
    const bytecode = (await anvil.client.getCode({ address: TOKEN }))!;
    await anvil.control.setCode({ address: TOKEN, bytecode: `${bytecode}00` });
    await anvil.control.mine({ blocks: 1 });
    const fault: Error = await restart().catch((one) => one);
    expect(fault.message).toMatch(
      /^The code of the token 0x\w+ on base has changed. If you trust the new code, set its codeHash to \w{64}.$/,
    );
    const codeHash = /(\w{64})\.$/.exec(fault.message)![1]!;
    await expect(restart({ codeHash: before })).rejects.toThrow(`has the codeHash ${codeHash}, and not that of`);
    expect((await restart({ codeHash })).state).toBe('reached');
    expect((await restart({ contract: USDC })).state).toBe('reached');
  });
});
