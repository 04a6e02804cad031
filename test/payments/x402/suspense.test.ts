/** Payments that the chain moved before they were sent to the service. They wait in suspense until the operator decides. */
import { describe, expect, it } from 'vitest';
import { proveBooks, verifyBooks } from '../../../entities/payments/books.ts';
import { eventually, type TestAccount } from '../../setup/freehold.ts';
import { NO_ANVIL } from '../drivers/evm/anvil.ts';
import { openX402World, type X402World } from './chain-world.ts';
import { type Signed, sign, version2 } from './clients.ts';

const ASSIGN_TO = `mutation ($id: ID!, $accountId: ID) {
  assignPayment(id: $id, accountId: $accountId, reason: "Hers") { status creditedUsd } }`;
const ORDER = { service_code: 'vps-1', hostname: 'web' };

describe.skipIf(NO_ANVIL)('A payment by x402', async () => {
  const world = NO_ANVIL ? (undefined as unknown as X402World) : await openX402World();

  /** Makes an account, and a payment for one of its orders. */
  async function signedOrder(): Promise<{ account: TestAccount; signed: Signed }> {
    const account = await world.newAccount();
    const challenge = await account.rest('POST', '/v1/servers', ORDER);
    return { account, signed: await sign(challenge, { payer: await world.newRichPayer() }) };
  }
  const pay = ({ rest }: TestAccount, signed: Signed) => rest('POST', '/v1/servers', ORDER, version2(signed));
  /** Checks that the income of the payee equals the books. */
  const expectBalanced = async () => {
    const { chain, books } = await world.totals();
    expect(chain).toBe(books);
    expect((await verifyBooks(world.db)).balanced).toBe(true);
  };

  it('goes into suspense if it was submitted before the request, until the operator assigns it', async () => {
    const { account: finder, signed } = await signedOrder();
    const owner = await world.newAccount();
    await world.submit(signed);
    for (const account of [finder, owner, finder]) {
      const { status, body } = await pay(account, signed);
      expect([status, body.code]).toEqual([422, 'payment_nonce_used']);
    }
    await expectBalanced();
    const { operator } = world;
    const { data } = await operator('{ payments(status: UNMATCHED) { data { id accountId creditedUsd key } } }');
    const { from, nonce } = signed.payload.authorization;
    const key = `x402:eip155:8453:${from}:${nonce}`.toLowerCase();
    const idOf = async ({ rest }: TestAccount) => (await rest('GET', '/v1/account')).body.id as string;
    const accountId = await idOf(owner);
    expect(data.payments.data).toEqual([
      { id: expect.any(String), accountId: await idOf(finder), creditedUsd: 6, key },
    ]);
    const [{ id }] = data.payments.data;
    const ASSIGN = `mutation ($id: ID!, $accountId: ID!) {
      assignPayment(id: $id, accountId: $accountId, reason: "She has the key of the payer") { status } }`;
    for (const [given, code] of [
      [{ id, accountId: 'acct_unknown' }, 'not_found'],
      [{ id: 'pay_00000000000000000000000000', accountId }, 'not_found'],
    ] as const)
      expect((await operator(ASSIGN, given)).errors[0].extensions.code).toBe(code);
    expect((await operator(ASSIGN_TO, { id })).errors[0].message).toContain('Name the accountId');
    for (let i = 0; i < 2; i++)
      expect((await operator(ASSIGN, { id, accountId })).data.assignPayment.status).toMatch(/ASSIGNED|FINAL/);
    expect([await owner.balance(), await finder.balance()]).toEqual([6, 0]);
    expect(await proveBooks(world.db)).toMatchObject({ balanced: true, firstFault: null });
    const WRITE_OFF = 'mutation ($id: ID!) { writeOffPayment(id: $id, reason: "No") { status } }';
    expect((await operator(WRITE_OFF, { id })).errors[0].extensions.code).toBe('validation_failed');
  });

  it('is assigned to one account or returned, by operators at once', async () => {
    const { account: finder, signed } = await signedOrder();
    await world.submit(signed);
    await pay(finder, signed);
    await world.anvil.control.mine({ blocks: 70 });
    const { data } = await world.operator('{ payments(status: UNMATCHED) { data { id accountId } } }');
    const { id } = data.payments.data.find((one: { accountId: string }) => one.accountId === finder.id);
    const owners = [await world.newAccount(), await world.newAccount()];
    const decided = await Promise.all([
      ...owners.map(({ id: accountId }) => world.operator(ASSIGN_TO, { id, accountId })),
      world.operator('mutation ($id: ID!) { returnPayment(id: $id, txId: "0xonce", reason: "No") { status } }', { id }),
    ]);
    expect(decided.filter(({ errors }) => !errors)).toHaveLength(1);
    const balances = await Promise.all(owners.map((one) => one.balance()));
    const isReturned = decided[2]!.errors === undefined;
    expect(balances.toSorted()).toEqual(isReturned ? [0, 0] : [0, 6]);
    expect(await proveBooks(world.db)).toMatchObject({ balanced: true, firstFault: null });
  });

  /** Lets the payer submit a payment, and pays with it while no block has it. @param whilePaying runs meanwhile */
  async function payUnmined(account: TestAccount, signed: Signed, whilePaying: () => Promise<unknown>, sent = signed) {
    const { anvil } = world;
    await anvil.control.setAutomine(false);
    try {
      const submitted = world.submit(signed);
      await eventually(async () => (await anvil.control.getTxpoolStatus()).pending === 1);
      const [answer] = await Promise.all([pay(account, sent), whilePaying()]);
      await anvil.control.mine({ blocks: 1 });
      await submitted;
      return answer;
    } finally {
      await anvil.control.setAutomine(true);
    }
  }

  it('goes into suspense if its payer submitted it, and its block comes only during the request', async () => {
    const { account, signed } = await signedOrder();
    let isAsked = false;
    world.rpc.before = (_method, params) => {
      isAsked ||= params.at(-1) === 'pending';
    };
    const { status, body } = await payUnmined(account, signed, async () => {
      await eventually(async () => isAsked);
      await world.anvil.control.mine({ blocks: 1 });
    });
    world.rpc.before = () => {};
    expect([status, body.code]).toEqual([422, 'payment_nonce_used']);
    await expectBalanced();
  });

  it('asks its sender to come again if its payer submitted it, and no block comes', async () => {
    const { account, signed } = await signedOrder();
    const { status, body } = await payUnmined(account, signed, async () => {});
    expect([status, body.code]).toEqual([503, 'unavailable']);
    expect((await pay(account, signed)).body.code).toBe('payment_nonce_used');
    await expectBalanced();
  });

  it('is refused at once if its payer submitted it, and a stranger sends it with another signature', async () => {
    const { account, signed } = await signedOrder();
    const { signed: other } = await signedOrder();
    let isAsked = false;
    const forged = { ...signed, payload: { ...signed.payload, signature: other.payload.signature } };
    world.rpc.before = (_method, params) => {
      isAsked ||= params.at(-1) === 'pending';
    };
    const { status, body } = await payUnmined(account, signed, async () => {}, forged);
    world.rpc.before = () => {};
    expect([status, body.code, isAsked]).toEqual([402, 'payment_rejected', false]);
    expect((await pay(account, signed)).body.code).toBe('payment_nonce_used');
    await expectBalanced();
  });

  it('is returned or written off from suspense by the operator', async () => {
    for (const [decision, status] of [
      ['returnPayment(id: $id, txId: "0xback", reason: "Sent back")', 'RETURNED'],
      ['writeOffPayment(id: $id, reason: "Unknown sender")', 'WRITTEN_OFF'],
    ] as const) {
      const { account, signed } = await signedOrder();
      await world.submit(signed);
      expect((await pay(account, signed)).body.code).toBe('payment_nonce_used');
      const { data } = await world.operator('{ payments(status: UNMATCHED) { data { id } } }');
      const { id } = data.payments.data[0];
      await world.anvil.control.mine({ blocks: 70 });
      const decided = await world.operator(`mutation ($id: ID!) { decided: ${decision} { status } }`, { id });
      expect(decided.data.decided.status).toBe(status);
      expect(await account.balance()).toBe(0);
    }
    expect(await proveBooks(world.db)).toMatchObject({ balanced: true, firstFault: null });
  });

  it.each([
    ['writeOffPayment(id: $id, reason: "Unknown sender")', 'The operator has written this payment off.'],
    ['returnPayment(id: $id, txId: "0xback", reason: "Sent back")', 'The operator returns the money to its sender.'],
  ])('tells a repeated request what the operator decided: %s', async (decision, sentence) => {
    const { account, signed } = await signedOrder();
    await world.submit(signed);
    await pay(account, signed);
    await world.anvil.control.mine({ blocks: 70 });
    const [{ id }] = (await world.db.query<{ id: string }>('select id from payment where account_id = $1', [
      account.id,
    ])) as [{ id: string }];
    const { errors } = await world.operator(`mutation ($id: ID!) { decided: ${decision} { status } }`, { id });
    expect(errors).toBeUndefined();
    const { status, body, headers } = await pay(account, signed);
    expect([status, body.code, headers.has('payment-response')]).toEqual([422, 'payment_nonce_used', false]);
    expect(body.detail).toContain(sentence);
    expect(body.detail).not.toContain('go to the balance');
    expect(await account.balance()).toBe(0);
  });

  it('buys at once when the operator has assigned it to its sender', async () => {
    const { account, signed } = await signedOrder();
    await world.submit(signed);
    await pay(account, signed);
    const [row] = await world.db.query<{ id: string; leaseUntil: Date; now: Date }>(
      'select id, lease_until, now() from payment join x402_authorization on payment_id = id where account_id = $1',
      [account.id],
    );
    expect(row!.leaseUntil.getTime()).toBeLessThanOrEqual(row!.now.getTime());
    await world.operator(ASSIGN_TO, { id: row!.id, accountId: account.id });
    const { status, body } = await pay(account, signed);
    expect([status, body.paid_by, await account.balance()]).toEqual([200, 'x402', 0]);
    await expectBalanced();
  });

  it('confirms its top-up when the operator has assigned it to its sender', async () => {
    const account = await world.newAccount();
    const order = { amount_usd: 100 };
    const send = (headers: Record<string, string>) => account.rest('POST', '/v1/billing/topups', order, headers);
    const signed = await sign(await send({ 'x-payment-mode': 'x402' }), { payer: await world.newRichPayer() });
    await world.submit(signed);
    expect((await send(version2(signed))).body.code).toBe('payment_nonce_used');
    const [row] = await world.db.query<{ id: string }>('select id from payment where account_id = $1', [account.id]);
    await world.operator(ASSIGN_TO, { id: row!.id, accountId: account.id });
    const { body: topUp } = await send(version2(signed));
    expect(topUp).toMatchObject({ status: 'confirmed', credited_usd: 102 });
    const { body: receipt } = await account.rest('GET', `/v1/billing/topups/${topUp.order_number}/receipt`);
    expect(receipt).toMatchObject({ total_usd: 102, lines: [{ amount_crypto: '100' }, { coin: null }] });
    expect(await account.balance()).toBe(102);
    expect(await proveBooks(world.db)).toMatchObject({ balanced: true, firstFault: null });
  });

  it('leaves no row and no event below the least value for suspense, and the answer says so', async () => {
    const account = await world.newAccount();
    const payer = await world.newRichPayer();
    const challenge = await account.rest('POST', '/v1/servers', ORDER);
    const rows = () => world.db.query('select units from payment where account_id = $1', [account.id]);
    for (const amount of ['0', '1', '999999', '1000000']) {
      const signed = await sign(challenge, { payer, change: (accepted) => ({ ...accepted, amount }) });
      await world.submit(signed);
      const { status, body } = await pay(account, signed);
      expect([status, body.code]).toEqual([422, 'payment_nonce_used']);
      expect(body.detail.includes('less than 1 USD')).toBe(amount !== '1000000');
      expect(await rows()).toEqual(amount === '1000000' ? [{ units: amount }] : []);
    }
  });

  it('gets no row in suspense by a signature that its payer did not make', async () => {
    const [{ account: payer, signed }, thief] = [await signedOrder(), await world.newAccount()];
    await world.submit(signed);
    for (const signature of [`0x${'ab'.repeat(65)}`, `0x${'ab'.repeat(66)}`]) {
      const forged = { ...signed, payload: { ...signed.payload, signature } };
      const { status, body } = await pay(thief, forged);
      expect([status, body.code]).toEqual([402, 'payment_rejected']);
    }
    expect(await world.db.query('select from payment where account_id = $1', [thief.id])).toEqual([]);
    expect((await pay(payer, signed)).body.code).toBe('payment_nonce_used');
    const rows = await world.db.query('select status from payment where account_id = $1', [payer.id]);
    expect(rows).toEqual([{ status: 'UNMATCHED' }]);
  });
});
