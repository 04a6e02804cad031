/** A webhook that a revocation disabled: no test enables it, also none that waits for its answer meanwhile. */
import type { ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import { eventually, startFreehold, type TestAccount } from '../setup/freehold.ts';
import { restClient } from '../setup/spawn.ts';
import { list, receiver, register } from './receivers.ts';

const { db, newAccount, publicUrl } = await startFreehold({ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' });

const newKey = async ({ rest }: TestAccount, more: object = {}) => {
  const { body } = await rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'full', ...more });
  return { id: body.key_id as string, rest: restClient(publicUrl, body.plaintext) };
};
const statusOf = async (account: TestAccount, id: string) => {
  const { status, disabled_reason } = (await list(account)).find((one: { id: string }) => one.id === id);
  return [status, disabled_reason];
};
const actions = async ({ rest }: TestAccount) =>
  (await rest('GET', '/v1/account/audit-log')).body.data.map(({ action }: { action: string }) => action);

/** Begins a test of a webhook whose receiver waits. */
async function slowTest(account: TestAccount, rest = account.rest) {
  const to = await receiver();
  let waiting: ServerResponse | undefined;
  to.answer = (response) => {
    waiting = response;
  };
  const { id } = await register({ ...account, rest }, to.url, { event_filter: 'agent.*' });
  const begin = async () => {
    const tested = rest('POST', `/v1/webhooks/${id}/test`);
    const response = await eventually(async () => waiting);
    return { answer: () => void response.writeHead(204).end(), tested };
  };
  return { id, begin };
}

it('stays disabled if the test was under way when the owner revoked everything', async () => {
  const account = await newAccount();
  const { id, begin } = await slowTest(account);
  const { answer, tested } = await begin();
  const change = { current_password: account.password, new_password: 'another heron on it', revoke: 'everything' };
  expect((await account.rest('POST', '/v1/auth/password', change)).status).toBe(200);
  answer();
  expect((await tested).body.delivered).toBe(true);
  expect(await statusOf(account, id)).toEqual(['disabled', 'secret_revoked']);
});

it('stays disabled if the test was under way when the owner revoked its creator', async () => {
  const account = await newAccount();
  const key = await newKey(account, { spend_limit_usd: 1 });
  const { id, begin } = await slowTest(account, key.rest);
  await db.query(`update webhook set status = 'DISABLED', disabled_reason = 'retries_exhausted' where id = $1`, [id]);
  const { answer, tested } = await begin();
  await account.rest('DELETE', `/v1/auth/api-keys/${key.id}`);
  answer();
  await tested;
  expect(await statusOf(account, id)).toEqual(['disabled', 'creator_revoked']);
});

it('stays disabled if the tester was revoked, or if it expired, during the test', async () => {
  const account = await newAccount();
  const disable = (id: string) =>
    db.query(`update webhook set status = 'DISABLED', disabled_reason = 'endpoint_gone' where id = $1`, [id]);
  const key = await newKey(account);
  const [revoked, expired] = [await slowTest(account, key.rest), await slowTest(account)];
  for (const { id } of [revoked, expired]) await disable(id);
  const tests = [await revoked.begin(), await expired.begin()];
  await account.rest('DELETE', `/v1/auth/api-keys/${key.id}`);
  await db.query('update webhook set expires_at = now() where id = $1', [expired.id]);
  for (const { answer, tested } of tests) {
    answer();
    await tested;
  }
  for (const { id } of [revoked, expired]) expect(await statusOf(account, id)).toEqual(['disabled', 'endpoint_gone']);
});

it('works again after the owner has rotated its secret, and no credential with limits can do that', async () => {
  const account = await newAccount();
  const [creator, other] = [
    await newKey(account, { spend_limit_usd: 1 }),
    await newKey(account, { spend_limit_usd: 1 }),
  ];
  const { id } = await register({ ...account, rest: creator.rest }, (await receiver()).url);
  await account.rest('DELETE', `/v1/auth/api-keys/${creator.id}`);
  for (const rest of [other.rest, account.rest]) {
    const { status, body } = await rest('POST', `/v1/webhooks/${id}/test`);
    expect([status, body.code]).toEqual([422, 'validation_failed']);
    expect(body.detail).toContain('/rotate-secret');
  }
  const refused = await other.rest('POST', `/v1/webhooks/${id}/rotate-secret`);
  expect([refused.status, refused.body.code]).toEqual([403, 'insufficient_scope']);
  expect(await statusOf(account, id)).toEqual(['disabled', 'creator_revoked']);
  const { body } = await account.rest('POST', `/v1/webhooks/${id}/rotate-secret`);
  expect(body).toMatchObject({ status: 'enabled', disabled_reason: null });
  expect(await actions(account)).toContain('webhook.enabled');
});

it('stays disabled after a rotation if it has expired', async () => {
  const account = await newAccount();
  const { id } = await register(account, (await receiver()).url);
  await db.query(
    `update webhook set status = 'DISABLED', disabled_reason = 'secret_revoked', expires_at = now() where id = $1`,
    [id],
  );
  expect((await account.rest('POST', `/v1/webhooks/${id}/rotate-secret`)).body.status).toBe('disabled');
});

it('stops at its expiry after a test has enabled it', async () => {
  const account = await newAccount();
  const { id } = await register(account, (await receiver()).url);
  await db.query(
    `update webhook set status = 'DISABLED', disabled_reason = 'endpoint_gone', expires_at = now() + interval '2 seconds'
      where id = $1`,
    [id],
  );
  await account.rest('POST', `/v1/webhooks/${id}/test`);
  expect(await statusOf(account, id)).toEqual(['enabled', null]);
  await eventually(async () => (await statusOf(account, id))[1] === 'expired');
  expect((await actions(account)).filter((action: string) => /webhook\.(en|dis)abled/.test(action))).toEqual([
    'webhook.disabled',
    'webhook.enabled',
  ]);
});
