import { describe, expect, it } from 'vitest';
import { eventually, startFreehold } from '../setup/freehold.ts';
import { verify } from '../setup/receiver.ts';
import { KEY, list, receiver, register } from './receivers.ts';

const { newAccount, operator, db } = await startFreehold({ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', LIMIT_WEBHOOKS: '3' });

describe('A webhook', () => {
  it('is registered, listed and deleted by its owner only, and shows its secret once', async () => {
    const [mine, theirs] = [await newAccount(), await newAccount()];
    const { secret, ...webhook } = await register(mine, (await receiver()).url, {
      description: 'pager',
      event_filter: 'server.*,topup.confirmed',
    });
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(webhook).toEqual({
      id: expect.stringMatching(/^whk_[0-9a-z]{26}$/),
      url: expect.stringMatching(/^http:\/\/127/),
      event_filter: 'server.*,topup.confirmed',
      description: 'pager',
      status: 'enabled',
      disabled_reason: null,
      created_at: expect.any(String),
      last_delivery: null,
    });
    expect(await list(mine)).toEqual([webhook]);
    expect(await list(theirs)).toEqual([]);
    for (const [method, path] of [
      ['DELETE', ''],
      ['POST', '/test'],
    ] as const)
      expect((await theirs.rest(method, `/v1/webhooks/${webhook.id}${path}`)).body.code).toBe('not_found');
    expect((await mine.rest('DELETE', `/v1/webhooks/${webhook.id}`)).body).toEqual({ id: webhook.id, deleted: true });
    expect((await mine.rest('DELETE', `/v1/webhooks/${webhook.id}`)).body.code).toBe('not_found');
    expect((await mine.rest('POST', '/v1/webhooks/nonsense/test')).body.code).toBe('not_found');
  });

  it('keeps its secret sealed', async () => {
    const account = await newAccount();
    const { id, secret } = await register(account, (await receiver()).url);
    const [row] = await db.query<{ secret: Buffer }>('select secret from webhook where id = $1', [id]);
    expect(row!.secret.includes(Buffer.from(secret.slice(6), 'base64'))).toBe(false);
    expect(row!.secret.toString('latin1')).not.toContain(secret.slice(6));
  });

  it.each([
    ['server.*, topup.confirmed', 'server.*,topup.confirmed'],
    [['server.running', 'server.running', 'ssh_key.*'], 'server.running,ssh_key.*'],
    [undefined, '*'],
  ])('takes the filter %j', async (event_filter, shown) => {
    expect((await register(await newAccount(), (await receiver()).url, { event_filter })).event_filter).toBe(shown);
  });

  it.each([
    'server.flying',
    'server',
    '*.running',
    'serv.*',
    '',
    ',',
    'server.*,',
    ['*', 'nothing'],
    [''],
    '**',
    'SERVER.*',
  ])('refuses the filter %j', async (event_filter) => {
    const { body } = await (await newAccount()).rest('POST', '/v1/webhooks', {
      url: 'https://example.com/',
      event_filter,
    });
    expect(['unknown_event', 'validation_failed']).toContain(body.code);
    expect(body.errors[0].field).toMatch(/^event_filter/);
  });

  it('refuses a filter by the wrong name, and suggests the nearest', async () => {
    const { body } = await (await newAccount()).rest('POST', '/v1/webhooks', {
      url: 'https://example.com/',
      event_filter: ['server.*', 'server.runing'],
    });
    expect(body.errors[0].message).toBe(
      'There is no event "server.runing" for event_filter. Did you mean server.running?',
    );
    expect(body.detail).toContain(body.errors[0].message);
  });

  it('is refused beyond the limit of its account, even if twenty are registered at once', async () => {
    const { rest } = await newAccount();
    const { url } = await receiver();
    const answers = await Promise.all(Array.from({ length: 20 }, () => rest('POST', '/v1/webhooks', { url })));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(3);
    expect(new Set(answers.flatMap(({ status, body }) => (status === 200 ? [] : [body.code])))).toEqual(
      new Set(['webhook_limit_reached']),
    );
  });

  it('needs the scope full for changes', async () => {
    const account = await newAccount();
    const { body: key } = await account.rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'servers billing' });
    const headers = { authorization: `Bearer ${key.plaintext}` };
    expect((await account.rest('GET', '/v1/webhooks', undefined, headers)).status).toBe(200);
    expect((await account.rest('POST', '/v1/webhooks', { url: 'https://example.com' }, headers)).body.code).toBe(
      'insufficient_scope',
    );
  });
});

