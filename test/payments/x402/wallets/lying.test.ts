/** Contract wallets that accept a signature while the service simulates, and refuse it on the chain. */
import { concat, getCreate2Address, type Hex, pad, serializeErc6492Signature, toHex } from 'viem';
import { afterEach, describe, expect, it } from 'vitest';
import { verifyBooks } from '../../../../entities/payments/books.ts';
import { eventually, type TestAccount } from '../../../setup/freehold.ts';
import { NO_ANVIL } from '../../drivers/evm/anvil.ts';
import { openX402World, type X402World } from '../chain-world.ts';
import { newPayer, sign, version2 } from '../clients.ts';
import type { Signer } from '../signed-payment.ts';
import { FACTORY, MULTICALL3, runtimeOf, walletThatAcceptsIf } from './contract.ts';

const ORDER = { service_code: 'vps-1', hostname: 'web' };

/** GASPRICE, ISZERO. */
const NO_GAS_PRICE = walletThatAcceptsIf('0x3a15');
/** PUSH0, SLOAD, ORIGIN, EQ, ISZERO: every sender but the one in the first slot. */
const OTHER_CALLER = walletThatAcceptsIf('0x5f54321415');
/** NUMBER, PUSH0, SLOAD, LT, ISZERO: up to the block in the first slot. */
const EARLIER_BLOCK = walletThatAcceptsIf('0x435f541015');
/** PUSH0, SLOAD, COINBASE, EQ: the producer of blocks in the first slot. */
const SAME_COINBASE = walletThatAcceptsIf('0x5f544114');

/** Returns the value that accepts a signature if TLOAD(0) is 1: only within the transaction that deployed the wallet. */
const SAME_TRANSACTION: Hex = '0x631626ba7e60e01b5f5c025f5260205ff3';
/** Marks its transaction (PUSH1 1, PUSH0, TSTORE), and returns the runtime code of 17 bytes after itself. */
const DEPLOYS_SAME_TRANSACTION: Hex = concat(['0x60015f5d60118060105f395ff30000ff', SAME_TRANSACTION]);

/** JUMPDEST, PUSH0, JUMP. */
const ENDLESS: Hex = '0x5b5f56';

/** The producer of blocks while the service simulates. */
const COINBASE: Hex = '0x00000000000000000000000000000000c01ba5e0';

