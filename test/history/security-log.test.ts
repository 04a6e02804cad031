/** Attacks on an account stand in its audit log and reach its webhooks. A flood makes one entry a minute. */
import { Secret, TOTP } from 'otpauth';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { mintCredential } from '../../entities/secrets.ts';
import { SecurityLog } from '../../resolvers/accounts/security-log.ts';
import { oauthRequests } from '../accounts/oauth/requests.ts';
import { asSuperuser } from '../setup/database.ts';
import { eventually, startFreehold, type TestAccount } from '../setup/freehold.ts';
import { startReceiver } from '../setup/receiver.ts';

const { anonymous, db, newAccount } = await startFreehold({
  WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
  LOGIN_FAILURES_MAX: '5',
});
const receiver = await startReceiver();
afterAll(() => receiver.close());

// biome-ignore lint/suspicious/noExplicitAny: each test checks the type of the members that it reads
type Entry = any;
const entriesOf = async (account: TestAccount, action: string): Promise<Entry[]> =>
  (await account.rest('GET', `/v1/account/audit-log?action=${action}`)).body.data;
const entryOf = (account: TestAccount, action: string): Promise<Entry> =>
  eventually(async () => (await entriesOf(account, action))[0]);
const oauth = oauthRequests(anonymous);
const { requestToken, tokenOf } = oauth;
const newClient = ({ rest }: TestAccount, more: object = {}) => oauth.newClient(more, rest);
const login = (email: string, password: string) => anonymous('POST', '/v1/auth/login', { email, password });
const call = (credential: string) =>
  anonymous('GET', '/v1/account', undefined, { authorization: `Bearer ${credential}` });
const newKey = async (account: TestAccount, more: object = {}) =>
  (await account.rest('POST', '/v1/auth/api-keys', { name: 'robot', scope: 'read', ...more })).body;
/** Lets entries grow older, so that the next minute begins. */
const minutePasses = () =>
  asSuperuser(db, `update audit_entry set created_at = created_at - interval '1 minute' where action like '%.%'`);

