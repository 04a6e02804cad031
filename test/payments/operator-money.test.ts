/** The operator's view of money, and the operator's powers over it. */
import { describe, expect, it } from 'vitest';
import { newId } from '../../entities/ids.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';

const { db, newAccount, operator } = await startFreehold();
const account = await newAccount();
const other = await newAccount();
const accountId = (await account.rest('GET', '/v1/account')).body.id;
const otherId = (await other.rest('GET', '/v1/account')).body.id;

const ADJUST = `mutation ($accountId: ID!, $amountUsd: Usd!, $key: Line!) {
  adjustBalance(accountId: $accountId, amountUsd: $amountUsd, reason: "An outage in March", key: $key) { amountUsd balanceUsd }
}`;
const adjust = async (amountUsd: number, key: string, id = accountId) => {
  const { data, errors } = await operator(ADJUST, { accountId: id, amountUsd, key });
  return data?.adjustBalance ?? errors[0].extensions.code;
};

describe('An adjustment', () => {
  it('changes the balance once for each key, and shows its reason to the customer', async () => {
    expect(await adjust(12.5, 'first')).toEqual({ amountUsd: 12.5, balanceUsd: 12.5 });
    expect(await adjust(12.5, 'first')).toEqual({ amountUsd: 12.5, balanceUsd: 12.5 });
    expect(await adjust(-2.25, 'second')).toEqual({ amountUsd: -2.25, balanceUsd: 10.25 });
    const { body } = await account.rest('GET', '/v1/account/usage');
    expect(body.data.map((item: Record<string, unknown>) => [item.kind, item.description, item.amount_usd])).toEqual([
      ['adjustment', 'An outage in March', -2.25],
      ['adjustment', 'An outage in March', 12.5],
    ]);
    const audited = await db.query(`select actor_type from audit_entry where action = 'balance.adjusted'`);
    expect(audited).toEqual([{ actorType: 'operator' }, { actorType: 'operator' }]);
    expect((await operator('{ books { balanced firstMismatch } }')).data.books).toEqual({
      balanced: true,
      firstMismatch: null,
    });
  });

  it('has one effect for twenty concurrent requests with one key', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => adjust(1, 'twenty', otherId)));
    expect(new Set(answers.map(({ balanceUsd }) => balanceUsd))).toEqual(new Set([1]));
  });

  it.each([
    [-100, 'third', 'insufficient_balance', undefined],
    [0, 'fourth', 'validation_failed', undefined],
    [5, 'first', 'idempotency_key_reused', undefined],
    [1, 'fifth', 'not_found', 'acct_00000000000000000000000000'],
    [1, 'sixth', 'not_found', 'nobody'],
  ])('of %d with the key %s is refused: %s', async (amount, key, code, id) => {
    expect(await adjust(amount, key, id)).toBe(code);
  });

  it('beyond the balance is refused in words for the operator', async () => {
    const { errors } = await operator(ADJUST, { accountId, amountUsd: -100, key: 'eighth' });
    expect(errors[0].message).toBe('The balance is smaller than the amount.');
  });

  it('is allowed to the operator only', async () => {
    const { errors } = await account.graphql(ADJUST, { accountId, amountUsd: 1, key: 'seventh' });
    expect(errors[0].extensions.code).toBe('insufficient_scope');
  });
});

