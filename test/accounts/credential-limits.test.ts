/** A new credential has the limits of its creator: expiry, networks and spending. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { schema } from '../../schema/index.ts';
import { atEnd } from '../setup/end.ts';
import { eventually, startFreehold, type TestAccount } from '../setup/freehold.ts';
import { startReceiver } from '../setup/receiver.ts';
import { type RestClient, restClient } from '../setup/spawn.ts';
import { oauthRequests } from './oauth/requests.ts';

const { anonymous, newAccount, publicUrl, db } = await startFreehold({ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' });
const { newClient, tokenOf, requestToken } = oauthRequests(anonymous);

// A call to a closed port would take ten seconds, in which the webhook does not stop.
const receiver = await startReceiver();
atEnd(() => receiver.close());

const FULL = { name: 'limited', scope: 'full' };
const soon = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString();
const newKey = async (rest: RestClient, more: object = {}) => {
  const { status, body } = await rest('POST', '/v1/auth/api-keys', { ...FULL, ...more });
  expect(status, JSON.stringify(body)).toBe(200);
  return { ...body, rest: restClient(publicUrl, body.plaintext) };
};
const clientFor = async (rest: RestClient, more: object = {}) => {
  const client = await newClient({ scope: 'full', ...more }, rest);
  return { ...client, rest: restClient(publicUrl, await tokenOf(client)) };
};
const order = (rest: RestClient) => rest('POST', '/v1/servers', { service_code: 'vps-1' });
const refusal = ({ status, body }: { status: number; body: { code: string } }) => [status, body.code];
const WIDER = [403, 'insufficient_scope'];

describe('A root mutation', () => {
  it('states what it creates, if it shows a secret', () => {
    const secrets = ['plaintext', 'clientSecret', 'secret', 'accessToken', 'loginToken'];
    const shows = (type: unknown): boolean => {
      const { ofType, getFields } = type as { ofType?: unknown; getFields?: () => Record<string, { type: unknown }> };
      if (ofType) return shows(ofType);
      return Object.entries(getFields?.call(type) ?? {}).some(
        ([name, field]) => secrets.includes(name) || shows(field.type),
      );
    };
    const silent = Object.values(schema.getMutationType()!.getFields()).filter(
      ({ type, extensions }) => shows(type) && !extensions.creates,
    );
    // The seed of an authenticator is no credential: the password guards it.
    expect(silent.map(({ name }) => name).sort()).toEqual(['openInvitation', 'setupTotp']);
  });
});

describe('An API key with limits', () => {
  it('creates a key with its expiry, its networks and its spending limit', async () => {
    const { rest } = await newAccount();
    const limits = { expires_at: soon(3600), ip_allowlist: ['127.0.0.0/8', '::1/128'], spend_limit_usd: 5 };
    const made = await newKey((await newKey(rest, limits)).rest);
    expect(made).toMatchObject(limits);
  });

  it('creates narrower keys, and none that is wider', async () => {
    const { rest } = await newAccount();
    const end = soon(3600);
    const maker = await newKey(rest, { expires_at: end, ip_allowlist: ['127.0.0.0/8'], spend_limit_usd: 5 });
    const narrower = { expires_at: soon(60), ip_allowlist: ['127.0.0.1/32'], spend_limit_usd: 1 };
    expect(await newKey(maker.rest, narrower)).toMatchObject(narrower);
    for (const wider of [
      { expires_at: soon(7200) },
      { spend_limit_usd: 5.01 },
      { ip_allowlist: ['127.0.0.1', '192.0.2.1'] },
      { ip_allowlist: ['0.0.0.0/0'] },
      { ip_allowlist: ['::1'] },
      { ip_allowlist: ['::/0'] },
      { ip_allowlist: ['::ffff:127.0.0.0/103'] },
    ]) {
      const refused = await maker.rest('POST', '/v1/auth/api-keys', { ...FULL, ...wider });
      expect(refusal(refused), JSON.stringify(wider)).toEqual(WIDER);
      expect(refused.body.detail).toContain(Object.keys(wider)[0]);
      // The credential has the scope, and lacks only the width.
      expect(refused.body).not.toHaveProperty('required_scope');
      const client = await maker.rest('POST', '/v1/oauth/register', { scope: 'full', ...wider });
      expect(refusal(client), JSON.stringify(wider)).toEqual(WIDER);
    }
  });

  it('escapes its networks by no IPv4-mapped spelling', async () => {
    const { rest } = await newAccount();
    const maker = await newKey(rest, { ip_allowlist: ['::ffff:127.0.0.1'] });
    expect(maker.ip_allowlist).toEqual(['127.0.0.1/32']);
    const refused = await maker.rest('POST', '/v1/auth/api-keys', { ...FULL, ip_allowlist: ['::ffff:127.0.0.1/32'] });
    expect(refusal(refused)).toEqual([422, 'validation_failed']);
    expect(refused.body.detail).toContain('::ffff:');
    const stored = await newKey(rest, { ip_allowlist: ['127.0.0.1'] });
    await db.query(`update api_key set ip_allowlist = '{::ffff:127.0.0.1/32}' where id = $1`, [stored.key_id]);
    expect(refusal(await stored.rest('GET', '/v1/account'))).toEqual([403, 'ip_not_allowed']);
  });

  it('creates no credential that creates another one', async () => {
    const { rest } = await newAccount();
    const maker = await newKey(rest, { spend_limit_usd: 5 });
    for (const { rest: made } of [await newKey(maker.rest), await clientFor(maker.rest)]) {
      expect(refusal(await made('POST', '/v1/auth/api-keys', FULL))).toEqual(WIDER);
      expect(refusal(await made('POST', '/v1/oauth/register', {}))).toEqual(WIDER);
    }
  });

  it('shares its spending limit with its keys and clients, also with deleted ones', async () => {
    const account = await newAccount();
    await account.fund(100);
    const maker = await newKey(account.rest, { spend_limit_usd: 19 });
    const client = await clientFor(maker.rest);
    expect((await order(client.rest)).status).toBe(200);
    expect((await account.rest('DELETE', `/v1/oauth/clients/${client.client_id}`)).status).toBe(200);
    const key = await newKey(maker.rest, { spend_limit_usd: 6 });
    expect((await order(key.rest)).status).toBe(200);
    expect(refusal(await order(key.rest))).toEqual([403, 'spend_limit_exceeded']);
    await account.rest('DELETE', `/v1/auth/api-keys/${key.key_id}`);
    expect((await order((await newKey(maker.rest)).rest)).status).toBe(200);
    for (const rest of [maker.rest, (await newKey(maker.rest)).rest, (await clientFor(maker.rest)).rest])
      expect(refusal(await order(rest))).toEqual([403, 'spend_limit_exceeded']);
    expect((await order(account.rest)).status).toBe(200);
  });

  it('never exceeds its limit when it and its keys order at once', async () => {
    const account = await newAccount();
    await account.fund(200);
    const maker = await newKey(account.rest, { spend_limit_usd: 20 });
    const spenders = [maker, await newKey(maker.rest), await clientFor(maker.rest), await newKey(maker.rest)];
    const orders = await Promise.all(spenders.flatMap(({ rest }) => [order(rest), order(rest), order(rest)]));
    expect(orders.filter(({ status }) => status === 200)).toHaveLength(3);
  });

  it('takes its keys and clients with it when it is revoked', async () => {
    const account = await newAccount();
    const maker = await newKey(account.rest, { expires_at: soon(3600) });
    const [key, client, other] = [await newKey(maker.rest), await clientFor(maker.rest), await newKey(account.rest)];
    expect((await account.rest('DELETE', `/v1/auth/api-keys/${maker.key_id}`)).status).toBe(200);
    for (const { rest } of [key, client])
      expect(refusal(await rest('GET', '/v1/account'))).toEqual([401, 'revoked_credential']);
    expect((await requestToken(client)).body.code).toBe('invalid_client');
    expect((await other.rest('GET', '/v1/account')).status).toBe(200);
    const events = await db.query<{ type: string }>('select type from event where subject = any($1) order by type', [
      [key.key_id, client.client_id],
    ]);
    expect(events.map(({ type }) => type).filter((type) => !type.endsWith('.refused'))).toEqual([
      'api_key.created',
      'api_key.revoked',
      'oauth_client.created',
      'oauth_client.removed',
    ]);
  });

  it('creates nothing after its revocation, not even by a request that was under way', async () => {
    const account = await newAccount();
    const maker = await newKey(account.rest);
    const [, created] = await Promise.all([
      db.transaction(async (tx) => {
        await tx.query('select from balance where account_id = $1 for update', [account.id]);
        await new Promise((resume) => setTimeout(resume, 500));
        await tx.query(`update api_key set status = 'REVOKED', revoked_at = now() where id = $1`, [maker.key_id]);
      }),
      new Promise((resume) => setTimeout(resume, 100)).then(() => maker.rest('POST', '/v1/auth/api-keys', FULL)),
    ]);
    expect(refusal(created)).toEqual([401, 'revoked_credential']);
  });

  it('hands its expiry to a webhook, which then stops', async () => {
    const account = await newAccount();
    const end = soon(3);
    const maker = await newKey(account.rest, { expires_at: end });
    const { status, body } = await maker.rest('POST', '/v1/webhooks', { url: receiver.url });
    expect([status, body.expires_at]).toEqual([200, end]);
    const listed = await eventually(async () => {
      const [webhook] = (await account.rest('GET', '/v1/webhooks')).body.data;
      return webhook.status === 'disabled' && webhook;
    });
    expect(listed.disabled_reason).toBe('expired');
    expect(refusal(await account.rest('POST', `/v1/webhooks/${body.id}/test`))).toEqual([422, 'validation_failed']);
    const deliveries = async () =>
      (await db.query('select 1 from webhook_delivery where webhook_id = $1', [body.id])).length;
    const before = await deliveries();
    await newKey(account.rest);
    expect(await deliveries()).toBe(before);
  });
});

describe('An OAuth client with limits', () => {
  const limits = () => ({ expires_at: soon(3600), spend_limit_usd: 7, ip_allowlist: ['127.0.0.0/8', '::1/128'] });

  it('is registered with them as further members (RFC 7591)', async () => {
    const given = limits();
    const client = await newClient({ scope: 'full', ...given });
    const epoch = Math.floor(Date.parse(given.expires_at) / 1000);
    expect(client).toMatchObject({ ...given, client_secret_expires_at: epoch });
    for (const wrong of [{ expires_at: soon(-1) }, { spend_limit_usd: -1 }, { ip_allowlist: 'here' }]) {
      const refused = await anonymous('POST', '/v1/oauth/register', wrong);
      expect(refusal(refused)).toEqual([400, 'invalid_client_metadata']);
    }
  });

  it('spends no more than its limit with all its tokens together', async () => {
    const account = await newAccount();
    await account.fund(50);
    const client = await clientFor(account.rest, { spend_limit_usd: 7 });
    expect((await order(client.rest)).status).toBe(200);
    for (const rest of [client.rest, restClient(publicUrl, await tokenOf(client))])
      expect(refusal(await order(rest))).toEqual([403, 'spend_limit_exceeded']);
  });

  it('has tokens that work from its networks, and gets them there only', async () => {
    const { rest } = await newAccount();
    const away = await newClient({ scope: 'full', ip_allowlist: ['203.0.113.7'] }, rest);
    expect(refusal(await requestToken(away))).toEqual([403, 'ip_not_allowed']);
    const home = await newClient({ scope: 'full', ip_allowlist: ['127.0.0.0/8', '::1'] }, rest);
    const [near, far] = [await tokenOf(home), await tokenOf(home)];
    expect((await restClient(publicUrl, near)('GET', '/v1/account')).status).toBe(200);
    await db.query(`update oauth_client set ip_allowlist = '{203.0.113.7/32}' where id = $1`, [home.client_id]);
    expect(refusal(await restClient(publicUrl, far)('GET', '/v1/account'))).toEqual([403, 'ip_not_allowed']);
    const used = await db.query<{ used: boolean }>(
      'select last_used_at is not null as used from session where source = $1 order by id',
      [`oauth:${home.client_id}`],
    );
    expect(used.map((session) => session.used)).toEqual([true, false]);
  });

  it('has tokens that end with it', async () => {
    const { rest } = await newAccount();
    const grant_types = ['client_credentials', 'refresh_token'];
    const end = soon(6);
    const client = await newClient({ scope: 'full', expires_at: end, grant_types }, rest);
    const { body } = await requestToken(client);
    expect(body.expires_in).toBeLessThanOrEqual(6);
    // Further tokens would end the first one, because a client holds 25.
    await sleep(Date.parse(end) + 100 - Date.now());
    expect((await requestToken(client)).body.code).toBe('invalid_client');
    const ended = await restClient(publicUrl, body.access_token)('GET', '/v1/account');
    expect(refusal(ended)).toEqual([401, 'expired_credential']);
    const refreshed = await requestToken(client, { grant_type: 'refresh_token', refresh_token: body.refresh_token });
    expect(refusal(refreshed)).toEqual([401, 'invalid_client']);
  });

  it('creates keys with its limits, which end when it is deleted', async () => {
    const account: TestAccount = await newAccount();
    const given = limits();
    const client = await clientFor(account.rest, given);
    const key = await newKey(client.rest);
    expect(key).toMatchObject(given);
    expect((await account.rest('DELETE', `/v1/oauth/clients/${client.client_id}`)).status).toBe(200);
    expect(refusal(await key.rest('GET', '/v1/account'))).toEqual([401, 'revoked_credential']);
  });
});

describe('An OAuth client without limits', () => {
  const CODE = [401, 'revoked_credential'];

  it('takes all keys and clients with it when it is deleted, also those that its creations created', async () => {
    const { rest } = await newAccount();
    const client = await clientFor(rest);
    const key = await newKey(client.rest);
    const made = [key, await clientFor(client.rest), await newKey(key.rest), await clientFor(key.rest)];
    const limited = await newKey(key.rest, { spend_limit_usd: 5 });
    expect((await rest('DELETE', `/v1/oauth/clients/${client.client_id}`)).status).toBe(200);
    for (const one of [...made, limited]) expect(refusal(await one.rest('GET', '/v1/account'))).toEqual(CODE);
  });

  it('ends the creations of one of its clients with that client', async () => {
    const { rest } = await newAccount();
    const client = await clientFor((await clientFor(rest)).rest);
    const key = await newKey(client.rest);
    await rest('DELETE', `/v1/oauth/clients/${client.client_id}`);
    expect(refusal(await key.rest('GET', '/v1/account'))).toEqual(CODE);
  });

  it('leaves the creations of its keys alone when such a key is revoked', async () => {
    const { rest } = await newAccount();
    const key = await newKey((await clientFor(rest)).rest);
    const other = await newKey(key.rest);
    await rest('DELETE', `/v1/auth/api-keys/${key.key_id}`);
    expect((await other.rest('GET', '/v1/account')).status).toBe(200);
  });

  it('has creations that create no further ones once they have limits', async () => {
    const { rest } = await newAccount();
    const key = await newKey((await clientFor(rest)).rest, { spend_limit_usd: 5 });
    expect(refusal(await key.rest('POST', '/v1/auth/api-keys', FULL))).toEqual(WIDER);
  });
});

describe('An API key without limits', () => {
  it('leaves its creations when it is revoked', async () => {
    const { rest } = await newAccount();
    const maker = await newKey(rest);
    const made = [await newKey(maker.rest), await clientFor(maker.rest)];
    await rest('DELETE', `/v1/auth/api-keys/${maker.key_id}`);
    for (const one of made) expect((await one.rest('GET', '/v1/account')).status).toBe(200);
  });
});
