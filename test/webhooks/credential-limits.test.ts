/** A webhook stops with its creator, if that is an OAuth client or a credential with limits. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { oauthRequests } from '../accounts/oauth/requests.ts';
import { atEnd } from '../setup/end.ts';
import { startFreehold } from '../setup/freehold.ts';
import { type RestClient, restClient } from '../setup/spawn.ts';

const { anonymous, newAccount, publicUrl } = await startFreehold({ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' });
const { newClient, tokenOf } = oauthRequests(anonymous);
const receiver = createServer((_, response) => response.end()).listen(0, '127.0.0.1');
atEnd(() => void receiver.close());

const newKey = async (rest: RestClient, more: object) => {
  const { body } = await rest('POST', '/v1/auth/api-keys', { name: 'maker', scope: 'full', ...more });
  return { id: body.key_id, rest: restClient(publicUrl, body.plaintext) };
};
const newWebhook = async (rest: RestClient): Promise<string> => {
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  return (await rest('POST', '/v1/webhooks', { url })).body.id;
};
const statusOf = async (rest: RestClient, id: string) => {
  const { data } = (await rest('GET', '/v1/webhooks')).body;
  const { status, disabled_reason } = data.find((one: { id: string }) => one.id === id);
  return [status, disabled_reason];
};
const STOPPED = ['disabled', 'creator_revoked'];

it('stops with a limited API key, until the owner rotates its secret', async () => {
  const { rest } = await newAccount();
  const key = await newKey(rest, { spend_limit_usd: 5 });
  const webhook = await newWebhook(key.rest);
  await rest('DELETE', `/v1/auth/api-keys/${key.id}`);
  expect(await statusOf(rest, webhook)).toEqual(STOPPED);
  expect((await rest('POST', `/v1/webhooks/${webhook}/rotate-secret`)).status).toBe(200);
  expect(await statusOf(rest, webhook)).toEqual(['enabled', null]);
});

it("refuses its secret to another credential with limits, which would know it after the credential's end", async () => {
  const { rest } = await newAccount();
  const key = await newKey(rest, { spend_limit_usd: 5 });
  const [own, ofOwner] = [await newWebhook(key.rest), await newWebhook(rest)];
  const rotate = (webhook: string) => key.rest('POST', `/v1/webhooks/${webhook}/rotate-secret`);
  expect((await rotate(own)).status).toBe(200);
  expect(await rotate(ofOwner)).toMatchObject({ status: 403, body: { code: 'insufficient_scope' } });
  const other = await newKey(rest, { expires_at: new Date(Date.now() + 3_600_000).toISOString() });
  expect((await other.rest('POST', `/v1/webhooks/${own}/rotate-secret`)).status).toBe(403);
});

it('stops with an OAuth client, also if a key of the client created it', async () => {
  const { rest } = await newAccount();
  const client = await newClient({ scope: 'full' }, rest);
  const token = restClient(publicUrl, await tokenOf(client));
  const webhooks = [await newWebhook(token), await newWebhook((await newKey(token, {})).rest)];
  await rest('DELETE', `/v1/oauth/clients/${client.client_id}`);
  for (const webhook of webhooks) expect(await statusOf(rest, webhook)).toEqual(STOPPED);
});

it('outlives an API key without limits', async () => {
  const { rest } = await newAccount();
  const key = await newKey(rest, {});
  const webhook = await newWebhook(key.rest);
  await rest('DELETE', `/v1/auth/api-keys/${key.id}`);
  expect(await statusOf(rest, webhook)).toEqual(['enabled', null]);
});
