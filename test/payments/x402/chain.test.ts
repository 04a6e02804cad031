/** Payments on their way to a real chain: the service loses none, takes none twice, and requests none twice. */
import type { Hex, LocalAccount } from 'viem';
import { afterEach, describe, expect, it } from 'vitest';
import { verifyBooks } from '../../../entities/payments/books.ts';
import { eventually, startFreehold, type TestAccount } from '../../setup/freehold.ts';
import { restClient, spawnService } from '../../setup/spawn.ts';
import { NO_ANVIL, TOKEN_ABI, USDC } from '../drivers/evm/anvil.ts';
import { openX402World, paymentsFile, type X402World } from './chain-world.ts';
import { newPayer, type Signed, sign, version1, version2 } from './clients.ts';

const ORDER = { service_code: 'vps-1', hostname: 'web' };
const PRICE = 6_000_000n;

describe.skipIf(NO_ANVIL)('A payment on a chain', async () => {
  const world = NO_ANVIL ? (undefined as unknown as X402World) : await openX402World();
  const replica = NO_ANVIL ? (undefined as unknown as X402World) : await startFreehold(world.environment);
  const hasty = NO_ANVIL
    ? (undefined as unknown as X402World)
    : await startFreehold({
        ...world.environment,
        PAYMENTS_FILE: paymentsFile(world.rpc.url, { settleSeconds: 0.3 }),
      });
  afterEach(() => {
    world.rpc.before = () => {};
  });

  /** Makes an account, and a payment for one of its orders. */
  async function signedOrder(payer?: LocalAccount): Promise<{ account: TestAccount; signed: Signed }> {
    const account = await world.newAccount();
    const challenge = await account.rest('POST', '/v1/servers', ORDER);
    return { account, signed: await sign(challenge, { payer: payer ?? (await world.newRichPayer()) }) };
  }
  const pay = ({ rest }: TestAccount, signed: Signed) => rest('POST', '/v1/servers', ORDER, version2(signed));
  const orders = async ({ rest }: TestAccount) => (await rest('GET', '/v1/servers')).body.data.length as number;
  const running = async ({ rest }: TestAccount, orderNumber: string) =>
    eventually(async () => (await rest('GET', `/v1/servers/${orderNumber}`)).body.status === 'running');
  /** The gas that the service counts against a payer. */
  const wastedGas = async (payer: string): Promise<bigint> => {
    const [row] = await world.db.query<{ gas: bigint }>(
      'select reverted_gas as gas from x402_authorization where payer = $1',
      [payer],
    );
    return row!.gas;
  };
  /** Checks that the income of the payee equals the books. */
  const expectBalanced = async () => {
    const { chain, books } = await world.totals();
    expect(chain).toBe(books);
    expect((await verifyBooks(world.db)).balanced).toBe(true);
  };

  it('leads to one order for sixteen concurrent requests to two replicas, in both versions', async () => {
    const { account, signed } = await signedOrder();
    const other = restClient(replica.publicUrl, account.accessToken);
    const answers = await Promise.all(
      Array.from({ length: 16 }, (_, i) =>
        (i % 2 ? other : account.rest)(
          'POST',
          '/v1/servers',
          ORDER,
          i % 3 ? version2(signed) : version1(signed, 'base'),
        ),
      ),
    );
    for (const { status, body, headers } of answers) {
      expect([status, body]).toEqual([200, answers[0]!.body]);
      expect(headers.get('payment-response')).toBe(answers[0]!.headers.get('payment-response'));
    }
    expect(await orders(account)).toBe(1);
    await expectBalanced();
  });

  it('is settled together with eleven others by two replicas with one gas wallet', async () => {
    const buyers = await Promise.all(Array.from({ length: 12 }, () => signedOrder()));
    const answers = await Promise.all(
      buyers.map(({ account, signed }, i) => {
        const rest = i % 2 ? restClient(replica.publicUrl, account.accessToken) : account.rest;
        return rest('POST', '/v1/servers', ORDER, version2(signed));
      }),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(12).fill(200));
    await Promise.all(buyers.map(({ account }, i) => running(account, answers[i]!.body.order_number)));
    await expectBalanced();
  });

  it.each(['eth_getTransactionCount', 'eth_sendRawTransaction'])(
    'leads to an order even if another sender submits it just before %s',
    async (moment) => {
      const { account, signed } = await signedOrder();
      let isSubmitted = false;
      world.rpc.before = async (method) => {
        if (method !== moment || isSubmitted) return;
        isSubmitted = true;
        await world.submit(signed);
      };
      const { status, body, headers } = await pay(account, signed);
      expect([status, body.paid_by]).toEqual([200, 'x402']);
      expect(headers.get('payment-response')).toBeTruthy();
      expect([await orders(account), await account.balance()]).toEqual([1, 0]);
      await expectBalanced();
      // The transaction of the service reverted, because the other one came first.
      const payer = signed.payload.authorization.from!.toLowerCase();
      await eventually(async () => (await wastedGas(payer)) > 20_000n);
    },
  );

  it('counts the gas of a later block, too, when another sender has submitted it before the service', async () => {
    const { account, signed } = await signedOrder();
    const { control } = world.anvil;
    const payer = signed.payload.authorization.from!.toLowerCase();
    let isSubmitted = false;
    world.rpc.before = async (method) => {
      if (method !== 'eth_sendRawTransaction' || isSubmitted) return;
      isSubmitted = true;
      await world.submit(signed);
      await control.setAutomine(false);
    };
    try {
      const impatient = restClient(hasty.publicUrl, account.accessToken);
      const { status, body } = await impatient('POST', '/v1/servers', ORDER, version2(signed));
      expect([status, body.paid_by]).toEqual([200, 'x402']);
      expect(await wastedGas(payer)).toBe(0n);
      await control.mine({ blocks: 1 });
      await eventually(async () => (await wastedGas(payer)) > 20_000n);
    } finally {
      await control.setAutomine(true);
    }
    await expectBalanced();
  });

  it('reaches the balance and then the order if the service is killed between settlement and credit', async () => {
    const victim = await spawnService({ ...world.environment, ROLES: 'api' });
    const { account, signed } = await signedOrder();
    let isSent = false;
    world.rpc.before = async (method) => {
      if (method === 'eth_sendRawTransaction') isSent = true;
      // The chain has mined the payment, and its sender dies before it learns of that.
      else if (isSent && method === 'eth_getTransactionReceipt') victim.process.kill('SIGKILL');
    };
    const buy = restClient(victim.url, account.accessToken)('POST', '/v1/servers', ORDER, version2(signed));
    await expect(buy).rejects.toThrow();
    world.rpc.before = () => {};
    await eventually(async () => (await account.balance()) === 6);
    await expectBalanced();
    await world.db.query('update x402_authorization set lease_until = now()');
    const { status, body } = await pay(account, signed);
    expect([status, body.paid_by, await account.balance(), await orders(account)]).toEqual([200, 'x402', 0, 1]);
    await expectBalanced();
  });

  it('without a block in time makes a pending order, which a later block completes', async () => {
    const { account, signed } = await signedOrder();
    await world.anvil.control.setAutomine(false);
    try {
      const impatient = restClient(hasty.publicUrl, account.accessToken);
      const { status, body, headers } = await impatient('POST', '/v1/servers', ORDER, version2(signed));
      expect([status, body.status, headers.get('payment-required')]).toEqual([200, 'pending', null]);
      expect((await pay(account, signed)).body).toEqual(body);
      expect(await account.balance()).toBe(0);
      await world.anvil.control.mine({ blocks: 1 });
      await running(account, body.order_number);
      expect((await pay(account, signed)).headers.get('payment-response')).toBeTruthy();
    } finally {
      await world.anvil.control.setAutomine(true);
    }
    await expectBalanced();
  });

  it('gets 503 while the chain is unreachable, and is accepted afterwards', async () => {
    const { account, signed } = await signedOrder();
    world.rpc.before = () => Promise.reject(new Error('away'));
    const refused = await pay(account, signed);
    expect([refused.status, refused.body.code, refused.body.retryable]).toEqual([503, 'unavailable', true]);
    // The chain disappears at the moment of sending.
    let isVerified = false;
    world.rpc.before = async (method) => {
      isVerified ||= method === 'eth_estimateGas';
      if (isVerified) throw new Error('away');
    };
    const unsent = await pay(account, signed);
    expect([unsent.status, unsent.body.code]).toEqual([503, 'unavailable']);
    world.rpc.before = () => {};
    expect(await world.anvil.balance(signed.payload.authorization.from as Hex)).toBe(1_000_000_000n);
    const paid = await eventually(async () => {
      const answer = await pay(account, signed);
      return answer.status === 200 && answer;
    });
    expect([paid.body.paid_by, await orders(account)]).toEqual(['x402', 1]);
    await expectBalanced();
  });

  it('from a payer without coins is refused, and is accepted once the payer has coins', async () => {
    const payer = newPayer();
    const { account, signed } = await signedOrder(payer);
    const { status, body } = await pay(account, signed);
    expect([status, body.code, body.error]).toEqual([
      402,
      'payment_rejected',
      'invalid_exact_evm_insufficient_balance',
    ]);
    await world.anvil.mint(payer.address, PRICE);
    expect((await pay(account, signed)).status).toBe(200);
    expect(await world.anvil.balance(payer.address)).toBe(0n);
    await expectBalanced();
  });

  it('is settled once if the payer has coins for only one of eight concurrent payments', async () => {
    const payer = await world.newRichPayer(PRICE);
    const buyers = await Promise.all(Array.from({ length: 8 }, () => signedOrder(payer)));
    const answers = await Promise.all(buyers.map(({ account, signed }) => pay(account, signed)));
    const paid = answers.filter(({ headers }) => headers.get('payment-response'));
    expect(paid).toHaveLength(1);
    expect(await world.anvil.balance(payer.address)).toBe(0n);
    await expectBalanced();
  });

  it('gets 422 if it repeats the payment of another order', async () => {
    const { account, signed } = await signedOrder();
    expect((await pay(account, signed)).status).toBe(200);
    const other = await world.newAccount();
    for (const again of [
      await account.rest('POST', '/v1/servers', { ...ORDER, hostname: 'other' }, version2(signed)),
      await other.rest('POST', '/v1/servers', ORDER, version2(signed)),
    ])
      expect([again.status, again.body.code]).toEqual([422, 'payment_nonce_used']);
  });

  it('is sent again after a reorganisation, and is final once its block is safe', async () => {
    const { account, signed } = await signedOrder();
    const snapshot = await world.anvil.control.snapshot();
    const { body } = await pay(account, signed);
    expect(body.paid_by).toBe('x402');
    await world.anvil.control.revert({ id: snapshot });
    const [payer, nonce] = [signed.payload.authorization.from, signed.payload.authorization.nonce];
    const isUsed = () =>
      world.anvil.client.readContract({
        ...{ address: USDC, abi: TOKEN_ABI, functionName: 'authorizationState', args: [payer, nonce] as never },
      });
    expect(await isUsed()).toBe(false);
    await eventually(isUsed);
    await world.anvil.control.mine({ blocks: 70 });
    const finalAt = async () => {
      const { data } = await world.operator('{ payments(status: FINAL) { data { key finalAt } } }');
      return data.payments.data.find((one: { key: string }) => one.key.endsWith(nonce!))?.finalAt;
    };
    await eventually(finalAt);
    await running(account, body.order_number);
    await expectBalanced();
  });

  it.each<[string, number, string, (accepted: Record<string, unknown>) => Record<string, unknown>]>([
    ['less', 402, 'invalid_exact_evm_payload_authorization_value_mismatch', (a) => ({ ...a, amount: '5999999' })],
    ['to somebody else', 402, 'invalid_exact_evm_recipient_mismatch', (a) => ({ ...a, payTo: newPayer().address })],
    ['on another network', 402, 'invalid_network', (a) => ({ ...a, network: 'eip155:84532' })],
    ['in another asset', 402, 'invalid_asset', (a) => ({ ...a, asset: newPayer().address })],
    ['for another token', 402, 'invalid_exact_evm_signature', (a) => ({ ...a, extra: { name: 'USDC', version: '2' } })],
    [
      'an expired authorization',
      402,
      'invalid_exact_evm_payload_authorization_valid_before',
      (a) => ({ ...a, maxTimeoutSeconds: 1 }),
    ],
  ])('of %s is refused with the reason, and nothing is taken', async (_, expected, reason, change) => {
    const [account, payer] = [await world.newAccount(), await world.newRichPayer()];
    const signed = await sign(await account.rest('POST', '/v1/servers', ORDER), { payer, change });
    const { status, body, headers } = await pay(account, signed);
    expect([status, body.error, Boolean(headers.get('payment-required'))]).toEqual([expected, reason, true]);
    expect([await orders(account), await world.anvil.balance(payer.address)]).toEqual([0, 1_000_000_000n]);
    expect(await world.db.query('select from payment where account_id = $1', [account.id])).toEqual([]);
  });
});
