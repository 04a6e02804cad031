/** The events that webhooks can receive, the deliveries of a webhook, and their repetition over REST and MCP. */
import { describe, expect, it } from 'vitest';
import { TOLD_EVENT_TYPES } from '../../entities/webhooks/events.ts';
import { atEnd } from '../setup/end.ts';
import { eventually, startFreehold, type TestAccount } from '../setup/freehold.ts';
import { startReceiver } from '../setup/receiver.ts';
import { callTool } from '../setup/tool.ts';

const { newAccount, db, publicUrl } = await startFreehold({ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' });
const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILZo0JzYJEHChHBt6zG/B6cGUZpbFXeUqaufc1ki+RX/';

interface Delivery {
  id: string;
  status: string;
  event_type: string;
  event_id: string;
  attempts: number;
}

interface Listed {
  type: string;
  description: string;
  example: { data: object };
}

async function setUp(status = 204) {
  const receiver = await startReceiver();
  receiver.answer = (response) => void response.writeHead(status).end();
  atEnd(() => receiver.close());
  const account = await newAccount();
  const { body } = await account.rest('POST', '/v1/webhooks', { url: receiver.url, event_filter: 'ssh_key.*' });
  await account.rest('POST', '/v1/ssh-keys', { public_key: KEY });
  const path = `/v1/webhooks/${body.id}/deliveries`;
  const ended = () =>
    eventually(async () => {
      const [newest] = (await account.rest('GET', path)).body.data as Delivery[];
      return newest && !['pending', 'delivering'].includes(newest.status) && newest;
    });
  return { receiver, account, id: body.id as string, path, ended };
}
const repeat = (account: TestAccount, path: string, delivery: string, headers = {}) =>
  account.rest('POST', `${path}/${delivery}/redeliver`, undefined, headers);
/** Moves the last repetitions of a webhook into the past. */
const aMinuteLater = (id: string) =>
  db.query(`update webhook_delivery set redelivered_at = redelivered_at - interval '1 minute' where webhook_id = $1`, [
    id,
  ]);

describe('The list of events', () => {
  it('shows each type with a description and a message to strangers', async () => {
    const answer = await fetch(`${publicUrl}/v1/webhooks/events`);
    const { data, has_more } = (await answer.json()) as { data: Listed[]; has_more: boolean };
    expect([answer.status, has_more]).toEqual([200, false]);
    expect(data.map(({ type }) => type)).toEqual(TOLD_EVENT_TYPES);
    for (const { type, description, example } of data) {
      expect(description, type).toMatch(/^[A-Z].*\.$/);
      expect(example, type).toMatchObject({ type, api_version: '1.0.0', data: { object: expect.any(Object) } });
    }
    const running = data.find(({ type }) => type === 'server.running');
    expect(running!.example.data).toMatchObject({
      object: { order_number: expect.any(String), status: 'running' },
      previous_status: 'provisioning',
    });
  });

  it('is a tool without examples', async () => {
    const { content } = await callTool(publicUrl, undefined, 'list_webhook_events', {});
    expect(content.data[0]).toEqual({ type: TOLD_EVENT_TYPES[0], description: expect.any(String) });
  });

  it('is named by the refusal of an unknown event, with the nearest one and those of its noun', async () => {
    const account = await newAccount();
    const body = { url: 'https://hooks.example.com/', event_filter: ['server.up'] };
    const { status, body: error } = await account.rest('POST', '/v1/webhooks', body);
    expect([status, error.code]).toEqual([422, 'unknown_event']);
    expect(error.detail).toContain('"server.up"');
    expect(error.detail).toContain('server.running, server.stopped');
    expect(error.detail).toContain('See GET /v1/webhooks/events.');
    const near = await account.rest('POST', '/v1/webhooks', { ...body, event_filter: 'topup.confirm' });
    expect(near.body.detail).toContain('Did you mean topup.confirm');
    const other = await account.rest('POST', '/v1/webhooks', { ...body, event_filter: 'invoice.paid' });
    expect(other.body.detail).toContain('server.*, topup.*');
    const agent = await callTool(publicUrl, account.accessToken, 'create_webhook', body);
    expect(agent.content.detail).toContain('See list_webhook_events.');
  });
});

describe('The deliveries of a webhook', () => {
  it('are listed in pages and by status, and only for the owner', async () => {
    const { account, path, ended, id } = await setUp();
    const delivery = await ended();
    expect(delivery).toMatchObject({ event_type: 'ssh_key.created', status: 'succeeded', response_status: 204 });
    await account.rest('POST', `/v1/webhooks/${id}/test`);
    const first = (await account.rest('GET', `${path}?limit=1`)).body;
    expect(first).toMatchObject({ data: [{ event_type: 'webhook.test' }], has_more: true });
    const second = (await account.rest('GET', `${path}?limit=1&cursor=${first.next_cursor}`)).body;
    expect(second).toMatchObject({ data: [{ id: delivery.id }], has_more: false });
    expect((await account.rest('GET', `${path}?status=succeeded,failed`)).body.data).toHaveLength(2);
    expect((await account.rest('GET', `${path}?status=failed,retrying`)).body.data).toEqual([]);
    const { content } = await callTool(publicUrl, account.accessToken, 'list_webhook_deliveries', {
      id,
      status: ['succeeded'],
    });
    expect(content.data).toHaveLength(2);
    const stranger = await newAccount();
    const refused = await stranger.rest('GET', path);
    expect([refused.status, refused.body.code]).toEqual([404, 'not_found']);
    expect(refused.body.detail).toContain('See GET /v1/webhooks.');
  });
});

describe('A repeated delivery', () => {
  it('sends the same message again, once for a key', async () => {
    const { account, path, ended, receiver } = await setUp();
    const { id, event_id } = await ended();
    const headers = { 'idempotency-key': 'again' };
    const { status, body } = await repeat(account, path, id, headers);
    expect([status, body]).toEqual([200, expect.objectContaining({ id, event_id, status: 'pending', attempts: 0 })]);
    await eventually(async () => receiver.received.length === 2);
    const [before, after] = receiver.received;
    expect([after!.raw, after!.headers['webhook-id']]).toEqual([before!.raw, event_id]);
    const replay = await repeat(account, path, id, headers);
    expect([replay.status, replay.body]).toEqual([200, body]);
    expect(replay.headers.get('idempotency-replayed')).toBe('true');
    await ended();
    expect(receiver.received).toHaveLength(2);
  });

  it('is refused within a minute, and works over MCP after it', async () => {
    const { account, path, ended, receiver, id: webhook } = await setUp();
    const { id } = await ended();
    await repeat(account, path, id);
    await eventually(async () => receiver.received.length === 2);
    await ended();
    const { status, body, headers } = await repeat(account, path, id);
    expect([status, body.code]).toEqual([429, 'rate_limited']);
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    expect(body.detail).toContain('each delivery once a minute');
    await aMinuteLater(webhook);
    const args = { id: webhook, delivery_id: id };
    const { content } = await callTool(publicUrl, account.accessToken, 'redeliver_webhook', args);
    expect(content).toMatchObject({ id, status: 'pending' });
    await eventually(async () => receiver.received.length === 3);
  });

  it('is refused after sixty of the webhook in a minute, also at the same time', async () => {
    const { account, path, ended, id } = await setUp();
    const { id: delivery } = await ended();
    const copies = `insert into webhook_delivery (id, account_id, webhook_id, event_id, event_type, status, redelivered_at)
      select 'dlv_' || lpad(n::text, 26, '0'), account_id, webhook_id, event_id, event_type, 'SUCCEEDED', case when n <= $2::int then now() end
      from webhook_delivery, generate_series(1, 62) as n where id = $1`;
    await db.query(copies, [delivery, 59]);
    const ids = [60, 61].map((n) => `dlv_${String(n).padStart(26, '0')}`);
    const answers = await Promise.all(ids.map((one) => repeat(account, path, one)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 429]);
    await aMinuteLater(id);
    expect((await repeat(account, path, 'dlv_00000000000000000000000062')).status).toBe(200);
  });

  it('changes nothing while the first one still runs, and needs an enabled webhook', async () => {
    const { account, path, ended, id, receiver } = await setUp(410);
    const { id: delivery } = await ended();
    const refused = await repeat(account, path, delivery);
    expect([refused.status, refused.body.code]).toEqual([422, 'validation_failed']);
    expect(refused.body.detail).toContain(`POST /v1/webhooks/{id}/test`);
    receiver.answer = (response) => void response.writeHead(500).end();
    await db.query(`update webhook set status = 'ENABLED', disabled_reason = null where id = $1`, [id]);
    expect((await repeat(account, path, delivery)).body.status).toBe('pending');
    await eventually(async () => (await account.rest('GET', path)).body.data[0].status === 'retrying');
    expect((await repeat(account, path, delivery)).body).toMatchObject({ status: 'retrying', attempts: 1 });
  });

  it('needs its own webhook, and the scope full', async () => {
    const { account, path, ended } = await setUp();
    const { id } = await ended();
    const other = await account.rest('POST', '/v1/webhooks', { url: 'https://hooks.example.com/' });
    const wrong = await repeat(account, `/v1/webhooks/${other.body.id}/deliveries`, id);
    expect([wrong.status, wrong.body.code]).toEqual([404, 'not_found']);
    expect(wrong.body.detail).toContain('See GET /v1/webhooks/{id}/deliveries.');
    expect((await repeat(await newAccount(), path, id)).status).toBe(404);
    const { body: key } = await account.rest('POST', '/v1/auth/api-keys', { name: 'reader', scope: 'read' });
    const reader = { authorization: `Bearer ${key.plaintext}` };
    expect((await repeat(account, path, id, reader)).status).toBe(403);
  });
});
