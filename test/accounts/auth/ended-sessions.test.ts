/** One credential of an account cannot keep the owner out. */
import { describe, expect, it } from 'vitest';
import { startFreehold, type TestAccount } from '../../setup/freehold.ts';
import { type RestClient, restClient } from '../../setup/spawn.ts';
import { oauthRequests } from '../oauth/requests.ts';

const { anonymous, db, newAccount, operator, publicUrl } = await startFreehold();
const { newClient, tokenOf } = oauthRequests(anonymous);
const NEW = 'another horse battery staple';

async function login({ email, password }: Pick<TestAccount, 'email' | 'password'>) {
  const { status, body } = await anonymous('POST', '/v1/auth/login', { email, password });
  expect(status, JSON.stringify(body)).toBe(200);
  const rest = restClient(publicUrl, body.tokens.access_token);
  return { ...(body.tokens as { token_id: string; refresh_token: string }), rest };
}
const end = (rest: RestClient, { token_id }: { token_id: string }) => rest('DELETE', `/v1/auth/sessions/${token_id}`);
const fullKey = async ({ rest }: TestAccount) =>
  (await rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'full' })).body.plaintext as string;

describe('A login', () => {
  it('is ended by no API key and by no token of an OAuth client, and the refusal tells the way', async () => {
    const account = await newAccount();
    const client = await newClient({ scope: 'full' }, account.rest);
    const owner = await login(account);
    for (const credential of [await fullKey(account), await tokenOf(client)]) {
      const { status, body } = await end(restClient(publicUrl, credential), owner);
      expect([status, body.code]).toEqual([403, 'insufficient_scope']);
      expect(body.detail).toContain('POST /v1/auth/login');
    }
    expect((await owner.rest('GET', '/v1/account')).status).toBe(200);
  });

  it('is ended by no earlier login, also after a refresh of that one', async () => {
    const account = await newAccount();
    const thief = await login(account);
    const owner = await login(account);
    expect((await end(thief.rest, owner)).body.code).toBe('insufficient_scope');
    const { body } = await anonymous('POST', '/v1/auth/token/refresh', { refresh_token: thief.refresh_token });
    const renewed = restClient(publicUrl, body.tokens.access_token);
    expect((await end(renewed, owner)).body.code).toBe('insufficient_scope');
    expect((await end(owner.rest, thief)).status).toBe(200);
    expect((await renewed('GET', '/v1/account')).status).toBe(401);
  });

  it('ends the tokens of OAuth clients, older and newer ones', async () => {
    const account = await newAccount();
    const client = await newClient({ scope: 'full' }, account.rest);
    const token = await tokenOf(client);
    const { body } = await account.rest('GET', '/v1/auth/sessions');
    const [session] = body.data.filter(({ source }: { source: string }) => source.startsWith('oauth:'));
    expect((await end(account.rest, session)).status).toBe(200);
    expect((await restClient(publicUrl, token)('GET', '/v1/account')).status).toBe(401);
  });
});

it('The owner of a suspended account changes the password, and so throws a thief out', async () => {
  const account = await newAccount();
  const thief = await fullKey(account);
  await operator('mutation ($id: ID!) { suspendAccount(id: $id, reason: "A thief is in it.") { id } }', {
    id: account.id,
  });
  const change = { current_password: account.password, new_password: NEW, revoke: 'everything' };
  const { status, body } = await account.rest('POST', '/v1/auth/password', change);
  expect([status, body.api_keys_revoked]).toEqual([200, 1]);
  expect((await restClient(publicUrl, thief)('GET', '/v1/account')).body.code).toBe('revoked_credential');
  expect((await login({ ...account, password: NEW })).token_id).toMatch(/^tok_/);
});

describe('The operator', () => {
  const REVOKE = `mutation ($id: ID!) { revokeCredentials(id: $id, reason: "A thief is in it.") {
    sessionsRevoked apiKeysRevoked oauthClientsDeleted webhookSecretsReplaced } }`;

  it('ends all credentials of an account, and its owner reads the reason after a new login', async () => {
    const account = await newAccount();
    const credentials = [account.accessToken, await fullKey(account)];
    credentials.push(await tokenOf(await newClient({ scope: 'full' }, account.rest)));
    await account.rest('POST', '/v1/webhooks', { url: 'https://93.184.215.14/' });
    const { data } = await operator(REVOKE, { id: account.id });
    expect(data.revokeCredentials).toEqual({
      ...{ sessionsRevoked: 2, apiKeysRevoked: 1, oauthClientsDeleted: 1, webhookSecretsReplaced: 1 },
    });
    for (const credential of credentials)
      expect((await restClient(publicUrl, credential)('GET', '/v1/account')).body.code).toBe('revoked_credential');
    const { rest } = await login(account);
    const { body } = await rest('GET', '/v1/account/audit-log?action=account.credentials_revoked');
    expect(body.data).toMatchObject([{ actor: { type: 'operator' }, resource: { id: account.id } }]);
    const events = await db.query(`select data from event where account_id = $1 and type = $2`, [
      account.id,
      'account.credentials_revoked',
    ]);
    expect(events).toEqual([{ data: { reason: 'A thief is in it.' } }]);
    const messages = (await rest('GET', '/v1/account/messages')).body.data;
    expect(messages).toMatchObject([{ from: 'operator', body: expect.stringMatching(/A thief is in it\.$/) }]);
  });
});
