import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import type { Event } from '../../entities/history/event.ts';
import { messageOf } from '../../provisioning/webhooks/message.ts';
import { signedHeaders } from '../../provisioning/webhooks/sign.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';
import { verify } from '../setup/receiver.ts';
import { KEY, list, receiver, register } from './receivers.ts';

const { newAccount, db, operator } = await startFreehold({ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' });

describe('A message', () => {
  it('shows a change as REST does, with a signature that the library of Standard Webhooks verifies', async () => {
    const account = await newAccount();
    const to = await receiver();
    const { secret } = await register(account, to.url, { event_filter: 'ssh_key.*' });
    const { body: key } = await account.rest('POST', '/v1/ssh-keys', { public_key: KEY });
    const [message] = await eventually(async () => to.received.length > 0 && to.received);
    expect(verify(secret, message!)).toEqual(message!.body);
    expect(message!.body).toEqual({
      id: expect.stringMatching(/^evt_/),
      type: 'ssh_key.created',
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      api_version: '1.0.0',
      account_id: account.id,
      data: { object: key },
    });
    expect(message!.headers).toMatchObject({ 'webhook-id': message!.body.id, 'content-type': 'application/json' });

    expect(() => verify(secret, { ...message!, raw: message!.raw.replace('ssh_key', 'api_key') })).toThrow();
    expect(() => verify(`whsec_${Buffer.alloc(32).toString('base64')}`, message!)).toThrow();
    const stale = signedHeaders([secret], { id: 'evt_1', body: '{}', at: new Date(Date.now() - 600_000) });
    expect(() => verify(secret, { raw: '{}', headers: stale })).toThrow(/old/);

    await account.rest('DELETE', `/v1/ssh-keys/${key.id}`);
    await eventually(async () => to.received.length === 2);
    expect(to.received[1]!.body.data.object).toEqual({ id: key.id, deleted: true });
  });

  it('verifies with either secret while one replaces the other', () => {
    const [old, fresh, other] = [1, 2, 3].map((byte) => `whsec_${Buffer.alloc(32, byte).toString('base64')}`) as [
      string,
      string,
      string,
    ];
    const headers = signedHeaders([fresh, old], { id: 'evt_1', body: '{"a":1}' });
    expect(headers['webhook-signature']!.split(' ')).toHaveLength(2);
    for (const secret of [old, fresh]) expect(verify(secret, { raw: '{"a":1}', headers })).toEqual({ a: 1 });
    expect(() => verify(other, { raw: '{"a":1}', headers })).toThrow();
    expect(headers['webhook-signature']!.split(' ')[1]).toBe(
      new Webhook(old).sign('evt_1', new Date(Number(headers['webhook-timestamp']) * 1000), '{"a":1}'),
    );
  });

  it('tells the whole life of a server, each state at its time, and no secret', async () => {
    const account = await newAccount();
    const to = await receiver();
    await register(account, to.url, { event_filter: ['server.*', 'topup.*'] });
    await account.topUp(50);
    const { body: ordered } = await account.rest('POST', '/v1/servers', {
      service_code: 'vps-1',
      root_password: 'a password of twelve',
      user_data: '#cloud-config secrets',
      labels: { a: 'b' },
    });
    const path = `/v1/servers/${ordered.order_number}`;
    const { body: running } = await account.rest('GET', `${path}?wait_for=running`);
    await account.rest('DELETE', path);
    await eventually(async () => to.received.some(({ body }) => body.type === 'server.deleted'));
    const told = (type: string) => to.received.find(({ body }) => body.type === type)!.body.data;
    const { charged_usd, paid_by, root_password, ...created } = ordered;
    expect(told('server.created')).toEqual({ object: created });
    expect(told('server.provisioning')).toMatchObject({
      previous_status: 'pending',
      object: { status: 'provisioning' },
    });
    expect(told('server.running')).toEqual({ previous_status: 'provisioning', object: running });
    expect(told('server.deleted')).toMatchObject({
      previous_status: 'deleting',
      object: { status: 'deleted', order_number: ordered.order_number },
    });
    expect(told('topup.created').object).toMatchObject({ status: 'pending', amount_usd: 50 });
    expect(told('topup.confirmed').object).toMatchObject({ status: 'confirmed', credited_usd: 50 });
    const everything = to.received.map(({ raw }) => raw).join();
    for (const secret of ['a password of twelve', 'cloud-config', root_password])
      expect(everything).not.toContain(secret);
    const kept = await db.query<{ text: string }>('select snapshot::text as text from webhook_snapshot');
    expect(kept.map(({ text }) => text).join()).not.toMatch(
      /root_password|user_data|ssh_public_keys|password_hash|"secret"|digest/,
    );
  });

  it('goes only to webhooks of its account whose filter matches', async () => {
    const [mine, theirs] = [await newAccount(), await newAccount()];
    const [all, servers, foreign] = [await receiver(), await receiver(), await receiver()];
    const first = await register(mine, all.url);
    await register(mine, servers.url, { event_filter: 'server.*' });
    await register(theirs, foreign.url, { event_filter: 'ssh_key.*,api_key.*' });
    await mine.rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'read' });
    await eventually(async () => all.received.length === 3);
    expect(all.received.map(({ body }) => body.type).sort()).toEqual([
      'api_key.created',
      'webhook.created',
      'webhook.created',
    ]);
    expect(all.received.every(({ body }) => body.account_id === mine.id)).toBe(true);
    const told = all.received.find(({ body }) => body.type === 'webhook.created')!;
    expect(told.body.data.object).toMatchObject({ status: 'enabled', last_delivery: null });
    expect(told.raw).not.toContain('whsec_');
    expect(told.body.data.object).not.toHaveProperty('secret');
    expect([servers.received.length, foreign.received.length]).toEqual([0, 0]);
    const listed = await eventually(async () => {
      const [, oldest] = await list(mine);
      return oldest.last_delivery.status === 'succeeded' && oldest;
    });
    expect(listed).toMatchObject({
      id: first.id,
      last_delivery: {
        event_type: 'api_key.created',
        status: 'succeeded',
        attempts: 1,
        response_status: 204,
        error: null,
        next_attempt_at: null,
      },
    });
  });

  it('is not sent after the webhook is deleted', async () => {
    const account = await newAccount();
    const to = await receiver();
    const { id } = await register(account, to.url, { event_filter: 'ssh_key.*' });
    await account.rest('DELETE', `/v1/webhooks/${id}`);
    await account.rest('POST', '/v1/ssh-keys', { public_key: KEY });
    const left = () =>
      db.query('select from task where subject = $1 union all select from webhook_delivery where webhook_id = $1', [
        id,
      ]);
    await eventually(async () => (await left()).length === 0);
    expect(to.received).toEqual([]);
  });

  it('is at most 20 KiB: a larger one only names its resource', async () => {
    const account = await newAccount();
    const { body: key } = await account.rest('POST', '/v1/ssh-keys', { public_key: KEY });
    const [event] = await db.query<Event>(
      `select id, account_id as "accountId", type, subject, data, created_at as "createdAt" from event where subject = $1`,
      [key.id],
    );
    const told = { accountId: account.id, snapshot: { id: key.id } };
    const small = await messageOf(told, event!, async () => ({ name: 'x'.repeat(19_000) }));
    expect(JSON.parse(small).data.object.name).toHaveLength(19_000);
    const large = await messageOf(told, event!, async () => ({ name: 'ä'.repeat(11_000) }));
    expect(JSON.parse(large).data.object).toEqual({ id: key.id });
  });

  it('goes to every account if its event is public, with the id of the account', async () => {
    const [one, other] = [await newAccount(), await newAccount()];
    const [to, too] = [await receiver(), await receiver()];
    await register(one, to.url);
    await register(other, too.url);
    const input = '{name: "Network", status: INVESTIGATING, impact: MINOR, components: [], body: "We look."}';
    const published = await operator(`mutation { publishIncident(input: ${input}) { id } }`);
    const { id: incident } = published.data.publishIncident;
    for (const [{ received }, account] of [
      [to, one],
      [too, other],
    ] as const) {
      const message = await eventually(async () => received.find(({ body }) => body.data.object.id === incident));
      expect(message.body).toMatchObject({ account_id: account.id, type: 'status.changed' });
    }
  });
});
