/** A suspended account is limited at once, on every facade. */
import { describe, expect, it } from 'vitest';
import { schema } from '../../schema/index.ts';
import { ALL_ENDPOINTS } from '../setup/endpoints.ts';
import { eventually, type Freehold, startFreehold, type TestAccount } from '../setup/freehold.ts';
import { restClient } from '../setup/spawn.ts';
import { listen } from '../setup/subscription.ts';
import { callTool } from '../setup/tool.ts';

const freehold = await startFreehold();
const { newAccount, anonymous, operator, db, graphqlUrl, publicUrl } = freehold;

const SUSPEND =
  'mutation ($id: ID!, $reason: Line!) { suspendAccount(id: $id, reason: $reason) { suspendedAt suspendedFor } }';
const RESUME = 'mutation ($id: ID!) { resumeAccount(id: $id) { suspendedAt suspendedFor } }';
const suspend = ({ id }: Pick<TestAccount, 'id'>, { operator }: Pick<Freehold, 'operator'> = freehold) =>
  operator(SUSPEND, { id, reason: 'Spam was sent.' });
const resume = ({ id }: Pick<TestAccount, 'id'>) => operator(RESUME, { id });

/** Endpoints that only end something or keep a thief out, and messages. Publishing unlists an entry, so it reads its input first. */
const ENDING =
  /^DELETE |\/cancel$|\/agents\/directory$|\/account\/messages|\/auth\/password$|\/oauth\/clients\/\{\w+\}\/rotate-secret$/;
/** A public endpoint that, with a credential, creates something in its account. */
const CREATING = /^\/v1\/oauth\/register$/;

describe('A suspended account', () => {
  it('may read and end things, and may not create, change or buy anything, on every endpoint', async () => {
    const { id, rest } = await newAccount();
    await suspend({ id });
    for (const [method, path, scope] of ALL_ENDPOINTS) {
      const body = method === 'POST' || method === 'PATCH' ? { nonsense: 1 } : undefined;
      const answer = await rest(method, path.replace(/\{\w+\}/g, 'x'), body);
      const refused =
        (scope !== 'public' || CREATING.test(path)) && method !== 'GET' && !ENDING.test(`${method} ${path}`);
      const told = [method, path, answer.status, answer.body.code, answer.body.detail];
      if (refused)
        expect(told).toEqual([method, path, 403, 'account_suspended', 'The account is suspended: Spam was sent.']);
      else expect(answer.body.code, told.join(' ')).not.toBe('account_suspended');
    }
  });

  it('is refused every GraphQL mutation that does not end something, and no query', async () => {
    const active = Object.values(schema.getMutationType()!.getFields()).filter(
      ({ extensions }) => extensions.activeOnly,
    );
    const ending = Object.values(schema.getMutationType()!.getFields()).filter(
      ({ extensions }) => !extensions.activeOnly && extensions.scope !== 'public',
    );
    expect(ending.map(({ name }) => name).sort()).toEqual(
      [
        ...['cancelTopup', 'changePassword', 'deleteOauthClient', 'deleteServer', 'deleteSshKey', 'deleteWebhook'],
        ...['publishAgent', 'revokeApiKey', 'revokeSession', 'rotateOauthClientSecret'],
        ...['markMessageRead', 'writeMessage'],
      ].sort(),
    );
    expect(active.length).toBeGreaterThan(8);
    const account = await newAccount();
    await suspend(account);
    const { errors } = await account.graphql(
      'mutation { createTopup(input: {amountUsd: 30, crypto: "BTC"}) { status } }',
    );
    expect(errors[0].extensions.code).toBe('account_suspended');
    expect((await account.graphql('{ balance { balanceUsd } account { suspendedFor } }')).data.account).toEqual({
      suspendedFor: 'Spam was sent.',
    });
  });

  it('can log in, read, and delete its server with a refund of the unused hours', async () => {
    const account = await newAccount();
    await account.fund(30);
    const { body: server } = await account.rest('POST', '/v1/servers', { service_code: 'vps-1' });
    await suspend(account);
    const { body } = await anonymous('POST', '/v1/auth/login', { email: account.email, password: account.password });
    const again = restClient(publicUrl, body.tokens.access_token);
    expect((await again('POST', '/v1/servers', { service_code: 'vps-1' })).body.code).toBe('account_suspended');
    const path = `/v1/servers/${server.order_number}`;
    await eventually(async () => (await again('GET', path)).body.status === 'running');
    expect((await again('DELETE', path)).status).toBe(200);
    expect(await account.balance()).toBeGreaterThan(29);
  });

  it('can do everything again after its resumption, with the same credentials', async () => {
    const account = await newAccount();
    const order = () => account.rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'BTC' });
    expect((await order()).status).toBe(200);
    await suspend(account);
    expect((await order()).body.code).toBe('account_suspended');
    expect((await resume(account)).data.resumeAccount).toEqual({ suspendedAt: null, suspendedFor: null });
    expect((await order()).status).toBe(200);
  });

  it('cannot register an OAuth client, and the tokens of its clients are limited too', async () => {
    const account = await newAccount();
    const { body: client } = await account.rest('POST', '/v1/oauth/register', { scope: 'full' });
    await suspend(account);
    expect((await account.rest('POST', '/v1/oauth/register', {})).body.code).toBe('account_suspended');
    const { client_id, client_secret } = client;
    const { body } = await anonymous('POST', '/v1/oauth/token', {
      grant_type: 'client_credentials',
      client_id,
      client_secret,
    });
    const byClient = restClient(publicUrl, body.access_token);
    expect((await byClient('GET', '/v1/account')).status).toBe(200);
    expect((await byClient('POST', '/v1/webhooks', {})).body.code).toBe('account_suspended');
  });

  it('gets the same refusal from tools as from endpoints', async () => {
    const account = await newAccount();
    await suspend(account);
    const refused = await callTool(publicUrl, account.accessToken, 'create_topup', { amount_usd: 30, crypto: 'BTC' });
    expect([refused.isError, refused.content.code, refused.content.status]).toEqual([true, 'account_suspended', 403]);
    expect((await callTool(publicUrl, account.accessToken, 'get_balance')).content.balance_usd).toBe(0);
  });
});

