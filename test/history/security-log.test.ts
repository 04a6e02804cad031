/** Attacks on an account stand in its audit log and reach its webhooks. A flood makes one entry in ten minutes. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Secret, TOTP } from 'otpauth';
import { describe, expect, it } from 'vitest';
import { ApiError } from '../../entities/errors.ts';
import { mintCredential } from '../../entities/secrets.ts';
import { SecurityLog } from '../../resolvers/accounts/security-log.ts';
import { oauthRequests, type TestClient } from '../accounts/oauth/requests.ts';
import { atEnd } from '../setup/end.ts';
import { eventually, startFreehold, type TestAccount } from '../setup/freehold.ts';
import { startReceiver } from '../setup/receiver.ts';

const { anonymous, db, newAccount } = await startFreehold({
  WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
  LOGIN_FAILURES_MAX: '5',
});
const receiver = await startReceiver();
atEnd(() => receiver.close());

// biome-ignore lint/suspicious/noExplicitAny: each test checks the type of the members that it reads
type Entry = any;
const entriesOf = async (account: TestAccount, action: string): Promise<Entry[]> =>
  (await account.rest('GET', `/v1/account/audit-log?action=${action}`)).body.data;
const entryOf = (account: TestAccount, action: string): Promise<Entry> =>
  eventually(async () => (await entriesOf(account, action))[0]);
const oauth = oauthRequests(anonymous);
const { form, requestToken, tokenOf } = oauth;
const newClient = ({ rest }: TestAccount, more: object = {}) => oauth.newClient(more, rest);
const login = (email: string, password: string) => anonymous('POST', '/v1/auth/login', { email, password });
const call = (credential: string) =>
  anonymous('GET', '/v1/account', undefined, { authorization: `Bearer ${credential}` });
const newKey = async (account: TestAccount, more: object = {}) =>
  (await account.rest('POST', '/v1/auth/api-keys', { name: 'robot', scope: 'read', ...more })).body;

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

  it.each(['/v1/auth/token/refresh', '/v1/oauth/token', '/v1/oauth/revoke'])(
    'reads of a refused credential at %s, which needs none',
    async (path) => {
      const account = await newAccount();
      const [key, foreign] = [await newKey(account), await newKey(account, { ip_allowlist: ['192.0.2.0/24'] })];
      await account.rest('DELETE', `/v1/auth/api-keys/${key.key_id}`);
      const { tokens } = (await login(account.email, account.password)).body;
      await anonymous('POST', '/v1/oauth/revoke', {}, { authorization: `Bearer ${tokens.access_token}` });
      for (const credential of [key.plaintext, foreign.plaintext, tokens.access_token])
        await anonymous('POST', path, { refresh_token: 'x' }, { authorization: `Bearer ${credential}` });
      expect(await entryOf(account, 'api_key.refused')).toMatchObject({ resource: { id: key.key_id } });
      expect(await entryOf(account, 'api_key.network_refused')).toMatchObject({ resource: { id: foreign.key_id } });
      expect(await entryOf(account, 'session.refused')).toMatchObject({ resource: { id: tokens.token_id } });
    },
  );

  it('reads of the introspection of a key and of a token from a foreign network', async () => {
    const account = await newAccount();
    const foreign = await newKey(account, { ip_allowlist: ['192.0.2.0/24'] });
    expect((await oauth.introspect(foreign.plaintext)).body.active).toBe(true);
    const noted = await entryOf(account, 'api_key.network_refused');
    expect(noted).toMatchObject({ resource: { type: 'api_key', id: foreign.key_id }, count: 1 });
    const near = await newKey(account, { ip_allowlist: ['127.0.0.0/8'] });
    expect((await oauth.introspect(near.plaintext)).body.active).toBe(true);
    const client = await newClient(account);
    const token = await tokenOf(client);
    await db.query(`update oauth_client set ip_allowlist = '{192.0.2.0/24}' where id = $1`, [client.client_id]);
    const headers = { authorization: `Bearer ${token}` };
    expect((await anonymous('GET', '/v1/oauth/introspect', undefined, headers)).status).toBe(403);
    expect(await entryOf(account, 'session.network_refused')).toMatchObject({
      resource: { type: 'session' },
      count: 1,
    });
    expect(await entriesOf(account, 'api_key.network_refused')).toHaveLength(1);
  });

  it('reads of the use of an ended session, but not of a refreshed token', async () => {
    const account = await newAccount();
    const { tokens } = (await login(account.email, account.password)).body;
    await anonymous('POST', '/v1/oauth/revoke', {}, { authorization: `Bearer ${tokens.access_token}` });
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

  const revoked = ({ client_id, client_secret }: TestClient) =>
    form('/v1/oauth/revoke', { token: 'x', client_id, client_secret });
  const otherGrant = (client: TestClient) => requestToken(client, { grant_type: 'other' });
  const isDeleted = (account: TestAccount, id: string) => account.rest('DELETE', `/v1/oauth/clients/${id}`);
  const isExpired = (_: TestAccount, id: string) =>
    db.query('update oauth_client set expires_at = now() where id = $1', [id]);
  it.each([
    ['a token of a deleted client', isDeleted, requestToken],
    ['a revocation by a deleted client', isDeleted, revoked],
    ['a token of another kind of an expired client', isExpired, otherGrant],
    ['a revocation by an expired client', isExpired, revoked],
  ])('reads of a request for %s', async (_name, end, request) => {
    const account = await newAccount();
    const client = await newClient(account);
    await end(account, client.client_id);
    expect((await request(client)).status).toBe(401);
    expect(await entryOf(account, 'oauth_client.refused')).toMatchObject({ resource: { id: client.client_id } });
  });

  it('reads of the introspection of a revoked key, and of an ended session', async () => {
    const account = await newAccount();
    const { key_id, plaintext } = await newKey(account);
    await account.rest('DELETE', `/v1/auth/api-keys/${key_id}`);
    expect((await oauth.introspect(plaintext)).body).toEqual({ active: false });
    expect(await entryOf(account, 'api_key.refused')).toMatchObject({ resource: { id: key_id } });
    const { tokens } = (await login(account.email, account.password)).body;
    await anonymous('POST', '/v1/oauth/revoke', {}, { authorization: `Bearer ${tokens.access_token}` });
    expect((await oauth.introspect(tokens.access_token)).body).toEqual({ active: false });
    expect(await entryOf(account, 'session.refused')).toMatchObject({ resource: { id: tokens.token_id } });
  });

  it('reads of the use of a revoked refresh token', async () => {
    const account = await newAccount();
    const { tokens } = (await login(account.email, account.password)).body;
    await anonymous('POST', '/v1/oauth/revoke', {}, { authorization: `Bearer ${tokens.access_token}` });
    const { refresh_token } = tokens;
    expect((await anonymous('POST', '/v1/auth/token/refresh', { refresh_token })).body.code).toBe('revoked_credential');
    expect(await entryOf(account, 'session.refused')).toMatchObject({ resource: { id: tokens.token_id } });
  });

  it.each(['without the client', 'by another client'])(
    "reads of the use of an OAuth client's refresh token %s",
    async (how) => {
      const account = await newAccount();
      const metadata = { grant_types: ['client_credentials', 'refresh_token'] };
      const [client, other] = [await newClient(account, metadata), await newClient(account, metadata)];
      const { refresh_token } = (await requestToken(client)).body;
      const { status } =
        how === 'by another client'
          ? await requestToken(other, { grant_type: 'refresh_token', refresh_token })
          : await anonymous('POST', '/v1/auth/token/refresh', { refresh_token });
      expect(status).toBe(how === 'by another client' ? 400 : 401);
      expect((await entryOf(account, 'session.refused')).resource.type).toBe('session');
    },
  );

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

  it('gets a webhook event of an attack, and one in ten minutes of a flood, with a count', async () => {
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

it('An attack from an address whose limit is used up leaves the next one its entry', async () => {
  const account = await newAccount();
  const [full, other] = ['192.0.2.1', '192.0.2.2'];
  const security = new SecurityLog(db, async (_, address) => {
    if (address === full) throw new ApiError('rate_limited');
  });
  const attack = (address: string) => security.note({ type: 'session.refused', account: account.id, address });
  attack(full);
  await sleep(500);
  expect(await entriesOf(account, 'session.refused')).toEqual([]);
  attack(other);
  expect(await entryOf(account, 'session.refused')).toMatchObject({ count: 1 });
  await security.flush();
});
