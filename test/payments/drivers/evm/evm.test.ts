/** Top-ups on a real EVM chain through the whole service, which credits every payment once at the right value. */
import { type Hex, parseEther } from 'viem';
import { mnemonicToAccount } from 'viem/accounts';
import { beforeAll, describe, expect, it } from 'vitest';
import { atEnd } from '../../../setup/end.ts';
import { eventually, type TestAccount } from '../../../setup/freehold.ts';
import { spawnService } from '../../../setup/spawn.ts';
import { type GatewayWorld, openGatewayWorld, type TopUpBody } from '../gateway-world.ts';
import { type Anvil, NO_ANVIL, startAnvil, USDC } from './anvil.ts';
import { type Gate, openGate } from './gate.ts';

/** Another configured token of the chain, and a token that is not configured. */
const USDT: Hex = '0xfde4C96c8593536E31F229EA8f37b2ADa2699bb2';
const UNKNOWN: Hex = '0x00000000000000000000000000000000000c0145';
/** The key of the operator, which the service never sees. */
const MNEMONIC = 'legal winner thank year wave sausage worth useful legal winner thank yellow';
const XPUB = mnemonicToAccount(MNEMONIC, { path: "m/44'/60'/0'" }).getHdKey().publicExtendedKey;
const CONFIRMATIONS = 3;
const DOLLAR = 1_000_000n;

