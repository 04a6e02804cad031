/** The operator's own audit log: refused acts, and the accounts whose data the operator read. */
import { describe, expect, it } from 'vitest';
import { newId } from '../../entities/ids.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';
import { graphqlClient } from '../setup/spawn.ts';
import { listen } from '../setup/subscription.ts';

const { db, graphqlUrl, newAccount, operator, operatorToken } = await startFreehold();

const LOG = `query ($accountId: ID, $cursor: Cursor, $action: [AuditAction!]) {
  auditLog(accountId: $accountId, cursor: $cursor, action: $action, limit: 50) {
    data { action actor { type id } method path status resource { type id } requestId } nextCursor
  }
}`;
// biome-ignore lint/suspicious/noExplicitAny: each test checks the type of the members that it reads
type Entry = any;
const logOf = async (accountId?: string): Promise<Entry[]> => (await operator(LOG, { accountId })).data.auditLog.data;
const found = (path: string, id?: string): Promise<Entry> =>
  eventually(async () => (await logOf()).find((entry) => entry.path === path && (!id || entry.resource?.id === id)));

describe("The operator's audit log", () => {
  it('has the acts of the operator, also the refused ones, with the account that they concerned', async () => {
    const account = await newAccount();
    await operator(`mutation ($id: ID!) { suspendAccount(id: $id, reason: "spam") { id } }`, { id: account.id });
    const nothing = `adjustBalance(accountId: "${account.id}", amountUsd: 0, reason: "x", key: "x") { __typename }`;
    expect((await operator(`mutation { ${nothing} }`)).errors[0].extensions.code).toBe('validation_failed');
    const unknown = await operator(`mutation { resumeAccount(id: "${newId('acct')}") { id } }`);
    expect(unknown.errors[0].extensions.code).toBe('not_found');
    expect(await found('/graphql#suspendAccount')).toEqual({
      action: 'api.request',
      actor: { type: 'operator', id: 'operator' },
      method: 'POST',
      path: '/graphql#suspendAccount',
      status: 200,
      resource: { type: 'account', id: account.id },
      requestId: expect.stringMatching(/^req_/),
    });
    expect(await found('/graphql#adjustBalance', account.id)).toMatchObject({ status: 422 });
    expect(await found('/graphql#resumeAccount')).toMatchObject({ status: 404, resource: null });
  });

  it('has a read for which the operator lacks the right', async () => {
    const ADD = 'mutation { addOperator(input: { name: "ro", role: READ_ONLY }) { token operator { id } } }';
    const { token, operator: added } = (await operator(ADD)).data.addOperator;
    const refused = await graphqlClient(graphqlUrl, token)('{ manualJobs { id } }');
    expect(refused.errors[0].extensions.code).toBe('insufficient_scope');
    expect(await found('/graphql#manualJobs')).toMatchObject({ actor: { id: added.id }, status: 403, resource: null });
  });

  it('has the accounts whose data the operator read, once in ten minutes for each field', async () => {
    const [account, other] = [await newAccount(), await newAccount()];
    await account.rest('POST', '/v1/auth/api-keys', { name: 'a', scope: 'read' });
    await other.rest('POST', '/v1/auth/api-keys', { name: 'b', scope: 'read' });
    for (let i = 0; i < 3; i++) await operator('{ apiKeys { data { name } } }');
    await operator(LOG, { accountId: other.id });
    expect(await found('/graphql#apiKeys', account.id)).toMatchObject({ resource: { type: 'account' }, status: 200 });
    await found('/graphql#apiKeys', other.id);
    await found('/graphql#auditLog', other.id);
    const reads = (await logOf()).filter(
      ({ path, resource }) => path === '/graphql#apiKeys' && resource.id === other.id,
    );
    expect(reads).toHaveLength(1);
  });

  it('has the fields of a fragment, and names the account of a default', async () => {
    const account = await newAccount();
    const { errors } = await operator(
      `mutation ($id: ID! = "${account.id}", $also: ID! = "${account.id}") {
        ... on Mutation { suspendAccount(id: $id, reason: "spam") { id } }
        ...again
      }
      fragment again on Mutation { resumeAccount(id: $also) { id } }`,
    );
    expect(errors).toBeUndefined();
    for (const field of ['suspendAccount', 'resumeAccount'])
      expect(await found(`/graphql#${field}`, account.id)).toMatchObject({ status: 200 });
    expect((await logOf()).filter(({ path }) => path === '/graphql')).toEqual([]);
  });

  it('names the account of an order after a refused act', async () => {
    const account = await newAccount();
    const { body } = await account.rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'BTC' });
    const giveUp = 'mutation ($subject: Line!) { giveUpTask(subject: $subject) { subject } }';
    await operator(giveUp, { subject: body.order_number });
    expect(await found('/graphql#giveUpTask', account.id)).toMatchObject({ status: 422 });
  });

  it('names the account of every id and credential, and keeps no credential', async () => {
    const account = await newAccount();
    const { body: key } = await account.rest('POST', '/v1/auth/api-keys', { name: 'a', scope: 'read' });
    const { body: client } = await account.rest('POST', '/v1/oauth/register', { client_name: 'agent' });
    const { body: hook } = await account.rest('POST', '/v1/webhooks', { url: 'https://example.org/', events: ['*'] });
    const acts = {
      deleteOauthClient: `deleteOauthClient(clientId: "${client.client_id}") { clientId }`,
      revokeOauthToken: `revokeOauthToken(authorization: "Bearer ${account.accessToken}", input: {})`,
      giveUpTask: `giveUpTask(subject: "${key.key_id}") { subject }`,
      retryTask: `retryTask(subject: "${hook.id}") { subject }`,
      revokeApiKey: `revokeApiKey(keyId: "${key.key_id}") { keyId }`,
    };
    for (const [field, act] of Object.entries(acts)) {
      await operator(`mutation { ${act} }`);
      await found(`/graphql#${field}`, account.id);
    }
    const [kept] = await db.query<{ text: string }>(
      `select string_agg(audit_entry::text, '') as text from audit_entry`,
    );
    expect(kept!.text).not.toContain(account.accessToken);
  });

  it('has the account of each event that a subscription shows', async () => {
    const subscription = listen(graphqlUrl, operatorToken, 'subscription { topUpUpdated { status } }');
    const accounts = [await newAccount(), await newAccount()];
    for (const account of accounts) {
      await account.rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'BTC' });
      await found('/graphql#topUpUpdated', account.id);
    }
    await subscription.dispose();
    const servers = listen(graphqlUrl, operatorToken, 'subscription { serverUpdated { type } }');
    const owner = await newAccount();
    await owner.fund(50);
    const order = { service_code: 'vps-1', region: 'ams', hostname: 'web' };
    const ordered = await owner.rest('POST', '/v1/servers', { ...order, root_password: 'a heron on the roof' });
    expect(ordered.status).toBe(200);
    await found('/graphql#serverUpdated', owner.id);
    await servers.dispose();
  });

  it('has no reads of the catalog and the stock', async () => {
    await operator('{ stock { region } catalog { vps { code } } }');
    await operator(`mutation { resumeAccount(id: "${newId('acct')}") { id } }`);
    await found('/graphql#resumeAccount');
    expect((await logOf()).filter(({ path }) => /stock|catalog/.test(path ?? ''))).toEqual([]);
  });

  it('shows the operator the log of any account, and a customer the own one alone', async () => {
    const [account, other] = [await newAccount(), await newAccount()];
    expect((await logOf(account.id)).map(({ action }) => action)).toContain('session.created');
    const own = await account.graphql(LOG, { accountId: account.id });
    expect(own.data.auditLog.data.length).toBeGreaterThan(0);
    for (const accountId of [other.id, 'operator'])
      expect((await account.graphql(LOG, { accountId })).errors[0].extensions.code).toBe('not_found');
  });

  it('stays in its own chain, away from the logs of customers', async () => {
    const account = await newAccount();
    await operator(LOG, { accountId: account.id });
    await found('/graphql#auditLog', account.id);
    const rows = await db.query(`select from audit_entry where account_id = $1 and actor_type = 'operator'`, [
      account.id,
    ]);
    expect(rows).toEqual([]);
  });
});
