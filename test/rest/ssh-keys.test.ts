import { describe, expect, it } from 'vitest';
import { startFreehold } from '../freehold.ts';

const { newAccount } = await startFreehold({
  LIMIT_SSH_KEYS: '3',
  LIMIT_PENDING_TOPUPS: '2',
  SIMULATED_PAYMENT_SECONDS: '3600',
});
const KEYS = [
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILZo0JzYJEHChHBt6zG/B6cGUZpbFXeUqaufc1ki+RX/ ada@laptop',
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAtf29R2oqEL0j49mOzngviMOahjgH8Ed42butMPobDe',
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOjbHPa/G/F5L/Ofke1pT5q6ouKLPzdkq38/tQzNiKhX',
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEWCpYpfL6Rvwm3Z2Dn9XEyxE/5hBza4k8f8s2bH1UoG',
];

describe('SSH keys', () => {
  it('are the same object when they are added again, also by twenty at once', async () => {
    const { rest } = await newAccount();
    const added = await Promise.all(
      Array.from({ length: 20 }, () => rest('POST', '/v1/ssh-keys', { public_key: KEYS[0] })),
    );
    expect(new Set(added.map(({ body }) => body.id)).size).toBe(1);
    expect(added[0]!.body).toMatchObject({
      name: 'ada@laptop',
      type: 'ssh-ed25519',
      bits: 256,
      public_key: KEYS[0]!.replace(' ada@laptop', ''),
    });
    expect((await rest('POST', '/v1/ssh-keys', { public_key: KEYS[0], name: 'another name' })).body).toEqual(
      added[0]!.body,
    );
  });

  it('are read, listed and deleted, by their owner only', async () => {
    const [mine, theirs] = [await newAccount(), await newAccount()];
    const { body: key } = await mine.rest('POST', '/v1/ssh-keys', { public_key: KEYS[1], name: 'one' });
    expect((await mine.rest('GET', `/v1/ssh-keys/${key.id}`)).body).toEqual(key);
    for (const method of ['GET', 'DELETE'])
      expect((await theirs.rest(method, `/v1/ssh-keys/${key.id}`)).body.code).toBe('not_found');
    expect((await mine.rest('DELETE', `/v1/ssh-keys/${key.id}`)).body).toEqual({ id: key.id, deleted: true });
    expect((await mine.rest('GET', '/v1/ssh-keys')).body).toEqual({ data: [], next_cursor: null, has_more: false });
    expect((await mine.rest('DELETE', `/v1/ssh-keys/${key.id}`)).status).toBe(404);
  });

  it('are as many as the account may have', async () => {
    const { rest } = await newAccount();
    for (const public_key of KEYS.slice(0, 3))
      expect((await rest('POST', '/v1/ssh-keys', { public_key })).status).toBe(200);
    expect((await rest('POST', '/v1/ssh-keys', { public_key: KEYS[3] })).body.code).toBe('ssh_key_limit_reached');
    expect((await rest('POST', '/v1/ssh-keys', { public_key: KEYS[2] })).status).toBe(200);
  });
});

describe('Top-ups', () => {
  it('say what to pay, where, at which rate and until when', async () => {
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

  it('are open for as many as the account may have, also when ten come at once', async () => {
    const { rest } = await newAccount();
    const opened = await Promise.all(
      Array.from({ length: 10 }, () => rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'XMR' })),
    );
    expect(opened.filter(({ status }) => status === 200)).toHaveLength(2);
    expect(opened.filter(({ body }) => body.code === 'topup_limit_reached')).toHaveLength(8);
    expect(new Set(opened.filter(({ status }) => status === 200).map(({ body }) => body.wallet_address)).size).toBe(2);
  });

  it('of another account are not found', async () => {
    const [mine, theirs] = [await newAccount(), await newAccount()];
    const { body } = await theirs.rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'BTC' });
    expect((await mine.rest('GET', `/v1/billing/topups/${body.order_number}`)).body.code).toBe('not_found');
  });
});
