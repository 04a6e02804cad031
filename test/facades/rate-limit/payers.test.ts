/** Registrations are free, and each change leaves rows that stay. So accounts that never paid change few things in an hour. */
import { Redis } from 'ioredis';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { MemoryRateLimits } from '../../../facades/rate-limit/memory.ts';
import { RateLimits } from '../../../facades/rate-limit/rate-limit.ts';
import { RedisRateLimits } from '../../../facades/rate-limit/redis.ts';
import { eventually, startFreehold } from '../../setup/freehold.ts';
import { hasRedis, startRedis } from '../../setup/programs/redis.ts';
import { restClient } from '../../setup/spawn.ts';
import { callTool } from '../../setup/tool.ts';

const PER_HOUR = 6;
const limited = await startFreehold({
  RATE_LIMIT_UNPAID_PER_HOUR: String(PER_HOUR),
  TRUSTED_PROXY_CIDRS: '127.0.0.0/8',
});
const { publicUrl } = limited;
/** Begins no test at the end of an hour, because a new window would allow more changes. */
beforeEach(() => eventually(async () => Date.now() % 3_600_000 < 3_540_000, 100), 120_000);

let addresses = 0;
const newAddress = () => `198.51.100.${++addresses}`;
async function newcomer(address = newAddress()) {
  const account = await limited.newAccount();
  const from = { 'x-forwarded-for': address };
  const addKey = () => account.rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'full' }, from);
  /** A change that the service refuses, because the name of the key is missing. */
  const fail = async () => (await account.rest('POST', '/v1/auth/api-keys', {}, from)).status;
  /** Waits until the service counts the account as one that has paid. */
  const counted = () => eventually(async () => !(await addKey()).headers.get('ratelimit-policy')?.includes('unpaid'));
  return { ...account, from, addKey, fail, counted };
}

/** An account with a fresh login, which it refreshes without a credential. */
async function refresher() {
  const account = await newcomer();
  const { email, password } = account;
  const { tokens } = (await limited.anonymous('POST', '/v1/auth/login', { email, password })).body;
  const refresh = (refresh_token: string, address = account.from['x-forwarded-for']) =>
    limited.anonymous('POST', '/v1/auth/token/refresh', { refresh_token }, { 'x-forwarded-for': address });
  return { ...account, tokens, refresh };
}

