/** The secret of an OAuth client is replaced, and an agent does not lose its only way in. */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { digest } from '../../../entities/secrets.ts';
import { eventually, startFreehold } from '../../setup/freehold.ts';
import { restClient } from '../../setup/spawn.ts';
import { oauthRequests, type TestClient } from './requests.ts';

const { anonymous, db, newAccount, operator, publicUrl } = await startFreehold();
const { form, newClient, requestToken, tokenOf } = oauthRequests(anonymous);
const RESET = `mutation ($id: ID!) { resetClient(clientId: $id, reason: "A thief has the secret.") {
  clientId clientSecret tokensRevoked } }`;

const rotate = (token: string, { client_id, client_secret }: TestClient, key?: string) =>
  restClient(publicUrl, token)(
    'POST',
    `/v1/oauth/clients/${client_id}/rotate-secret`,
    { client_secret },
    key ? { 'idempotency-key': key } : {},
  );
const statusOf = async (token: string) => (await restClient(publicUrl, token)('GET', '/v1/account')).status;

describe('The secret of an OAuth client', () => {
  it('is replaced by an agent without a password, and the tokens of a thief end', async () => {
    const client = await newClient({ scope: 'servers billing' });
    const [mine, stolen] = [await tokenOf(client), await tokenOf(client)];
    const { status, body } = await rotate(mine, client);
    expect([status, body]).toEqual([
      200,
      { client_id: client.client_id, client_secret: expect.stringMatching(/^svc_cs_/), tokens_revoked: 1 },
    ]);
    expect([await statusOf(mine), await statusOf(stolen)]).toEqual([200, 401]);
    expect((await requestToken(client)).body.code).toBe('invalid_client');
    expect(await tokenOf({ ...client, client_secret: body.client_secret })).toMatch(/^svc_at_/);
  });

  it('is replaced only for the present secret, and for a caller of the same account', async () => {
    const client = await newClient({}, (await newAccount()).rest);
    const token = await tokenOf(client);
    const wrong = await rotate(token, { ...client, client_secret: `svc_cs_${'x'.repeat(38)}` });
    expect([wrong.status, wrong.body.code]).toEqual([401, 'invalid_client']);
    expect((await rotate((await newAccount()).accessToken, client)).body.code).toBe('not_found');
    expect(await tokenOf(client)).toMatch(/^svc_at_/);
  });

  it('comes again for the same key, which is a UUID', async () => {
    const client = await newClient();
    const token = await tokenOf(client);
    expect((await rotate(token, client, 'one')).body.code).toBe('invalid_header');
    const key = randomUUID();
    const first = await rotate(token, client, key);
    expect(first.status).toBe(200);
    expect((await rotate(token, client, key)).body).toEqual(first.body);
  });

  it('is replaced by the operator, which ends all tokens of the client', async () => {
    const client = await newClient();
    const stolen = await tokenOf(client);
    const { clientSecret, tokensRevoked } = (await operator(RESET, { id: client.client_id })).data.resetClient;
    expect([tokensRevoked, await statusOf(stolen)]).toEqual([1, 401]);
    const mine = await tokenOf({ ...client, client_secret: clientSecret });
    const log = '/v1/account/audit-log?action=oauth_client.secret_rotated';
    const { body } = await restClient(publicUrl, mine)('GET', log);
    expect(body.data).toMatchObject([{ actor: { type: 'operator' }, resource: { id: client.client_id } }]);
  });
});

/** Sends a request that waits for the lock of the account, and replaces the client's secret under the lock. */
async function whileReplaced<T>({ client_id: id }: TestClient, ask: () => Promise<T>): Promise<T> {
  const [client] = await db.query<{ accountId: string }>(
    `select account_id as "accountId" from oauth_client where id = $1`,
    [id],
  );
  const { answer } = await db.transaction(async (tx) => {
    await lockAccount(tx, client!.accountId);
    const answer = ask();
    await eventually(async () => {
      const waiting = await db.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      return waiting.length > 0;
    });
    await tx.query('update oauth_client set secret_digest = $2 where id = $1', [id, digest('svc_cs_new')]);
    return { answer };
  });
  return answer;
}

describe('A secret that is replaced while a request with it waits', () => {
  it('gets no token', async () => {
    const client = await newClient();
    const { status, body } = await whileReplaced(client, () => requestToken(client));
    expect([status, body.error]).toEqual([401, 'invalid_client']);
  });

  it('renews no token', async () => {
    const client = await newClient({ grant_types: ['client_credentials', 'refresh_token'] });
    const { refresh_token } = (await requestToken(client)).body;
    const renewal = { grant_type: 'refresh_token', ...client, refresh_token };
    const { status, body } = await whileReplaced(client, () => form('/v1/oauth/token', renewal));
    expect([status, body.error]).toEqual([401, 'invalid_client']);
  });
});

describe('The only client of an account without a password', () => {
  it('cannot be deleted, also beside a client that depends on it', async () => {
    const client = await newClient({ scope: 'full' });
    const rest = restClient(publicUrl, await tokenOf(client));
    const dependent = await newClient({ scope: 'full' }, rest);
    const { status, body } = await rest('DELETE', `/v1/oauth/clients/${client.client_id}`);
    expect([status, body.code]).toEqual([422, 'validation_failed']);
    expect(body.detail).toContain('/rotate-secret');
    expect((await rest('DELETE', `/v1/oauth/clients/${dependent.client_id}`)).status).toBe(200);
    expect(await tokenOf(client)).toMatch(/^svc_at_/);
  });
});
