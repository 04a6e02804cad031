import { describe, expect, it } from 'vitest';
import { verifyBooks } from '../../../entities/payments/books.ts';
import { startFreehold, type TestAccount } from '../../setup/freehold.ts';
import { newPayer, type Signed, sign, version1, version2 } from './clients.ts';

const { db, newAccount } = await startFreehold();

const ORDER = { service_code: 'vps-1', hostname: 'web', labels: { a: '1', b: '2' } };

const challenged = (account: TestAccount, order: object = ORDER) => account.rest('POST', '/v1/servers', order);
const orders = async ({ rest }: TestAccount) => (await rest('GET', '/v1/servers')).body.data.length as number;

describe('A payment', () => {
  it('leads to one order with one answer for sixteen concurrent requests, in both versions', async () => {
    const account = await newAccount();
    const signed = await sign(await challenged(account));
    const answers = await Promise.all(
      Array.from({ length: 16 }, (_, i) =>
        account.rest('POST', '/v1/servers', ORDER, i % 4 ? version2(signed) : version1(signed)),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(16).fill(200));
    for (const { body, headers } of answers) {
      expect(body).toEqual(answers[0]!.body);
      expect(headers.get('payment-response')).toBe(answers[0]!.headers.get('payment-response'));
    }
    expect(answers[0]!.body.root_password).toHaveLength(24);
    expect([await orders(account), await account.balance()]).toEqual([1, 0]);
    await account.rest('GET', `/v1/servers/${answers[0]!.body.order_number}?wait_for=running`);
    const { labels, ...rest } = ORDER;
    const later = await account.rest('POST', '/v1/servers', { labels: { b: '2', a: '1' }, ...rest }, version1(signed));
    expect(later.body).toEqual(answers[0]!.body);
    expect((await verifyBooks(db)).balanced).toBe(true);
  });

  it('shows its answer, which may have a password, to no other credential of the account', async () => {
    const account = await newAccount();
    const signed = await sign(await challenged(account));
    const first = await account.rest('POST', '/v1/servers', ORDER, version2(signed));
    const { body: key } = await account.rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'servers' });
    const headers = { ...version2(signed), authorization: `Bearer ${key.plaintext}` };
    const other = await account.rest('POST', '/v1/servers', ORDER, headers);
    expect([other.status, other.body.code, other.body.root_password]).toEqual([422, 'payment_nonce_used', undefined]);
    expect((await account.rest('POST', '/v1/servers', ORDER, version2(signed))).body).toEqual(first.body);
  });

  it('leads to one top-up with one answer for eight concurrent requests', async () => {
    const account = await newAccount();
    const send = (headers: Record<string, string>) =>
      account.rest('POST', '/v1/billing/topups', { amount_usd: 500 }, { 'x-payment-mode': 'x402', ...headers });
    const signed = await sign(await send({}));
    const answers = await Promise.all(Array.from({ length: 8 }, () => send(version2(signed))));
    for (const { status, body } of answers) expect([status, body]).toEqual([200, answers[0]!.body]);
    expect(await account.balance()).toBe(520);
    const { body: listed } = await account.rest('GET', '/v1/billing/topups');
    expect(listed.data).toEqual([answers[0]!.body]);
    const withCoin = { amount_usd: 500, crypto: 'BTC' };
    const refused = await account.rest('POST', '/v1/billing/topups', withCoin, version2(signed));
    expect([refused.status, refused.body.code]).toEqual([422, 'validation_failed']);
  });

  it('with a key of too narrow scope is refused before the service decodes it', async () => {
    const account = await newAccount();
    const signed = await sign(await challenged(account));
    const { body: key } = await account.rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'read' });
    const headers = { ...version2(signed), authorization: `Bearer ${key.plaintext}` };
    for (const path of ['/v1/servers', '/v1/billing/topups']) {
      const { status, body } = await account.rest('POST', path, ORDER, headers);
      expect([status, body.code]).toEqual([403, 'insufficient_scope']);
    }
  });

  it('pays for one thing: another order, a top-up or another account cannot use it', async () => {
    const [account, other] = [await newAccount(), await newAccount()];
    const signed = await sign(await challenged(account));
    expect((await account.rest('POST', '/v1/servers', ORDER, version2(signed))).status).toBe(200);
    const again = [
      await account.rest('POST', '/v1/servers', { ...ORDER, hostname: 'other' }, version2(signed)),
      await account.rest('POST', '/v1/billing/topups', { amount_usd: 30 }, version2(signed)),
      await other.rest('POST', '/v1/servers', ORDER, version2(signed)),
    ];
    for (const { status, body } of again) expect([status, body.code]).toEqual([422, 'payment_nonce_used']);
    const forged = { ...signed, payload: { ...signed.payload, signature: `0x${'11'.repeat(65)}` } };
    const stolen = await account.rest('POST', '/v1/servers', ORDER, version2(forged));
    expect([stolen.status, stolen.body.code]).toEqual([422, 'payment_nonce_used']);
    expect([await orders(account), await orders(other)]).toEqual([1, 0]);
  });

  it.each<[string, (signed: Signed) => unknown]>([
    ['no base64', () => '{"x402Version":2}'],
    ['no JSON', () => 'bm9uc2Vuc2U='],
    ['nothing', () => ''],
    ['JSON that is no payment', () => Buffer.from('[1]').toString('base64')],
    ['another version', (signed) => ({ x402Version: 3, ...signed })],
    ['no authorization', ({ accepted }) => ({ x402Version: 2, accepted, payload: {} })],
    ['an invalid authorization', (s) => ({ x402Version: 2, ...s, payload: { ...s.payload, authorization: 7 } })],
    ['an invalid signature', (s) => ({ x402Version: 2, ...s, payload: { ...s.payload, signature: '0xzz' } })],
    [
      'a negative amount',
      (s) => ({
        x402Version: 2,
        ...s,
        payload: { ...s.payload, authorization: { ...s.payload.authorization, value: '-1' } },
      }),
    ],
  ])('cannot be decoded: %s', async (_, made) => {
    const account = await newAccount();
    const value = made(await sign(await challenged(account)));
    const header = typeof value === 'string' ? value : Buffer.from(JSON.stringify(value)).toString('base64');
    for (const name of ['payment-signature', 'x-payment']) {
      const { status, body } = await account.rest('POST', '/v1/servers', ORDER, { [name]: header });
      expect([status, body.code]).toEqual([400, 'invalid_payment']);
    }
    expect(await orders(account)).toBe(0);
  });

  it.each<[string, string, (accepted: Record<string, unknown>) => Record<string, unknown>]>([
    ['less', 'invalid_exact_evm_payload_authorization_value_mismatch', (a) => ({ ...a, amount: '5999999' })],
    ['more', 'invalid_exact_evm_payload_authorization_value_mismatch', (a) => ({ ...a, amount: '6000001' })],
    ['to somebody else', 'invalid_exact_evm_recipient_mismatch', (a) => ({ ...a, payTo: newPayer().address })],
    ['on another network', 'invalid_network', (a) => ({ ...a, network: 'eip155:8453' })],
    ['by another scheme', 'unsupported_scheme', (a) => ({ ...a, scheme: 'upto' })],
    ['in another asset', 'invalid_asset', (a) => ({ ...a, asset: newPayer().address })],
    ['for another token', 'invalid_exact_evm_signature', (a) => ({ ...a, extra: { name: 'USD Coin', version: '2' } })],
    [
      'an expired authorization',
      'invalid_exact_evm_payload_authorization_valid_before',
      (a) => ({ ...a, maxTimeoutSeconds: 1 }),
    ],
  ])('of %s is refused with the reason and a challenge, and nothing is taken', async (_, reason, change) => {
    const account = await newAccount();
    const challenge = await challenged(account);
    const payer = newPayer();
    const wrong = await sign(challenge, { payer, change });
    const { status, body, headers } = await account.rest('POST', '/v1/servers', ORDER, version2(wrong));
    expect([status, body.code, body.error, body.retryable]).toEqual([402, 'payment_rejected', reason, true]);
    expect(headers.get('payment-required')).toBeTruthy();
    expect([await orders(account), await account.balance()]).toEqual([0, 0]);
    const right = await account.rest('POST', '/v1/servers', ORDER, version2(await sign(challenge, { payer })));
    expect(right.status).toBe(200);
  });

  it('is refused with the signature of another key, or before its time', async () => {
    const account = await newAccount();
    const challenge = await challenged(account);
    const signed = await sign(challenge);
    const stolen = { ...signed.payload.authorization, from: newPayer().address };
    const later = { ...signed.payload.authorization, validAfter: String(Math.ceil(Date.now() / 1000) + 60) };
    for (const [authorization, reason] of [
      [stolen, 'invalid_exact_evm_signature'],
      [later, 'invalid_exact_evm_payload_authorization_valid_after'],
    ] as const) {
      const wrong = { ...signed, payload: { ...signed.payload, authorization } };
      const { status, body } = await account.rest('POST', '/v1/servers', ORDER, version2(wrong));
      expect([status, body.code, body.error]).toEqual([402, 'payment_rejected', reason]);
    }
    expect(await orders(account)).toBe(0);
  });

  it('is malformed if a prefix 0x is in upper case', async () => {
    const account = await newAccount();
    const signed = await sign(await account.rest('POST', '/v1/servers', ORDER));
    const { authorization } = signed.payload;
    const upper = (text: string) => text.replace('0x', '0X');
    for (const payload of [
      { ...signed.payload, signature: upper(signed.payload.signature) },
      ...['from', 'to', 'nonce'].map((name) => ({
        ...signed.payload,
        authorization: { ...authorization, [name]: upper(authorization[name]!) },
      })),
    ]) {
      const { status, body } = await account.rest('POST', '/v1/servers', ORDER, version2({ ...signed, payload }));
      expect([status, body.code]).toEqual([400, 'invalid_payment']);
    }
  });

  it('is refused if it is valid for more than ten minutes, with the rule and the value', async () => {
    const account = await newAccount();
    const challenge = await challenged(account);
    const { accepts } = JSON.parse(Buffer.from(challenge.headers.get('payment-required')!, 'base64').toString());
    expect(accepts[0].maxTimeoutSeconds).toBe(300);
    const late = await sign(challenge, { change: (a) => ({ ...a, maxTimeoutSeconds: 660 }) });
    const { status, body } = await account.rest('POST', '/v1/servers', ORDER, version2(late));
    const { validBefore } = late.payload.authorization;
    expect([status, body.error]).toEqual([402, 'invalid_exact_evm_payload_authorization_valid_before']);
    expect(body.detail).toBe(
      `validBefore is ${validBefore}. It must be between 6 and 600 seconds ahead. Nothing was taken.`,
    );
    const right = await sign(challenge, { change: (a) => ({ ...a, maxTimeoutSeconds: 590 }) });
    expect((await account.rest('POST', '/v1/servers', ORDER, version2(right))).status).toBe(200);
  });

  it('is not taken for an impossible order, and can then pay for a possible one', async () => {
    const account = await newAccount();
    const signed = await sign(await challenged(account));
    const refused = await account.rest('POST', '/v1/servers', { ...ORDER, region: 'xxx' }, version2(signed));
    expect([refused.status, refused.body.code]).toEqual([422, 'unknown_region']);
    const dry = await account.rest('POST', '/v1/servers', { ...ORDER, dry_run: true }, version2(signed));
    expect([dry.status, dry.body.sufficient]).toEqual([200, false]);
    expect(await db.query('select from payment where account_id = $1', [account.id])).toEqual([]);
    expect((await account.rest('POST', '/v1/servers', ORDER, version2(signed))).status).toBe(200);
  });

  it('pays even if the balance covers the price, which leaves the balance as it is', async () => {
    const account = await newAccount();
    const signed = await sign(await challenged(account));
    await account.fund(30);
    const { body } = await account.rest('POST', '/v1/servers', ORDER, version2(signed));
    expect([body.paid_by, await account.balance()]).toEqual(['x402', 30]);
    const { body: usage } = await account.rest('GET', '/v1/account/usage');
    const kinds = usage.data.map(({ kind, amount_usd: usd }: { kind: string; amount_usd: number }) => [kind, usd]);
    expect(kinds).toEqual([
      ['order', -6],
      ['topup', 6],
      ['topup', 30],
    ]);
  });

  it('with an Idempotency-Key leads to one order, and either of them repeats the answer', async () => {
    const account = await newAccount();
    const key = { 'idempotency-key': 'one' };
    const challenge = await account.rest('POST', '/v1/servers', ORDER, key);
    const signed = await sign(challenge);
    const send = (headers: Record<string, string>) => account.rest('POST', '/v1/servers', ORDER, headers);
    const answers = await Promise.all([1, 2, 3, 4].map(() => send({ ...key, ...version2(signed) })));
    for (const { status, body } of answers) expect([status, body]).toEqual([200, answers[0]!.body]);
    const replayed = await send(key);
    expect(replayed.body).toEqual(answers[0]!.body);
    // A repeat by the key alone gets the receipt, too.
    for (const name of ['payment-response', 'x-payment-response'])
      expect(replayed.headers.get(name)).toBe(answers[0]!.headers.get(name));
    expect(replayed.headers.get('payment-response')).toBeTruthy();
    expect((await send(version2(signed))).body).toEqual(answers[0]!.body);
    expect(await orders(account)).toBe(1);
  });
});
