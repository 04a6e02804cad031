/** A request waits for the lock of its account while the owner revokes its credential. Then the request changes nothing. */
import { expect, it } from 'vitest';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { eventually, startFreehold } from '../../setup/freehold.ts';
import { type Answer, type RestClient, restClient } from '../../setup/spawn.ts';

const { db, newAccount, publicUrl } = await startFreehold({ SIMULATED_PROVISION_SECONDS: '600' });

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
  'adds an SSH key': (rest) => rest('POST', '/v1/ssh-keys', { public_key: SSH_KEY }),
  'orders a server': (rest) => rest('POST', '/v1/servers', { service_code: 'vps-1' }),
  'changes a server': (rest, { server }) => rest('PATCH', `/v1/servers/${server}`, { auto_renew: false }),
  'deletes a server': (rest, { server }) => rest('DELETE', `/v1/servers/${server}`),
  'sets a second factor up': (rest, { password }) => rest('POST', '/v1/auth/totp/setup', { password }),
  'changes the password': (rest, { password: current_password }) =>
    rest('POST', '/v1/auth/password', { current_password, new_password: PASSWORD }),
};

it.each(Object.entries(CALLS))('A credential that ends meanwhile no longer %s', async (_, call) => {
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
    await tx.query(`update api_key set status = 'REVOKED', revoked_at = now() where id = $1`, [key.key_id]);
    return { answer };
  });
  const { status, body } = await asked.answer;
  expect([status, body.code]).toEqual([401, 'revoked_credential']);
  expect((await rest('GET', '/v1/account')).status).toBe(200);
});
