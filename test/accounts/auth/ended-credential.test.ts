/**
 * A request waits for the lock of its account. Meanwhile the owner revokes its credential, or the operator suspends the
 * account.
 * Then the request changes nothing. The process has not heard of either.
 */
import { expect, it, onTestFinished, vi } from 'vitest';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { eventually, startFreehold } from '../../setup/freehold.ts';
import { type Answer, type RestClient, restClient } from '../../setup/spawn.ts';
import { callTool } from '../../setup/tool.ts';

const { db, newAccount, publicUrl } = await startFreehold({ SIMULATED_PROVISION_SECONDS: '600', POLL_SECONDS: '0.2' });

const SSH_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILZo0JzYJEHChHBt6zG/B6cGUZpbFXeUqaufc1ki+RX/';
const WEBHOOK = { url: 'https://93.184.215.14/' };
const PASSWORD = 'another heron on it';
interface World {
  webhook: string;
  server: string;
  sshKey: string;
  password: string;
}

const CALLS: Record<string, (rest: RestClient, world: World) => Promise<Answer>> = {
  'rotates the secret of a webhook': (rest, { webhook }) => rest('POST', `/v1/webhooks/${webhook}/rotate-secret`),
  'creates a webhook': (rest) => rest('POST', '/v1/webhooks', WEBHOOK),
  'deletes a webhook': (rest, { webhook }) => rest('DELETE', `/v1/webhooks/${webhook}`),
  'creates an API key': (rest) => rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'full' }),
  'registers an OAuth client': (rest) => rest('POST', '/v1/oauth/register', { client_name: 'c' }),
  'deletes an SSH key': (rest, { sshKey }) => rest('DELETE', `/v1/ssh-keys/${sshKey}`),
  'opens a top-up': (rest) => rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'BTC' }),
  'adds an SSH key': (rest) => rest('POST', '/v1/ssh-keys', { public_key: SSH_KEY }),
  'orders a server': (rest) => rest('POST', '/v1/servers', { service_code: 'vps-1' }),
  'changes a server': (rest, { server }) => rest('PATCH', `/v1/servers/${server}`, { auto_renew: false }),
  'deletes a server': (rest, { server }) => rest('DELETE', `/v1/servers/${server}`),
  'sets a second factor up': (rest, { password }) => rest('POST', '/v1/auth/totp/setup', { password }),
  'changes the password': (rest, { password: current_password }) =>
    rest('POST', '/v1/auth/password', { current_password, new_password: PASSWORD }),
};

/** Calls that end something, or keep a thief out. */
const ENDS = /deletes|changes the password/;

/** Sends the call while the account is locked, and changes its power under the lock. */
async function answered(call: (typeof CALLS)[string], change: (world: { account: string; key: string }) => string) {
  const { id, fund, rest, password } = await newAccount();
  await fund(60);
  const { body: webhook } = await rest('POST', '/v1/webhooks', WEBHOOK);
  const { body: server } = await rest('POST', '/v1/servers', { service_code: 'vps-1' });
  const { body: sshKey } = await rest('POST', '/v1/ssh-keys', { public_key: SSH_KEY });
  const { body: key } = await rest('POST', '/v1/auth/api-keys', { name: 'stolen', scope: 'full' });
  const stolen = restClient(publicUrl, key.plaintext);
  const world = { webhook: webhook.id, server: server.order_number, sshKey: sshKey.id, password };
  const asked = await db.transaction(async (tx) => {
    await lockAccount(tx, id);
    const answer = call(stolen, world);
    await eventually(async () => {
      const [row] = await db.query<{ waiting: number }>(
        `select count(*)::int as waiting from pg_stat_activity where wait_event_type = 'Lock' and pg_backend_pid() <> pid`,
      );
      return row!.waiting > 0;
    });
    await tx.query(change({ account: id, key: key.key_id }));
    return { answer };
  });
  const { status, body } = await asked.answer;
  // A new password ends the other logins.
  const isChanged = call === CALLS['changes the password'] && status === 200;
  expect((await rest('GET', '/v1/account')).status).toBe(isChanged ? 401 : 200);
  return [status, body.code];
}

it.each(Object.entries(CALLS))('A credential that ends meanwhile no longer %s', async (_, call) => {
  const revoke = ({ key }: { key: string }) =>
    `update api_key set status = 'REVOKED', revoked_at = now() where id = '${key}'`;
  expect(await answered(call, revoke)).toEqual([401, 'revoked_credential']);
});

it.each(Object.entries(CALLS))(
  'An account that is suspended meanwhile %s only if that ends something or keeps a thief out',
  async (what, call) => {
    const suspend = ({ account }: { account: string }) =>
      `update account set suspended_at = now(), suspended_for = 'Spam.' where id = '${account}'`;
    const refused = [403, 'account_suspended'];
    expect(await answered(call, suspend)).toEqual(ENDS.test(what) ? [200, undefined] : refused);
  },
);

it.each<[string, (key: string, server: string) => Promise<string>]>([
  [
    'wait_for of REST',
    async (key, server) =>
      (await restClient(publicUrl, key)('GET', `/v1/servers/${server}?wait_for=running`)).body.code,
  ],
  [
    'wait_for_server of MCP',
    async (key, server) =>
      (await callTool(publicUrl, key, 'wait_for_server', { order_number: server, status: 'running' })).content.code,
  ],
])('The %s ends with the credential, and does not show the server', async (_, wait) => {
  const { fund, rest } = await newAccount();
  await fund(60);
  const { body: server } = await rest('POST', '/v1/servers', { service_code: 'vps-1' });
  const { body: key } = await rest('POST', '/v1/auth/api-keys', { name: 'stolen', scope: 'full' });
  const waits = { now: 0 };
  const listen = db.bus.listen.bind(db.bus);
  const spy = vi.spyOn(db.bus, 'listen').mockImplementation((listener) => {
    waits.now++;
    return listen(listener);
  });
  onTestFinished(() => spy.mockRestore());
  const began = Date.now();
  const answer = wait(key.plaintext, server.order_number);
  await eventually(async () => waits.now > 1);
  await rest('DELETE', `/v1/auth/api-keys/${key.key_id}`);
  expect(await answer).toBe('revoked_credential');
  expect(Date.now() - began).toBeLessThan(20_000);
});
