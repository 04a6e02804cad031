import { describe, expect, it } from 'vitest';
import { startFreehold } from '../../setup/freehold.ts';
import { restClient } from '../../setup/spawn.ts';

const freehold = await startFreehold({ LOGIN_FAILURES_MAX: '1000' });
const { anonymous, newAccount, publicUrl } = freehold;
const CREDENTIAL = /^svc_(live|at|rt)_[0-9A-Za-z]{38}$/;

describe('Registration', () => {
  it('takes an email and a password, and answers with tokens that work at once', async () => {
    const { status, body } = await anonymous('POST', '/v1/auth/register', {
      email: 'Ada@Example.org',
      password: 'a heron on the roof',
    });
    expect(status).toBe(200);
    expect(body.account).toMatchObject({
      kind: 'person',
      email: 'ada@example.org',
      totp_enabled: false,
      limits: { api_keys: 10, servers: 25 },
    });
    expect(body.tokens).toMatchObject({ token_type: 'Bearer', expires_in: 86_400, scope: 'full' });
    expect(body.tokens.access_token).toMatch(CREDENTIAL);
    expect(body.tokens.refresh_token).toMatch(CREDENTIAL);
    const { body: account } = await restClient(publicUrl, body.tokens.access_token)('GET', '/v1/account');
    expect(account).toEqual(body.account);
  });

  it('refuses a taken email in upper or lower case, even when two requests come at once', async () => {
    const twins = await Promise.all(
      ['TWIN@example.org', 'twin@example.org'].map((email) =>
        anonymous('POST', '/v1/auth/register', { email, password: 'a heron on the roof' }),
      ),
    );
    expect(twins.map(({ status }) => status).sort()).toEqual([200, 422]);
    expect(twins.find(({ status }) => status === 422)!.body.code).toBe('email_taken');
  });

  it.each(['password123', 'short', 'Qwerty123', 'weak@example.org', 'x'.repeat(129)])(
    'refuses the password %s',
    async (password) => {
      const { status, body } = await anonymous('POST', '/v1/auth/register', { email: 'weak@example.org', password });
      expect(status).toBe(422);
      expect(['weak_password', 'validation_failed']).toContain(body.code);
      expect(body.errors[0].field).toBe('password');
      expect(JSON.stringify(body)).not.toContain(password);
    },
  );
});

