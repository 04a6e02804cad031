/** Many subscriptions of one account. */
import { expect, it } from 'vitest';
import { eventually, startFreehold, type TestAccount } from '../../setup/freehold.ts';
import { queriesOf } from '../../setup/queries.ts';
import { listen } from '../../setup/subscription.ts';

const { newAccount, graphqlUrl } = await startFreehold();
const SERVERS = 'subscription { serverUpdated { server { orderNumber labels } } }';
const CHANGES = 10;

/** Opens ten subscriptions with each of so many new keys, and waits for them. */
async function tenEach(account: TestAccount, keys: number, query: string) {
  const all = [];
  for (let n = 0; n < keys; n++) {
    const { body } = await account.rest('POST', '/v1/auth/api-keys', { name: `key ${n}`, scope: 'read' });
    all.push(...Array.from({ length: 10 }, () => listen(graphqlUrl, body.plaintext, query)));
  }
  return all;
}

it('An account has at most 50 subscriptions with all its credentials, and the end of one allows another', async () => {
  const account = await newAccount();
  const balance = 'subscription { balanceChanged { balanceUsd } }';
  const all = await tenEach(account, 5, balance);
  await eventually(async () => all.every(({ messages }) => messages[0]?.balanceChanged));
  const refused = listen(graphqlUrl, account.accessToken, balance);
  await eventually(async () => refused.messages.length || refused.failure());
  expect(JSON.stringify(refused.failure() ?? refused.messages[0])).toContain('50 subscriptions at once');
  const other = listen(graphqlUrl, (await newAccount()).accessToken, balance);
  await eventually(async () => other.messages[0]?.balanceChanged);
  all[0]!.dispose();
  await eventually(async () => {
    const again = listen(graphqlUrl, account.accessToken, balance);
    await eventually(async () => again.messages.length || again.failure());
    again.dispose();
    return Boolean(again.messages[0]?.balanceChanged);
  });
  for (const one of [...all, refused, other]) one.dispose();
});

it('Subscriptions of one account share their reads, and each hears the last change', async () => {
  const account = await newAccount();
  await account.fund(30);
  const { order_number: order } = (await account.rest('POST', '/v1/servers', { service_code: 'vps-1' })).body;
  await eventually(async () => (await account.rest('GET', `/v1/servers/${order}`)).body.status === 'running');
  const all = await tenEach(account, 3, SERVERS);
  await eventually(async () => all.every(({ messages }) => messages.length));
  const queries = await queriesOf(async () => {
    for (let n = 1; n <= 10; n++) await account.rest('PATCH', `/v1/servers/${order}`, { labels: { n: String(n) } });
    await eventually(async () =>
      all.every(({ messages }) => JSON.stringify(messages.at(-1).serverUpdated.server.labels).includes('"10"')),
    );
  });
  expect(queries.filter(({ text }) => text.includes('cross join lateral')).length).toBeLessThanOrEqual(
    (all.length * CHANGES) / 10,
  );
  for (const one of all) one.dispose();
});
