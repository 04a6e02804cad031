import { parseList } from 'structured-headers';
import { beforeEach, describe, expect, it } from 'vitest';
import { newDatabaseUrl } from '../../setup/database.ts';
import { atEnd } from '../../setup/end.ts';
import { eventually, type Freehold, startFreehold } from '../../setup/freehold.ts';
import { startFaultProxy } from '../../setup/programs/fault-proxy.ts';
import { hasRedis, startRedis } from '../../setup/programs/redis.ts';
import { type RestClient, restClient } from '../../setup/spawn.ts';

const QUOTAS = {
  ...{ RATE_LIMIT_KEY_PER_MINUTE: '12', RATE_LIMIT_KEY_PER_HOUR: '40', RATE_LIMIT_PUBLIC_PER_MINUTE: '30' },
  ...{ RATE_LIMIT_ACCOUNT_PER_MINUTE: '30', RATE_LIMIT_ACCOUNT_PER_HOUR: '200' },
};
const url = await newDatabaseUrl();
/** Makes the accounts, without a limit of registrations. */
const generous = await startFreehold({ DATABASE_URL: url });
/** Trusts X-Forwarded-For, so that tests can call from many addresses. */
const limited = await startFreehold({ DATABASE_URL: url, ...QUOTAS, TRUSTED_PROXY_CIDRS: '127.0.0.0/8' });

/** Begins no test at the end of a minute, because a new window would allow more requests. */
beforeEach(() => eventually(async () => Date.now() % 60_000 < 45_000, 20), 30_000);

let addresses = 0;
const from = (address = `198.51.100.${++addresses}`) => ({ 'x-forwarded-for': address });
const newKey = async (scope = 'read') => {
  const { rest } = await generous.newPayer();
  return (await rest('POST', '/v1/auth/api-keys', { name: 'k', scope })).body.plaintext as string;
};
const statuses = async (n: number, call: () => Promise<{ status: number }>) =>
  Promise.all(Array.from({ length: n }, async () => (await call()).status));
const allowed = (all: number[]) => all.filter((status) => status !== 429).length;
/** Parses a header to an object such as `{minute: {r: 3, t: 20}}`. */
const parsed = (header: string | null) =>
  Object.fromEntries(parseList(header!).map(([name, parameters]) => [name, Object.fromEntries(parameters)]));

describe('A path with a broken escape', () => {
  it('counts as any call of a stranger', async () => {
    const address = from();
    const call = () => fetch(`${limited.publicUrl}/v1/%zz`, { headers: address });
    const { status, headers } = await call();
    expect([status, headers.get('x-ratelimit-remaining')]).toEqual([404, '29']);
    expect(allowed(await statuses(40, call))).toBe(29);
  });
});

