/** An order reads the SSH keys before it locks the account, and a credential with a key of its own may end in between. */
import { expect, it } from 'vitest';
import { eventually, startFreehold } from '../setup/freehold.ts';
import { restClient } from '../setup/spawn.ts';

const { db, newAccount, publicUrl } = await startFreehold();
const PUBLIC_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILZo0JzYJEHChHBt6zG/B6cGUZpbFXeUqaufc1ki+RX/';

it('An order installs no key of a credential that was revoked while the order waited', async () => {
  const account = await newAccount();
  await account.fund(100);
  const limited = { name: 'ci', scope: 'servers', spend_limit_usd: 0 };
  const key = (await account.rest('POST', '/v1/auth/api-keys', limited)).body;
  await restClient(publicUrl, key.plaintext)('POST', '/v1/ssh-keys', { public_key: PUBLIC_KEY });
  const areWaiting = async (count: number) => {
    const [{ waiting }] = (await db.query<{ waiting: number }>(
      `select count(*)::int as waiting from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
    )) as [{ waiting: number }];
    return waiting >= count;
  };
  const answers = await db.transaction(async (tx) => {
    await tx.query('select from balance where account_id = $1 for update', [account.id]);
    const revoked = account.rest('DELETE', `/v1/auth/api-keys/${key.key_id}`);
    await eventually(() => areWaiting(1));
    const ordered = account.rest('POST', '/v1/servers', { service_code: 'vps-1' });
    await eventually(() => areWaiting(2));
    return { revoked, ordered };
  });
  expect((await answers.revoked).status).toBe(200);
  const { body } = await answers.ordered;
  expect(body).toMatchObject({ status: 'pending', ssh_key_ids: [], root_password: expect.any(String) });
});
