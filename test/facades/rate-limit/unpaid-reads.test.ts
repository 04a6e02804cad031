/** Registrations are free. So the calls of all accounts of an address that never paid have a limit together. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { callers } from '../../../entities/caller.ts';
import { RateLimits } from '../../../facades/rate-limit/rate-limit.ts';
import { atTurnOf, type Viewer } from '../../../schema/index.ts';
import { eventually, startFreehold } from '../../setup/freehold.ts';

/** The limit of an account, and of all such accounts of an address. The first calls of each account count apart. */
const [MAX, FIRST] = [120, 30];
const { newAccount, publicUrl, graphqlUrl } = await startFreehold({
  RATE_LIMIT_ACCOUNT_PER_MINUTE: String(MAX),
  TRUSTED_PROXY_CIDRS: '127.0.0.0/8',
});
/** Begins no test at the end of a minute, because a new window would allow more calls. */
beforeEach(() => eventually(async () => Date.now() % 60_000 < 40_000, 100), 120_000);

const jsonOf = (credential: string) => ({
  authorization: `Bearer ${credential}`,
  'content-type': 'application/json',
});
let addresses = 0;
const newAddress = () => `198.51.100.${++addresses}`;
async function reader(address: string) {
  const account = await newAccount();
  const from = { 'x-forwarded-for': address };
  const read = () => account.rest('GET', '/v1/account/balance', undefined, from);
  const readOften = async (times: number) => {
    const answers = await Promise.all(Array.from({ length: times }, read));
    return answers.filter(({ status }) => status === 200).length;
  };
  return { ...account, from, read, readOften };
}
/** Uses up the later calls of an address by two accounts. */
async function useUp(address: string) {
  for (let n = 0; n < 2; n++) await (await reader(address)).readOften(MAX);
}

describe('Accounts of an address that never paid', () => {
  it('make as many calls as one of them, beside the first calls of each', async () => {
    const address = newAddress();
    const [ana, ben, cy] = [await reader(address), await reader(address), await reader(address)];
    expect(await ana.readOften(MAX)).toBe(MAX);
    expect(await ben.readOften(MAX)).toBe(2 * FIRST);
    expect(await cy.readOften(MAX)).toBe(FIRST);
    const { status, body } = await cy.read();
    expect([status, body.code]).toEqual([429, 'rate_limited']);
    expect(body.detail).toBe(
      'The limit "unpaid_calls_network" allows 120 requests in 60 seconds. It holds before the first payment of the account, and while the account is suspended.',
    );
    const headers = { ...cy.from, ...jsonOf(cy.accessToken) };
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
    const mcp = await fetch(`${publicUrl}/mcp`, { method: 'POST', headers, body: JSON.stringify(message) });
    expect(await mcp.text()).toContain('unpaid_calls_network');
  });

  it('are refused a large body over MCP before it comes, by a key', async () => {
    const address = newAddress();
    const { from, rest, readOften } = await reader(address);
    const { body: key } = await rest('POST', '/v1/auth/api-keys', { name: 'x', scope: 'read' });
    await useUp(address);
    await readOften(FIRST);
    const headers = { ...from, ...jsonOf(key.plaintext), 'content-length': '200000' };
    const asked = request(`${publicUrl}/mcp`, { method: 'POST', headers });
    onTestFinished(() => void asked.on('error', () => {}).destroy());
    asked.flushHeaders();
    const [{ statusCode }] = (await once(asked, 'response')) as [IncomingMessage];
    expect(statusCode).toBe(429);
  });

  it('get a late refusal of a batch after one second, and not after one for each message', async () => {
    const address = newAddress();
    const { from, accessToken, readOften } = await reader(address);
    await useUp(address);
    await readOften(FIRST);
    const params = { name: 'list_catalog', arguments: {} };
    const batch = Array.from({ length: 10 }, (_, id) => ({ jsonrpc: '2.0', id, method: 'tools/call', params }));
    const headers = { ...from, ...jsonOf(accessToken) };
    const send = () => fetch(`${publicUrl}/mcp`, { method: 'POST', headers, body: JSON.stringify(batch) });
    for (let i = 0; i < 11; i++) expect((await send()).status).toBe(429);
    const begun = performance.now();
    await send();
    expect(Math.round((performance.now() - begun) / 1_000)).toBeLessThan(5);
  });

  it('limit no account that has paid a dollar, and none of another address', async () => {
    const address = newAddress();
    const [payer, dust] = [await reader(address), await reader(address)];
    await payer.fund(1);
    await dust.fund(0.999999);
    await useUp(address);
    expect(await payer.readOften(FIRST + 1)).toBe(FIRST + 1);
    expect(await dust.readOften(FIRST + 1)).toBe(FIRST);
    expect(await (await reader(newAddress())).readOften(FIRST + 1)).toBe(FIRST + 1);
  });

  it('keep no account from paying, nor from ending its things by a login', async () => {
    const address = newAddress();
    const { rest, from, read, readOften } = await reader(address);
    const key = await rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'read' }, from);
    await useUp(address);
    await readOften(FIRST);
    expect((await read()).status).toBe(429);
    const paid = await rest('POST', '/v1/billing/topups', { amount_usd: 50, crypto: 'BTC' }, from);
    const ended = await rest('DELETE', `/v1/auth/api-keys/${key.body.key_id}`, undefined, from);
    expect([paid.status, ended.status]).toEqual([200, 200]);
  });

  it('share no limit at the internal listener, where a tool of the operator calls for all of them', async () => {
    const ask = async (token: string) => {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const body = JSON.stringify({ query: '{ servers(limit: 1) { data { orderNumber } } }' });
      return (await (await fetch(graphqlUrl, { method: 'POST', headers, body })).json()).errors;
    };
    const accounts = await Promise.all(Array.from({ length: 3 }, newAccount));
    for (const { accessToken } of accounts)
      for (let call = 0; call < 100; call++) expect(await ask(accessToken)).toBeUndefined();
  }, 60_000);
});

