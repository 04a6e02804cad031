import { describe, expect, it } from 'vitest';
import { refresh } from '../../../resolvers/accounts/auth/refresh.ts';
import { openSession } from '../../../resolvers/accounts/auth/session.ts';
import { SecurityLog } from '../../../resolvers/accounts/security-log.ts';
import { startFreehold, type TestAccount } from '../../setup/freehold.ts';
import { restClient } from '../../setup/spawn.ts';

const { anonymous, newAccount, publicUrl, db } = await startFreehold({ LIMIT_SESSIONS: '5' });
const login = async ({ email, password }: TestAccount) =>
  (await anonymous('POST', '/v1/auth/login', { email, password })).body.tokens;
const rotate = (refresh_token: string) => anonymous('POST', '/v1/auth/token/refresh', { refresh_token });
const works = async (token: string) => (await restClient(publicUrl, token)('GET', '/v1/account')).status === 200;
const events = (accountId: string, type: string) =>
  db.query<{ subject: string; data: Record<string, unknown> }>(
    'select subject, data from event where account_id = $1 and type = $2 order by id',
    [accountId, type],
  );

it('A session ends by the id in the list, even if a thief has just refreshed it', async () => {
  const account = await newAccount();
  const listed = await login(account);
  const stolen = (await rotate((await rotate(listed.refresh_token)).body.tokens.refresh_token)).body.tokens;
  const owner = restClient(publicUrl, (await login(account)).access_token);
  const end = () => owner('DELETE', `/v1/auth/sessions/${listed.token_id}`);
  const { status, body } = await end();
  expect([status, body]).toEqual([200, { token_id: listed.token_id, revoked: true }]);
  expect(await works(stolen.access_token)).toBe(false);
  expect((await rotate(stolen.refresh_token)).status).toBe(401);
  expect((await end()).status).toBe(404);
  expect(await events(account.id, 'session.revoked')).toEqual([
    { subject: stolen.token_id, data: { reason: 'revoked' } },
  ]);
});

describe('A refresh token', () => {
  it('gets a new pair, and the old access token stops working at once', async () => {
    const account = await newAccount();
    const old = await login(account);
    expect(await works(old.access_token)).toBe(true);
    const { status, body } = await rotate(old.refresh_token);
    expect(status).toBe(200);
    expect(Object.keys(body)).toEqual(['tokens']);
    expect(body.tokens).toMatchObject({
      token_type: 'Bearer',
      expires_in: 86_400,
      refresh_expires_in: 2_592_000,
      scope: 'full',
    });
    expect(body.tokens.token_id).not.toBe(old.token_id);
    expect(await works(body.tokens.access_token)).toBe(true);
    const dead = await restClient(publicUrl, old.access_token)('GET', '/v1/account');
    expect([dead.status, dead.body.code]).toEqual([401, 'revoked_credential']);
  });

  it('ends all sessions of its login on a second use, with one event, and keeps API keys', async () => {
    const account = await newAccount();
    const first = await login(account);
    const key = (await account.rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'read' })).body.plaintext;
    const second = (await rotate(first.refresh_token)).body.tokens;
    const third = (await rotate(second.refresh_token)).body.tokens;
    expect(await works(third.access_token)).toBe(true);
    for (let i = 0; i < 3; i++) {
      const { status, body } = await rotate(first.refresh_token);
      expect([status, body.code]).toEqual([401, 'refresh_token_reused']);
    }
    expect(await works(third.access_token)).toBe(false);
    expect((await rotate(third.refresh_token)).body.code).toBe('revoked_credential');
    expect([await works(key), await works(account.accessToken)]).toEqual([true, true]);
    expect(await events(account.id, 'session.reuse_detected')).toEqual([
      { subject: first.token_id, data: { sessionsRevoked: 1 } },
    ]);
  });

  it('works at most once when eight requests use it at once, and then its family ends', async () => {
    const account = await newAccount();
    for (let round = 0; round < 20; round++) {
      const { refresh_token } = await login(account);
      const answers = await Promise.all(Array.from({ length: 8 }, () => rotate(refresh_token)));
      const winners = answers.filter(({ status }) => status === 200);
      expect(winners).toHaveLength(1);
      const losers = answers.filter(({ status }) => status === 401);
      expect(new Set(losers.map(({ body }) => body.code))).toEqual(new Set(['refresh_token_reused']));
      expect(losers).toHaveLength(7);
      const { tokens } = winners[0]!.body;
      expect(await works(tokens.access_token)).toBe(false);
      expect((await rotate(tokens.refresh_token)).status).toBe(401);
    }
  });

  it('ends a newer session too, if an old token comes during its refresh', async () => {
    const account = await newAccount();
    for (let round = 0; round < 10; round++) {
      const stolen = (await login(account)).refresh_token;
      const mine = (await rotate(stolen)).body.tokens.refresh_token;
      const [renewed] = await Promise.all([rotate(mine), rotate(stolen)]);
      if (renewed.status === 200) expect(await works(renewed.body.tokens.access_token)).toBe(false);
    }
  });

  it('is valid for thirty days, and its family for ninety', async () => {
    const account = await newAccount();
    const set = (id: string, column: string, interval: string) =>
      db.query(`update session set ${column} = now() + $2::interval where id = $1`, [id, interval]);
    const old = await login(account);
    await set(old.token_id, 'refresh_expires_at', '-1 second');
    expect((await rotate(old.refresh_token)).body.code).toBe('expired_credential');
    const aged = await login(account);
    await set(aged.token_id, 'family_expires_at', '1 hour');
    const { tokens } = (await rotate(aged.refresh_token)).body;
    for (const seconds of [tokens.expires_in, tokens.refresh_expires_in]) {
      expect(seconds).toBeGreaterThan(3000);
      expect(seconds).toBeLessThanOrEqual(3600);
    }
  });

  it.each([
    [{ refresh_token: 'svc_rt_nonsense' }, 401, 'invalid_credential'],
    [{ refresh_token: `svc_rt_${'a'.repeat(38)}` }, 401, 'invalid_credential'],
    [{ refresh_token: '' }, 422, 'validation_failed'],
    [{ refresh_token: 7 }, 422, 'validation_failed'],
    [{}, 422, 'validation_failed'],
    [{ refresh_token: 'x', scope: 'full' }, 422, 'unknown_field'],
  ])('is not %j', async (body, status, code) => {
    const answer = await anonymous('POST', '/v1/auth/token/refresh', body);
    expect([answer.status, answer.body.code]).toEqual([status, code]);
  });

  it('is neither an access token nor a token from another source', async () => {
    const account = await newAccount();
    const tokens = await login(account);
    expect((await rotate(tokens.access_token)).body.code).toBe('invalid_credential');
    const security = new SecurityLog(db, async () => {});
    const context = { db, requestId: 'req', userAgent: null, address: null, security } as never;
    await expect(refresh(context, tokens.refresh_token, { id: 'cl_1' } as never)).rejects.toMatchObject({
      code: 'invalid_credential',
    });
    expect((await rotate(tokens.refresh_token)).status).toBe(200);
  });
});

