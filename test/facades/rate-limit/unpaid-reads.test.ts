/** Registrations are free. So the calls of all accounts of an address that never paid have a limit together. */
import { beforeEach, expect, it } from 'vitest';
import { RateLimits } from '../../../facades/rate-limit/rate-limit.ts';
import type { Viewer } from '../../../schema/index.ts';
import { eventually, startFreehold } from '../../setup/freehold.ts';

/** The limits of a credential and of an account. All unpaid accounts of an address have that of one account. */
const [PER_MINUTE, OF_ADDRESS] = [5, 20];
const { newAccount, publicUrl } = await startFreehold({
  RATE_LIMIT_KEY_PER_MINUTE: String(PER_MINUTE),
  RATE_LIMIT_ACCOUNT_PER_MINUTE: String(OF_ADDRESS),
  TRUSTED_PROXY_CIDRS: '127.0.0.0/8',
});
/** Begins no test at the end of a minute, because a new window would allow more calls. */
beforeEach(() => eventually(async () => Date.now() % 60_000 < 45_000, 100), 120_000);

async function reader(address: string) {
  const account = await newAccount();
  const from = { 'x-forwarded-for': address };
  const read = () => account.rest('GET', '/v1/account/balance', undefined, from);
  return { ...account, from, read };
}
/** Uses up the calls of an address by accounts that never paid. */
async function useUp(address: string) {
  let status = 200;
  for (let n = 0; status === 200 && n < OF_ADDRESS / PER_MINUTE; n++) {
    const { read } = await reader(address);
    for (let call = 0; status === 200 && call < PER_MINUTE; call++) ({ status } = await read());
  }
}

it('Accounts of an address that never paid make as many calls as one of them, over REST and MCP', async () => {
  const address = '198.51.100.1';
  const next = await reader(address);
  await useUp(address);
  const { status, body } = await next.read();
  expect([status, body.code]).toEqual([429, 'rate_limited']);
  expect(body.detail).toBe(
    'The limit "unpaid_calls_network" allows 20 requests in 60 seconds. It holds before the first payment of the account, and while the account is suspended.',
  );
  const headers = { ...next.from, authorization: `Bearer ${next.accessToken}`, 'content-type': 'application/json' };
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
  const mcp = await fetch(`${publicUrl}/mcp`, { method: 'POST', headers, body: JSON.stringify(message) });
  expect(await mcp.text()).toContain('unpaid_calls_network');
});

it('They limit no account that has paid, and none of another address', async () => {
  const address = '198.51.100.2';
  const payer = await reader(address);
  await payer.fund(1);
  await useUp(address);
  expect((await payer.read()).status).toBe(200);
  expect((await (await reader(address)).read()).status).toBe(429);
  expect((await (await reader('198.51.100.3')).read()).status).toBe(200);
});

it('Neighbours keep no account from paying, nor from ending its things by a login', async () => {
  const address = '198.51.100.4';
  const { rest, from, read } = await reader(address);
  const key = await rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'read' }, from);
  await useUp(address);
  expect((await read()).status).toBe(429);
  const paid = await rest('POST', '/v1/billing/topups', { amount_usd: 50, crypto: 'BTC' }, from);
  const ended = await rest('DELETE', `/v1/auth/api-keys/${key.body.key_id}`, undefined, from);
  expect([paid.status, ended.status]).toEqual([200, 200]);
});

it('Networks of an IPv6 site together make as many calls as 20 of them', async () => {
  const many = 1_000_000;
  const quotas = { keyPerMinute: many, keyPerHour: many, accountPerMinute: OF_ADDRESS, accountPerHour: many };
  const others = { publicPerMinute: many, pagesPerMinute: many, onionPerMinute: many, unpaidPerHour: many };
  const limits = new RateLimits({
    ...{ quotas: { ...quotas, ...others }, secret: Buffer.alloc(32), onError: () => {} },
    isPayer: async () => false,
  });
  const read = async (account: number, network: number) => {
    const viewer = { accountId: `acct_${account}`, credentialId: `key_${account}` } as Viewer;
    const { windows, deniedUntil } = await limits.take(viewer, `2001:db8:1:${network}::1`);
    return deniedUntil && windows.find(({ wait }) => wait)?.name;
  };
  for (let call = 0; call < 20 * OF_ADDRESS; call++) expect(await read(call, 1 + (call % 20))).toBeUndefined();
  expect(await read(1000, 21)).toBe('unpaid_calls_site');
});
