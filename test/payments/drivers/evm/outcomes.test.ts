/** Payments on two real EVM chains. A contract pays something else in another block, and a customer pays on the wrong chain. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { encodeAbiParameters, type Hex, parseGwei } from 'viem';
import { mnemonicToAccount } from 'viem/accounts';
import { beforeAll, describe, expect, it } from 'vitest';
import { atEnd } from '../../../setup/end.ts';
import { eventually, type TestAccount } from '../../../setup/freehold.ts';
import { MACHINE } from '../../../setup/spawn.ts';
import { type GatewayWorld, openGatewayWorld, type TopUpBody } from '../gateway-world.ts';
import { type Anvil, NO_ANVIL, startAnvil, USDC } from './anvil.ts';

const MNEMONIC = 'legal winner thank year wave sausage worth useful legal winner thank yellow';
const XPUB = mnemonicToAccount(MNEMONIC, { path: "m/44'/60'/0'" }).getHdKey().publicExtendedKey;
const CONFIRMATIONS = 3;
const DOLLAR = 1_000_000n;
/** Stores two words of input: units and recipient. Without input it sends so many units of USD Coin to the recipient. */
const FICKLE: Hex = '0x00000000000000000000000000000000000f1c1e';
const FICKLE_CODE: Hex = `0x3660375763a9059cbb60e01b5f526001546004525f546024525f5f60445f5f73${USDC.slice(2).toLowerCase() as Lowercase<string>}5af1005b5f355f5560203560015500`;

describe.skipIf(NO_ANVIL)('On EVM chains', () => {
  let anvil: Anvil;
  let other: Anvil;
  let world: GatewayWorld;

  beforeAll(async () => {
    [anvil, other] = await Promise.all([startAnvil(), startAnvil({ chainId: 137 })]);
    atEnd(() => Promise.all([anvil.stop(), other.stop()]));
    await anvil.control.setCode({ address: FICKLE, bytecode: FICKLE_CODE });
    await anvil.mint(FICKLE, 1_000_000n * DOLLAR);
    await other.mint(other.account(0).address, 1_000n * DOLLAR);
    const token = { name: 'USD Coin', contract: USDC, decimals: 6, pegged: true };
    const common = { driver: 'evm', xpub: XPUB, pollSeconds: 0.05 };
    world = await openGatewayWorld(
      [
        {
          ...{ ...common, network: 'base', chainId: 8453, urls: [anvil.url], confirmations: CONFIRMATIONS },
          tokens: [{ ...token, code: 'USDC-BASE' }],
        },
        {
          ...{ ...common, network: 'polygon', chainId: 137, urls: [other.url], confirmations: 1 },
          tokens: [{ ...token, code: 'USDC-POLYGON' }],
        },
      ],
      { 'USDC-BASE': 1, 'USDC-POLYGON': 1 },
    );
  });

  const fresh = async (): Promise<[TestAccount, TopUpBody]> => {
    const account = await world.newAccount();
    return [account, await world.open(account, 50, 'USDC-BASE')];
  };
  /** Signs a call of the contract by the next nonce of an account. */
  const sign = async (index: number, data?: Hex): Promise<Hex> => {
    const wallet = anvil.wallet(index);
    const nonce = await wallet.getTransactionCount({ address: wallet.account.address });
    const fee = { maxFeePerGas: parseGwei('100'), maxPriorityFeePerGas: 1n, gas: 200_000n };
    return wallet.signTransaction({ ...fee, to: FICKLE, nonce, type: 'eip1559', ...(data && { data }) });
  };
  /** Tells the contract what to pay. */
  const tell = ({ wallet_address }: TopUpBody, units: bigint) =>
    sign(1, encodeAbiParameters([{ type: 'uint256' }, { type: 'address' }], [units, wallet_address as Hex]));
  const send = async (raw: Hex) => anvil.mined(await anvil.client.sendRawTransaction({ serializedTransaction: raw }));
  /** Pays by the contract. @returns the signed transaction */
  const pay = async (topUp: TopUpBody, units: bigint): Promise<Hex> => {
    await send(await tell(topUp, units));
    const raw = await sign(2);
    await send(raw);
    return raw;
  };
  /** Replaces the last blocks. Before the same transaction, the contract is told to pay something else. */
  const replace = async (depth: number, raw: Hex, topUp: TopUpBody, units: bigint) => {
    const flip = await tell(topUp, units);
    await anvil.control.request({
      method: 'anvil_reorg',
      params: [
        depth,
        [
          [flip, 0],
          [raw, 0],
        ],
      ],
    } as never);
    await anvil.control.mine({ blocks: 2 * CONFIRMATIONS });
  };

  it.each([
    [500, 0.000001],
    [0.000001, 50],
  ])('a payment of %f becomes one of %f in another block, and is credited with that', async (before, after) => {
    const [payer, topUp] = await fresh();
    const raw = await pay(topUp, BigInt(before * 1e6));
    await world.becomes(payer, topUp, {
      status: 'confirming',
      received_crypto: String(before.toFixed(6)).replace(/\.?0+$/, ''),
    });
    await replace(1, raw, topUp, BigInt(after * 1e6));
    await eventually(async () => (await payer.balance()) === after);
    const [paid] = await world.db.query<{ units: string }>(
      `select units from payment where order_number = $1 and status = 'CREDITED'`,
      [topUp.order_number],
    );
    expect(paid!.units).toBe(String(after * 1e6));
  });

  it('a payment to one customer becomes one to another in another block, who gets the credit', async () => {
    const [[first, one], [second, two]] = [await fresh(), await fresh()];
    const raw = await pay(one, 50n * DOLLAR);
    await world.becomes(first, one, { status: 'confirming', received_crypto: '50' });
    await replace(1, raw, two, 50n * DOLLAR);
    await world.becomes(second, two, { status: 'confirmed', received_crypto: '50' });
    await world.becomes(first, one, { received_crypto: '0', tx_ids: [] });
    expect([await first.balance(), await second.balance()]).toEqual([0, 50]);
  });

  it('a credited payment is reversed when another block has it with less, and the rest is credited', async () => {
    const [payer, topUp] = await fresh();
    const raw = await pay(topUp, 50n * DOLLAR);
    await anvil.control.mine({ blocks: CONFIRMATIONS });
    await world.becomes(payer, topUp, { status: 'confirmed' });
    await replace(CONFIRMATIONS + 1, raw, topUp, 10n * DOLLAR);
    await eventually(async () => (await payer.balance()) === 10);
    expect(await world.suspense()).toBe(50n * DOLLAR);
  });

  it('npm run reconcile counts a payment on another chain than that of its top-up', async () => {
    const [, topUp] = await fresh();
    await other.mined(await other.transfer(0, topUp.wallet_address as Hex, 30n * DOLLAR));
    await eventually(async () => {
      const [one] = await world.db.query(`select 1 from payment where network = 'polygon' and status = 'UNMATCHED'`);
      return one;
    });
    const env = { ...MACHINE, DATABASE_URL: world.databaseUrl, PAYMENTS_FILE: world.paymentsFile };
    const file = join(import.meta.dirname, '..', '..', '..', '..', 'commands', 'reconcile.ts');
    const output = await new Promise<string>((done) => {
      execFile(process.execPath, [file], { env }, (_, stdout) => done(stdout));
    });
    expect(output).toContain('gateway:polygon USDC-POLYGON: the books have 30000000 units, and so has the chain.');
  });
});