describe('Sessions', () => {
  it('are listed in pages, newest first, with a mark on the current one', async () => {
    const account = await newAccount();
    const tokens = await login(account);
    const { body } = await restClient(publicUrl, tokens.access_token)('GET', '/v1/auth/sessions');
    expect(body.data.map((one: Record<string, unknown>) => [one.source, one.current, one.scope])).toEqual([
      ['login', true, 'full'],
      ['register', false, 'full'],
    ]);
    expect(body.data[0].token_id).toBe(tokens.token_id);
    expect(Object.keys(body.data[0])).toEqual([
      'token_id',
      'scope',
      'source',
      'user_agent',
      'current',
      'created_at',
      'last_used_at',
      'expires_at',
    ]);
    expect(JSON.stringify(body)).not.toContain(tokens.access_token);
    const page = await account.rest('GET', '/v1/auth/sessions?limit=1');
    expect(page.body).toMatchObject({ data: [{ token_id: tokens.token_id }], has_more: true });
    const next = await account.rest('GET', `/v1/auth/sessions?limit=1&cursor=${page.body.next_cursor}`);
    expect(next.body).toMatchObject({ data: [{ source: 'register', current: true }], has_more: false });
  });

  it('leave the list after a rotation, a revocation or their expiry', async () => {
    const account = await newAccount();
    const ids = async () =>
      (await account.rest('GET', '/v1/auth/sessions')).body.data.map((one: { token_id: string }) => one.token_id);
    const [rotated, revoked, over] = [await login(account), await login(account), await login(account)];
    const byItself = restClient(publicUrl, revoked.access_token);
    const { tokens } = (await rotate(rotated.refresh_token)).body;
    await byItself('DELETE', `/v1/auth/sessions/${revoked.token_id}`);
    await db.query(`update session set expires_at = now(), refresh_expires_at = now() where id = $1`, [over.token_id]);
    expect(await ids()).toEqual([tokens.token_id, expect.any(String)]);
  });

  it('end at once with their refresh token, even the current one', async () => {
    const account = await newAccount();
    const tokens = await login(account);
    expect(await works(tokens.access_token)).toBe(true);
    const later = restClient(publicUrl, (await login(account)).access_token);
    const ended = await later('DELETE', `/v1/auth/sessions/${tokens.token_id}`);
    expect([ended.status, ended.body]).toEqual([200, { token_id: tokens.token_id, revoked: true }]);
    expect(await works(tokens.access_token)).toBe(false);
    expect((await rotate(tokens.refresh_token)).body.code).toBe('revoked_credential');
    expect((await later('DELETE', `/v1/auth/sessions/${tokens.token_id}`)).status).toBe(404);
    expect(await events(account.id, 'session.revoked')).toEqual([
      { subject: tokens.token_id, data: { reason: 'revoked' } },
    ]);
    const mine = (await account.rest('GET', '/v1/auth/sessions')).body.data[1];
    expect((await account.rest('DELETE', `/v1/auth/sessions/${mine.token_id}`)).body.revoked).toBe(true);
    expect(await works(account.accessToken)).toBe(false);
  });

  it('cannot be read or ended by another account', async () => {
    const [mine, theirs] = [await newAccount(), await newAccount()];
    const { token_id } = await login(theirs);
    for (const id of [token_id, 'tok_x', '__proto__', "' or 1=1", '0', encodeURIComponent('💥')]) {
      const { status, body } = await mine.rest('DELETE', `/v1/auth/sessions/${id}`);
      expect([status, body.code]).toEqual([404, 'not_found']);
    }
    expect((await mine.rest('GET', '/v1/auth/sessions')).body.data).toHaveLength(1);
    expect((await theirs.rest('GET', '/v1/auth/sessions')).body.data).toHaveLength(2);
  });

  it('need the scope full', async () => {
    const { rest } = await newAccount();
    const { body } = await rest('POST', '/v1/auth/api-keys', { name: 'r', scope: 'servers billing' });
    const key = restClient(publicUrl, body.plaintext);
    expect((await key('GET', '/v1/auth/sessions')).status).toBe(403);
    expect((await key('DELETE', '/v1/auth/sessions/x')).status).toBe(403);
  });

  it('stay within the limit: a login ends the session that was unused for longest', async () => {
    const account = await newAccount();
    const tokens = await Promise.all(Array.from({ length: 7 }, () => login(account)));
    const open = await db.query('select id from session where account_id = $1 and revoked_at is null', [account.id]);
    expect(open).toHaveLength(5);
    expect(await works(account.accessToken)).toBe(false);
    const alive = await Promise.all(tokens.map(({ access_token }) => works(access_token)));
    expect(alive.filter(Boolean)).toHaveLength(5);
    expect((await events(account.id, 'session.revoked')).map(({ data }) => data.reason)).toEqual(
      Array(3).fill('session_limit'),
    );
  });

  it('end for an OAuth client only if they are its own; otherwise session_limit_reached', async () => {
    const account = await newAccount();
    const context = {
      db,
      requestId: 'req',
      userAgent: null,
      viewer: null,
      limits: { sessions: 2, unpaidSessionsPerHour: 1000 },
    } as never;
    const open = (source: 'login' | `oauth:${string}`) =>
      db.transaction((tx) => openSession(context, tx, account.id, source, { scope: 'read' }));
    const own = await open('oauth:cl_1');
    await expect(open('oauth:cl_2')).rejects.toMatchObject({ code: 'session_limit_reached' });
    const next = await open('oauth:cl_1');
    expect([await works(own.accessToken), await works(next.accessToken)]).toEqual([false, true]);
    await open('login');
    expect([await works(account.accessToken), await works(next.accessToken)]).toEqual([false, true]);
  });

  it('are at most 25 of an OAuth client: above, its own oldest ends, and the others stay', async () => {
    const account = await newAccount();
    const context = {
      db,
      requestId: 'req',
      userAgent: null,
      viewer: null,
      limits: { sessions: 100, unpaidSessionsPerHour: 1000 },
    } as never;
    const open = (source: `oauth:${string}`) =>
      db.transaction((tx) => openSession(context, tx, account.id, source, { scope: 'read' }));
    const other = await open('oauth:cl_2');
    const own = [];
    for (let i = 0; i < 26; i++) own.push(await open('oauth:cl_1'));
    const alive = await Promise.all([other, ...own].map(({ accessToken }) => works(accessToken)));
    expect(alive).toEqual([true, false, ...Array(25).fill(true)]);
    expect(await works(account.accessToken)).toBe(true);
  });
});

describe('A new session', () => {
  it('was not used before its creation, although its use has the precision of a minute', async () => {
    const { rest } = await newAccount();
    await rest('GET', '/v1/account');
    const { body } = await rest('GET', '/v1/auth/sessions');
    for (const { created_at, last_used_at } of body.data)
      if (last_used_at) expect(Date.parse(last_used_at)).toBeGreaterThanOrEqual(Date.parse(created_at));
  });

  it('is not refreshed with its access token, and the error says so', async () => {
    const { accessToken } = await newAccount();
    const { status, body } = await anonymous('POST', '/v1/auth/token/refresh', { refresh_token: accessToken });
    expect([status, body.code]).toEqual([401, 'invalid_credential']);
    expect(body.detail).toContain('access token');
  });
});
