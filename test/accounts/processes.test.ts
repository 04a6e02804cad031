/** A process takes power away, answers, and dies at once. Other processes hear of it nevertheless. */
import { expect, inject, it, onTestFinished } from 'vitest';
import { newDatabaseUrl } from '../setup/database.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';
import { administer } from '../setup/postgres.ts';
import { graphqlClient, restClient, spawnService } from '../setup/spawn.ts';

const DATABASE_URL = await newDatabaseUrl();
const stays = await startFreehold({ DATABASE_URL, ROLES: 'api' });
const name = new URL(DATABASE_URL).pathname.slice(1);
const allowConnections = (yes: boolean) =>
  administer(inject('postgresUrl'), `alter database "${name}" allow_connections ${yes}`);

interface Power {
  account: string;
  key: string;
  rest: ReturnType<typeof restClient>;
  operator: ReturnType<typeof graphqlClient>;
}
const PASSWORD = 'a heron on the roof';

it.each<[string, (power: Power) => Promise<{ status?: number }>, number, string]>([
  ['a revoked API key', ({ rest, key }) => rest('DELETE', `/v1/auth/api-keys/${key}`), 401, 'revoked_credential'],
  [
    'a suspended account',
    ({ operator, account }) =>
      operator('mutation ($id: ID!) { suspendAccount(id: $id, reason: "Spam.") { id } }', { id: account }),
    403,
    'account_suspended',
  ],
  [
    'a changed password',
    ({ rest }) => {
      const change = { current_password: PASSWORD, new_password: 'another heron on it', revoke: 'everything' };
      return rest('POST', '/v1/auth/password', change, { 'idempotency-key': 'once' });
    },
    401,
    'revoked_credential',
  ],
])('Another process refuses %s after the death of the one that answered', async (which, take, status, code) => {
  const dies = await spawnService({ DATABASE_URL, ROLES: 'api' });
  const email = `${which.replaceAll(' ', '-')}@example.org`;
  const { body } = await restClient(dies.url)('POST', '/v1/auth/register', { email, password: PASSWORD });
  const rest = restClient(dies.url, body.tokens.access_token);
  const { body: key } = await rest('POST', '/v1/auth/api-keys', { name: 'stolen', scope: 'full' });
  const elsewhere = restClient(stays.publicUrl, key.plaintext);
  expect((await elsewhere('GET', '/v1/account')).status).toBe(200);
  const add = () => elsewhere('POST', '/v1/webhooks', { url: 'https://93.184.215.14/' });
  expect((await add()).status).toBe(200);

  // Messages beside the commit wait for a connection, and so they die with the process.
  onTestFinished(() => allowConnections(true));
  await allowConnections(false);
  await administer(
    inject('postgresUrl'),
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and query like '%pg_notify%'`,
  );
  const power = { account: body.account.id, key: key.key_id, rest };
  const taking = () => take({ ...power, operator: graphqlClient(dies.graphql, dies.operatorToken) });
  let taken = await taking();
  // The request had a connection that has ended, too. Nothing was taken.
  for (let i = 0; taken.status === 503 && i < 5; i++) taken = await taking();
  await dies.kill();
  await allowConnections(true);
  expect(taken.status ?? 200).toBe(200);
  // A notice is on its way for a moment, and a cached credential would work for half a minute.
  const began = Date.now();
  await eventually(async () => (await elsewhere('POST', '/v1/webhooks', {})).body.code === code, 25);
  expect(Date.now() - began).toBeLessThan(25_000);
  expect((await add()).status).toBe(status);
});