describe('A credential', () => {
  it('may call up to the limit of its minute, and then learns when it may call again', async () => {
    const rest = restClient(limited.publicUrl, await newKey());
    expect(allowed(await statuses(20, () => rest('GET', '/v1/account')))).toBe(12);
    const { status, headers, body } = await rest('GET', '/v1/account');
    expect([status, body.code, body.retryable]).toEqual([429, 'rate_limited', true]);
    expect(body.detail).toContain('"minute"');
    expect(headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    expect(body.retry_after).toBe(Number(headers.get('retry-after')));
    expect(parsed(headers.get('ratelimit')).minute).toMatchObject({ r: 0, t: expect.any(Number) });
    expect(headers.get('x-ratelimit-remaining')).toBe('0');
  });

  it('waits for each refusal after a hundred, but another caller does not', async () => {
    const rest = restClient(limited.publicUrl, await newKey());
    const other = restClient(limited.publicUrl, await newKey());
    const msOf = async (client: RestClient) => {
      const startedAt = performance.now();
      const { status } = await client('GET', '/v1/account');
      return { status, ms: performance.now() - startedAt };
    };
    await statuses(12 + 100, () => rest('GET', '/v1/account'));
    const [late, prompt] = await Promise.all([msOf(rest), msOf(other)]);
    expect([late.status, prompt.status]).toEqual([429, 200]);
    expect(late.ms).toBeGreaterThanOrEqual(990);
    expect(prompt.ms).toBeLessThan(late.ms);
  });

  it('gets the state of both windows in every response, also in errors', async () => {
    const rest = restClient(limited.publicUrl, await newKey());
    const calls = [
      ['GET', '/v1/account', 200],
      ['GET', '/v1/catalog/vps', 200],
      ['GET', '/v1/ssh-keys/nothing', 404],
      ['POST', '/v1/ssh-keys', 403],
      ['GET', '/v1/servers?limit=0', 400],
    ] as const;
    for (const [i, [method, path, status]] of calls.entries()) {
      const answer = await rest(method, path);
      expect([path, answer.status]).toEqual([path, status]);
      expect(parsed(answer.headers.get('ratelimit-policy'))).toEqual({
        minute: { q: 12, w: 60 },
        hour: { q: 40, w: 3600 },
        account: { q: 30, w: 60 },
        account_hour: { q: 200, w: 3600 },
      });
      const { minute, hour } = parsed(answer.headers.get('ratelimit')) as Record<string, { r: number; t: number }>;
      expect([minute!.r, hour!.r]).toEqual([11 - i, 39 - i]);
      for (const [{ t }, seconds] of [
        [minute!, 60],
        [hour!, 3600],
      ] as const) {
        expect(t).toBeGreaterThanOrEqual(1);
        expect(t).toBeLessThanOrEqual(seconds);
      }
      expect(answer.headers.get('x-ratelimit-limit')).toBe('12');
      expect(answer.headers.get('x-ratelimit-remaining')).toBe(String(11 - i));
      const reset = Number(answer.headers.get('x-ratelimit-reset')) - Date.now() / 1000;
      expect(reset).toBeGreaterThan(-5);
      expect(reset).toBeLessThanOrEqual(61);
    }
  });

  it('has a limit of its own, which does not affect other credentials or its address', async () => {
    const [mine, theirs] = [await newKey(), await newKey()].map((key) => restClient(limited.publicUrl, key));
    await statuses(20, () => mine!('GET', '/v1/account', undefined, from('198.51.100.200')));
    expect((await theirs!('GET', '/v1/account', undefined, from('198.51.100.200'))).status).toBe(200);
    const stranger = await limited.anonymous('GET', '/v1/catalog', undefined, from('198.51.100.200'));
    expect(parsed(stranger.headers.get('ratelimit'))).toMatchObject({ public: { r: 29 } });
  });

  it('counts on public paths, too, and may call from an address above its limit', async () => {
    const address = from();
    const rest = restClient(limited.publicUrl, await newKey());
    await statuses(40, () => limited.anonymous('GET', '/v1/catalog/vps', undefined, address));
    expect((await limited.anonymous('GET', '/v1/catalog/vps', undefined, address)).status).toBe(429);
    const { status, headers } = await rest('GET', '/v1/catalog/vps', undefined, address);
    expect([status, parsed(headers.get('ratelimit')).minute]).toEqual([200, { r: 11, t: expect.any(Number) }]);
  });

  it('counts before the check of its scope: 429 comes before 403, and a bad credential is 401', async () => {
    const rest = restClient(limited.publicUrl, await newKey('read'));
    expect(allowed(await statuses(20, () => rest('POST', '/v1/ssh-keys', {})))).toBe(12);
    expect((await restClient(limited.publicUrl, 'nonsense')('GET', '/v1/account', undefined, from())).status).toBe(401);
  });
});

describe('An account', () => {
  it('has a ceiling for all its credentials together, which the refusal names', async () => {
    const { rest } = await generous.newPayer();
    const keys: RestClient[] = [];
    for (let i = 0; i < 4; i++) {
      const { body } = await rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'read' });
      keys.push(restClient(limited.publicUrl, body.plaintext));
    }
    const all: number[] = [];
    for (const key of keys) all.push(...(await statuses(11, () => key('GET', '/v1/account'))));
    // The processes count together, so the creation of the four keys counts, too.
    expect(allowed(all)).toBe(30 - 4);
    const { status, headers, body } = await keys[3]!('GET', '/v1/account');
    expect([status, body.code]).toEqual([429, 'rate_limited']);
    expect(body.detail).toContain('"account" allows 30 requests in 60 seconds');
    expect(parsed(headers.get('ratelimit')).account).toMatchObject({ r: 0, t: expect.any(Number) });
    expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    const other = restClient(limited.publicUrl, await newKey());
    expect((await other('GET', '/v1/account')).status).toBe(200);
  });

  it('gets no fresh minute by refreshing its tokens', async () => {
    const { email, password } = await generous.newPayer();
    const login = await generous.anonymous('POST', '/v1/auth/login', { email, password });
    let { access_token, refresh_token } = login.body.tokens;
    const read = () => restClient(limited.publicUrl, access_token)('GET', '/v1/account');
    expect(allowed(await statuses(15, read))).toBe(12);
    for (let i = 0; i < 5; i++) {
      const { body } = await generous.anonymous('POST', '/v1/auth/token/refresh', { refresh_token });
      ({ access_token, refresh_token } = body.tokens);
      expect((await read()).status).toBe(429);
    }
  });
});

