/** An SSH key leaves the account with its creator, if that is an OAuth client or a credential with limits. */
import { describe, expect, it } from 'vitest';
import { eventually, startFreehold, type TestAccount } from '../setup/freehold.ts';
import { type RestClient, restClient } from '../setup/spawn.ts';
import { oauthRequests } from './oauth/requests.ts';

const { anonymous, db, newAccount, publicUrl } = await startFreehold();
const { newClient, tokenOf } = oauthRequests(anonymous);

const PUBLIC_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILZo0JzYJEHChHBt6zG/B6cGUZpbFXeUqaufc1ki+RX/';
const soon = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString();

const newKey = async (rest: RestClient, more: object = {}) => {
  const { body } = await rest('POST', '/v1/auth/api-keys', { name: 'maker', scope: 'full', ...more });
  const end = (owner: RestClient) => owner('DELETE', `/v1/auth/api-keys/${body.key_id}`);
  return { rest: restClient(publicUrl, body.plaintext), end };
};
const clientFor = async (rest: RestClient, more: object = {}) => {
  const client = await newClient({ scope: 'servers', ...more }, rest);
  const end = (owner: RestClient) => owner('DELETE', `/v1/oauth/clients/${client.client_id}`);
  return { rest: restClient(publicUrl, await tokenOf(client)), end };
};
const add = async (rest: RestClient) => {
  const { status, body } = await rest('POST', '/v1/ssh-keys', { public_key: PUBLIC_KEY });
  expect(status, JSON.stringify(body)).toBe(200);
  return body;
};
const idsOf = async (rest: RestClient) =>
  (await rest('GET', '/v1/ssh-keys')).body.data.map(({ id }: { id: string }) => id);
const order = (rest: RestClient, more: object = {}) => rest('POST', '/v1/servers', { service_code: 'vps-1', ...more });
/** The names of the credentials that added the key, by the audit log. The newest is first. */
const addedBy = async (rest: RestClient, id: string) => {
  const { data } = (await rest('GET', '/v1/account/audit-log?action=ssh_key.created')).body;
  const entries = data.filter(({ resource }: { resource: { id: string } }) => resource.id === id);
  return entries.map(({ actor }: { actor: { name: string } }) => actor.name);
};
/** The kind of actor that deleted the key, by the audit log. */
const deletedBy = async ({ rest }: TestAccount, id: string) => {
  const { data } = (await rest('GET', '/v1/account/audit-log?action=ssh_key.deleted')).body;
  return data.find(({ resource }: { resource: { id: string } }) => resource.id === id)?.actor.type;
};

describe('An SSH key of a credential that ends', () => {
  it('leaves with the OAuth client, and no later server gets it', async () => {
    const account = await newAccount();
    await account.fund(50);
    const limits = { spend_limit_usd: 0, ip_allowlist: ['127.0.0.0/8', '::1/128'], expires_at: soon(60) };
    const client = await clientFor(account.rest, limits);
    const key = await add(client.rest);
    expect(key.expires_at).toBe(limits.expires_at);
    await client.end(account.rest);
    expect(await idsOf(account.rest)).toEqual([]);
    const { body } = await order(account.rest);
    expect(body.ssh_key_ids).toEqual([]);
    expect(body.root_password).toBeTruthy();
    expect(await deletedBy(account, key.id)).toBe('access_token');
  });

  it('leaves with a limited API key, and with a client whose API key added it', async () => {
    const { rest } = await newAccount();
    const client = await clientFor(rest, { scope: 'full' });
    const makers = [await newKey(rest, { spend_limit_usd: 5 }), await newKey(client.rest)];
    for (const [place, { end }] of [makers[0]!, client].entries()) {
      const { id, expires_at } = await add(makers[place]!.rest);
      expect(expires_at).toBeUndefined();
      expect(await idsOf(rest)).toEqual([id]);
      await end(rest);
      expect(await idsOf(rest)).toEqual([]);
    }
  });

  it('leaves when the credential expires', async () => {
    const account = await newAccount();
    const { id } = await add((await newKey(account.rest, { expires_at: soon(2) })).rest);
    await eventually(async () => (await idsOf(account.rest)).length === 0);
    expect(await deletedBy(account, id)).toBe('system');
  });

  it('reaches no server after the expiry, even if no worker has deleted it yet', async () => {
    const { fund, rest } = await newAccount();
    await fund(50);
    const { id } = await add((await newKey(rest, { expires_at: soon(3600) })).rest);
    await db.query(`update ssh_key set expires_at = now() - interval '1 second' where id = $1`, [id]);
    expect((await order(rest, { ssh_key_ids: [id] })).body.code).toBe('unknown_ssh_key');
    expect((await order(rest)).body.ssh_key_ids).toEqual([]);
  });

  it('leaves with all credentials, while the keys of the owner stay', async () => {
    const { password, rest } = await newAccount();
    await add((await newKey(rest, { spend_limit_usd: 5 })).rest);
    const ofOwner = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAtf29R2oqEL0j49mOzngviMOahjgH8Ed42butMPobDe';
    const { id } = (await rest('POST', '/v1/ssh-keys', { public_key: ofOwner })).body;
    const change = { current_password: password, new_password: 'another heron on it', revoke: 'everything' };
    expect((await rest('POST', '/v1/auth/password', change)).status).toBe(200);
    expect(await idsOf(rest)).toEqual([id]);
  });
});

describe('An SSH key that two credentials add', () => {
  it('stays once a credential without limits has added it', async () => {
    const { rest } = await newAccount();
    const client = await clientFor(rest, { expires_at: soon(3600) });
    const { id } = await add(client.rest);
    const again = await add(rest);
    expect([again.id, again.expires_at]).toEqual([id, undefined]);
    await add(client.rest);
    await client.end(rest);
    expect(await idsOf(rest)).toEqual([id]);
    // The log names both credentials.
    expect(await addedBy(rest, id)).toEqual(['register', expect.stringMatching(/^oauth:/)]);
  });

  it('leaves with the credential that added it last, if both have limits', async () => {
    const { rest } = await newAccount();
    const [first, second] = [await newKey(rest, { expires_at: soon(3600) }), await clientFor(rest)];
    const { id } = await add(first.rest);
    const again = await add(second.rest);
    expect([again.id, again.expires_at]).toEqual([id, undefined]);
    await first.end(rest);
    expect(await idsOf(rest)).toEqual([id]);
    await second.end(rest);
    expect(await idsOf(rest)).toEqual([]);
  });
});

it('An SSH key outlives an API key without limits', async () => {
  const { rest } = await newAccount();
  const maker = await newKey(rest);
  const { id } = await add(maker.rest);
  await maker.end(rest);
  expect(await idsOf(rest)).toEqual([id]);
});