describe('An account that never paid', () => {
  it('makes some changes an hour, refused ones included, and learns how to make more', async () => {
    const { rest, addKey, fail, from } = await newcomer();
    for (let i = 0; i < PER_HOUR - 2; i++) expect((await addKey()).status).toBe(200);
    for (let i = 0; i < 2; i++) expect(await fail()).toBe(422);
    const { status, headers, body } = await addKey();
    expect([status, body.code, body.retryable]).toEqual([429, 'rate_limited', true]);
    expect(body.detail).toBe(
      'The limit "unpaid" allows 6 requests in 3600 seconds. It holds before the first payment of the account, and while the account is suspended.',
    );
    expect(headers.get('ratelimit-policy')).toContain('"unpaid";q=6;w=3600, "unpaid_network";q=24;w=3600');
    expect(body.retry_after).toBeGreaterThan(60);
    expect((await rest('GET', '/v1/auth/api-keys', undefined, from)).status).toBe(200);
  });

  it('still ends its things by a login, but not by an API key', async () => {
    const { rest, addKey, from, fail } = await newcomer();
    const key = (await addKey()).body;
    for (let i = 0; i < PER_HOUR - 1; i++) await fail();
    const path = `/v1/auth/api-keys/${key.key_id}`;
    const byKey = await restClient(publicUrl, key.plaintext)('DELETE', path, undefined, from);
    expect([byKey.status, (await addKey()).status]).toEqual([429, 429]);
    const end = () => rest('DELETE', path, undefined, from);
    for (let i = 0; i < PER_HOUR; i++) expect((await end()).status).toBe(200);
    expect((await end()).body.detail).toContain('"unpaid"');
  });

  it('still pays, and has no such limit afterwards', async () => {
    const { topUp, addKey, fail } = await newcomer();
    for (let i = 0; i < PER_HOUR; i++) await fail();
    expect((await addKey()).status).toBe(429);
    await topUp(30);
    await eventually(async () => (await addKey()).status === 200);
    expect((await addKey()).headers.get('ratelimit-policy')).not.toContain('unpaid');
  });

  it('still pays when others of its address have used up their payments', async () => {
    const address = newAddress();
    const begin = async ({ rest, from }: Awaited<ReturnType<typeof newcomer>>) =>
      (await rest('POST', '/v1/billing/topups', {}, from)).status;
    const neighbours = await Promise.all(Array.from({ length: 5 }, () => newcomer(address)));
    for (const one of neighbours) for (let i = 0; i < PER_HOUR; i++) expect(await begin(one)).toBe(422);
    expect(await begin(neighbours[0]!)).toBe(429);
    expect(await begin(await newcomer(address))).toBe(422);
  });

  it('has the same limit over MCP and GraphQL', async () => {
    const { accessToken, graphql, addKey } = await newcomer('127.0.0.1');
    const tool = () => callTool(publicUrl, accessToken, 'create_api_key', { name: 'k', scope: 'read' });
    const field = () => graphql('mutation { createApiKey(input: { name: "k", scope: "read" }) { plaintext } }');
    for (let i = 0; i < PER_HOUR / 2; i++) {
      expect((await tool()).isError).toBe(false);
      expect((await field()).errors).toBeUndefined();
    }
    expect((await field()).errors[0].extensions.code).toBe('rate_limited');
    expect(await tool()).toMatchObject({ isError: true, content: { code: 'rate_limited' } });
    expect((await addKey()).status).toBe(429);
    expect((await graphql('{ account { id } }')).errors).toBeUndefined();
  });

  it('shares a limit with the others of its address, and with those of its IPv6 /48', async () => {
    const address = newAddress();
    const all = await Promise.all(Array.from({ length: 6 }, () => newcomer(address)));
    const statuses = [];
    for (const { fail } of all) for (let i = 0; i < PER_HOUR; i++) statuses.push(await fail());
    expect(statuses.filter((status) => status !== 429)).toHaveLength(4 * PER_HOUR);
    expect((await (await newcomer()).addKey()).status).toBe(200);
    const site = await (await newcomer('2001:db8:1:2::3')).addKey();
    expect(site.headers.get('ratelimit-policy')).toContain('"unpaid_site";q=480;w=3600');
  });

  it('opens some sessions an hour without a credential, and more after it has paid', async () => {
    const { email, password, topUp } = await newcomer();
    const login = () => limited.anonymous('POST', '/v1/auth/login', { email, password });
    for (let i = 1; i < PER_HOUR; i++) expect((await login()).status).toBe(200);
    const { status, body } = await login();
    expect([status, body.code]).toEqual([429, 'rate_limited']);
    expect(body.detail).toBe(
      'An account that never paid or is suspended opens 6 sessions in an hour. Use one of them, pay, or wait.',
    );
    await topUp(30);
    expect((await login()).status).toBe(200);
  });

  it('refreshes its tokens some times an hour, without a credential, and more after it has paid', async () => {
    const { tokens, refresh } = await refresher();
    let token = tokens.refresh_token;
    for (let i = 0; i < PER_HOUR; i++) token = (await refresh(token)).body.tokens.refresh_token;
    const { status, body } = await refresh(token);
    expect([status, body.code]).toEqual([429, 'rate_limited']);
    expect((await refresh(tokens.refresh_token)).body.code).toBe('refresh_token_reused');
    const [paid, from] = [await refresher(), newAddress()];
    await paid.topUp(30);
    token = paid.tokens.refresh_token;
    await paid.counted();
    for (let i = 0; i <= PER_HOUR; i++) token = (await paid.refresh(token, from)).body.tokens.refresh_token;
  });

  it('shares the limit of refreshes with the others of its address', async () => {
    const address = newAddress();
    const codes = [];
    for (let account = 0; account < 5; account++) {
      const { tokens, refresh } = await refresher();
      let token = tokens.refresh_token;
      for (let i = 0; i < PER_HOUR; i++) {
        const { status, body } = await refresh(token, address);
        codes.push(status);
        token = body.tokens?.refresh_token ?? token;
      }
    }
    expect(codes.filter((status) => status === 200)).toHaveLength(4 * PER_HOUR);
  });

  it('gets few entries about its refused credentials from one address, and others get theirs', async () => {
    const address = newAddress();
    const refused = { 'x-forwarded-for': address };
    const ids: string[] = [];
    for (let account = 0; account < 5; account++) {
      const { id, email, password, rest } = await limited.newAccount();
      ids.push(id);
      const tokens: string[] = [];
      for (let i = 1; i < PER_HOUR; i++)
        tokens.push((await limited.anonymous('POST', '/v1/auth/login', { email, password })).body.tokens.access_token);
      const change = { current_password: password, new_password: `${password} 2` };
      expect((await rest('POST', '/v1/auth/password', change)).body.sessions_revoked).toBe(PER_HOUR - 1);
      for (const token of tokens) {
        const headers = { ...refused, authorization: `Bearer ${token}` };
        expect((await limited.anonymous('GET', '/v1/account', undefined, headers)).status).toBe(401);
      }
    }
    const count = async () => {
      const sql = `select count(*)::int as entries from audit_entry where action = 'session.refused' and account_id = any($1)`;
      return (await limited.db.query<{ entries: number }>(sql, [ids]))[0]!.entries;
    };
    await eventually(async () => (await count()) === 4 * PER_HOUR);
    const { rest, id, topUp, counted } = await newcomer();
    await topUp(30);
    await counted();
    const key = (await rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'full' })).body;
    await rest('DELETE', `/v1/auth/api-keys/${key.key_id}`);
    const foreign = { ...refused, authorization: `Bearer ${key.plaintext}` };
    await limited.anonymous('GET', '/v1/account', undefined, foreign);
    const sql = `select count(*)::int as entries from audit_entry where action = 'api_key.refused' and account_id = $1`;
    await eventually(async () => (await limited.db.query<{ entries: number }>(sql, [id]))[0]!.entries === 1);
    expect(await count()).toBe(4 * PER_HOUR);
  });
});