describe('A stranger', () => {
  it('may call thirty times a minute, and gets the limit in every response', async () => {
    const address = from();
    const call = () => limited.anonymous('GET', '/v1/catalog', undefined, address);
    const { headers } = await call();
    expect(parsed(headers.get('ratelimit-policy'))).toEqual({ public: { q: 30, w: 60 } });
    expect(parsed(headers.get('ratelimit')).public).toMatchObject({ r: 29 });
    expect(allowed(await statuses(40, call))).toBe(29);
    expect((await limited.anonymous('GET', '/v1/openapi.json', undefined, address)).status).toBe(429);
  });

  it('with an IPv6 address counts by its /64 network', async () => {
    let host = 0;
    const call = () =>
      limited.anonymous('GET', '/v1/catalog', undefined, from(`2001:db8:7:7::${(++host).toString(16)}`));
    expect(allowed(await statuses(40, call))).toBe(30);
    const neighbour = await limited.anonymous('GET', '/v1/catalog', undefined, from('2001:db8:7:8::1'));
    expect(neighbour.status).toBe(200);
  });

  it('counts with refused and with missing credentials', async () => {
    const address = from();
    const guess = () => restClient(limited.publicUrl, 'svc_live_guess')('GET', '/v1/account', undefined, address);
    const all = await statuses(25, guess);
    expect(new Set(all)).toEqual(new Set([401]));
    expect(allowed(await statuses(20, () => limited.anonymous('GET', '/v1/account', undefined, address)))).toBe(5);
    expect((await guess()).status).toBe(429);
  });

  it.each<[what: string, path: string, status: number, method?: string]>([
    ['an unknown path', '/v1/nowhere', 404],
    ['a method that a path lacks', '/v1/catalog', 404, 'PUT'],
    ['the metadata of OAuth', '/.well-known/oauth-authorization-server', 200],
    ['the metadata of a resource', '/.well-known/oauth-protected-resource/mcp', 200],
    ['the authorization endpoint', '/v1/oauth/authorize', 404],
  ])('counts with every request: %s', async (_, path, status, method = 'GET') => {
    const headers = from();
    const call = () => fetch(limited.publicUrl + path, { method, headers });
    const first = await call();
    expect([first.status, parsed(first.headers.get('ratelimit')).public]).toMatchObject([status, { r: 29 }]);
    expect(allowed(await statuses(40, call))).toBe(29);
    expect((await limited.anonymous('GET', '/v1/catalog', undefined, headers)).status).toBe(429);
  });

  it('counts changes that need a credential together with reads, and others apart', async () => {
    const address = from();
    const post = (path: string) => limited.anonymous('POST', path, {}, address);
    for (const path of ['/v1/servers', '/v1/ssh-keys', '/v1/webhooks'])
      expect(new Set(await statuses(10, () => post(path)))).toEqual(new Set([401]));
    expect((await post('/v1/auth/api-keys')).status).toBe(429);
    expect((await limited.anonymous('GET', '/v1/catalog', undefined, address)).status).toBe(429);
    expect((await post('/v1/auth/login')).status).toBe(422);
  });

  it('gets 404 on unknown paths also with a refused credential, and a customer counts by the credential', async () => {
    const call = (credential: string) =>
      fetch(`${limited.publicUrl}/v1/nowhere`, { headers: { ...from(), authorization: `Bearer ${credential}` } });
    const [refused, known] = [await call('nonsense'), await call(await newKey())];
    expect([refused.status, Object.keys(parsed(refused.headers.get('ratelimit')))]).toEqual([404, ['public']]);
    expect([known.status, Object.keys(parsed(known.headers.get('ratelimit')))]).toEqual([
      404,
      ['minute', 'hour', 'account', 'account_hour'],
    ]);
  });

  it('leaves no address in any table', async () => {
    const address = '203.0.113.77';
    await limited.anonymous('GET', '/v1/catalog', undefined, from(address));
    const rows = await limited.db.query<{ row: string }>(`select rate::text as row from rate where key like 'ip:%'`);
    expect(rows.length).toBeGreaterThan(0);
    expect(JSON.stringify(rows)).not.toMatch(/\d+\.\d+\.\d+\.\d+|::/);
  });

  it('cannot name another address when no proxy is trusted', async () => {
    const plain = await startFreehold({ DATABASE_URL: url, ...QUOTAS, RATE_LIMIT_STORE: 'memory', ROLES: 'api' });
    const call = () => plain.anonymous('GET', '/v1/catalog', undefined, from());
    expect(allowed(await statuses(40, call))).toBe(30);
  });
});