describe('A payment in another coin than the requested one', () => {
  const ASSIGN = 'mutation ($id: ID!) { assignPayment(id: $id, reason: "It is hers") { status creditedUsd } }';

  it('is assigned to the account by the operator, once', async () => {
    const { body } = await other.rest('POST', '/v1/billing/topups', { amount_usd: 50, crypto: 'BTC' });
    await eventually(async () => (await other.rest('GET', '/v1/account/balance')).body.balance_usd === 51);
    const id = newId('pay');
    await db.query(
      `insert into payment (id, mode, external_key, network, tx_id, position, coin, address, account_id, order_number, units, status, credited_micros, seen_at)
        values ($1, 'CRYPTO', 'pay:bitcoin:other:0', 'bitcoin', 'other', 0, 'LTC', 'x', $2, $3, '5', 'UNMATCHED', 5000000, now())`,
      [id, otherId, body.order_number],
    );
    await db.query(
      `insert into transfer (id, account_id, kind, debit, credit, amount_micros, external_key, description)
        values ($1, $2, 'topup', 'gateway:bitcoin', 'suspense', 5000000, 'pay:bitcoin:other:0', 'test')`,
      [newId('xfr'), otherId],
    );
    const { data } = await operator('{ payments(status: UNMATCHED) { data { id accountId coin creditedUsd } } }');
    expect(data.payments.data).toEqual([{ id, accountId: otherId, coin: 'LTC', creditedUsd: 5 }]);
    await db.query('update payment set height = 7 where id = $1', [id]);
    expect((await operator(ASSIGN, { id })).errors[0].message).toContain('The chain has removed the payment.');
    await db.query(`update payment set block_hash = 'seven' where id = $1`, [id]);
    for (let i = 0; i < 2; i++)
      expect((await operator(ASSIGN, { id })).data.assignPayment).toEqual({ status: 'ASSIGNED', creditedUsd: 5 });
    expect((await other.rest('GET', '/v1/account/balance')).body.balance_usd).toBe(56);
    expect((await operator('{ books { balanced } }')).data.books.balanced).toBe(true);
    expect(await db.query(`select type from event where subject = $1`, [id])).toEqual([{ type: 'payment.assigned' }]);
    const credited = await operator(`{ payments(orderNumber: "${body.order_number}", limit: 200) { data { id } } }`);
    const first = credited.data.payments.data.find((one: { id: string }) => one.id !== id);
    expect((await operator(ASSIGN, { id: first.id })).errors[0].extensions.code).toBe('validation_failed');
  });

  it('is returned by the operator, once', async () => {
    const id = newId('pay');
    await db.query(
      `insert into payment (id, mode, external_key, network, tx_id, position, coin, address, account_id, units, status, credited_micros, seen_at, final_at)
        values ($1, 'CRYPTO', 'pay:bitcoin:wrong:0', 'bitcoin', 'wrong', 0, 'LTC', 'x', $2, '5', 'UNMATCHED', 5000000, now(), now())`,
      [id, otherId],
    );
    await db.query(
      `insert into transfer (id, account_id, kind, debit, credit, amount_micros, external_key, description)
        values ($1, $2, 'topup', 'gateway:bitcoin', 'suspense', 5000000, 'pay:bitcoin:wrong:0', 'test')`,
      [newId('xfr'), otherId],
    );
    const RETURN = `mutation ($id: ID!, $txId: Line!) {
      returnPayment(id: $id, txId: $txId, reason: "By mistake") { mode key status returnTxId } }`;
    for (let i = 0; i < 2; i++)
      expect((await operator(RETURN, { id, txId: 'back' })).data.returnPayment).toEqual({
        ...{ mode: 'CRYPTO', key: 'pay:bitcoin:wrong:0', status: 'RETURNED', returnTxId: 'back' },
      });
    expect((await operator(RETURN, { id, txId: 'another' })).errors[0].extensions.code).toBe('validation_failed');
    expect((await operator('{ books { balanced } }')).data.books.balanced).toBe(true);
  });

  it.each([
    ['assignPayment(id: $id, status: REVERSED, reason: "Hers") { status }'],
    ['returnPayment(id: $id, status: REVERSED, txId: "back", reason: "No") { status }'],
    ['writeOffPayment(id: $id, status: REVERSED, reason: "Gone") { status }'],
  ])('is left alone if the operator saw it in another state: %s', async (decision) => {
    const id = newId('pay');
    await db.query(
      `insert into payment (id, mode, external_key, network, tx_id, position, coin, address, account_id, units, status, credited_micros, seen_at, final_at)
        values ($1, 'CRYPTO', $1, 'bitcoin', $1, 0, 'LTC', 'x', $2, '5', 'UNMATCHED', 0, now(), now())`,
      [id, otherId],
    );
    const { errors } = await operator(`mutation ($id: ID!) { decided: ${decision} }`, { id });
    expect(errors[0].message).toBe('The payment is UNMATCHED meanwhile. Look at it again.');
    const right = decision.replace('REVERSED', 'UNMATCHED');
    expect((await operator(`mutation ($id: ID!) { decided: ${right} }`, { id })).errors).toBeUndefined();
  });

  it('is not looked up where the driver cannot', async () => {
    const { errors } = await operator(
      'mutation { creditTransaction(network: "bitcoin", txId: "other", reason: "It is hers") { id } }',
    );
    expect(errors[0].message).toBe('No driver can look up transactions of bitcoin.');
  });

  it.each(['nothing', 'pay_00000000000000000000000000'])('is not found under an unknown id: %s', async (id) => {
    expect((await operator(ASSIGN, { id })).errors[0].extensions.code).toBe('not_found');
  });
});

describe('The operator sees', () => {
  it('the coins, their gateways and their exchange rates', async () => {
    const { data } = await operator(
      '{ gateways { name simulated coins reachable warning chains { network height lagBlocks } } rates { coin rateUsd sources { name } } }',
    );
    const well = { simulated: true, reachable: true, warning: null, chains: [] };
    expect(data.gateways).toEqual([
      { ...well, name: 'simulated', coins: expect.arrayContaining(['BTC']) },
      { ...well, name: 'x402', coins: ['USDC-BASE'] },
    ]);
    expect(data.rates[0]).toEqual({ coin: 'BTC', rateUsd: 60_000, sources: [] });
  });

  it('the transfers of each day, whose sums have a sign', async () => {
    const adjustments = async () => {
      const { data } = await operator('{ dailyTotals(days: 2) { day kind transfers creditedUsd debitedUsd } }');
      return data.dailyTotals.find(({ kind }: { kind: string }) => kind === 'adjustment');
    };
    const before = await adjustments();
    expect(before.day).toMatch(/T00:00:00/);
    expect(before.transfers).toBeGreaterThan(2);
    const { id } = await newAccount();
    for (const [amountUsd, key] of [
      [100, 'sum'],
      [-100, 'difference'],
    ])
      await operator(
        `mutation { adjustBalance(accountId: "${id}", amountUsd: ${amountUsd}, reason: "Sign", key: "${key}") { balanceUsd } }`,
      );
    expect(await adjustments()).toMatchObject({
      ...{ transfers: before.transfers + 2, creditedUsd: before.creditedUsd + 100 },
      debitedUsd: before.debitedUsd + 100,
    });
  });
});