describe('A suspended account that has paid', () => {
  const suspended = async () => {
    const account = await newcomer();
    await account.topUp(30);
    await account.counted();
    await limited.operator(`mutation { suspendAccount(id: "${account.id}", reason: "A flood") { id } }`);
    return account;
  };

  it('changes as little in an hour as one that never paid, until it is resumed', async () => {
    const { id, addKey, fail } = await suspended();
    await expect.poll(fail, { timeout: 60_000 }).toBe(429);
    await limited.operator(`mutation { resumeAccount(id: "${id}") { id } }`);
    await eventually(async () => (await addKey()).status === 200);
  });

  it('opens as few sessions in an hour', async () => {
    const { email, password } = await suspended();
    const login = () => limited.anonymous('POST', '/v1/auth/login', { email, password });
    for (let i = 1; i < PER_HOUR; i++) expect((await login()).status).toBe(200);
    expect((await login()).body.detail).toContain('suspended');
  });
});

describe('The count of an hour', () => {
  const quota = { name: 'net:one', perMinute: 1_000_000, perHour: 2 };
  it('outlasts minutes without calls in the memory', async () => {
    let now = 3_600_000_000;
    const store = new MemoryRateLimits(() => now);
    const allowed = async () => (await store.take([quota]))[0]!.allowed;
    expect([await allowed(), await allowed(), await allowed()]).toEqual([true, true, false]);
    now += 10 * 60_000;
    expect(await allowed()).toBe(false);
    now += 2 * 3_600_000;
    expect(await allowed()).toBe(true);
  });

  it.runIf(hasRedis)('outlasts them in Redis', async () => {
    const { url } = await startRedis(onTestFinished);
    const store = new RedisRateLimits(url, 2_000);
    onTestFinished(() => store.close());
    await store.ready();
    await store.take([quota]);
    const redis = new Redis(url);
    onTestFinished(() => redis.disconnect());
    expect(await redis.ttl('freehold:rate:net:one')).toBeGreaterThan(3_600);
  });
});

it('A full limit makes no count wait, because the alarms of all accounts count one after the other', async () => {
  const account = { keyPerMinute: 1, keyPerHour: 1, accountPerMinute: 1, accountPerHour: 1 };
  const quotas = { ...account, publicPerMinute: 3, pagesPerMinute: 3, onionPerMinute: 3, unpaidPerHour: 1 };
  const limits = new RateLimits({ quotas, secret: Buffer.alloc(32), isPayer: async () => false, onError: () => {} });
  const startedAt = performance.now();
  let late = 0;
  for (let i = 0; i < 150; i++) if ((await limits.takeChange('acct_1', '192.0.2.1', 'refusal')).isLate) late++;
  expect(late).toBe(49);
  expect(performance.now() - startedAt).toBeLessThan(900);
});
