/** A thief has one token of an agent, whose account has no password. The agent and the operator throw the thief out. */
import { describe, expect, it } from 'vitest';
import { startFreehold } from '../../setup/freehold.ts';
import { type RestClient, restClient } from '../../setup/spawn.ts';
import { oauthRequests, type TestClient } from './requests.ts';

const SESSIONS = 6;
const { anonymous, db, operator, publicUrl } = await startFreehold({
  LIMIT_SESSIONS: String(SESSIONS),
  RATE_LIMIT_UNPAID_PER_HOUR: '20',
});
const { newClient, requestToken, tokenOf } = oauthRequests(anonymous);
const SSH_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILZo0JzYJEHChHBt6zG/B6cGUZpbFXeUqaufc1ki+RX/';

const loginOf = async (client: TestClient) => restClient(publicUrl, await tokenOf(client));
const keyBy = async (rest: RestClient) => {
  const { body } = await rest('POST', '/v1/auth/api-keys', { name: 'stolen', scope: 'full' });
  return restClient(publicUrl, body.plaintext);
};
const statusOf = async (rest: RestClient) => (await rest('GET', '/v1/account')).status;
/** The session of a token. */
const idOf = async (rest: RestClient): Promise<string> =>
  (await rest('GET', '/v1/auth/sessions')).body.data.find((one: { current: boolean }) => one.current).token_id;
const end = (rest: RestClient, id: string) => rest('DELETE', `/v1/auth/sessions/${id}`);
const rotate = (rest: RestClient, { client_id, client_secret }: TestClient) =>
  rest('POST', `/v1/oauth/clients/${client_id}/rotate-secret`, { client_secret });

/** An agent, and a thief with a token, keys, a client, a webhook and an SSH key. */
async function robbed() {
  const client = await newClient({ scope: 'full' });
  const stolen = await loginOf(client);
  const key = await keyBy(stolen);
  const thiefs = await newClient({ scope: 'full' }, stolen);
  const child = await loginOf(thiefs);
  const keyOfChild = await keyBy(child);
  const { body: webhook } = await stolen('POST', '/v1/webhooks', { url: 'https://93.184.215.14/' });
  expect((await stolen('POST', '/v1/ssh-keys', { public_key: SSH_KEY })).status).toBe(200);
  return { client, stolen, thiefs, created: [key, child, keyOfChild], webhook: webhook.id as string };
}
type Robbed = Awaited<ReturnType<typeof robbed>>;

/** Expects that nothing of the thief is left, and that the agent gets tokens by its secret. */
async function expectFree({ created, stolen, thiefs, webhook }: Robbed, client: TestClient): Promise<void> {
  for (const rest of [stolen, ...created]) expect(await statusOf(rest)).toBe(401);
  expect((await requestToken(thiefs)).body.error).toBe('invalid_client');
  const agent = await loginOf(client);
  expect((await agent('GET', '/v1/webhooks')).body.data).toMatchObject([{ id: webhook, status: 'disabled' }]);
  expect((await agent('GET', '/v1/ssh-keys')).body.data).toEqual([]);
}

describe('A token of the client that is the only way in', () => {
  it('is ended by no key, no other client and no older token', async () => {
    const { client, stolen, created } = await robbed();
    const agent = await loginOf(client);
    const id = await idOf(agent);
    for (const rest of [stolen, ...created]) {
      const { status, body } = await end(rest, id);
      expect([status, body.code]).toEqual([403, 'insufficient_scope']);
      expect(body.detail).toContain('POST /v1/oauth/token');
    }
    expect((await end(agent, await idOf(stolen))).status).toBe(200);
    expect((await end(agent, id)).status).toBe(200);
  });

  it('comes although tokens of other clients fill the account', async () => {
    const { client, thiefs } = await robbed();
    for (let i = 0; i < SESSIONS - 2; i++) await tokenOf(thiefs);
    expect((await requestToken(thiefs)).status).toBe(200);
    await db.query(`update session set revoked_at = now() where source = $1`, [`oauth:${client.client_id}`]);
    await tokenOf(thiefs);
    expect((await requestToken(client)).status).toBe(200);
  });

  it('comes although other clients used up the tokens of an hour', async () => {
    const { client, thiefs } = await robbed();
    for (let status = 200; status === 200; ) status = (await requestToken(thiefs)).status;
    expect((await requestToken(thiefs)).body.error_description).toContain('never paid');
    expect((await requestToken(client)).status).toBe(200);
  });
});

describe('A thief leaves', () => {
  it('when the agent replaces the secret', async () => {
    const all = await robbed();
    const { status, body } = await rotate(await loginOf(all.client), all.client);
    expect(status).toBe(200);
    await expectFree(all, body);
  });

  it('when the operator resets the client', async () => {
    const all = await robbed();
    const { data } = await operator(
      'mutation ($id: ID!) { resetClient(clientId: $id, reason: "A thief") { clientSecret tokensRevoked } }',
      { id: all.client.client_id },
    );
    expect(data.resetClient.tokensRevoked).toBe(1);
    await expectFree(all, { ...all.client, client_secret: data.resetClient.clientSecret });
  });

  it('when the operator ends the credentials of the account, and the secret stays', async () => {
    const all = await robbed();
    const { body } = await all.stolen('GET', '/v1/account');
    const { data } = await operator(
      `mutation ($id: ID!) { revokeCredentials(id: $id, reason: "A thief") {
        sessionsRevoked apiKeysRevoked oauthClientsDeleted webhookSecretsReplaced } }`,
      { id: body.id },
    );
    expect(data.revokeCredentials).toEqual({
      ...{ sessionsRevoked: 2, apiKeysRevoked: 2, oauthClientsDeleted: 1, webhookSecretsReplaced: 1 },
    });
    await expectFree(all, all.client);
  });
});

it('The agent enables its webhook again after the operator ended the credentials', async () => {
  const client = await newClient({ scope: 'full' });
  const agent = restClient(publicUrl, await tokenOf(client));
  const { body: hook } = await agent('POST', '/v1/webhooks', { url: 'https://93.184.215.14/' });
  const { body: account } = await agent('GET', '/v1/account');
  await operator('mutation ($id: ID!) { revokeCredentials(id: $id, reason: "A thief") { sessionsRevoked } }', {
    id: account.id,
  });
  const again = restClient(publicUrl, await tokenOf(client));
  const { status, body } = await again('POST', `/v1/webhooks/${hook.id}/rotate-secret`);
  expect([status, body.status]).toEqual([200, 'enabled']);
});

it('A key does not replace the secret, because it would end with the other creations', async () => {
  const { client, created } = await robbed();
  const { status, body } = await rotate(created[0]!, client);
  expect([status, body.code]).toEqual([422, 'validation_failed']);
  expect(body.detail).toContain('POST /v1/oauth/token');
  expect(await statusOf(created[0]!)).toBe(200);
});