describe('Several processes', () => {
  it('count together', async () => {
    const second = await startFreehold({ DATABASE_URL: url, ROLES: 'api', ...QUOTAS });
    const key = await newKey();
    const clients = [limited, second].map(({ publicUrl }: Freehold) => restClient(publicUrl, key));
    let n = 0;
    expect(allowed(await statuses(40, () => clients[n++ % 2]!('GET', '/v1/account')))).toBe(12);
  });
});

describe.runIf(hasRedis)('Several processes with Redis', () => {
  it('count together, and each alone while Redis is down', async () => {
    const redis = await startRedis(atEnd);
    const environment = { DATABASE_URL: url, REDIS_URL: redis.url, ROLES: 'api', ...QUOTAS };
    const both = [await startFreehold(environment), await startFreehold(environment)];
    const shared = async () => {
      const key = await newKey();
      const [first, second] = both.map(({ publicUrl }) => restClient(publicUrl, key));
      await first!('GET', '/v1/account');
      return parsed((await second!('GET', '/v1/account')).headers.get('ratelimit')).minute.r === 10;
    };
    await eventually(shared);
    const key = await newKey();
    const clients = both.map(({ publicUrl }) => restClient(publicUrl, key));
    let n = 0;
    expect(allowed(await statuses(40, () => clients[n++ % 2]!('GET', '/v1/account')))).toBe(12);
    await redis.kill();
    const alone = restClient(both[0]!.publicUrl, await newKey());
    expect(allowed(await statuses(40, () => alone('GET', '/v1/account')))).toBe(12);
    redis.start();
    await eventually(shared);
  });
});

describe('One process', () => {
  it('needs no statement of the database to check a cached credential', async () => {
    const proxy = await startFaultProxy(url);
    const alone = await startFreehold({ DATABASE_URL: proxy.url, RATE_LIMIT_STORE: 'memory', ROLES: 'api' });
    atEnd(() => proxy.close());
    const rest = restClient(alone.publicUrl, await newKey());
    // The check of the credential comes first, and the refusal reads nothing.
    const refused = () => rest('GET', '/v1/servers?limit=0');
    expect((await refused()).status).toBe(400);
    expect((await restClient(alone.publicUrl)('GET', '/v1/servers?limit=0')).status).toBe(401);
    // The first caller of a connection gives it a timeout.
    expect((await rest('GET', '/v1/account')).status).toBe(200);
    const before = proxy.statements;
    for (let i = 0; i < 20; i++) expect((await refused()).status).toBe(400);
    expect(proxy.statements - before).toBe(0);
    expect((await rest('GET', '/v1/account')).status).toBe(200);
    expect(proxy.statements - before).toBe(1);
  });
});