describe.skipIf(NO_ANVIL)('On an EVM chain', () => {
  let anvil: Anvil;
  let gate: Gate;
  let world: GatewayWorld;
  let account: TestAccount;

  beforeAll(async () => {
    anvil = await startAnvil({ tokens: [USDT, UNKNOWN] });
    const wrong = await startAnvil({ chainId: 1 });
    gate = await openGate(anvil.url);
    atEnd(() => Promise.all([anvil.stop(), wrong.stop(), gate.stop()]));
    for (const token of [USDC, USDT, UNKNOWN]) await anvil.mint(anvil.account(0).address, 1_000_000n * DOLLAR, token);
    const token = { decimals: 6, pegged: true };
    const gateways = [
      {
        ...{ driver: 'evm', network: 'base', chainId: 8453, urls: [wrong.url, gate.url], xpub: XPUB },
        ...{ confirmations: CONFIRMATIONS, pollSeconds: 0.05 },
        native: { code: 'ETH-BASE', name: 'Ether on Base' },
        tokens: [
          { code: 'USDC-BASE', name: 'USD Coin on Base', contract: USDC, ...token },
          { code: 'USDT-BASE', name: 'Tether on Base', contract: USDT, ...token },
        ],
      },
    ];
    world = await openGatewayWorld(gateways, { 'USDC-BASE': 0.9998, 'USDT-BASE': 1.0001, 'ETH-BASE': 2_500 });
    account = await world.newAccount();
  });

  const mine = (blocks = CONFIRMATIONS) => anvil.control.mine({ blocks });
  /** Sends an amount of dollars in a token, and waits for the block. */
  const pay = async ({ wallet_address }: TopUpBody, usd: bigint, token: Hex = USDC) => {
    const hash = await anvil.transfer(0, wallet_address as Hex, usd * DOLLAR, token);
    await anvil.mined(hash);
    return hash;
  };
  const fresh = async (crypto = 'USDC-BASE', usd = 50): Promise<[TestAccount, TopUpBody]> => {
    account = await world.newAccount();
    return [account, await world.open(account, usd, crypto)];
  };

  it('a top-up has its own address under the key of the operator, and a URI (EIP-681)', async () => {
    const [, topUp] = await fresh();
    const [deposit] = await world.db.query<{ next: number }>('select next from deposit');
    const { address } = mnemonicToAccount(MNEMONIC, { addressIndex: deposit!.next - 1 });
    expect(topUp).toMatchObject({
      ...{ wallet_address: address, network: 'base', amount_crypto: '50', confirmations_required: CONFIRMATIONS },
      payment_uri: `ethereum:${USDC}@8453/transfer?address=${address}&uint256=50000000`,
    });
  });

  it('a payment is shown in its block, and credited after its confirmations', async () => {
    const [payer, topUp] = await fresh();
    const hash = await pay(topUp, 50n);
    await world.becomes(payer, topUp, {
      status: 'confirming',
      received_crypto: '50',
      confirmations: 1,
      tx_ids: [hash],
    });
    expect(await payer.balance()).toBe(0);
    await mine();
    await world.becomes(payer, topUp, { status: 'confirmed', payment_exception: null, credited_usd: 50 });
    expect(await payer.balance()).toBe(50);
  });

  it('a payment in ether is credited, too', async () => {
    const [payer, topUp] = await fresh('ETH-BASE');
    expect(topUp).toMatchObject({
      amount_crypto: '0.02',
      payment_uri: `ethereum:${topUp.wallet_address}@8453?value=20000000000000000`,
    });
    await anvil.mined(
      await anvil.wallet(0).sendTransaction({ to: topUp.wallet_address as Hex, value: parseEther('0.02') }),
    );
    await mine();
    await world.becomes(payer, topUp, { status: 'confirmed', credited_usd: 50, received_crypto: '0.02' });
  });

  it('a payment in a reverted block is credited once, after it was sent and mined again', async () => {
    const [payer, topUp] = await fresh();
    for (let round = 0; round < 3; round++) {
      const hash = await pay(topUp, 50n);
      await world.becomes(payer, topUp, { status: 'confirming', tx_ids: [hash] });
      await anvil.control.request({ method: 'anvil_reorg', params: [1, []] } as never);
      await mine();
      await world.becomes(payer, topUp, { status: 'confirming', tx_ids: [], received_crypto: '0' });
    }
    expect(await payer.balance()).toBe(0);
    await pay(topUp, 50n);
    await mine();
    await world.becomes(payer, topUp, { status: 'confirmed', payment_exception: null });
    expect(await payer.balance()).toBe(50);
  });

  it('a reorganisation deeper than the confirmations reverses the credit, and the account owes what it had spent', async () => {
    const [payer, topUp] = await fresh();
    await pay(topUp, 50n);
    await mine();
    await world.becomes(payer, topUp, { status: 'confirmed' });
    expect((await payer.rest('POST', '/v1/servers', { service_code: 'vps-1' })).status).toBe(200);
    const before = await world.suspense();
    await anvil.control.request({ method: 'anvil_reorg', params: [CONFIRMATIONS + 1, []] } as never);
    await mine(1);
    const owing = await eventually(async () => {
      const { body } = await payer.rest('GET', '/v1/account/balance');
      return body.owed_usd !== undefined && body;
    });
    expect(owing).toMatchObject({ balance_usd: 0, owed_usd: 6 });
    expect((await world.suspense()) - before).toBe(50n * DOLLAR);
    const refused = await payer.rest('POST', '/v1/servers', { service_code: 'vps-1' });
    expect(refused.body).toMatchObject({
      ...{ code: 'insufficient_balance', detail: expect.stringContaining('The account owes 6 USD') },
    });
  });

  it('several payments in one transaction are distinguished by their place in its receipt', async () => {
    const topUps = [];
    for (let i = 0; i < 3; i++) topUps.push(await fresh());
    await anvil.control.setAutomine(false);
    try {
      for (const [, { wallet_address }] of topUps) await anvil.transfer(0, wallet_address as Hex, 50n * DOLLAR);
      await mine(1);
    } finally {
      await anvil.control.setAutomine(true);
    }
    await mine();
    for (const [payer, topUp] of topUps) await world.becomes(payer, topUp, { status: 'confirmed', credited_usd: 50 });
    const numbers = topUps.map(([, { order_number }]) => order_number);
    const positions = await world.db.query('select position from payment where order_number = any($1)', [numbers]);
    expect(positions).toEqual([{ position: 0 }, { position: 0 }, { position: 0 }]);
  });

  it('a payment in parts, twice or too large is credited in full', async () => {
    const [payer, topUp] = await fresh();
    await pay(topUp, 20n);
    await mine();
    await world.becomes(payer, topUp, { status: 'confirming', received_crypto: '20', credited_usd: 20 });
    await pay(topUp, 30n);
    await pay(topUp, 50n);
    await mine();
    await world.becomes(payer, topUp, { status: 'confirmed', received_crypto: '100', payment_exception: 'overpaid' });
    expect(await payer.balance()).toBe(100);
  });

  it('a partial payment is credited at its value when the top-up expires', async () => {
    const [payer, topUp] = await fresh();
    await pay(topUp, 20n);
    await mine();
    await world.becomes(payer, topUp, { status: 'confirming', credited_usd: 20 });
    await world.expire(topUp);
    await world.becomes(payer, topUp, { status: 'confirmed', payment_exception: 'underpaid', credited_usd: 20 });
  });

  it('a late payment is credited at the current exchange rate', async () => {
    const [payer, topUp] = await fresh('ETH-BASE');
    await world.expire(topUp);
    await world.becomes(payer, topUp, { status: 'expired' });
    await world.rate('ETH-BASE', 3_000);
    await anvil.wallet(0).sendTransaction({ to: topUp.wallet_address as Hex, value: parseEther('0.02') });
    await mine();
    await world.becomes(payer, topUp, { status: 'confirmed', payment_exception: 'late', credited_usd: 60 });
    await world.rate('ETH-BASE', 2_500);
  });

  it('another configured coin goes into suspense, and an unknown token is ignored', async () => {
    const [payer, topUp] = await fresh();
    const before = await world.suspense();
    await pay(topUp, 7n, USDT);
    await pay(topUp, 7n, UNKNOWN);
    await mine();
    await eventually(async () => (await world.suspense()) - before === 7n * DOLLAR);
    await world.becomes(payer, topUp, { status: 'pending', received_crypto: '0' });
    const { length } = await world.db.query('select 1 from payment where order_number = $1', [topUp.order_number]);
    expect(length).toBe(1);
  });

  it('absent nodes only delay a payment', async () => {
    const [payer, topUp] = await fresh();
    gate.closed = true;
    await pay(topUp, 50n);
    await mine();
    await eventually(async () => {
      const [task] = await world.db.query<{ error: string }>(
        `select error from task where subject = 'cron:follow:base'`,
      );
      return task?.error?.includes('The node belongs to the chain 1, and not to 8453');
    });
    expect((await world.becomes(payer, topUp, { status: 'pending' })).tx_ids).toEqual([]);
    gate.closed = false;
    await world.becomes(payer, topUp, { status: 'confirmed', credited_usd: 50 });
  });

  it('a payment is credited once even if its block is read fifty times', async () => {
    const [payer, topUp] = await fresh();
    await pay(topUp, 50n);
    await mine();
    for (let i = 0; i < 50; i++) {
      await world.db.query('delete from chain_block where height > (select max(height) from chain_block) - $1', [
        1 + (i % 9),
      ]);
      if (i % 10 === 0)
        await world.becomes(payer, topUp, { status: 'confirmed', received_crypto: '50', credited_usd: 50 });
    }
    expect(await payer.balance()).toBe(50);
    const transfers = await world.db.query(`select 1 from transfer where order_number = $1`, [topUp.order_number]);
    expect(transfers).toHaveLength(1);
  });

  it('a payment is credited once even if a worker dies while it reads and credits it', async () => {
    const worker = await spawnService({
      ...{
        DATABASE_URL: world.databaseUrl,
        ROLES: 'worker',
        PAYMENTS_FILE: world.paymentsFile,
        ALLOW_SIMULATED: 'true',
      },
      ...{ POLL_SECONDS: '0.02', DATA_DIR: world.dataDir, LEASE_SECONDS: '1' },
    });
    const paid: [TestAccount, TopUpBody][] = [];
    for (let i = 0; i < 4; i++) {
      const one = await fresh();
      await pay(one[1], 50n);
      paid.push(one);
    }
    await mine();
    await worker.kill();
    for (const [payer, topUp] of paid) {
      await world.becomes(payer, topUp, { status: 'confirmed', received_crypto: '50', credited_usd: 50 });
      expect(await payer.balance()).toBe(50);
    }
  });
});
