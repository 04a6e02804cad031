/** The events of the operator: a list, a subscription and a signed webhook. */
import { describe, expect, it } from 'vitest';
import { atEnd } from '../setup/end.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';
import { startReceiver, verify } from '../setup/receiver.ts';
import { listen } from '../setup/subscription.ts';

const { db, graphqlUrl, newAccount, operator, operatorToken } = await startFreehold({
  WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
});
const receiver = await startReceiver();
atEnd(() => receiver.close());

const LIST = `query ($limit: PageLimit! = 50, $cursor: Cursor, $type: AuditAction, $since: DateTime) {
  operatorEvents(limit: $limit, cursor: $cursor, type: $type, since: $since) {
    data { id type subject data createdAt } nextCursor } }`;
// biome-ignore lint/suspicious/noExplicitAny: each test checks the members that it reads
const list = async (variables: object = {}): Promise<any> => (await operator(LIST, variables)).data.operatorEvents;
const addStock = async (total: number) =>
  operator(`mutation { setStock(region: "ams", serviceCode: "vps-1", total: ${total}) { total } }`);
const ask = async () => {
  const account = await newAccount();
  const { body } = await account.rest('POST', '/v1/account/messages', { subject: 'Why?', body: 'It is off.' });
  return { account, id: body.id as string };
};
// The first look of the worker at its engine is an event, too.
await eventually(async () => (await list({ type: 'engine.updated' })).data.length > 0);
const SUBSCRIBE = 'subscription { operatorEvent { id type subject data } }';

describe('The operator', () => {
  it('reads its events, newest first, in pages, by type and since a time', async () => {
    await addStock(90);
    const { id } = await ask();
    await addStock(80);
    const all = await list();
    expect(all.data.slice(0, 3)).toMatchObject([
      { type: 'catalog.updated', subject: 'ams/vps-1', data: { total: 80 } },
      { type: 'message.received', subject: id, data: {} },
      { type: 'catalog.updated', subject: 'ams/vps-1', data: { total: 90 } },
    ]);
    const first = await list({ limit: 1 });
    expect(first.data).toEqual(all.data.slice(0, 1));
    expect((await list({ limit: 1, cursor: first.nextCursor })).data).toEqual(all.data.slice(1, 2));
    const ofType = await list({ type: 'catalog.updated', limit: 1 });
    expect((await list({ type: 'catalog.updated', cursor: ofType.nextCursor })).data[0].data).toEqual({ total: 90 });
    expect((await list({ since: all.data[0].createdAt })).data).toEqual(all.data.slice(0, 1));
    expect(
      (await operator(LIST, { type: 'message.received', cursor: first.nextCursor })).errors[0].extensions.code,
    ).toBe('invalid_cursor');
  });

  it('leaves an entry in the audit log when an event names a thing of a customer', async () => {
    const { account } = await ask();
    await list({ limit: 1 });
    await eventually(async () => {
      const audited = await db.query(
        `select 1 from audit_entry where account_id = 'operator' and path = '/graphql#operatorEvents' and resource_id = $1`,
        [account.id],
      );
      return audited.length > 0;
    });
  });

  it('hears the newest event first, and then each later one', async () => {
    await addStock(70);
    const live = listen(graphqlUrl, operatorToken, SUBSCRIBE);
    await eventually(async () => live.messages.length);
    expect(live.messages).toMatchObject([{ operatorEvent: { type: 'catalog.updated', data: { total: 70 } } }]);
    const { id } = await ask();
    await addStock(60);
    await eventually(async () => live.messages.length >= 3);
    live.dispose();
    expect(live.messages.slice(1)).toMatchObject([
      { operatorEvent: { type: 'message.received', subject: id } },
      { operatorEvent: { type: 'catalog.updated', data: { total: 60 } } },
    ]);
  });

  it('misses no event of a connection that was lost', async () => {
    const live = listen(graphqlUrl, operatorToken, SUBSCRIBE);
    await eventually(async () => live.messages.length);
    await db.query(
      `insert into event (id, account_id, type, subject, data)
        select 'evt_' || overlay(substr(max(id), 5) placing 'zzzz' from 23), 'operator', 'coin.updated', 'BTC', '{}' from event`,
    );
    // The bus has lost a message, so it says that any row may have changed.
    db.bus.publish([{ kind: 'operatorEvent', accountId: '', id: null }]);
    await eventually(async () => live.messages.some(({ operatorEvent }) => operatorEvent.type === 'coin.updated'));
    live.dispose();
  });

  it('gives customers neither the list nor the subscription', async () => {
    const { account } = await ask();
    expect((await account.graphql('{ operatorEvents { data { id } } }')).errors[0].extensions.code).toBe(
      'insufficient_scope',
    );
    const live = listen(graphqlUrl, account.accessToken, SUBSCRIBE);
    await eventually(async () => live.failure() || live.messages.length);
    expect(JSON.stringify([live.failure(), live.messages])).toContain('insufficient_scope');
    live.dispose();
  });
});

