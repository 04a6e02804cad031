/** OAuth 2.1 for machines: registration, the token endpoint, and the metadata that lead to them. */
import { describe, expect, it } from 'vitest';
import { startFreehold } from '../../setup/freehold.ts';
import { restClient } from '../../setup/spawn.ts';
import { basic, bearer, FORM, oauthRequests, type TestClient } from './requests.ts';

const { anonymous, newAccount, publicUrl, db } = await startFreehold({ LIMIT_OAUTH_CLIENTS: '3', LIMIT_SESSIONS: '5' });
const { form, introspect, newClient, requestToken, tokenOf } = oauthRequests(anonymous);

describe('Registration (RFC 7591)', () => {
  it('gives a stranger a client, a secret, and an agent account with an empty balance', async () => {
    const { status, body, headers } = await anonymous('POST', '/v1/oauth/register', {});
    expect(status).toBe(201);
    expect(headers.get('cache-control')).toBe('no-store');
    expect(body).toEqual({
      client_id: expect.stringMatching(/^cl_[0-9a-z]{26}$/),
      client_secret: expect.stringMatching(/^svc_cs_[0-9A-Za-z]{38}$/),
      client_id_issued_at: expect.any(Number),
      client_secret_expires_at: 0,
      scope: 'read',
      grant_types: ['client_credentials'],
      response_types: [],
      token_endpoint_auth_method: 'client_secret_basic',
      redirect_uris: [],
    });
    expect(Math.abs(body.client_id_issued_at - Date.now() / 1000)).toBeLessThan(60);
    const rest = restClient(publicUrl, await tokenOf(body));
    expect((await rest('GET', '/v1/account')).body).toMatchObject({ kind: 'agent', email: null });
    expect((await rest('GET', '/v1/account/balance')).body.balance_usd).toBe(0);
  });

  it('returns the stored metadata, and ignores unknown members', async () => {
    const metadata = {
      client_name: 'Ordering agent',
      client_uri: 'https://agent.example/',
      logo_uri: 'https://agent.example/logo.png',
      contacts: ['ops@agent.example'],
      software_id: '4NRB1-0XZABZI9E6-5SM3R',
      software_version: '1.0',
      redirect_uris: ['http://localhost:1234/callback'],
      grant_types: ['client_credentials', 'refresh_token'],
      token_endpoint_auth_method: 'client_secret_post',
      scope: 'servers billing',
    };
    expect(
      await newClient({ ...metadata, 'client_name#ja': 'エージェント', tos_uri: 7, response_types: [] }),
    ).toMatchObject(metadata);
  });

  it.each(['2038-01-19T03:14:08Z', '9999-12-31T23:59:59Z'])('tells an expiry of %s, beyond 32 bits', async (end) => {
    const { client_secret_expires_at: expires } = (await newClient({ expires_at: end })) as never;
    expect(expires).toBe(Date.parse(end) / 1_000);
  });

  it('joins the account of a credential with the scope full, and of no other scope', async () => {
    const { id, rest } = await newAccount();
    const client = await newClient({ scope: 'full' }, rest);
    expect((await restClient(publicUrl, await tokenOf(client))('GET', '/v1/account')).body.id).toBe(id);
    const { body: key } = await rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'servers billing' });
    const refused = await restClient(publicUrl, key.plaintext)('POST', '/v1/oauth/register', {});
    expect([refused.status, refused.body.code, refused.body.error]).toEqual([
      403,
      'insufficient_scope',
      'insufficient_scope',
    ]);
    expect((await anonymous('POST', '/v1/oauth/register', {}, bearer('nonsense'))).status).toBe(401);
  });

  it('stops at the limit of the account, even when all requests come at once', async () => {
    const { rest } = await newAccount();
    const answers = await Promise.all(Array.from({ length: 12 }, () => rest('POST', '/v1/oauth/register', {})));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(3);
    expect(new Set(answers.filter(({ status }) => status !== 201).map(({ body }) => body.code))).toEqual(
      new Set(['validation_failed']),
    );
  });

  it('appears in the events and the audit log, without its secret', async () => {
    const client = await newClient();
    const [told] = await db.query<{ events: number; entries: number }>(
      `select (select count(*)::int from event where type = 'oauth_client.created' and subject = $1) as events,
        (select count(*)::int from audit_entry where action = 'oauth_client.created' and resource_id = $1) as entries`,
      [client.client_id],
    );
    expect(told).toEqual({ events: 1, entries: 1 });
    const [row] = await db.query<{ row: string }>('select oauth_client::text as row from oauth_client where id = $1', [
      client.client_id,
    ]);
    expect(row!.row).not.toContain(client.client_secret.slice(7));
  });
});

