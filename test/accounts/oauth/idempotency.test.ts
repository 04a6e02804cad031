/** No client gets the token or secret of another, even with the same idempotency key and body. */
import { describe, expect, it } from 'vitest';
import { startFreehold } from '../../setup/freehold.ts';
import type { Answer } from '../../setup/spawn.ts';
import { basic, bearer, oauthRequests, type TestClient } from './requests.ts';

const { anonymous, db, newAccount } = await startFreehold({ ROLES: 'api' });
const { form, introspect, newClient, tokenOf } = oauthRequests(anonymous);

const KEY = { 'idempotency-key': 'the-same' };
const GRANT = { grant_type: 'client_credentials' };
const RENEWABLE = { grant_types: ['client_credentials', 'refresh_token'] };
const replayed = ({ headers }: Answer) => headers.get('idempotency-replayed');

describe('An idempotency key at the OAuth endpoints', () => {
  it.each([
    ['a form', (client: TestClient) => form('/v1/oauth/token', GRANT, { ...KEY, ...credentials(client) })],
    ['JSON', (client: TestClient) => anonymous('POST', '/v1/oauth/token', GRANT, { ...KEY, ...credentials(client) })],
  ])('gives each of two clients its own token, by %s', async (_, ask) => {
    const clients = [await newClient(), await newClient()];
    const answers = await Promise.all([...clients, ...clients].map(ask));
    const tokens = answers.map(({ body }) => body.access_token as string);
    expect(new Set(tokens).size).toBe(4);
    expect(answers.map(replayed)).toEqual([null, null, null, null]);
    for (const [i, token] of tokens.entries())
      expect((await introspect(token)).body.client_id).toBe(clients[i % 2]!.client_id);
  });

  it('shows no token to a caller without the right secret', async () => {
    const client = await newClient();
    await form('/v1/oauth/token', GRANT, { ...KEY, ...credentials(client) });
    for (const headers of [{}, basic(client.client_id, `${client.client_secret.slice(0, -1)}!`)]) {
      const { status, body } = await form('/v1/oauth/token', GRANT, { ...KEY, ...headers });
      expect([status, body.code, body.access_token]).toEqual([401, 'invalid_client', undefined]);
    }
  });

  it('gives no client the tokens of another for the same refresh token', async () => {
    const [one, other] = [await newClient(RENEWABLE), await newClient(RENEWABLE)];
    const { refresh_token } = (await form('/v1/oauth/token', GRANT, credentials(one))).body;
    const ask = (client: TestClient) =>
      form('/v1/oauth/token', { grant_type: 'refresh_token', refresh_token }, { ...KEY, ...credentials(client) });
    expect((await ask(one)).status).toBe(200);
    expect((await ask(other)).body).toMatchObject({ status: 400, code: 'invalid_grant' });
  });

  it('ends the token of each caller', async () => {
    const clients = [await newClient(), await newClient()];
    const tokens = await Promise.all(clients.map((client) => tokenOf(client)));
    for (const token of tokens)
      expect((await form('/v1/oauth/revoke', {}, { ...KEY, ...bearer(token) })).status).toBe(200);
    for (const token of tokens) expect((await introspect(token)).body).toEqual({ active: false });
  });

  it('registers two clients for two strangers who send the same', async () => {
    const ask = () => anonymous('POST', '/v1/oauth/register', { client_name: 'agent' }, KEY);
    const answers = await Promise.all([ask(), ask(), ask()]);
    expect(new Set(answers.map(({ body }) => body.client_secret)).size).toBe(3);
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201]);
  });

  it('registers one client for one account, and another for a second account', async () => {
    const [one, other] = [await newAccount(), await newAccount()];
    const ask = ({ rest }: typeof one) => rest('POST', '/v1/oauth/register', { client_name: 'agent' }, KEY);
    const [first, again, theirs] = [await ask(one), await ask(one), await ask(other)];
    expect([again.body, replayed(again)]).toEqual([first.body, 'true']);
    expect(theirs.body.client_secret).not.toBe(first.body.client_secret);
  });
});

describe('An OAuth client of the account', () => {
  const LIST = '{ oauthClients { data { clientId clientName scope grantTypes lastUsedAt accountId } } }';
  const DELETE = 'mutation ($id: ID!) { deleteOauthClient(clientId: $id) { clientId tokensRevoked } }';

  it('is listed for its account and for the operator, without its secret', async () => {
    const account = await newAccount();
    const { client_id, client_secret } = await newClient({ client_name: 'agent', scope: 'read' }, account.rest);
    const { data } = await account.graphql(LIST);
    expect(data.oauthClients.data).toEqual([
      {
        clientId: client_id,
        clientName: 'agent',
        scope: 'read',
        accountId: account.id,
        grantTypes: [GRANT.grant_type],
        lastUsedAt: null,
      },
    ]);
    expect(JSON.stringify(data)).not.toContain(client_secret);
  });

  it('loses all its tokens at once when it is deleted, and no other client does', async () => {
    const account = await newAccount();
    const [client, other] = [await newClient(RENEWABLE, account.rest), await newClient({}, account.rest)];
    const { access_token, refresh_token } = (await form('/v1/oauth/token', GRANT, credentials(client))).body;
    const kept = await tokenOf(other);
    const use = (token: string) => anonymous('GET', '/v1/account', undefined, bearer(token));
    expect((await use(access_token)).status).toBe(200);
    const { data } = await account.graphql(DELETE, { id: client.client_id });
    expect(data.deleteOauthClient).toEqual({ clientId: client.client_id, tokensRevoked: 1 });
    expect((await use(access_token)).body.code).toBe('revoked_credential');
    expect((await use(kept)).status).toBe(200);
    for (const members of [GRANT, { grant_type: 'refresh_token', refresh_token }])
      expect((await form('/v1/oauth/token', members, credentials(client))).body.code).toBe('invalid_client');
    expect((await account.graphql(DELETE, { id: client.client_id })).errors[0].extensions.code).toBe('not_found');
    const actions = (await account.rest('GET', '/v1/account/audit-log')).body.data.map(
      ({ action }: { action: string }) => action,
    );
    expect(actions).toEqual(expect.arrayContaining(['oauth_client.removed', 'session.revoked']));
  });

  it('leaves no token behind when requests for tokens come during its deletion', async () => {
    for (let round = 0; round < 5; round++) {
      const account = await newAccount();
      const client = await newClient({}, account.rest);
      const asked = Array.from({ length: 8 }, () => form('/v1/oauth/token', GRANT, credentials(client)));
      const [deleted, ...tokens] = await Promise.all([account.graphql(DELETE, { id: client.client_id }), ...asked]);
      expect(deleted.errors).toBeUndefined();
      for (const { status, body } of tokens)
        expect([status, body.code]).toEqual(status === 200 ? [200, undefined] : [401, 'invalid_client']);
      const [open] = await db.query<{ open: number }>(
        'select count(*)::int as open from session where source = $1 and revoked_at is null',
        [`oauth:${client.client_id}`],
      );
      expect(open!.open).toBe(0);
    }
  });
});

const credentials = ({ client_id, client_secret }: TestClient) => basic(client_id, client_secret);