const CREATE = `mutation ($input: CreateWebhookInput!) {
  createWebhook(input: $input) { webhook { id status } secret } }`;
const create = (input: object) => operator(CREATE, { input });

describe('A webhook of the operator', () => {
  it('gets signed events of the operator, and none of customers', async () => {
    const { data } = await create({ url: receiver.url, eventFilter: '*' });
    const { secret, webhook } = data.createWebhook;
    const { id, account } = await ask();
    const message = await eventually(async () =>
      receiver.received.find(({ body }) => body.type === 'message.received'),
    );
    expect(verify(secret, message)).toMatchObject({
      account_id: 'operator',
      data: { object: { id, from: 'customer', subject: 'Why?' } },
    });
    await account.fund(30);
    await addStock(50);
    await eventually(async () => receiver.received.find(({ body }) => body.type === 'catalog.updated'));
    expect(receiver.received.filter(({ body }) => body.account_id !== 'operator')).toEqual([]);
    const [row] = await db.query<{ secret: Buffer }>('select secret from webhook where id = $1', [webhook.id]);
    expect(row!.secret.toString('latin1')).not.toContain(secret.slice(6));
  });

  it('is tested, listed, given a new secret and deleted by the operator', async () => {
    const { id } = (await create({ url: receiver.url, eventFilter: 'finding.*' })).data.createWebhook.webhook;
    const own = async () =>
      (await operator('{ webhooks(accountId: "operator") { data { id } } }')).data.webhooks.data.map(
        (webhook: { id: string }) => webhook.id,
      );
    expect(await own()).toContain(id);
    expect((await operator(`mutation { testWebhook(id: "${id}") { delivered } }`)).data.testWebhook.delivered).toBe(
      true,
    );
    await db.query(`update webhook set status = 'DISABLED', disabled_reason = 'endpoint_gone' where id = $1`, [id]);
    await operator(`mutation { testWebhook(id: "${id}") { delivered } }`);
    expect(
      (await operator('{ webhooks(accountId: "operator", limit: 1) { data { id status } } }')).data.webhooks.data,
    ).toEqual([{ id, status: 'ENABLED' }]);
    const { secret } = (await operator(`mutation { rotateWebhookSecret(id: "${id}") { secret } }`)).data
      .rotateWebhookSecret;
    expect(secret).toMatch(/^whsec_/);
    expect((await operator(`mutation { deleteWebhook(id: "${id}") { deleted } }`)).data.deleteWebhook.deleted).toBe(
      true,
    );
    expect(await own()).not.toContain(id);
  });

  it('leads to no address that the operator does not allow', async () => {
    const { errors } = await create({ url: 'http://10.0.0.1:8080/', eventFilter: '*' });
    expect(errors[0].extensions.code).toBe('url_not_allowed');
  });

  it('is invisible to customers, and theirs stay out of its reach', async () => {
    const { account } = await ask();
    const { body: theirs } = await account.rest('POST', '/v1/webhooks', {
      url: receiver.url,
      event_filter: 'server.*',
    });
    const { id } = (await create({ url: receiver.url, eventFilter: 'coin.*' })).data.createWebhook.webhook;
    expect((await account.rest('GET', '/v1/webhooks')).body.data).toMatchObject([{ id: theirs.id }]);
    expect((await account.rest('DELETE', `/v1/webhooks/${id}`)).body.code).toBe('not_found');
    const { errors } = await account.graphql('{ webhooks(accountId: "operator") { data { id } } }');
    expect(errors[0].extensions.code).toBe('not_found');
    const rotated = await operator(`mutation { rotateWebhookSecret(id: "${theirs.id}") { secret } }`);
    expect(rotated.errors[0].extensions.code).toBe('not_found');
  });
});
