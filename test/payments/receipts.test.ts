/** Receipts of payments and months, and the usage as CSV. */
import { expect, it } from 'vitest';
import { eventually, startFreehold } from '../setup/freehold.ts';

const { publicUrl, newAccount, operator } = await startFreehold();
const account = await newAccount();
const other = await newAccount();
const get = (path: string, accept: string, { accessToken } = account) =>
  fetch(publicUrl + path, { headers: { accept, authorization: `Bearer ${accessToken}` } });
const { body: topUp } = await account.rest('POST', '/v1/billing/topups', { amount_usd: 100, crypto: 'BTC' });
const path = `/v1/billing/topups/${topUp.order_number}/receipt`;
const month = new Date().toISOString().slice(0, 7);

it('A confirmed top-up has a receipt with its payment and its bonus, for its own account only', async () => {
  await eventually(async () => (await account.balance()) === 102);
  const { body } = await account.rest('GET', path);
  expect(body).toMatchObject({ number: topUp.order_number, account_id: account.id, total_usd: 102 });
  expect(body.lines).toMatchObject([
    {
      description: 'Top-up in BTC',
      amount_usd: 100,
      coin: 'BTC',
      amount_crypto: topUp.amount_crypto,
      network: 'bitcoin',
    },
    { amount_usd: 2, coin: null, tx_id: null },
  ]);
  expect((await other.rest('GET', path)).status).toBe(404);
  const { body: open } = await other.rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'BTC' });
  await other.rest('POST', `/v1/billing/topups/${open.order_number}/cancel`);
  expect((await get(path, 'application/json', other)).status).toBe(404);
});

it('A month has a receipt, whose page has no scripts and escapes every text', async () => {
  await operator(
    `mutation { adjustBalance(accountId: "${account.id}", amountUsd: -1.5, key: "x", reason: "<script>alert(1)</script>") { balanceUsd } }`,
  );
  await operator(
    `mutation { adjustBalance(accountId: "${account.id}", amountUsd: 1, key: "y", reason: "=1+1, \\"quoted\\"") { balanceUsd } }`,
  );
  const { body } = await account.rest('GET', `/v1/billing/receipts/${month}`);
  expect(body).toMatchObject({ number: month, total_usd: 101.5 });
  expect(body.lines).toHaveLength(4);
  const page = await get(`/v1/billing/receipts/${month}`, 'text/html');
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
  expect(page.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-/);
  const text = await page.text();
  expect(text).not.toContain('<script');
  expect(text).toContain('&#60;script&#62;');
  expect(text).toContain('101.50');
  expect((await account.rest('GET', '/v1/billing/receipts/2026-13')).status).toBe(404);
});

it('The usage comes as CSV that runs no formula', async () => {
  const answer = await get('/v1/account/usage?limit=1', 'text/csv');
  expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present');
  const lines = (await answer.text()).split('\r\n');
  expect(lines[0]).toBe('from,to,kind,order_number,service_code,description,hours,amount_usd');
  expect(lines).toHaveLength(6);
  expect(lines[1]).toMatch(/,adjustment,,,"'=1\+1, ""quoted""",,1$/);
  expect(lines[2]).toMatch(/,adjustment,,,<script>alert\(1\)<\/script>,,-1\.5$/);
  expect(await (await get('/v1/account/usage', 'text/csv', await newAccount())).text()).toBe(`${lines[0]}\r\n`);
});

it('An account sees no order and no transaction of another one in its receipts and usage', async () => {
  const [{ body: own }, { body: server }] = [
    await account.rest('GET', '/v1/billing/topups'),
    await account.rest('POST', '/v1/servers', { service_code: 'vps-1' }),
  ];
  const names = [account.id, server.order_number, topUp.order_number, ...own.data[0].tx_ids];
  await other.topUp(30);
  const ask = async (of: typeof account, url: string, accept: string) => {
    const answer = await get(url, accept, of);
    expect(answer.status).toBe(200);
    return answer.text();
  };
  for (const [url, ...types] of [
    [`/v1/billing/receipts/${month}`, 'application/json', 'text/html'],
    ['/v1/account/usage', 'application/json', 'text/csv', 'application/x-ndjson'],
  ] as const)
    for (const accept of types) {
      expect(await ask(account, url, accept)).toContain(server.order_number);
      const text = await ask(other, url, accept);
      expect(text).toContain('TOP-');
      for (const name of names) expect(text).not.toContain(name);
    }
});

it('Only the operator sees payments, payouts and movements of coins', async () => {
  for (const list of ['payments', 'payouts']) {
    const { errors } = await account.graphql(`{ ${list} { data { id } } }`);
    expect(errors[0].extensions.code).toBe('insufficient_scope');
  }
});