describe('A test call', () => {
  it('is sent once and at once under any filter, and returns its result', async () => {
    const account = await newAccount();
    const to = await receiver();
    const { id, secret } = await register(account, to.url, { event_filter: 'topup.expired' });
    const { status, body } = await account.rest('POST', `/v1/webhooks/${id}/test`);
    expect([status, body]).toEqual([
      200,
      {
        delivered: true,
        event_id: expect.stringMatching(/^evt_/),
        response_status: 204,
        duration_ms: expect.any(Number),
        error: null,
      },
    ]);
    expect(to.received).toHaveLength(1);
    expect(verify(secret, to.received[0]!)).toMatchObject({
      id: body.event_id,
      type: 'webhook.test',
      data: { object: { id } },
    });
    const other = await newAccount();
    expect((await other.rest('POST', `/v1/webhooks/${id}/test`)).body.code).toBe('not_found');
  });

  it.each([
    ['an error', 500, 'http_status'],
    ['a redirect, which is not followed', 302, 'http_status'],
    ['not found', 404, 'http_status'],
  ])('reports %s without the answer of the receiver', async (_, answered, error) => {
    const account = await newAccount();
    const [to, elsewhere] = [await receiver(), await receiver()];
    to.answer = (response) =>
      void response.writeHead(answered, { location: elsewhere.url }).end('the receiver says this');
    const { id } = await register(account, to.url);
    const { status, body } = await account.rest('POST', `/v1/webhooks/${id}/test`);
    expect([status, body]).toEqual([
      200,
      { delivered: false, event_id: body.event_id, response_status: answered, duration_ms: body.duration_ms, error },
    ]);
    expect(elsewhere.connections()).toBe(0);
  });

  it('checks the address again, even of a registered URL', async () => {
    const account = await newAccount();
    const { id } = await register(account, (await receiver()).url, { event_filter: 'ssh_key.*' });
    await db.query(`update webhook set url = 'https://10.0.0.1/' where id = $1`, [id]);
    const { body } = await account.rest('POST', `/v1/webhooks/${id}/test`);
    expect(body).toMatchObject({ delivered: false, response_status: null, error: 'refused_address' });
    await account.rest('POST', '/v1/ssh-keys', { public_key: KEY });
    await eventually(async () => {
      const [{ last_delivery }] = await list(account);
      return last_delivery.event_type === 'ssh_key.created' && last_delivery.error === 'refused_address';
    });
  });

  it('reports a missing listener, and cuts an endless answer', async () => {
    const account = await newAccount();
    const to = await receiver();
    const { id } = await register(account, to.url);
    let closed = 0;
    to.answer = (response) => {
      let open = true;
      response
        .on('close', () => {
          open = false;
          closed++;
        })
        .writeHead(200);
      const pour = () => {
        while (open && response.write('x'.repeat(1024)));
        response.once('drain', pour);
      };
      pour();
    };
    expect((await account.rest('POST', `/v1/webhooks/${id}/test`)).body).toMatchObject({
      delivered: true,
      response_status: 200,
    });
    await eventually(async () => closed > 0);
    await to.close().catch(() => {});
    expect((await account.rest('POST', `/v1/webhooks/${id}/test`)).body).toMatchObject({
      delivered: false,
      response_status: null,
      duration_ms: 10_000,
      error: 'unreachable',
    });
  });
});

describe('The deliveries of webhooks', () => {
  it('are listed and repeated by GraphQL, with the same id', async () => {
    const [account, other] = [await newAccount(), await newAccount()];
    const to = await receiver();
    const { id } = await register(account, to.url, { event_filter: 'ssh_key.*' });
    await account.rest('POST', '/v1/ssh-keys', { public_key: KEY });
    const query =
      'query ($webhookId: ID) { webhookDeliveries(webhookId: $webhookId) { data { id eventId status attempts } hasMore } }';
    const [delivery] = await eventually(async () => {
      const { data } = await account.graphql(query, { webhookId: id });
      return data.webhookDeliveries.data[0]?.status === 'SUCCEEDED' && data.webhookDeliveries.data;
    });
    expect((await operator(query, { webhookId: id })).data.webhookDeliveries.data).toEqual([delivery]);
    expect((await other.graphql(query, { webhookId: id })).errors[0].extensions.code).toBe('not_found');
    const again = 'mutation ($id: ID!) { redeliver(id: $id) { status attempts } }';
    expect((await other.graphql(again, { id: delivery.id })).errors[0].extensions.code).toBe('not_found');
    expect((await account.graphql(again, { id: 'nonsense' })).errors[0].extensions.code).toBe('not_found');
    expect((await account.graphql(again, { id: delivery.id })).data.redeliver).toEqual({
      status: 'PENDING',
      attempts: 0,
    });
    await eventually(async () => to.received.length === 2);
    expect(new Set(to.received.map(({ headers }) => headers['webhook-id']))).toEqual(new Set([delivery.eventId]));
  });
});
