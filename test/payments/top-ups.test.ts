import { describe, expect, it } from 'vitest';
import { startFreehold } from '../setup/freehold.ts';

const { anonymous, db, newAccount } = await startFreehold({
  LIMIT_PENDING_TOPUPS: '2',
  SIMULATED_PAYMENT_SECONDS: '3600',
});

describe('Coins and bonus tiers', () => {
  it('are public lists', async () => {
    const { body: coins } = await anonymous('GET', '/v1/billing/coins');
    expect(coins).toMatchObject({ next_cursor: null, has_more: false });
    expect(coins.data[0]).toMatchObject({
      code: 'BTC',
      network: 'bitcoin',
      decimals: 8,
      min_usd: 30,
      max_usd: 10_000,
      available: true,
      x402: false,
    });
    const { body: tiers } = await anonymous('GET', '/v1/billing/bonus-tiers');
    expect(tiers.data[0]).toEqual({ min_usd: 100, bonus_percent: 2 });
  });
});

describe('Top-ups', () => {
  it('state the amount, the address, the exchange rate and the end of the quote', async () => {
    const { rest } = await newAccount();
    const { body } = await rest('POST', '/v1/billing/topups', { amount_usd: 100.5, crypto: 'btc' });
    expect(body).toMatchObject({
      status: 'pending',
      mode: 'crypto',
      amount_usd: 100.5,
      bonus_usd: 2.01,
      crypto: 'BTC',
      network: 'bitcoin',
      amount_crypto: '0.001675',
      rate_usd: 60_000,
    });
    expect(body).toMatchObject({
      received_crypto: '0',
      confirmations: 0,
      confirmations_required: 2,
      tx_ids: [],
      payment_exception: null,
      credited_usd: 0,
      confirmed_at: null,
    });
    expect(body.order_number).toMatch(/^TOP-[0-9A-HJKMNP-TV-Z]{10}$/);
    expect(body.payment_uri).toContain(body.wallet_address);
    expect(new Date(body.expires_at).getTime() - new Date(body.created_at).getTime()).toBe(30 * 60_000);
    expect((await rest('GET', `/v1/billing/topups/${body.order_number}`)).body).toEqual(body);
    expect((await rest('GET', '/v1/billing/topups?status=pending')).body.data).toEqual([body]);
    expect((await rest('GET', '/v1/billing/topups?status=confirmed')).body.data).toEqual([]);
  });

  it.each([
    ['image/svg+xml', 'image/svg+xml', /^<svg .*<\/svg>$/s],
    ['text/plain', 'text/plain; charset=utf-8', /^[ ▀▄█\n]+$/],
    ['image/avif,image/webp,image/svg+xml,image/*,*/*;q=0.8', 'image/svg+xml', /^<svg /],
    ['text/plain, application/json;q=0.5', 'text/plain; charset=utf-8', /█/],
  ])('are a QR code if the client prefers %s', async (accept, type, drawing) => {
    const { rest } = await newAccount();
    const { body } = await rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'BTC' });
    const code = await rest('GET', `/v1/billing/topups/${body.order_number}`, undefined, { accept });
    expect([code.status, code.headers.get('content-type')]).toEqual([200, type]);
    expect(code.body).toMatch(drawing);
  });

  it.each(['*/*', 'application/json, text/plain, */*', 'text/html', 'image/png', 'application/*', ';;', ''])(
    'are JSON if the client accepts %j',
    async (accept) => {
      const { rest } = await newAccount();
      const { body } = await rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'BTC' });
      expect((await rest('GET', `/v1/billing/topups/${body.order_number}`, undefined, { accept })).body).toEqual(body);
    },
  );

  it('without a QR code get a JSON error, as do unknown ones', async () => {
    const { rest } = await newAccount();
    const { body } = await rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'BTC' });
    await db.query('update top_up set payment_uri = null where order_number = $1', [body.order_number]);
    for (const number of [body.order_number, 'TOP-0000000000']) {
      const answer = await rest('GET', `/v1/billing/topups/${number}`, undefined, { accept: 'image/svg+xml' });
      expect([answer.status, answer.body.code]).toEqual([404, 'not_found']);
      expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    }
  });

  it('are limited for each account, also for ten concurrent requests', async () => {
    const { rest } = await newAccount();
    const opened = await Promise.all(
      Array.from({ length: 10 }, () => rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'XMR' })),
    );
    expect(opened.filter(({ status }) => status === 200)).toHaveLength(2);
    expect(opened.filter(({ body }) => body.code === 'topup_limit_reached')).toHaveLength(8);
    expect(new Set(opened.filter(({ status }) => status === 200).map(({ body }) => body.wallet_address)).size).toBe(2);
  });

  it('are cancelled once before a payment, and make room for another one', async () => {
    const { rest } = await newAccount();
    const open = () => rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'BTC' });
    const [{ body: first }] = [await open(), await open()];
    expect((await open()).body.code).toBe('topup_limit_reached');
    const path = `/v1/billing/topups/${first.order_number}`;
    const { status, body } = await rest('POST', `${path}/cancel`);
    expect([status, body]).toEqual([200, { ...first, status: 'cancelled' }]);
    expect((await rest('GET', path)).body).toEqual(body);
    expect((await open()).status).toBe(200);
    const again = await rest('POST', `${path}/cancel`);
    expect([again.status, again.body.code]).toEqual([422, 'topup_not_cancellable']);
    const withBody = await rest('POST', `${path}/cancel`, { reason: 'none' });
    expect([withBody.status, withBody.body.code]).toEqual([422, 'unknown_field']);
  });

  it.each(['CONFIRMING', 'CONFIRMED', 'EXPIRED'])('cannot be cancelled when they are %s', async (state) => {
    const { rest } = await newAccount();
    const { body } = await rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'BTC' });
    await db.query('update top_up set status = $2 where order_number = $1', [body.order_number, state]);
    const refused = await rest('POST', `/v1/billing/topups/${body.order_number}/cancel`);
    expect([refused.status, refused.body.code]).toEqual([422, 'topup_not_cancellable']);
  });

  it.each(['TOP-0000000000', 'SRV-0000000000', 'nonsense', '%00'])(
    'with an unknown number, such as %s, are not found',
    async (id) => {
      const { rest } = await newAccount();
      expect((await rest('POST', `/v1/billing/topups/${id}/cancel`)).body.code).toBe('not_found');
    },
  );

  it('of another account are not found', async () => {
    const [mine, theirs] = [await newAccount(), await newAccount()];
    const { body } = await theirs.rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'BTC' });
    expect((await mine.rest('GET', `/v1/billing/topups/${body.order_number}`)).body.code).toBe('not_found');
    expect((await mine.rest('POST', `/v1/billing/topups/${body.order_number}/cancel`)).body.code).toBe('not_found');
    expect((await theirs.rest('GET', `/v1/billing/topups/${body.order_number}`)).body.status).toBe('pending');
  });
});
