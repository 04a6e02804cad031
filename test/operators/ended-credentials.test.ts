/** The end of all credentials after a restore, which revives those that have ended since the backup. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { startFreehold } from '../setup/freehold.ts';
import { graphqlClient } from '../setup/spawn.ts';

const { db, anonymous, newAccount, operator, graphqlUrl } = await startFreehold();
/** The mutation of the guide, as printed. */
const [, printed] = /^operator '(mutation \{ revokeAll[^']*)'$/m.exec(readFileSync('docs/operate/restore.md', 'utf8'))!;
const revokeAll = async () => (await operator(printed!)).data.revokeAllCredentials;

async function addOwner(name: string) {
  const { data } = await operator(
    `mutation { addOperator(input: { name: "${name}", role: OWNER, days: 90 }) { token operator { id } } }`,
  );
  return graphqlClient(graphqlUrl, data.addOperator.token);
}

it('Ends the credentials that a restore revives, and leaves agents their way in', async () => {
  const { body: client } = await anonymous('POST', '/v1/oauth/register', {});
  const mallory = await addOwner('mallory');
  expect((await mallory('{ operators { name } }')).errors).toBeUndefined();
  const customer = await newAccount();
  const url = 'https://hook.example.org/';
  const { body: webhook } = await customer.rest('POST', '/v1/webhooks', { url, event_filter: '*' });
  const made = await operator(
    `mutation { createWebhook(input: { url: "${url}operator", eventFilter: ["*"] }) { webhook { id } } }`,
  );
  expect(made.errors).toBeUndefined();

  expect(await revokeAll()).toEqual({ accounts: 1, operatorsEnded: 1, clientsKept: [client.client_id] });
  expect((await mallory('{ operators { name } }')).errors[0].extensions.code).toBe('revoked_credential');
  expect((await customer.rest('GET', '/v1/account')).body.code).toBe('revoked_credential');
  expect(
    await db.query('select distinct status, disabled_reason from webhook where id = any($1)', [
      [webhook.id, made.data.createWebhook.webhook.id],
    ]),
  ).toEqual([{ status: 'DISABLED', disabledReason: 'secret_revoked' }]);
  const { email, password } = customer;
  const { body: login } = await anonymous('POST', '/v1/auth/login', { email, password });
  expect(login.tokens).toBeDefined();

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

it('Ends only what a call before it has left, and last the operator who calls', async () => {
  await revokeAll();
  const [ana, ben] = [await addOwner('ana'), await addOwner('ben')];
  await newAccount();
  const { data } = await ana(printed!);
  expect(data.revokeAllCredentials).toMatchObject({ accounts: 1, operatorsEnded: 2 });
  for (const ended of [ana, ben])
    expect((await ended('{ operators { name } }')).errors[0].extensions.code).toBe('revoked_credential');
  expect(await revokeAll()).toMatchObject({ accounts: 0, operatorsEnded: 0 });
});