describe('Login', () => {
  it('exchanges email and password for new tokens', async () => {
    const account = await newAccount();
    const { status, body } = await anonymous('POST', '/v1/auth/login', {
      email: account.email.toUpperCase(),
      password: account.password,
    });
    expect(status).toBe(200);
    expect(body).toMatchObject({ totp_required: false, account: { id: account.id } });
    expect(body.tokens.access_token).not.toBe(account.accessToken);
  });

  it('gives the same answer to a wrong password and an unknown email', async () => {
    const { email } = await newAccount();
    const wrong = await anonymous('POST', '/v1/auth/login', { email, password: 'not the password' });
    const unknown = await anonymous('POST', '/v1/auth/login', {
      email: 'nobody@example.org',
      password: 'not the password',
    });
    const { request_id: _, ...said } = wrong.body;
    expect(wrong.status).toBe(401);
    expect(wrong.body.code).toBe('invalid_login');
    expect(unknown.body).toMatchObject(said);
  });

  it('gives the same answer to a password that no account can have', async () => {
    const { email } = await newAccount();
    for (const password of ['x', ' ', 'x'.repeat(128)]) {
      const { status, body } = await anonymous('POST', '/v1/auth/login', { email, password });
      expect([status, body.code]).toEqual([401, 'invalid_login']);
    }
  });

  it('takes as long for an unknown email as for a wrong password', async () => {
    const { email } = await newAccount();
    const timed = async (body: object) => {
      const began = performance.now();
      await anonymous('POST', '/v1/auth/login', body);
      return performance.now() - began;
    };
    const rounds = { known: [] as number[], unknown: [] as number[] };
    for (let i = 0; i < 15; i++) {
      rounds.known.push(await timed({ email, password: 'not the password' }));
      rounds.unknown.push(await timed({ email: `nobody-${i}@example.org`, password: 'not the password' }));
    }
    const median = (values: number[]) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
    // Without the hash for unknown accounts, the ratio exceeds a hundred.
    expect(median(rounds.known) / median(rounds.unknown)).toBeLessThan(3);
  });

  it('stores passwords as argon2id, and no credential as plain text', async () => {
    const { id, accessToken, password } = await newAccount();
    const [row] = await freehold.db.query<{ hash: string }>('select password_hash as hash from account where id = $1', [
      id,
    ]);
    expect(row!.hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    const tables = await freehold.db.query<{ rows: string }>(
      `select coalesce(string_agg(t::text, ''), '') as rows from (select account::text as t from account union all select session::text from session) all_rows`,
    );
    for (const secret of [accessToken, password, accessToken.slice(7)]) expect(tables[0]!.rows).not.toContain(secret);
  });
});

describe('API keys', () => {
  it('are shown once, and listed without the key', async () => {
    const { rest } = await newAccount();
    const { status, body } = await rest('POST', '/v1/auth/api-keys', { name: 'laptop', scope: 'servers billing' });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      name: 'laptop',
      scope: 'servers billing',
      status: 'active',
      revoked_at: null,
      ip_allowlist: [],
    });
    expect(body.plaintext).toMatch(/^svc_live_/);
    expect(body.prefix).toBe(body.plaintext.slice(0, 13));
    const { body: list } = await rest('GET', '/v1/auth/api-keys');
    const { plaintext: _, ...metadata } = body;
    expect(list).toEqual({ data: [metadata], next_cursor: null, has_more: false });
  });

  it('allow the calls of their scope, and no others', async () => {
    const { rest } = await newAccount();
    const keyOf = async (scope: string) =>
      restClient(publicUrl, (await rest('POST', '/v1/auth/api-keys', { name: scope, scope })).body.plaintext);
    const [read, servers] = [await keyOf('read'), await keyOf('servers')];
    expect((await read('GET', '/v1/account/balance')).status).toBe(200);
    const refused = await read('POST', '/v1/ssh-keys', { public_key: 'x' });
    expect(refused.status).toBe(403);
    expect(refused.body).toMatchObject({ code: 'insufficient_scope', required_scope: 'servers' });
    expect(refused.headers.get('www-authenticate')).toBe(
      'Bearer realm="svc", error="insufficient_scope", scope="servers"',
    );
    expect((await servers('GET', '/v1/servers')).status).toBe(200);
    expect((await servers('POST', '/v1/billing/topups', { amount_usd: 50, crypto: 'BTC' })).status).toBe(403);
    expect((await servers('POST', '/v1/auth/api-keys', { name: 'wider', scope: 'full' })).status).toBe(403);
  });

  it('stop working at once when a caller revokes them, even by themselves', async () => {
    const { rest } = await newAccount();
    const { body } = await rest('POST', '/v1/auth/api-keys', { name: 'full', scope: 'full' });
    const key = restClient(publicUrl, body.plaintext);
    expect((await key('GET', '/v1/account')).status).toBe(200);
    expect((await key('DELETE', `/v1/auth/api-keys/${body.key_id}`)).body).toMatchObject({
      key_id: body.key_id,
      status: 'revoked',
    });
    const after = await key('GET', '/v1/account');
    expect(after.status).toBe(401);
    expect(after.body.code).toBe('revoked_credential');
    expect(after.headers.get('www-authenticate')).toBe('Bearer realm="svc", error="invalid_token"');
  });

  it('are at most ten when thirty requests come at once, and a revoked key no longer counts', async () => {
    const { rest } = await newAccount();
    const made = await Promise.all(
      Array.from({ length: 30 }, (_, i) => rest('POST', '/v1/auth/api-keys', { name: `key ${i}`, scope: 'read' })),
    );
    expect(made.filter(({ status }) => status === 200)).toHaveLength(10);
    expect(made.filter(({ body }) => body.code === 'api_key_limit_reached')).toHaveLength(20);
    await rest('DELETE', `/v1/auth/api-keys/${made.find(({ status }) => status === 200)!.body.key_id}`);
    expect((await rest('POST', '/v1/auth/api-keys', { name: 'one more', scope: 'read' })).status).toBe(200);
  });

  it('cannot be read or revoked by another account', async () => {
    const [mine, theirs] = [await newAccount(), await newAccount()];
    const { body } = await theirs.rest('POST', '/v1/auth/api-keys', { name: 'theirs', scope: 'read' });
    const foreign = await mine.rest('DELETE', `/v1/auth/api-keys/${body.key_id}`);
    const id = `${body.key_id.slice(0, -1)}0`;
    const unknown = await mine.rest('DELETE', `/v1/auth/api-keys/${id}`);
    expect(foreign.status).toBe(404);
    const detail = unknown.body.detail.replace(id, body.key_id);
    expect({ ...foreign.body, request_id: '' }).toEqual({ ...unknown.body, request_id: '', detail });
    expect((await mine.rest('GET', '/v1/auth/api-keys')).body.data).toEqual([]);
  });
});

describe('A credential', () => {
  it.each([
    ['Bearer svc_at_garbage', 'invalid_credential'],
    ['Basic YTpi', 'invalid_credential'],
    [`Bearer svc_live_${'a'.repeat(38)}`, 'invalid_credential'],
    ['Bearer', 'invalid_credential'],
  ])('is refused as %s, even at public endpoints', async (authorization, code) => {
    for (const path of ['/v1/account', '/v1/catalog']) {
      const { status, body } = await anonymous('GET', path, undefined, { authorization });
      expect([status, body.code]).toEqual([401, code]);
    }
  });

  it('is required before the service checks the input', async () => {
    const { status, body, headers } = await anonymous('POST', '/v1/servers', { nonsense: true });
    expect([status, body.code]).toEqual([401, 'missing_credential']);
    expect(headers.get('www-authenticate')).toBe('Bearer realm="svc"');
  });
});
