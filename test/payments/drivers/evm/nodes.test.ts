/** Nodes of one EVM chain that disagree, as public nodes do. The service takes nothing back on the word of a node that lags. */
import type { Hex } from 'viem';
import { mnemonicToAccount } from 'viem/accounts';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { atEnd } from '../../../setup/end.ts';
import { eventually, type TestAccount } from '../../../setup/freehold.ts';
import { type GatewayWorld, openGatewayWorld, type TopUpBody } from '../gateway-world.ts';
import { type Anvil, NO_ANVIL, startAnvil, USDC } from './anvil.ts';
import { openView, type View } from './late-node.ts';

const XPUB = mnemonicToAccount('legal winner thank year wave sausage worth useful legal winner thank yellow', {
  path: "m/44'/60'/0'",
}).getHdKey().publicExtendedKey;
const CONFIRMATIONS = 10;
const DOLLAR = 1_000_000n;

describe.skipIf(NO_ANVIL)('With nodes that disagree', () => {
  let anvil: Anvil;
  let one: View;
  let other: View;
  let world: GatewayWorld;

  beforeAll(async () => {
    anvil = await startAnvil();
    [one, other] = [await openView(anvil.url), await openView(anvil.url)];
    atEnd(() => Promise.all([anvil.stop(), one.stop(), other.stop()]));
    await anvil.mint(anvil.account(0).address, 1_000_000n * DOLLAR);
    await anvil.control.mine({ blocks: 20 });
    const gateway = {
      ...{ driver: 'evm', network: 'base', chainId: 8453, urls: [one.url, other.url], xpub: XPUB },
      ...{ confirmations: CONFIRMATIONS, pollSeconds: 0.05 },
      tokens: [{ code: 'USDC-BASE', name: 'USD Coin on Base', contract: USDC, decimals: 6, pegged: true }],
    };
    world = await openGatewayWorld([gateway], { 'USDC-BASE': 1 });
  });
  beforeEach(() => {
    for (const view of [one, other]) Object.assign(view, { lag: () => 0, isBusy: false });
  });

  const pay = async ({ wallet_address }: TopUpBody, usd: bigint) =>
    anvil.mined(await anvil.transfer(0, wallet_address as Hex, usd * DOLLAR));
  const credited = async (usd: number): Promise<TestAccount> => {
    const account = await world.newAccount();
    const topUp = await world.open(account, usd, 'USDC-BASE');
    await pay(topUp, BigInt(usd));
    await anvil.control.mine({ blocks: CONFIRMATIONS });
    await world.becomes(account, topUp, { status: 'confirmed' });
    return account;
  };
  const reversals = async () =>
    (await world.db.query(`select id from event where type in ('payment.reversed', 'account.suspended')`)).length;

  it('a customer keeps the payment when one node is busy after its head and the other lags 15 blocks', async () => {
    const accounts = [await credited(34), await credited(34), await credited(34)];
    other.lag = () => 15;
    one.isBusy = true;
    await anvil.control.mine({ blocks: 1 });
    other.heads = 0;
    await eventually(async () => other.heads > 5);
    await anvil.control.mine({ blocks: 3 });
    other.heads = 0;
    await eventually(async () => other.heads > 5);
    expect(await Promise.all(accounts.map((account) => account.balance()))).toEqual([34, 34, 34]);
    expect(await reversals()).toBe(0);
    [one.isBusy, other.lag] = [false, () => 0];
    expect(await (await credited(34)).balance()).toBe(34);
  });

  it('each payment is found and kept although one URL belongs to nodes of which some lag', async () => {
    let requests = 0;
    one.lag = () => ((requests++ * 7) % 11 < 2 ? 15 : 0);
    other.isBusy = true;
    for (let round = 0; round < 2; round++) expect(await (await credited(40)).balance()).toBe(40);
    for (let block = 0; block < 30; block++) {
      one.heads = 0;
      await anvil.control.mine({ blocks: 1 });
      await eventually(async () => one.heads);
    }
    expect(await reversals()).toBe(0);
  });

  it('a node with another history changes nothing, and the operator reads which block it lacks', async () => {
    const account = await credited(50);
    const fork = await startAnvil();
    // The service may not have read all blocks of the tests before. It waits for a node whose head is below its own.
    const head = await anvil.client.getBlockNumber();
    await fork.control.mine({ blocks: Number(head) + 100 });
    const lying = await openView(fork.url);
    atEnd(() => Promise.all([fork.stop(), lying.stop()]));
    other.isBusy = true;
    const problem = async () =>
      (await world.db.query<{ problem: string | null }>('select problem from chain'))[0]!.problem;
    one.redirect = lying.url;
    // A busy machine may see another problem first, such as a silent node.
    const ofHistory = /base is another chain than before: the node (has none of the known blocks|lacks)/;
    // Without a new block, the busy node is good enough: its head is the block that the service has read.
    const problemOfNext = async () => {
      await anvil.control.mine({ blocks: 1 });
      return problem();
    };
    await expect.poll(problemOfNext, { timeout: 240_000, interval: 500 }).toMatch(ofHistory);
    expect([await account.balance(), await reversals()]).toEqual([50, 0]);
    delete one.redirect;
    other.isBusy = false;
    await anvil.control.mine({ blocks: 1 });
    await eventually(async () => (await problem()) === null);
    expect(await (await credited(30)).balance()).toBe(30);
  });
});