describe('The token endpoint (RFC 6749)', () => {
  it('accepts a form or JSON, and the secret by Basic or in the body', async () => {
    const { client_id, client_secret } = await newClient({ scope: 'full' });
    const grant = { grant_type: 'client_credentials' };
    const answers = [
      await form('/v1/oauth/token', grant, basic(client_id, client_secret)),
      await form('/v1/oauth/token', { ...grant, client_id, client_secret }),
      await anonymous('POST', '/v1/oauth/token', grant, basic(client_id, client_secret)),
      await anonymous('POST', '/v1/oauth/token', { ...grant, client_id, client_secret, unknown: [1] }),
    ];
    for (const { status, headers, body } of answers) {
      expect(status).toBe(200);
      expect(headers.get('cache-control')).toBe('no-store');
      expect(body).toEqual({
        access_token: expect.stringMatching(/^svc_at_[0-9A-Za-z]{38}$/),
        token_type: 'Bearer',
        expires_in: 86_400,
        scope: 'full',
      });
      expect((await anonymous('GET', '/v1/account', undefined, bearer(body.access_token))).status).toBe(200);
    }
  });

  it('prefers Basic to the body', async () => {
    const [one, other] = [await newClient(), await newClient()];
    const { client_id, client_secret } = other;
    const body = { grant_type: 'client_credentials', client_id, client_secret };
    const right = await form('/v1/oauth/token', body, basic(one.client_id, one.client_secret));
    expect((await introspect(right.body.access_token)).body.client_id).toBe(one.client_id);
    expect((await form('/v1/oauth/token', body, basic(one.client_id, 'wrong'))).body.code).toBe('invalid_client');
  });

  it('narrows the scope, and limits the token to it', async () => {
    const client = await newClient({ scope: 'full' });
    const { body } = await form(
      '/v1/oauth/token',
      { grant_type: 'client_credentials', scope: 'read read' },
      basic(client.client_id, client.client_secret),
    );
    expect(body.scope).toBe('read');
    const rest = restClient(publicUrl, body.access_token);
    expect((await rest('GET', '/v1/account')).status).toBe(200);
    expect((await rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'read' })).body.required_scope).toBe('full');
  });

  it('returns a refresh token only to clients that registered the grant type', async () => {
    const client = await newClient({ grant_types: ['client_credentials', 'refresh_token'] });
    const { client_id, client_secret } = client;
    const { body } = await form('/v1/oauth/token', {
      grant_type: 'client_credentials',
      client_id,
      client_secret,
    });
    expect(body.refresh_token).toMatch(/^svc_rt_[0-9A-Za-z]{38}$/);
    expect((await introspect(body.refresh_token)).body).toMatchObject({ active: true, client_id });
  });

  it.each([
    ['the address of the service', ''],
    ['the same with a slash', '/'],
    ['the MCP endpoint', '/mcp'],
  ])('accepts as resource (RFC 8707) %s', async (_, path) => {
    await tokenOf(await newClient(), { resource: publicUrl + path });
  });

  it('accepts the parameter resource twice, and no other parameter', async () => {
    const { client_id, client_secret } = await newClient();
    const ask = (...resources: string[]) =>
      anonymous(
        'POST',
        '/v1/oauth/token',
        `grant_type=client_credentials&${resources.map((one) => `resource=${encodeURIComponent(one)}`).join('&')}`,
        { ...FORM, ...basic(client_id, client_secret) },
      );
    expect((await ask(publicUrl, `${publicUrl}/mcp`)).status).toBe(200);
    expect((await ask(publicUrl, 'https://elsewhere.example')).body.error).toBe('invalid_target');
  });

  it('ends the oldest token of the client at the limit of sessions', async () => {
    const client = await newClient();
    const tokens = [];
    for (let i = 0; i < 6; i++) tokens.push(await tokenOf(client));
    const active = await Promise.all(tokens.map(async (token) => (await introspect(token)).body.active));
    expect(active).toEqual([false, true, true, true, true, true]);
  });

  it('never ends sessions of others, and refuses if only those are left', async () => {
    const { rest, accessToken, email, password } = await newAccount();
    const client = await newClient({}, rest);
    for (let i = 0; i < 4; i++) await anonymous('POST', '/v1/auth/login', { email, password });
    expect((await requestToken(client)).body).toMatchObject({
      code: 'session_limit_reached',
      error: 'invalid_request',
    });
    await anonymous('POST', '/v1/oauth/revoke', undefined, bearer(accessToken));
    await tokenOf(client);
  });
});