describe('The owner of an account', () => {
  it('reads of failed logins, without an address', async () => {
    const account = await newAccount();
    await login(account.email, 'a wrong password');
    const entry = await entryOf(account, 'session.login_failed');
    expect(entry).toEqual({
      id: expect.stringMatching(/^aud_/),
      created_at: expect.any(String),
      action: 'session.login_failed',
      actor: { type: 'system', id: null, name: null },
      method: null,
      path: null,
      status: null,
      resource: { type: 'account', id: account.id },
      count: 1,
      request_id: null,
    });
    const [row] = await db.query('select to_jsonb(audit_entry) as entry from audit_entry where id = $1', [entry.id]);
    expect(JSON.stringify(row)).not.toMatch(/127\.0\.0\.1|::1/);
  });

  it('reads of a wrong password of somebody who is logged in', async () => {
    const account = await newAccount();
    const change = { current_password: 'a wrong password', new_password: 'a raven on the roof' };
    expect((await account.rest('POST', '/v1/auth/password', change)).body.code).toBe('wrong_password');
    expect(await entryOf(account, 'session.login_failed')).toMatchObject({ count: 1 });
  });

  it('reads of wrong second factors, and of throttled logins', async () => {
    const account = await newAccount();
    const setup = await account.rest('POST', '/v1/auth/totp/setup', { password: account.password });
    const code = new TOTP({ secret: Secret.fromBase32(setup.body.secret) }).generate();
    await account.rest('POST', '/v1/auth/totp/enable', { totp_code: code });
    const { body } = await login(account.email, account.password);
    const given = { login_token: body.login_token, totp_code: '000000' };
    expect((await anonymous('POST', '/v1/auth/login/totp', given)).body.code).toBe('invalid_totp');
    expect(await entryOf(account, 'session.code_failed')).toMatchObject({ count: 1 });
    await eventually(async () => (await login(account.email, 'wrong')).body.code === 'login_throttled');
    expect(await entryOf(account, 'session.login_throttled')).toMatchObject({ resource: { id: account.id } });
  });

  it.each([
    ['revoked', (account: TestAccount, id: string) => account.rest('DELETE', `/v1/auth/api-keys/${id}`)],
    [
      'expired',
      (_: TestAccount, id: string) =>
        db.query(`update api_key set expires_at = now() - interval '1 second' where id = $1`, [id]),
    ],
  ])('reads of the use of a %s key, which shows no fresh use', async (_, end) => {
    const account = await newAccount();
    const key = await newKey(account);
    await end(account, key.key_id);
    expect((await call(key.plaintext)).status).toBe(401);
    expect(await entryOf(account, 'api_key.refused')).toMatchObject({
      actor: { type: 'api_key', id: key.key_id, name: 'robot' },
      resource: { type: 'api_key', id: key.key_id },
      count: 1,
    });
    const [row] = await db.query('select last_used_at from api_key where id = $1', [key.key_id]);
    expect(row).toEqual({ lastUsedAt: null });
  });

  it('reads of the use of a key from a foreign network, which shows no fresh use', async () => {
    const account = await newAccount();
    const foreign = await newKey(account, { ip_allowlist: ['192.0.2.0/24'] });
    expect((await call(foreign.plaintext)).body.code).toBe('ip_not_allowed');
    expect(await entryOf(account, 'api_key.network_refused')).toMatchObject({ resource: { id: foreign.key_id } });
    const near = await newKey(account, { ip_allowlist: ['127.0.0.0/8'] });
    expect((await call(near.plaintext)).status).toBe(200);
    const rows = await db.query(
      'select last_used_at is null as unused from api_key where account_id = $1 order by id',
      [account.id],
    );
    expect(rows).toEqual([{ unused: true }, { unused: false }]);
  });

  it('reads of the use of an ended session, but not of a refreshed token', async () => {
    const account = await newAccount();
    const { tokens } = (await login(account.email, account.password)).body;
    await account.rest('DELETE', `/v1/auth/sessions/${tokens.token_id}`);
    expect((await call(tokens.access_token)).status).toBe(401);
    expect(await entryOf(account, 'session.refused')).toMatchObject({ resource: { id: tokens.token_id } });
    const other = (await login(account.email, account.password)).body.tokens;
    await anonymous('POST', '/v1/auth/token/refresh', { refresh_token: other.refresh_token });
    expect((await call(other.access_token)).status).toBe(401);
    await login(account.email, 'a wrong password');
    await entryOf(account, 'session.login_failed');
    expect(await entriesOf(account, 'session.refused')).toHaveLength(1);
  });

  it.each([
    ['a secret of another client', () => mintCredential('cs')],
    ['a text of another shape', () => 'hunter2'],
    [
      'its secret with another last character',
      (secret: string) => secret.slice(0, -1) + (secret.endsWith('0') ? '1' : '0'),
    ],
  ])('reads of a wrong secret of an OAuth client: %s', async (_name, wrong) => {
    const account = await newAccount();
    const client = await newClient(account);
    const wrongClient = { client_id: client.client_id, client_secret: wrong(client.client_secret) };
    expect((await requestToken(wrongClient)).status).toBe(401);
    expect(await entryOf(account, 'oauth_client.refused')).toMatchObject({ resource: { id: client.client_id } });
  });

  it('reads of a right secret from a foreign network, and after the expiry of the client', async () => {
    const account = await newAccount();
    const client = await newClient(account, { ip_allowlist: '192.0.2.0/24' });
    expect((await requestToken(client)).status).toBe(403);
    const entry = await entryOf(account, 'oauth_client.network_refused');
    expect(entry).toMatchObject({ resource: { type: 'oauth_client', id: client.client_id }, count: 1 });
    const expired = await newClient(account);
    await db.query('update oauth_client set expires_at = now() where id = $1', [expired.client_id]);
    expect((await requestToken(expired)).status).toBe(401);
    expect(await entryOf(account, 'oauth_client.refused')).toMatchObject({ resource: { id: expired.client_id } });
  });

  it('reads of the use of a revoked refresh token', async () => {
    const account = await newAccount();
    const { tokens } = (await login(account.email, account.password)).body;
    await account.rest('DELETE', `/v1/auth/sessions/${tokens.token_id}`);
    const { refresh_token } = tokens;
    expect((await anonymous('POST', '/v1/auth/token/refresh', { refresh_token })).body.code).toBe('revoked_credential');
    expect(await entryOf(account, 'session.refused')).toMatchObject({ resource: { id: tokens.token_id } });
  });

  it("reads of the use of an OAuth client's token from a foreign network", async () => {
    const account = await newAccount();
    const client = await newClient(account);
    const { client_id } = client;
    const limit = (network: string) =>
      db.query('update oauth_client set ip_allowlist = $2 where id = $1', [client_id, [network]]);
    const uses = () =>
      db.query(`select last_used_at is null as unused from session where source = $1 order by id`, [
        `oauth:${client_id}`,
      ]);
    const [foreign, near] = [await tokenOf(client), await tokenOf(client)];
    await limit('192.0.2.0/24');
    expect((await call(foreign)).body.code).toBe('ip_not_allowed');
    expect(await entryOf(account, 'session.network_refused')).toMatchObject({
      resource: { type: 'session' },
      count: 1,
    });
    await limit('127.0.0.0/8');
    expect((await call(near)).status).toBe(200);
    expect(await uses()).toEqual([{ unused: true }, { unused: false }]);
  });

  it('gets a webhook event of an attack, and one a minute of a flood, with a count', async () => {
    const account = await newAccount();
    await account.rest('POST', '/v1/webhooks', { url: receiver.url, event_filter: 'api_key.refused' });
    const key = await newKey(account);
    await account.rest('DELETE', `/v1/auth/api-keys/${key.key_id}`);
    await Promise.all(Array.from({ length: 30 }, () => call(key.plaintext)));
    const message = await eventually(async () => receiver.received[0]);
    expect(message.body).toMatchObject({
      type: 'api_key.refused',
      account_id: account.id,
      data: { count: expect.any(Number), object: { key_id: key.key_id, status: 'revoked', last_used_at: null } },
    });
    await entryOf(account, 'api_key.refused');
    expect(await entriesOf(account, 'api_key.refused')).toHaveLength(1);
  });
});

