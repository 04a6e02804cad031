/** Watchers with the same view of a change share its answer, and others do not. */
import { type GraphQLObjectType, getNamedType, isCompositeType, isObjectType, isRequiredArgument } from 'graphql';
import { expect, it } from 'vitest';
import { schema } from '../../../schema/index.ts';
import { eventually, startFreehold, type TestAccount } from '../../setup/freehold.ts';
import { type Query, queriesOf } from '../../setup/queries.ts';
import { listen } from '../../setup/subscription.ts';

const { db, newAccount, graphqlUrl, operator, operatorToken } = await startFreehold({ ROLES: 'api' });
const SERVERS = 'subscription { serverUpdated { server { orderNumber labels tier { name } } } }';

async function orderOf(account: TestAccount): Promise<string> {
  await account.fund(30);
  return (await account.rest('POST', '/v1/servers', { service_code: 'vps-1' })).body.order_number;
}
async function keyOf(account: TestAccount): Promise<string> {
  return (await account.rest('POST', '/v1/auth/api-keys', { name: 'watcher', scope: 'read' })).body.plaintext;
}
const readsTier = ({ text, values }: Query) => /from catalog_item item/.test(text) && String(values[0]) === 'vps-1';
const heard = (all: ReturnType<typeof listen>[], what: string) =>
  eventually(async () => all.every(({ messages }) => JSON.stringify(messages.at(-1) ?? '').includes(what)));

it('Watchers with several keys of an account cost one answer, and another document costs its own', async () => {
  const account = await newAccount();
  const order = await orderOf(account);
  const keys = [await keyOf(account), await keyOf(account)];
  const alike = keys.flatMap((key) => Array.from({ length: 8 }, () => listen(graphqlUrl, key, SERVERS)));
  const other = listen(graphqlUrl, keys[0]!, SERVERS.replace('name', 'code'));
  await heard([...alike, other], order);
  const queries = await queriesOf(db, async () => {
    await account.rest('PATCH', `/v1/servers/${order}`, { labels: { web: 'second' } });
    await heard([...alike, other], 'second');
  });
  expect(queries.filter(readsTier)).toHaveLength(2);
  expect(new Set(alike.map(({ messages }) => JSON.stringify(messages.at(-1)))).size).toBe(1);
  expect(other.messages.at(-1).serverUpdated.server.tier).toEqual({ code: 'vps-1' });
  for (const one of [...alike, other]) one.dispose();
});

it('Windows of an operator cost one read of an event', async () => {
  const windows = Array.from({ length: 10 }, () =>
    listen(graphqlUrl, operatorToken, 'subscription { operatorEvent { id type data } }'),
  );
  await operator('mutation { setStock(region: "zrh", serviceCode: "vps-1", total: 41) { total } }');
  await heard(windows, '41');
  const queries = await queriesOf(db, async () => {
    await operator('mutation { setStock(region: "zrh", serviceCode: "vps-1", total: 42) { total } }');
    await heard(windows, '42');
  });
  expect(queries.filter(({ text }) => /from event where account_id = 'operator'/.test(text))).toHaveLength(1);
  for (const one of windows) one.dispose();
});

/** All fields of a type that need no argument, down to a depth. */
function everything(type: GraphQLObjectType, depth = 4): string {
  const fields = Object.values(type.getFields()).flatMap(({ name, type: of, args }) => {
    const named = getNamedType(of);
    if (args.some(isRequiredArgument)) return [];
    if (!isCompositeType(named)) return [name];
    return depth && isObjectType(named) ? [`${name} ${everything(named, depth - 1)}`] : [];
  });
  return `{ __typename ${fields.join(' ')} }`;
}

it.each(['serverUpdated', 'topUpUpdated', 'balanceChanged'])(
  'Every field of %s answers without the credential of a single watcher',
  async (field) => {
    const account = await newAccount();
    await orderOf(account);
    await account.rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'USDC-BASE' });
    const type = getNamedType(schema.getSubscriptionType()!.getFields()[field]!.type) as GraphQLObjectType;
    const live = listen(graphqlUrl, await keyOf(account), `subscription { ${field} ${everything(type)} }`);
    await eventually(async () => live.messages.length || live.failure());
    expect([live.failure(), live.messages[0].errors]).toEqual([undefined, undefined]);
    live.dispose();
  },
);
