/** The log of the operator has the acts of operators in all logs. It finds them by the operator and by the action. */
import { beforeAll, describe, expect, it } from 'vitest';
import { asSuperuser } from '../setup/database.ts';
import { graphqlClient } from '../setup/spawn.ts';
import { eventually, startFreehold, type TestAccount } from '../setup/freehold.ts';
import { type Query, queriesOf } from '../setup/queries.ts';

const { db, graphqlUrl, newAccount, operator } = await startFreehold();

const LOG = `query ($accountId: ID, $operator: ID, $action: [AuditAction!], $kind: AuditKind, $limit: PageLimit = 100,
    $cursor: Cursor) {
  auditLog(accountId: $accountId, operator: $operator, action: $action, kind: $kind, limit: $limit, cursor: $cursor) {
    data { id action actor { name } resource { id } } nextCursor } }`;
type Given = Record<string, unknown>;
interface Entry {
  id: string;
  action: string;
  actor: { name: string };
  resource: { id: string } | null;
}
const read = async (given: Given, as = operator) => (await as(LOG, given)).data.auditLog;
const logOf = async (given: Given): Promise<Entry[]> => (await read(given)).data;
const actionsOf = async (given: Given): Promise<string[]> => (await logOf(given)).map(({ action }) => action);

let [ann, zoe]: { id: string; call: typeof operator }[] = [];
let account: TestAccount;

beforeAll(async () => {
  const add = async (name: string) => {
    const ADD = `mutation { addOperator(input: { name: "${name}", role: OWNER }) { token operator { id } } }`;
    const { token, operator: added } = (await operator(ADD)).data.addOperator;
    return { id: added.id as string, call: graphqlClient(graphqlUrl, token) };
  };
  [ann, zoe] = [await add('ann'), await add('zoe')];
  account = await newAccount();
  const given = { id: account.id };
  await ann.call('mutation ($id: ID!) { suspendAccount(id: $id, reason: "spam") { id } }', given);
  await zoe.call('mutation ($id: ID!) { resumeAccount(id: $id) { id } }', given);
  await zoe.call('mutation { noteBackup { createdAt } }');
  await eventually(async () => (await actionsOf({ operator: zoe!.id, kind: 'REQUEST' })).length >= 2);
});

describe('The audit log of the operator', () => {
  it('has what operators did to accounts, and nothing of the customers themselves', async () => {
    const entries = await logOf({ kind: 'ACT' });
    const ofAccount = entries.filter(({ resource }) => resource?.id === account.id);
    expect(ofAccount.map(({ action, actor }) => [action, actor.name])).toEqual([
      ['account.resumed', 'zoe'],
      ['account.suspended', 'ann'],
    ]);
    expect(entries.map(({ action }) => action)).not.toContain('session.created');
  });

  it('leaves plain requests out, or shows them alone, or both', async () => {
    expect(await actionsOf({ kind: 'ACT' })).not.toContain('api.request');
    expect(new Set(await actionsOf({ kind: 'REQUEST' }))).toEqual(new Set(['api.request']));
    const all = await actionsOf({});
    expect(all).toContain('api.request');
    expect(all).toContain('account.suspended');
    expect(await actionsOf({ kind: 'REQUEST', action: ['account.'] })).toEqual([]);
    expect(await actionsOf({ accountId: account.id, kind: 'ACT' })).not.toContain('api.request');
  });

  it('has what one operator did, in all logs or in the log of an account', async () => {
    expect(await actionsOf({ operator: ann!.id, kind: 'ACT' })).toEqual(['account.suspended']);
    expect(await actionsOf({ operator: zoe!.id, kind: 'ACT' })).toEqual(['backup.noted', 'account.resumed']);
    expect(await actionsOf({ operator: zoe!.id, accountId: account.id })).toEqual(['account.resumed']);
    expect((await actionsOf({ operator: 'operator', kind: 'ACT' })).sort()).toEqual([
      'operator.updated',
      'operator.updated',
    ]);
  });

  it('finds actions by their beginning', async () => {
    expect(await actionsOf({ action: ['account.sus'] })).toEqual(['account.suspended']);
    expect(await actionsOf({ action: ['account.'] })).toEqual(['account.resumed', 'account.suspended']);
    expect(await actionsOf({ action: ['acc', 'backup.noted'] })).toEqual([
      ...['backup.noted', 'account.resumed', 'account.suspended'],
    ]);
    expect(await actionsOf({ action: ['nothing.'] })).toEqual([]);
    const { body } = await account.rest('GET', '/v1/account/audit-log?action=session.');
    expect(body.data.map(({ action }: Entry) => action)).toEqual(['session.created']);
  });

  it('goes on behind a cursor without a gap', async () => {
    const whole = await logOf({ kind: 'ACT' });
    const found: Entry[] = [];
    let cursor: string | null = null;
    do {
      const { data, nextCursor } = await read({ kind: 'ACT', limit: 2, cursor });
      found.push(...data);
      cursor = nextCursor;
    } while (cursor);
    expect(found).toEqual(whole);
  });

  it('is closed to customers', async () => {
    const { errors } = await account.graphql(LOG, { operator: ann!.id });
    expect(errors[0].extensions.code).toBe('not_found');
  });
});

describe('A large log', () => {
  /** Many rows between two acts of an operator: requests of that operator, and acts of customers. */
  beforeAll(async () => {
    await db.query(
      `insert into audit_entry (id, account_id, action, actor_type, actor_id)
        select 'aud_' || lpad(n::text, 26, '0'), case n % 2 when 0 then 'operator' else 'acct_x' end,
          case n % 50 when 1 then 'server.created' else 'api.request' end,
          case n % 2 when 0 then 'operator' else 'api_key' end, case n % 4 when 0 then $1 when 2 then 'operator' else 'key_x' end
        from generate_series(1, 30000) as n`,
      [ann!.id],
    );
    await asSuperuser(db, 'analyze audit_entry');
  });

  const planOf = async ({ text, values }: Query) =>
    JSON.stringify(await db.query(`explain (analyze, format json) ${text}`, values));

  it.each([
    ['acts of operators', { kind: 'ACT' }, 'audit_entry_operators'],
    ['the beginning of an action', { action: ['account.sus'] }, 'audit_entry_operators'],
    ['one operator', { kind: 'ACT', operator: true }, 'audit_entry_operator'],
    ['one operator with an account', { operator: true, accountId: 'acct_x' }, 'audit_entry_operator'],
    ['acts of an account', { kind: 'ACT', accountId: 'acct_x' }, 'audit_entry_action'],
  ])('finds %s by an index', async (_, given: Given, index) => {
    const filled = { ...given, ...(given.operator ? { operator: ann!.id } : {}) };
    const queries = await queriesOf(db, () => logOf(filled));
    const [query] = queries.filter(({ text }) => text.includes('as wanted (action)'));
    const plan = await planOf(query!);
    expect(plan).toContain(`"Index Name":"${index}"`);
    expect(plan).not.toContain('Seq Scan');
    expect(plan).not.toContain('"Rows Removed by Filter":1');
  });
});
