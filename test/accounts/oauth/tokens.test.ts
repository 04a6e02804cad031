/** Token revocation and introspection. */
import { describe, expect, it } from 'vitest';
import { eventually, startFreehold } from '../../setup/freehold.ts';
import { restClient } from '../../setup/spawn.ts';
import { basic, bearer, oauthRequests } from './requests.ts';

const { anonymous, newAccount, publicUrl, db } = await startFreehold({ ROLES: 'api' });
const { form, introspect, newClient, requestToken, tokenOf } = oauthRequests(anonymous);

describe('Revocation (RFC 7009)', () => {
  it('by the client ends the token and its refresh token at once', async () => {
    const { client_id, client_secret } = await newClient({ grant_types: ['client_credentials', 'refresh_token'] });
    const { body } = await form(
      '/v1/oauth/token',
      { grant_type: 'client_credentials' },
      basic(client_id, client_secret),
    );
    const rest = restClient(publicUrl, body.access_token);
    expect((await rest('GET', '/v1/account')).status).toBe(200);
    const members = { token: body.access_token, token_type_hint: 'access_token', client_id, client_secret };
    const ended = await form('/v1/oauth/revoke', members);
    expect([ended.status, ended.body]).toEqual([200, {}]);
    expect((await rest('GET', '/v1/account')).body.code).toBe('revoked_credential');
    expect((await introspect(body.refresh_token)).body).toEqual({ active: false });
    const [told] = await db.query<{ entries: number }>(
      `select count(*)::int as entries from audit_entry where action = 'session.revoked' and actor_name = $1`,
      [`oauth:${client_id}`],
    );
    expect(told!.entries).toBe(1);
    expect((await form('/v1/oauth/revoke', members)).body).toEqual({});
  });

  it('of the refresh token ends the access token too', async () => {
    const { client_id, client_secret } = await newClient({ grant_types: ['client_credentials', 'refresh_token'] });
    const auth = basic(client_id, client_secret);
    const { body } = await form('/v1/oauth/token', { grant_type: 'client_credentials' }, auth);
    await anonymous('POST', '/v1/oauth/revoke', { token: body.refresh_token }, auth);
    expect((await introspect(body.access_token)).body).toEqual({ active: false });
  });

  it('by the token itself needs no client, even for a token of a login', async () => {
    const { accessToken, rest } = await newAccount();
    const ended = await anonymous('POST', '/v1/oauth/revoke', undefined, bearer(accessToken));
    expect([ended.status, ended.body]).toEqual([200, {}]);
    expect((await rest('GET', '/v1/account')).body.code).toBe('revoked_credential');
    expect((await anonymous('POST', '/v1/oauth/revoke', undefined, bearer(accessToken))).body).toEqual({});
  });

  it('by its Bearer has an entry in the audit log, also for an API key, which is refused', async () => {
    const { email, password, rest } = await newAccount();
    const key = (await rest('POST', '/v1/auth/api-keys', { name: 'reader', scope: 'read' })).body;
    const login = (await anonymous('POST', '/v1/auth/login', { email, password })).body.tokens;
    const revoke = (credential: string) => anonymous('POST', '/v1/oauth/revoke', undefined, bearer(credential));
    expect((await revoke(key.plaintext)).status).toBe(400);
    expect((await revoke(login.access_token)).status).toBe(200);
    const entries = await eventually(async () => {
      const { data } = (await rest('GET', '/v1/account/audit-log?action=api.request')).body;
      return data.length === 3 && data;
    });
    expect(entries.slice(0, 2)).toMatchObject([
      { actor: { type: 'access_token', id: login.token_id }, path: '/v1/oauth/revoke', status: 200 },
      { actor: { type: 'api_key', id: key.key_id }, path: '/v1/oauth/revoke', status: 400 },
    ]);
  });

  it('by an expired access token ends no later token of its login, and by a spent refresh token all', async () => {
    const { email, password } = await newAccount();
    const { tokens: spent } = (await anonymous('POST', '/v1/auth/login', { email, password })).body;
    const { refresh_token } = spent;
    const { tokens: present } = (await anonymous('POST', '/v1/auth/token/refresh', { refresh_token })).body;
    await db.query(`update session set expires_at = now() - interval '1 second' where id = $1`, [spent.token_id]);
    const revoke = (token: string) => anonymous('POST', '/v1/oauth/revoke', undefined, bearer(token));
    expect((await revoke(spent.access_token)).body).toEqual({});
    expect((await introspect(present.access_token)).body.active).toBe(true);
    expect((await revoke(spent.refresh_token)).body).toEqual({});
    expect((await introspect(present.access_token)).body).toEqual({ active: false });
  });

  it('gives the same answer for unknown tokens and tokens of others, and does not end them', async () => {
    const [mine, theirs] = [await newClient(), await newClient()];
    const [token, login] = [await tokenOf(theirs), (await newAccount()).accessToken];
    for (const foreign of [token, login, 'nonsense', `${token}x`]) {
      const { status, body } = await form(
        '/v1/oauth/revoke',
        { token: foreign },
        basic(mine.client_id, mine.client_secret),
      );
      expect([status, body]).toEqual([200, {}]);
    }
    for (const kept of [token, login]) expect((await introspect(kept)).body.active).toBe(true);
  });
});

