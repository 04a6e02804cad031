/** The network address of a caller. All processes take it from trusted proxies, and from no other peer. */
import { request } from 'node:http';
import { beforeEach, describe, expect, it } from 'vitest';
import { newDatabaseUrl } from '../../setup/database.ts';
import { eventually, type Freehold, startFreehold } from '../../setup/freehold.ts';

const shared = { DATABASE_URL: await newDatabaseUrl(), SECRET_KEY: Buffer.alloc(32, 9).toString('base64') };
const behind = { ...shared, TRUSTED_PROXY_CIDRS: '127.0.0.1/32,10.0.0.0/8', ROLES: 'api' };
/** Two processes of one installation behind a proxy, and a third with a lower limit. */
const [first, second] = [await startFreehold(behind), await startFreehold(behind)];
const strict = await startFreehold({ ...behind, RATE_LIMIT_PUBLIC_PER_MINUTE: '20' });
/** A process that trusts no proxy. */
const bare = await startFreehold({ ...shared, ROLES: 'api', RATE_LIMIT_PUBLIC_PER_MINUTE: '20' });

/** Sends a request from an address. The proxy is at 127.0.0.1, and the other loopback addresses are strangers. */
function send(
  { publicUrl }: Freehold,
  [method, path, body]: [string, string, object?],
  { from = '127.0.0.1', ...headers }: Record<string, string>,
): Promise<{ status: number; code: string }> {
  return new Promise((done, fail) => {
    const options = {
      method,
      localAddress: from,
      agent: false,
      headers: { ...headers, 'content-type': 'application/json' },
    };
    const sent = request(publicUrl + path, options, (reply) => {
      let text = '';
      reply.on('data', (chunk) => (text += chunk));
      reply.on('end', () => done({ status: reply.statusCode!, code: JSON.parse(text).code }));
    });
    sent.on('error', fail).end(body && JSON.stringify(body));
  });
}
let guesses = 0;
const guess = (service: Freehold, headers: Record<string, string>, email = `guess-${++guesses}@example.org`) =>
  send(service, ['POST', '/v1/auth/login', { email, password: 'not the password' }], headers);
const count = (answers: { code: string }[], wanted: string) => answers.filter(({ code }) => code === wanted).length;
/** A forged header. The proxy has appended the real address to it. */
const forged = (i: number, real: string) => ({ 'x-forwarded-for': `6.6.${i}.6, 10.0.0.${i}, ${real}` });

/** Begins no test at the end of a minute, because a new window would allow more requests. */
beforeEach(() => eventually(async () => Date.now() % 60_000 < 45_000, 20), 30_000);

describe('Failed logins from behind a trusted proxy', () => {
  it('count by the address that the proxy adds, over all processes, despite forged addresses', async () => {
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, i) => guess(i % 2 ? first : second, forged(i, '198.51.100.7'))),
    );
    expect([count(answers, 'invalid_login'), count(answers, 'login_throttled')]).toEqual([10, 20]);
    expect((await guess(second, forged(99, '198.51.100.8'))).code).toBe('invalid_login');
  });

  it('count by the peer if the peer is not a trusted proxy', async () => {
    for (const [service, from] of [
      [first, '127.0.9.1'],
      [bare, '127.0.9.2'],
    ] as const) {
      const answers = await Promise.all(
        Array.from({ length: 15 }, (_, i) => guess(service, { from, ...forged(i, `198.51.101.${i}`) })),
      );
      expect([count(answers, 'invalid_login'), count(answers, 'login_throttled')]).toEqual([10, 5]);
    }
  });

  it('also count by email over all processes and all addresses', async () => {
    const { email, rest } = await first.newAccount();
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, i) => guess(i % 2 ? first : second, forged(i, `198.51.102.${i}`), email)),
    );
    expect([count(answers, 'invalid_login'), count(answers, 'login_throttled')]).toEqual([10, 20]);
    expect((await rest('GET', '/v1/account')).status).toBe(200);
  });
});

describe('Public calls', () => {
  it.each([
    ['through the proxy', strict, (i: number) => forged(i, '198.51.100.20')],
    ['from an IPv6 network through the proxy', strict, (i: number) => forged(i, `2001:db8:5:5::${i.toString(16)}`)],
    [
      'from a stranger that sends the header of a proxy',
      strict,
      (i: number) => ({ from: '127.0.9.3', ...forged(i, `198.51.103.${i}`) }),
    ],
    [
      'to a process that trusts no proxy',
      bare,
      (i: number) => ({ from: '127.0.9.4', ...forged(i, `198.51.104.${i}`) }),
    ],
  ])('%s have a limit for each address, despite forged addresses', async (_, service, headers) => {
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, i) => send(service, ['GET', '/v1/catalog/vps'], headers(i))),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(20);
    expect(count(answers, 'rate_limited')).toBe(20);
  });
});

describe('An ip_allowlist', () => {
  it('allows the last address that is not a trusted proxy, and no other address in the header', async () => {
    const { rest } = await first.newAccount();
    const limited = { name: 'k', scope: 'read', ip_allowlist: ['198.51.100.7'] };
    const { plaintext } = (await rest('POST', '/v1/auth/api-keys', limited)).body;
    const ask = async (forwarded: string | undefined, from = '127.0.0.1') => {
      const headers = {
        from,
        authorization: `Bearer ${plaintext}`,
        ...(forwarded !== undefined && { 'x-forwarded-for': forwarded }),
      };
      return (await send(first, ['GET', '/v1/account'], headers)).status;
    };
    expect(await ask('198.51.100.7')).toBe(200);
    expect(await ask('203.0.113.1, 198.51.100.7')).toBe(200);
    expect(await ask('198.51.100.7, 10.9.9.9')).toBe(200);
    // Some proxies add the port of the caller.
    expect(await ask('198.51.100.7:4444')).toBe(200);
    expect(await ask('198.51.100.7, 203.0.113.1')).toBe(403);
    expect(await ask('198.51.100.7', '127.0.9.5')).toBe(403);
    for (const nonsense of [
      undefined,
      '',
      ' ',
      ',',
      'nonsense',
      '198.51.100.7.',
      '198.51.100.7:',
      '198.51.100.7:80:80',
      '198.51.100.7/0',
      '::',
      'x'.repeat(8000),
    ])
      expect([nonsense?.slice(0, 20), await ask(nonsense)]).toEqual([nonsense?.slice(0, 20), 403]);
  });
});
