/** The audit log of operators, of whom one makes as many entries as it can. */
import { expect, it } from 'vitest';
import { newId } from '../../entities/ids.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';
import { graphqlClient } from '../setup/spawn.ts';

const { db, graphqlUrl, newAccount, operator } = await startFreehold();
const ADD = 'mutation ($role: OperatorRole!) { addOperator(input: { name: "reader", role: $role }) { token } }';
const { token } = (await operator(ADD, { role: 'READ_ONLY' })).data.addOperator;
const reader = graphqlClient(graphqlUrl, token);
const entriesOf = async (field: string) =>
  (
    await db.query<{ account: string | null; count: number }>(
      `select resource_id as account, count from audit_entry where account_id = 'operator' and path = '/graphql#' || $1`,
      [field],
    )
  ).map(({ account }) => account);

it('A refused call names no account of its arguments, and makes one entry', async () => {
  const { id } = await newAccount();
  const endpoints = [id, ...Array.from({ length: 3_000 }, () => newId('acct'))];
  const call =
    'mutation ($endpoints: [Line!]!) { addEngine(input: { name: "x", region: "ams", endpoints: $endpoints }) { name } }';
  for (let n = 0; n < 3; n++)
    expect((await reader(call, { endpoints })).errors[0].extensions.code).toBe('insufficient_scope');
  await eventually(async () => (await entriesOf('addEngine')).length > 0);
  expect(await entriesOf('addEngine')).toEqual([null]);
});

it('A read names the accounts that exist', async () => {
  const { id } = await newAccount();
  for (const accountId of [newId('acct'), id]) await reader(`{ messages(accountId: "${accountId}") { data { id } } }`);
  await eventually(async () => (await entriesOf('messages')).length > 0);
  expect(await entriesOf('messages')).toEqual([id]);
});

it('A mutation names the accounts of all its arguments, as the former and the new one of a payment', async () => {
  const [former, next] = [await newAccount(), await newAccount()];
  const key = (await former.rest('POST', '/v1/auth/api-keys', { name: 'theirs', scope: 'full' })).body.key_id;
  await operator(`mutation { assignPayment(id: "${key}", accountId: "${next.id}", reason: "Hers") { status } }`);
  await eventually(async () => (await entriesOf('assignPayment')).length > 1);
  expect((await entriesOf('assignPayment')).sort()).toEqual([former.id, next.id].sort());
});

it('A mutation by right names at most twenty accounts, those of its first arguments', async () => {
  const accounts = await Promise.all(Array.from({ length: 21 }, async () => (await newAccount()).id));
  const call = (endpoints: string[]) =>
    operator(
      'mutation ($endpoints: [Line!]!) { addEngine(input: { name: "x", region: "none", endpoints: $endpoints }) { name } }',
      {
        endpoints,
      },
    );
  await call(accounts.slice(0, 2));
  await call(accounts);
  await eventually(async () => (await entriesOf('addEngine')).length > 18);
  // The name and the region of the engine are the first two arguments of twenty.
  expect((await entriesOf('addEngine')).sort()).toEqual([null, ...accounts.slice(0, 18)].sort());
});
