import { decodePaymentRequiredHeader, decodePaymentResponseHeader } from '@x402/core/http';
import { PaymentRequiredV1Schema, PaymentRequiredV2Schema } from '@x402/core/schemas';
import { describe, expect, it } from 'vitest';
import { startFreehold, type TestAccount } from '../../setup/freehold.ts';
import { newPayer, withoutVersion2, x402Fetch } from './clients.ts';

const { publicUrl, newAccount } = await startFreehold();

const ORDER = { service_code: 'vps-1', hostname: 'web' };
const X402_MODE = { 'x-payment-mode': 'x402' };

const post = (account: TestAccount, body: object, headers: Record<string, string> = {}): RequestInit => ({
  method: 'POST',
  headers: { authorization: `Bearer ${account.accessToken}`, 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
});

describe('A published x402 client', () => {
  it.each([
    ['2', fetch],
    ['1', withoutVersion2],
  ])('orders a server by version %s', async (_, send) => {
    const account = await newAccount();
    const answer = await x402Fetch(newPayer(), send)(`${publicUrl}/v1/servers`, post(account, ORDER));
    const body = await answer.json();
    expect([answer.status, body]).toEqual([
      200,
      expect.objectContaining({ status: 'pending', paid_by: 'x402', charged_usd: 6, hostname: 'web' }),
    ]);
    for (const name of ['payment-response', 'x-payment-response'])
      expect(decodePaymentResponseHeader(answer.headers.get(name)!)).toMatchObject({
        success: true,
        network: 'eip155:84532',
        transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      });
    const { body: running } = await account.rest('GET', `/v1/servers/${body.order_number}?wait_for=running`);
    expect(running.status).toBe('running');
    expect(await account.balance()).toBe(0);
  });

  it('tops up', async () => {
    const account = await newAccount();
    const answer = await x402Fetch()(`${publicUrl}/v1/billing/topups`, post(account, { amount_usd: 100 }, X402_MODE));
    const body = await answer.json();
    expect([answer.status, body]).toEqual([
      200,
      expect.objectContaining({ status: 'confirmed', mode: 'x402', credited_usd: 102, crypto: 'USDC-BASE' }),
    ]);
    expect((await account.rest('GET', `/v1/billing/topups/${body.order_number}`)).body).toEqual(body);
    const { body: coins } = await account.rest('GET', '/v1/billing/coins');
    expect(coins.data.filter(({ x402 }: { x402: boolean }) => x402)).toMatchObject([{ code: 'USDC-BASE' }]);
    expect(await account.balance()).toBe(102);
  });
});

describe('A challenge', () => {
  it.each([
    ['an order that the balance does not cover', '/v1/servers', ORDER, {}, 'insufficient_balance', 6],
    ['an order that asks for it', '/v1/servers', ORDER, X402_MODE, 'payment_required', 6],
    ['a top-up that asks for it', '/v1/billing/topups', { amount_usd: 30.5 }, X402_MODE, 'payment_required', 30.5],
  ])('answers %s, in version 1 and version 2 at once', async (_, path, order, headers, code, usd) => {
    const { rest } = await newAccount();
    const { status, headers: answered, body } = await rest('POST', path, order, headers);
    expect([status, body.code, body.retryable, body.required_usd]).toEqual([402, code, true, usd]);
    const [one, two] = [
      PaymentRequiredV1Schema.parse(body),
      PaymentRequiredV2Schema.parse(decodePaymentRequiredHeader(answered.get('payment-required')!)),
    ];
    expect(one.error).toBe(code);
    expect(one.accepts).toMatchObject([
      { network: 'base-sepolia', maxAmountRequired: String(usd * 1e6), resource: publicUrl + path },
    ]);
    expect(two).toMatchObject({
      resource: { url: publicUrl + path },
      accepts: [{ network: 'eip155:84532', amount: String(usd * 1e6), payTo: one.accepts[0]!.payTo }],
    });
  });

  it('answers an explicit request even if the balance covers the price', async () => {
    const { rest, fund, balance } = await newAccount();
    await fund(30);
    const { status, body } = await rest('POST', '/v1/servers', ORDER, X402_MODE);
    expect([status, body.code, await balance()]).toEqual([402, 'payment_required', 30]);
  });

  it.each(['card', 'X402 ', ''])('is refused for other values of X-Payment-Mode, such as "%s"', async (mode) => {
    const { rest } = await newAccount();
    for (const [path, body] of [
      ['/v1/servers', ORDER],
      ['/v1/billing/topups', { amount_usd: 30 }],
    ] as const) {
      const answer = await rest('POST', path, body, { 'x-payment-mode': mode });
      expect([answer.status, answer.body.code]).toEqual([400, 'invalid_header']);
    }
  });

  it.each([
    ['a dry run', { ...ORDER, dry_run: true }, 200, undefined],
    ['an unknown tier', { service_code: 'vps-99' }, 422, 'unknown_service_code'],
    ['a price that is too high', { ...ORDER, max_price_usd: 1 }, 422, 'price_exceeds_max'],
    ['a wrong input', { ...ORDER, hostname: '-' }, 422, 'validation_failed'],
  ])('does not replace an answer that needs no payment: %s', async (_, order, status, code) => {
    const { rest } = await newAccount();
    const answer = await rest('POST', '/v1/servers', order, X402_MODE);
    expect([answer.status, answer.body.code]).toEqual([status, code]);
  });

  it('cannot bypass the spending limit of an API key', async () => {
    const { rest } = await newAccount();
    const { body: key } = await rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'servers', spend_limit_usd: 5 });
    const headers = { ...X402_MODE, authorization: `Bearer ${key.plaintext}` };
    const answer = await rest('POST', '/v1/servers', ORDER, headers);
    expect([answer.status, answer.body.code]).toEqual([403, 'spend_limit_exceeded']);
  });

  it('for a top-up excludes a coin, which is required otherwise', async () => {
    const { rest } = await newAccount();
    const both = await rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'BTC' }, X402_MODE);
    const neither = await rest('POST', '/v1/billing/topups', { amount_usd: 30 });
    for (const { status, body } of [both, neither])
      expect([status, body.code, body.errors[0].field]).toEqual([422, 'validation_failed', 'crypto']);
  });
});