describe('The security log', () => {
  it('counts a flood in one entry a minute, also with several processes', async () => {
    const account = await newAccount();
    const logs = [new SecurityLog(db), new SecurityLog(db)];
    const attack = { type: 'session.login_failed', account: account.email } as const;
    for (const log of logs) for (let i = 0; i < 50; i++) log.note(attack);
    await Promise.all(logs.map((log) => log.flush()));
    const first = await entriesOf(account, 'session.login_failed');
    expect(first).toHaveLength(1);
    await minutePasses();
    for (const log of logs) for (let i = 0; i < 10; i++) log.note(attack);
    await Promise.all(logs.map((log) => log.flush()));
    expect(await entriesOf(account, 'session.login_failed')).toHaveLength(2);
  });

  it('carries the count of a minute into its next entry', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const { id } = await newAccount();
      const counts = async () =>
        (
          await db.query<{ count: number }>(
            `select count from audit_entry where account_id = $1 and action = 'session.code_failed' order by id`,
            [id],
          )
        ).map(({ count }) => count);
      const log = new SecurityLog(db);
      const attack = { type: 'session.code_failed', account: id } as const;
      for (let i = 0; i < 7; i++) log.note(attack);
      vi.useRealTimers();
      await eventually(async () => (await counts()).length === 1);
      expect(await counts()).toEqual([7]);
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      for (let i = 0; i < 4; i++) log.note(attack);
      await minutePasses();
      vi.useRealTimers();
      await log.flush();
      expect(await counts()).toEqual([7, 4]);
    } finally {
      vi.useRealTimers();
    }
  });

  it('keeps 100 entries a minute for the credentials of an account, and counts attacks on its others in one', async () => {
    const { id } = await newAccount();
    const log = new SecurityLog(db);
    for (let i = 0; i < 300; i++)
      log.note({ type: 'api_key.refused', account: id, resource: { type: 'api_key', id: `key_${i}` } });
    await log.flush();
    const rows = await db.query<{ kind: string; entries: number; attacks: number }>(
      `select resource_type as kind, count(*)::int as entries, sum(count)::int as attacks from audit_entry
        where account_id = $1 and action = 'api_key.refused' group by 1 order by 1`,
      [id],
    );
    expect(rows).toEqual([
      { kind: 'account', entries: 1, attacks: 200 },
      { kind: 'api_key', entries: 100, attacks: 100 },
    ]);
  });

  it('tells an account of an attack while a flood comes for the thousands of keys of another', async () => {
    const log = vi.spyOn(console, 'log').mockImplementation(() => {});
    try {
      const [flooded, quiet] = [await newAccount(), await newAccount()];
      const security = new SecurityLog(db);
      for (let i = 0; i < 10_500; i++)
        security.note({ type: 'api_key.refused', account: flooded.id, resource: { type: 'api_key', id: `key_${i}` } });
      security.note({ type: 'session.code_failed', account: quiet.id });
      expect(await entryOf(quiet, 'session.code_failed')).toMatchObject({ count: 1 });
      await security.flush();
    } finally {
      log.mockRestore();
    }
  });

  it('writes nothing about names and credentials that no account has, but counts for the operator', async () => {
    const log = vi.spyOn(console, 'log').mockImplementation(() => {});
    try {
      const count = async () =>
        (
          await db.query(
            `select (select count(*)::int from audit_entry) as entries, (select count(*)::int from event) as events`,
          )
        )[0];
      const before = await count();
      const security = new SecurityLog(db);
      for (let i = 0; i < 3; i++) security.login(`stranger-${i}@example.org`, 'invalid_login');
      security.count('unknown credentials');
      await security.flush();
      expect(log.mock.calls).toEqual([
        ['Refused in the last minute: 1 unknown credentials, 3 logins with unknown names.'],
      ]);
      expect(await count()).toEqual(before);
    } finally {
      log.mockRestore();
    }
  });
});