describe('Introspection (RFC 7662)', () => {
  it('gives the same answer by Bearer, in the address, by form and by JSON', async () => {
    const client = await newClient({ scope: 'servers billing' });
    const token = await tokenOf(client);
    const { body: account } = await anonymous('GET', '/v1/account', undefined, bearer(token));
    const expected = {
      active: true,
      scope: 'servers billing',
      client_id: client.client_id,
      token_type: 'Bearer',
      exp: expect.any(Number),
      iat: expect.any(Number),
      sub: account.id,
      aud: [publicUrl, `${publicUrl}/mcp`, `${publicUrl}/mcp/secure`],
      iss: publicUrl,
      jti: expect.stringMatching(/^tok_/),
    };
    for (const { status, headers, body } of [
      await anonymous('GET', '/v1/oauth/introspect', undefined, bearer(token)),
      await anonymous('GET', `/v1/oauth/introspect?token=${token}`),
      await introspect(token),
      await anonymous('POST', '/v1/oauth/introspect', { token, token_type_hint: 'access_token' }),
    ]) {
      expect([status, headers.get('cache-control')]).toEqual([200, 'no-store']);
      expect(body).toEqual(expected);
      expect(body.exp - body.iat).toBe(86_400);
    }
  });

  it('answers only inactive for an unknown, mistyped or ended token, and for other secrets', async () => {
    const client = await newClient();
    const token = await tokenOf(client);
    const expired = await tokenOf(client);
    const { body } = await introspect(expired);
    await db.query(`update session set expires_at = now() - interval '1 second' where id = $1`, [body.jti]);
    for (const other of ['nonsense', `${token.slice(0, -1)}!`, expired, client.client_secret])
      expect((await introspect(other)).body).toEqual({ active: false });
    expect((await anonymous('GET', '/v1/oauth/introspect', undefined, bearer('nonsense'))).body).toEqual({
      active: false,
    });
  });

  it('knows tokens of a login and API keys, and shows no email', async () => {
    const { id, email, accessToken, rest } = await newAccount();
    const { body: key } = await rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'billing' });
    const { body: login } = await introspect(accessToken);
    expect(login).toMatchObject({ active: true, sub: id, scope: 'full' });
    expect(JSON.stringify(login)).not.toContain(email);
    expect(login).not.toHaveProperty('client_id');
    expect((await introspect(key.plaintext)).body).toMatchObject({ sub: id, scope: 'billing', jti: key.key_id });
    await rest('DELETE', `/v1/auth/api-keys/${key.key_id}`);
    expect((await introspect(key.plaintext)).body).toEqual({ active: false });
  });
});

describe('A refresh token of an OAuth client', () => {
  const grant_types = ['client_credentials', 'refresh_token'];

  it('works at the token endpoint only, with the secret of the client', async () => {
    const { rest } = await newAccount();
    const client = await newClient({ scope: 'full', grant_types }, rest);
    const { refresh_token } = (await requestToken(client)).body;
    for (let i = 0; i < 2; i++) {
      const { status, body } = await anonymous('POST', '/v1/auth/token/refresh', { refresh_token });
      expect([status, body.code]).toEqual([401, 'invalid_credential']);
      expect(body.detail).toContain('POST /v1/oauth/token');
    }
    const stolen = {
      grant_type: 'refresh_token',
      refresh_token,
      client_secret: `${client.client_secret.slice(0, -1)}!`,
    };
    expect((await requestToken(client, stolen)).body.code).toBe('invalid_client');
    const renewed = await requestToken(client, { grant_type: 'refresh_token', refresh_token });
    expect(renewed.status).toBe(200);
    // A caller without the secret cannot end the family by a spent token either.
    expect((await anonymous('POST', '/v1/auth/token/refresh', { refresh_token })).body.code).toBe('invalid_credential');
    expect((await introspect(renewed.body.access_token)).body.active).toBe(true);
  });
});

it('Introspection by the header refuses a network that the key does not allow, and answers a server that asks', async () => {
  const { rest } = await newAccount();
  const key = async (ip_allowlist: string[]) =>
    (await rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'read', ip_allowlist })).body.plaintext as string;
  const [outside, inside] = [await key(['203.0.113.0/24']), await key(['127.0.0.0/8'])];
  const refused = await form('/v1/oauth/introspect', {}, bearer(outside));
  expect([refused.status, refused.body.code]).toEqual([403, 'ip_not_allowed']);
  expect((await form('/v1/oauth/introspect', {}, bearer(inside))).body.active).toBe(true);
  expect((await introspect(outside)).body.active).toBe(true);
});