describe.skipIf(NO_ANVIL)('A contract wallet that lies', async () => {
  const world = NO_ANVIL
    ? (undefined as unknown as X402World)
    : await openX402World(async () => ({ walletFactories: [FACTORY] }));
  afterEach(async () => {
    world.rpc.before = () => {};
    // The next test counts transactions.
    await world.db.query('update x402_authorization set sends = 9');
  });
  const gasWallet = () => world.anvil.account(0).address;
  /** The number of transactions of the gas wallet. */
  const sent = () => world.anvil.client.getTransactionCount({ address: gasWallet() });

  async function liar(bytecode: Hex, slot: Hex = '0x'): Promise<Signer> {
    const { address } = newPayer();
    await world.anvil.control.setCode({ address, bytecode });
    await world.anvil.mint(address, 1_000_000_000n);
    await world.anvil.control.setStorageAt({ address, index: 0, value: pad(slot) });
    return { address, signTypedData: async () => `0x${'11'.repeat(66)}` } as Signer;
  }
  /** Makes a wallet without code. It accepts signatures only in a simulation that begins with its deployment. */
  async function unborn(): Promise<Signer> {
    const salt = pad(newPayer().address);
    const address = getCreate2Address({ from: FACTORY, salt, bytecode: DEPLOYS_SAME_TRANSACTION });
    const data = concat([salt, DEPLOYS_SAME_TRANSACTION]);
    await world.anvil.mint(address, 1_000_000_000n);
    const signature = serializeErc6492Signature({ address: FACTORY, data, signature: `0x${'11'.repeat(66)}` });
    return { address, signTypedData: async () => signature } as Signer;
  }
  /** Makes wallets that lie whenever the chain is between a simulation and the transaction. */
  const liarByBlock = () => liar(EARLIER_BLOCK);
  const liarByProducer = () => liar(SAME_COINBASE, COINBASE);
  /** Lets the wallet accept signatures in simulations. Before each transaction it changes the block and its producer. */
  const changeBlocks = ({ address }: Signer) => {
    const { client, control } = world.anvil;
    const payer = address.slice(2).toLowerCase();
    world.rpc.before = async (method, parameters) => {
      if (!['eth_call', 'eth_estimateGas', 'eth_sendRawTransaction'].includes(method)) return;
      // The worker still asks about payments of earlier tests. Those calls may come between a change and its transaction.
      if (!JSON.stringify(parameters).includes(payer)) return;
      const isSimulation = method !== 'eth_sendRawTransaction';
      await control.setCoinbase({ address: isSimulation ? COINBASE : newPayer().address });
      await control.mine({ blocks: 1 });
      if (!isSimulation || (await client.getStorageAt({ address, slot: '0x0' })) === pad(COINBASE)) return;
      const next = (await client.getBlockNumber({ cacheTime: 0 })) + 1n;
      await control.setStorageAt({ address, index: 0, value: pad(toHex(next)) });
    };
  };
  const signed = async (account: TestAccount, payer: Signer) =>
    version2(await sign(await account.rest('POST', '/v1/servers', ORDER), { payer: payer as never }));
  const pay = async (account: TestAccount, payer: Signer) =>
    account.rest('POST', '/v1/servers', ORDER, await signed(account, payer));
  const nonceOf = (headers: ReturnType<typeof version2>): string =>
    JSON.parse(Buffer.from(headers['payment-signature'], 'base64').toString()).payload.authorization.nonce;
  /** Lets the worker look at the payments of an account again, as if some time had passed. */
  const look = async ({ id }: TestAccount) => {
    await world.db.query(`update payment set created_at = created_at - interval '20 seconds' where account_id = $1`, [
      id,
    ]);
    await world.db.query(
      `update x402_authorization set lease_until = now() - interval '1 second'
      from payment where payment_id = id and account_id = $1`,
      [id],
    );
    await world.db.query(`update task set run_at = now() where account_id = $1 and process = 'x402'`, [id]);
    await new Promise((resume) => setTimeout(resume, 700));
  };
  const expectBalanced = async () => {
    const { chain, books } = await world.totals();
    expect(chain).toBe(books);
    expect((await verifyBooks(world.db)).balanced).toBe(true);
  };

  it.each<[string, () => Promise<Signer>]>([
    ['accepts a gas price of zero only', () => liar(NO_GAS_PRICE)],
    ['accepts every sender but the gas wallet', () => liar(OTHER_CALLER, gasWallet())],
  ])('is refused by the simulation if it %s', async (_, open) => {
    const [account, payer, before] = [await world.newAccount(), await open(), await sent()];
    for (let i = 0; i < 3; i++) {
      const { status, body } = await pay(account, payer);
      expect([status, body.code]).toEqual([402, 'payment_rejected']);
      await look(account);
    }
    expect(await sent()).toBe(before);
    expect(await world.anvil.balance(payer.address)).toBe(1_000_000_000n);
    expect(await world.db.query('select from payment where account_id = $1', [account.id])).toEqual([]);
  });

  it('is refused within a limit of gas if its code never ends', async () => {
    const [account, payer] = [await world.newAccount(), await liar(ENDLESS)];
    const limits: unknown[] = [];
    world.rpc.before = (method, [call]) => {
      if (method === 'eth_call' || method === 'eth_estimateGas') limits.push((call as { gas?: Hex }).gas);
    };
    const { status, body } = await pay(account, payer);
    expect([status, body.code, body.error]).toEqual([402, 'payment_rejected', 'invalid_exact_evm_signature']);
    expect(limits).not.toEqual([]);
    for (const limit of limits) expect(Number(limit)).toBeLessThanOrEqual(1_500_000);
  });

  it.each<[string, () => Promise<Signer>]>([
    ['the block', liarByBlock],
    ['the producer of the block', liarByProducer],
  ])('costs at most two transactions if it looks at %s', async (_, open) => {
    const [account, payer] = [await world.newAccount(), await open()];
    changeBlocks(payer);
    const before = await sent();
    const { status, body } = await pay(account, payer);
    expect([status, body.status]).toEqual([200, 'pending']);
    for (let i = 0; i < 5; i++) await look(account);
    const transactions = (await sent()) - before;
    expect(transactions).toBeGreaterThan(0);
    expect(transactions).toBeLessThanOrEqual(2);
    await expectBalanced();
  });

  it('gets no further simulation once its reverted transactions took too much gas, nor does its account', async () => {
    const [account, other] = [await world.newAccount(), await world.newAccount()];
    const payer = await liarByProducer();
    const [first, again] = [await signed(account, payer), await signed(account, payer)];
    const elsewhere = await signed(account, (await world.newRichPayer()) as never);
    changeBlocks(payer);
    const { before } = world.rpc;
    const simulations: string[] = [];
    world.rpc.before = (method, parameters) => {
      if (method === 'eth_estimateGas') simulations.push(JSON.stringify(parameters));
      return before(method, parameters);
    };
    // The worker may send the first payment again at any time. A simulation counts for the payment with its nonce.
    const isSimulated = (headers: typeof first) => simulations.some((call) => call.includes(nonceOf(headers).slice(2)));
    await account.rest('POST', '/v1/servers', ORDER, first);
    const address = payer.address.toLowerCase();
    await eventually(async () => {
      await look(account);
      const [row] = await world.db.query<{ gas: bigint }>(
        'select reverted_gas as gas from x402_authorization where payer = $1',
        [address],
      );
      return row!.gas > 30_000n;
    });
    await world.db.query('update x402_authorization set reverted_gas = 1000000 where payer = $1', [address]);
    for (const [buyer, headers] of [
      [account, again],
      [other, again],
      [account, elsewhere],
    ] as const) {
      const refused = await buyer.rest('POST', '/v1/servers', ORDER, headers);
      expect([refused.status, refused.body.code]).toEqual([429, 'rate_limited']);
      expect(refused.body.detail).toContain('1000000 gas');
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    }
    expect([first, again, elsewhere].map(isSimulated)).toEqual([true, false, false]);
  });

  it.each([
    ['refuses the transfer', 402],
    ['is there while the chain is away', 503],
  ])('is deployed for nothing only until that took too much gas, if it %s', async (_, status) => {
    const [account, other] = [await world.newAccount(), await world.newAccount()];
    await world.anvil.control.setCode({ address: MULTICALL3, bytecode: runtimeOf('multicall') });
    const [payer, stranger] = [await unborn(), await unborn()];
    const [first, again, elsewhere] = [
      await signed(account, payer),
      await signed(account, payer),
      await signed(account, stranger),
    ];
    const before = await sent();
    const isDeployed = async () => (await world.anvil.client.getCode({ address: payer.address })) !== undefined;
    world.rpc.before = async () => {
      if (status === 503 && (await isDeployed())) throw new Error('away');
    };
    expect((await account.rest('POST', '/v1/servers', ORDER, first)).status).toBe(status);
    world.rpc.before = () => {};
    const counted = await world.db.query<{ gas: bigint; sends: number }>(
      'select reverted_gas as gas, sends from x402_authorization where payer = $1',
      [payer.address.toLowerCase()],
    );
    expect(counted).toEqual([{ gas: expect.any(BigInt), sends: 1 }]);
    expect(counted[0]!.gas).toBeGreaterThan(50_000n);
    await world.db.query('update x402_authorization set reverted_gas = 1000000 where reverted_gas > 0 and payer = $1', [
      payer.address.toLowerCase(),
    ]);
    for (const [buyer, headers] of [
      [account, elsewhere],
      [other, again],
    ] as const) {
      const refused = await buyer.rest('POST', '/v1/servers', ORDER, headers);
      expect([refused.status, refused.body.code]).toEqual([429, 'rate_limited']);
    }
    expect([await isDeployed(), await sent()]).toEqual([true, before + 1]);
  });

  it('loses its order once the chain can never move its coins', async () => {
    const [account, payer] = [await world.newAccount(), await liarByProducer()];
    changeBlocks(payer);
    const { body } = await pay(account, payer);
    expect(body.status).toBe('pending');
    const { control } = world.anvil;
    await control.increaseTime({ seconds: 400 });
    await control.mine({ blocks: 70 });
    const failed = await eventually(async () => {
      const { body: server } = await account.rest('GET', `/v1/servers/${body.order_number}`);
      return server.status === 'failed' && server;
    });
    expect(failed.failure.code).toBe('payment_failed');
    expect(await world.anvil.balance(payer.address)).toBe(1_000_000_000n);
    await expectBalanced();
  });
});