describe('Refreshing (RFC 6749, section 6)', () => {
  const renewable = { grant_types: ['client_credentials', 'refresh_token'], scope: 'servers billing' };
  const refresh = (
    { client_id, client_secret }: TestClient,
    refresh_token: string,
    more: Record<string, string> = {},
  ) =>
    form('/v1/oauth/token', { grant_type: 'refresh_token', refresh_token, ...more }, basic(client_id, client_secret));

  it('replaces the pair, keeps the scope, and ends the old token at once', async () => {
    const client = await newClient(renewable);
    const { body: first } = await requestToken(client, { scope: 'servers' });
    const { status, body: second } = await refresh(client, first.refresh_token, {
      scope: 'servers',
      resource: publicUrl,
    });
    expect(status).toBe(200);
    expect(second).toEqual({
      access_token: expect.stringMatching(/^svc_at_/),
      token_type: 'Bearer',
      expires_in: 86_400,
      scope: 'servers',
      refresh_token: expect.stringMatching(/^svc_rt_/),
    });
    expect((await introspect(first.access_token)).body).toEqual({ active: false });
    expect((await introspect(second.access_token)).body).toMatchObject({ active: true, client_id: client.client_id });
  });

  it('with a spent token ends its whole family', async () => {
    const client = await newClient(renewable);
    const { body: first } = await requestToken(client);
    const { body: second } = await refresh(client, first.refresh_token);
    const reused = await refresh(client, first.refresh_token);
    expect([reused.status, reused.body.error]).toEqual([400, 'invalid_grant']);
    expect(reused.body.detail).toMatch(/was used before.*Request a new one by the grant type client_credentials\.$/);
    expect((await introspect(second.access_token)).body).toEqual({ active: false });
    expect((await refresh(client, second.refresh_token)).body.error).toBe('invalid_grant');
  });

  it('by ten requests at once gives at most one pair', async () => {
    const client = await newClient(renewable);
    const { body } = await requestToken(client);
    const answers = await Promise.all(Array.from({ length: 10 }, () => refresh(client, body.refresh_token)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  });

  it('refuses tokens of others, another scope and a missing token, and spends no token', async () => {
    const [mine, theirs] = [await newClient(renewable), await newClient(renewable)];
    const { body } = await requestToken(mine);
    const { body: login } = await anonymous('POST', '/v1/auth/register', {
      email: 'refresh@example.org',
      password: 'a heron on the roof',
    });
    for (const token of [body.refresh_token, login.tokens.refresh_token, 'nonsense', body.access_token])
      expect((await refresh(theirs, token)).body).toMatchObject({ status: 400, error: 'invalid_grant' });
    expect((await refresh(mine, body.refresh_token, { scope: 'read' })).body.error).toBe('invalid_scope');
    expect((await refresh(mine, '')).body.error).toBe('invalid_request');
    expect((await refresh(mine, body.refresh_token)).status).toBe(200);
  });
});

describe('Metadata', () => {
  it('of the authorization server (RFC 8414) name all endpoints, and one that refuses browsers', async () => {
    const { status, headers, body } = await anonymous('GET', '/.well-known/oauth-authorization-server');
    expect(status).toBe(200);
    expect(headers.get('cache-control')).toBe('public, max-age=60');
    expect(body).toMatchObject({
      issuer: publicUrl,
      response_types_supported: [],
      grant_types_supported: ['client_credentials', 'refresh_token'],
      scopes_supported: ['read', 'servers', 'billing', 'full'],
    });
    for (const name of ['token', 'registration', 'revocation', 'introspection']) {
      const { status: found } = await anonymous('POST', new URL(body[`${name}_endpoint`]).pathname, { grant_types: 1 });
      expect([name, found]).not.toEqual([name, 404]);
    }
    const path = `${new URL(body.authorization_endpoint).pathname}?response_type=code&client_id=x`;
    for (const method of ['GET', 'POST']) {
      const { status: refused, body: why } = await anonymous(method, path);
      expect([refused, why.code]).toEqual([404, 'browser_authorization_unavailable']);
    }
  });

  it('of the protected resources (RFC 9728) name the server, for the API and for MCP', async () => {
    for (const path of ['', '/mcp']) {
      const { body } = await anonymous('GET', `/.well-known/oauth-protected-resource${path}`);
      expect(body).toMatchObject({ resource: publicUrl + path, authorization_servers: [publicUrl] });
    }
  });

  it('are readable for browsers with any headers', async () => {
    const { status, headers } = await anonymous('OPTIONS', '/.well-known/oauth-authorization-server');
    expect([status, headers.get('allow')]).toEqual([200, 'GET, HEAD']);
    expect(headers.get('access-control-allow-origin')).toBe('*');
  });
});
