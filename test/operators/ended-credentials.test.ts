/** The SQL that docs/operate/restore.md prints for the time after a restore, as printed. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { startFreehold } from '../setup/freehold.ts';
import { graphqlClient } from '../setup/spawn.ts';

const { db, anonymous, newAccount, operator, graphqlUrl } = await startFreehold();
const [, printed] = /```\n(update session set revoked_at[\s\S]*?)```/.exec(
  readFileSync('docs/operate/restore.md', 'utf8'),
)!;

it('The printed SQL ends the credentials that a restore revives, and leaves agents their way in', async () => {
  const { body: client } = await anonymous('POST', '/v1/oauth/register', {});
  const named = await operator(
    'mutation { addOperator(input: { name: "mallory", role: OWNER, days: 90 }) { token operator { id } } }',
  );
  const mallory = graphqlClient(graphqlUrl, named.data.addOperator.token);
  expect((await mallory('{ operators { name } }')).errors).toBeUndefined();
  const customer = await newAccount();
  const { body: webhook } = await customer.rest('POST', '/v1/webhooks', {
    url: 'https://hook.example.org/',
    event_filter: '*',
  });
  for (const line of printed!.split(';').map((one) => one.trim())) if (line) await db.query(line);

  expect((await mallory('{ operators { name } }')).errors[0].extensions.code).toBe('revoked_credential');
  expect(await db.query('select status, disabled_reason from webhook where id = $1', [webhook.id])).toEqual([
    { status: 'DISABLED', disabledReason: 'secret_revoked' },
  ]);
  // The service that still runs remembers the key for a moment.
  expect(await db.query(`select from api_key where status = 'ACTIVE'`)).toEqual([]);
  const { data } = await operator(
    'mutation ($id: ID!) { resetClient(clientId: $id, reason: "A restore") { clientSecret } }',
    { id: client.client_id },
  );
  const secret = `${client.client_id}:${data.resetClient.clientSecret}`;
  const token = await anonymous('POST', '/v1/oauth/token', 'grant_type=client_credentials', {
    'content-type': 'application/x-www-form-urlencoded',
    authorization: `Basic ${Buffer.from(secret).toString('base64')}`,
  });
  expect(token.status).toBe(200);
});