describe('Suspending', () => {
  it('closes open subscriptions of that account, and of no other', async () => {
    const [one, other] = [await newAccount(), await newAccount()];
    const query = 'subscription { balanceChanged { balanceUsd } }';
    const [closed, open] = [one, other].map(({ accessToken }) => listen(graphqlUrl, accessToken, query));
    await eventually(async () => closed!.messages.length && open!.messages.length);
    await suspend(one);
    await eventually(async () => closed!.failure()?.code === 4403);
    expect([open!.failure(), open!.over()]).toEqual([undefined, false]);
    const again = listen(graphqlUrl, one.accessToken, query);
    await eventually(async () => again.messages.length);
    for (const one of [open!, again]) one.dispose();
  });

  it('is recorded once with its reason, even if operators repeat it', async () => {
    const account = await newAccount();
    await Promise.all(Array.from({ length: 10 }, () => suspend(account)));
    await Promise.all(Array.from({ length: 10 }, () => resume(account)));
    const events = await db.query(
      `select type, data from event where subject = $1 and type like 'account.%' order by id`,
      [account.id],
    );
    expect(events).toEqual([
      { type: 'account.suspended', data: { reason: 'Spam was sent.' } },
      { type: 'account.resumed', data: {} },
    ]);
    const { body } = await account.rest('GET', '/v1/account/audit-log?action=account.suspended');
    expect(body.data).toMatchObject([{ actor: { type: 'operator' }, resource: { type: 'account', id: account.id } }]);
  });

  it('is only for the operator, and only for existing accounts', async () => {
    const { id, graphql } = await newAccount();
    expect((await graphql(SUSPEND, { id, reason: 'x' })).errors[0].extensions.code).toBe('insufficient_scope');
    expect((await graphql(RESUME, { id })).errors[0].extensions.code).toBe('insufficient_scope');
    for (const unknown of ['acct_00000000000000000000000000', 'x', ''])
      expect((await suspend({ id: unknown })).errors[0].extensions.code).toBe('not_found');
    expect((await operator(SUSPEND, { id, reason: '' })).errors).toBeDefined();
  });
});

describe('A token of a suspended account', () => {
  it('stays active, because it still reads and ends things (RFC 7662)', async () => {
    const account = await newAccount();
    await suspend(account);
    const headers = { authorization: `Bearer ${account.accessToken}` };
    const { body } = await anonymous('GET', '/v1/oauth/introspect', undefined, headers);
    expect(body).toMatchObject({ active: true, sub: account.id });
    expect((await account.rest('GET', '/v1/account')).status).toBe(200);
  });
});

describe('A coin that is switched off', () => {
  const UPDATE =
    'mutation ($code: CoinCode!, $available: Boolean!) { updateCoin(code: $code, available: $available) { code available } }';
  const update = (code: string, available: boolean) => operator(UPDATE, { code, available });
  const topUp = ({ rest }: TestAccount, crypto: string) =>
    rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto });

  it('accepts no new top-ups and shows that; open top-ups go on, and the operator can switch it on again', async () => {
    const account = await newAccount();
    const { body: before } = await topUp(account, 'LTC');
    expect((await update('ltc', false)).data.updateCoin).toEqual({ code: 'LTC', available: false });
    const { status, body } = await topUp(account, 'LTC');
    expect([status, body.code, body.retryable]).toEqual([422, 'coin_unavailable', true]);
    const coins = (await anonymous('GET', '/v1/billing/coins')).body.data as { code: string; available: boolean }[];
    expect(coins.filter(({ available }) => !available).map(({ code }) => code)).toEqual(['LTC']);
    expect((await topUp(account, 'BTC')).status).toBe(200);
    const path = `/v1/billing/topups/${before.order_number}`;
    await eventually(async () => (await account.rest('GET', path)).body.status === 'confirmed');
    await update('LTC', true);
    expect((await topUp(account, 'LTC')).status).toBe(200);
  });

  it('is recorded as an act of the operator if it changes something', async () => {
    for (const available of [false, false, true, true]) await update('XMR', available);
    const entries = await db.query<{ actor: string }>(
      `select event.data, audit_entry.actor_type as actor from event join audit_entry on resource_id = subject and action = type
        and audit_entry.request_id is not null where type = 'coin.updated' and subject = 'XMR' group by 1, 2`,
    );
    expect(entries).toHaveLength(2);
    expect(new Set(entries.map(({ actor }) => actor))).toEqual(new Set(['operator']));
  });

  it('must exist, and only the operator switches it', async () => {
    expect((await update('NOPE', false)).errors[0].extensions.code).toBe('unknown_coin');
    const { graphql } = await newAccount();
    expect((await graphql(UPDATE, { code: 'BTC', available: false })).errors[0].extensions.code).toBe(
      'insufficient_scope',
    );
  });
});
