import { Secret, TOTP } from 'otpauth';
import { describe, expect, it } from 'vitest';
import { startFreehold, type TestAccount } from '../../setup/freehold.ts';
import { restClient } from '../../setup/spawn.ts';
import { oauthRequests } from '../oauth/requests.ts';

const { anonymous, newAccount, publicUrl, db } = await startFreehold({ LOGIN_FAILURES_MAX: '1000' });
const { newClient, requestToken, tokenOf } = oauthRequests(anonymous);
const NEW = 'another heron on the roof';
const login = ({ email }: TestAccount, password: string) => anonymous('POST', '/v1/auth/login', { email, password });
const change = ({ rest, password }: TestAccount, more: object = {}) =>
  rest('POST', '/v1/auth/password', { current_password: password, new_password: NEW, ...more });
const works = async (token: string) => (await restClient(publicUrl, token)('GET', '/v1/account')).status === 200;

describe('The password', () => {
  it('changes if the caller knows it: all other sessions end, and API keys stay', async () => {
    const account = await newAccount();
    const others = await Promise.all([1, 2].map(async () => (await login(account, account.password)).body.tokens));
    const key = (await account.rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'read' })).body.plaintext;
    const { status, body } = await change(account);
    expect([status, body]).toEqual([200, { changed: true, sessions_revoked: 2 }]);
    expect([await works(account.accessToken), await works(key)]).toEqual([true, true]);
    for (const { access_token, refresh_token } of others) {
      expect(await works(access_token)).toBe(false);
      expect((await anonymous('POST', '/v1/auth/token/refresh', { refresh_token })).status).toBe(401);
    }
    expect((await login(account, account.password)).body.code).toBe('invalid_login');
    expect((await login(account, NEW)).status).toBe(200);
    const events = await db.query<{ type: string }>(
      `select type from event where account_id = $1 and type in ('account.password_changed', 'session.revoked')`,
      [account.id],
    );
    expect(events.map(({ type }) => type).sort()).toEqual([
      'account.password_changed',
      'session.revoked',
      'session.revoked',
    ]);
  });

  it('does not change for an API key without it, and with it all sessions end', async () => {
    const account = await newAccount();
    const { body: made } = await account.rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'full' });
    const rest = restClient(publicUrl, made.plaintext);
    const wrong = await change({ ...account, rest }, { current_password: 'not the password' });
    expect([wrong.status, wrong.body.code]).toEqual([422, 'wrong_password']);
    expect((await change({ ...account, rest })).body.sessions_revoked).toBe(1);
    expect(await works(account.accessToken)).toBe(false);
    expect(await works(made.plaintext)).toBe(true);
  });

  it.each<[string, string]>([
    ...['password123', 'password1234', 'Password1!', 'letmein123', 'aaaaaaaaaaaa', 'abcabcabc', 'freehold1'].map(
      (common): [string, string] => [common, 'weak_password'],
    ),
    ['short', 'weak_password'],
    ['x'.repeat(129), 'validation_failed'],
  ])('does not become %s', async (new_password, code) => {
    const account = await newAccount();
    const { status, body } = await change(account, { new_password });
    expect([status, body.code, body.errors[0].field]).toEqual([422, code, 'new_password']);
    expect((await login(account, account.password)).status).toBe(200);
  });

  it('does not become the present one again', async () => {
    const account = await newAccount();
    const { status, body } = await change(account, { new_password: account.password });
    expect([status, body.code, body.errors[0]]).toMatchObject([422, 'validation_failed', { field: 'new_password' }]);
  });

  it('needs the second factor of an account that has one', async () => {
    const account = await newAccount();
    const { secret } = (await account.rest('POST', '/v1/auth/totp/setup', { password: account.password })).body;
    const code = () => new TOTP({ secret: Secret.fromBase32(secret) }).generate();
    await account.rest('POST', '/v1/auth/totp/enable', { totp_code: code() });
    const pending = (await login(account, account.password)).body.login_token;
    for (const more of [{}, { totp_code: code() }, { totp_code: 'abcd-efgh' }])
      expect((await change(account, more)).body.code).toBe('invalid_totp');
    await db.query('update totp set last_step = 0 where account_id = $1', [account.id]);
    expect((await change(account, { totp_code: code() })).status).toBe(200);
    await db.query('update totp set last_step = 0 where account_id = $1', [account.id]);
    const late = await anonymous('POST', '/v1/auth/login/totp', { login_token: pending, totp_code: code() });
    expect(late.body.code).toBe('login_token_expired');
  });

  it('changes once when ten requests come at once, and no login with the old one survives', async () => {
    const account = await newAccount();
    const passwords = Array.from({ length: 10 }, (_, i) => `heron number ${i} on the roof`);
    const [changes, logins] = await Promise.all([
      Promise.all(passwords.map((new_password) => change(account, { new_password }))),
      Promise.all(passwords.map(() => login(account, account.password))),
    ]);
    const won = changes.findIndex(({ status }) => status === 200);
    expect(changes.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(changes.filter(({ body }) => body.code === 'wrong_password')).toHaveLength(9);
    expect((await login(account, passwords[won]!)).status).toBe(200);
    for (const { status, body } of logins)
      if (status === 200) expect(await works(body.tokens.access_token)).toBe(false);
  });

  it('takes everything with it on request: keys, clients, their tokens and the secrets of webhooks', async () => {
    const account = await newAccount();
    const { body: key } = await account.rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'full' });
    const client = await newClient({ scope: 'full' }, account.rest);
    const token = await tokenOf(client);
    await account.rest('POST', '/v1/webhooks', { url: 'https://93.184.215.14/' });
    const secret = async () => (await db.query('select secret from webhook where account_id = $1', [account.id]))[0];
    const before = await secret();
    const other = (await login(account, account.password)).body.tokens.access_token;
    const { body } = await change(account, { revoke: 'everything' });
    expect(body).toEqual({
      ...{ changed: true, sessions_revoked: 2, api_keys_revoked: 1 },
      ...{ oauth_clients_deleted: 1, webhook_secrets_replaced: 1 },
    });
    for (const ended of [key.plaintext, token, other])
      expect((await restClient(publicUrl, ended)('GET', '/v1/account')).body.code).toBe('revoked_credential');
    expect((await requestToken(client)).body.code).toBe('invalid_client');
    expect(await secret()).not.toEqual(before);
    const [webhook] = (await account.rest('GET', '/v1/webhooks')).body.data;
    expect(webhook).toMatchObject({ status: 'disabled', disabled_reason: 'secret_revoked' });
    const tested = await account.rest('POST', `/v1/webhooks/${webhook.id}/test`);
    expect([tested.status, tested.body.code]).toEqual([422, 'validation_failed']);
    expect(tested.body.detail).toContain('/rotate-secret');
    const rotated = (await account.rest('POST', `/v1/webhooks/${webhook.id}/rotate-secret`)).body;
    expect(rotated).toMatchObject({ status: 'enabled', disabled_reason: null, previous_secret_until: null });
    expect((await account.rest('GET', '/v1/account')).status).toBe(200);
  });

  it('ends the API key or OAuth token that asked to take everything, too', async () => {
    for (const by of ['key', 'token']) {
      const account = await newAccount();
      const { body: key } = await account.rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'full' });
      const own = by === 'key' ? key.plaintext : await tokenOf(await newClient({ scope: 'full' }, account.rest));
      const rest = restClient(publicUrl, own);
      expect((await change({ ...account, rest }, { revoke: 'everything' })).status).toBe(200);
      expect((await rest('GET', '/v1/account')).body.code).toBe('revoked_credential');
    }
  });

  it('leaves keys and clients alone by default', async () => {
    const account = await newAccount();
    const { body: key } = await account.rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'full' });
    const client = await newClient({ scope: 'full' }, account.rest);
    expect((await change(account, {})).body).toEqual({ changed: true, sessions_revoked: 0 });
    expect((await restClient(publicUrl, key.plaintext)('GET', '/v1/account')).status).toBe(200);
    expect((await requestToken(client)).status).toBe(200);
  });
});