describe('The limits of addresses', () => {
  const many = 1_000_000;
  const quotas = { keyPerMinute: many, keyPerHour: many, accountPerMinute: MAX, accountPerHour: many };
  const others = { publicPerMinute: many, pagesPerMinute: many, onionPerMinute: many, unpaidPerHour: many };
  const limitsOf = (isPayer: () => Promise<boolean>) =>
    new RateLimits({ quotas: { ...quotas, ...others }, secret: Buffer.alloc(32), onError: () => {}, isPayer });
  function counter() {
    const limits = limitsOf(async () => false);
    return async (account: string, address: string, call = {}) => {
      const viewer = { accountId: account, credentialId: `key of ${account}`, isLogin: true } as Viewer;
      const { windows, deniedUntil } = await limits.take(viewer, address, call);
      return deniedUntil && windows.find(({ wait }) => wait)?.name;
    };
  }

  it('let the first calls of many accounts use up those of an address, and of a site', async () => {
    const take = counter();
    for (let n = 0; n < MAX; n++) expect(await take(`acct_${n}`, '192.0.2.1')).toBeUndefined();
    expect(await take('acct_next', '192.0.2.1')).toBe('unpaid_first_network');
    for (let n = 0; n < 20 * MAX; n++) expect(await take(`acct_${n}`, `2001:db8:1:${1 + (n % 20)}::1`)).toBeUndefined();
    expect(await take('acct_next', '2001:db8:1:21::1')).toBe('unpaid_first_site');
  });

  it('let urgent calls of logins use up those of an address, and payments those of payments', async () => {
    const take = counter();
    const [urgent, payment] = [{ urgent: true }, { change: 'payment' }];
    for (let n = 0; n < 2 * MAX; n++) expect(await take(`acct_${n}`, '192.0.2.1', urgent)).toBeUndefined();
    expect(await take('acct_next', '192.0.2.1', urgent)).toBe('unpaid_urgent_network');
    for (let n = 0; n < MAX; n++) expect(await take(`acct_${n}`, '192.0.2.1', payment)).toBeUndefined();
    expect(await take('acct_next', '192.0.2.1', payment)).toBe('unpaid_payment_network');
  });

  it('let accounts of a site that never paid take turns together, and payers by themselves', async () => {
    const groupOf = async (accountId: string, address: string, paid: boolean) => {
      const viewer = { accountId, credentialId: accountId } as Viewer;
      const asked: unknown[] = [];
      const isPayer = async () => asked.push(callers.getStore()?.group) > 0 && paid;
      await limitsOf(isPayer).take(viewer, address);
      return [...asked, atTurnOf({ viewer, address }, () => callers.getStore()?.group)];
    };
    const unpaid = '192.0.2.1';
    expect(await groupOf('acct_1', '192.0.2.1', false)).toEqual([unpaid, unpaid]);
    expect(await groupOf('acct_2', '192.0.2.1', false)).toEqual([unpaid, unpaid]);
    expect(await groupOf('acct_3', '192.0.2.1', true)).toEqual([unpaid, 'acct_3']);
  });
});
