/** Named operators: each has a role and a token, and the audit log names them. */
import { createClient } from 'graphql-ws';
import { describe, expect, it, onTestFinished } from 'vitest';
import WebSocket from 'ws';
import { ROLES_WITH } from '../../entities/operator.ts';
import { schema } from '../../schema/index.ts';
import { bearer } from '../accounts/oauth/requests.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';
import { graphqlClient } from '../setup/spawn.ts';

const { anonymous, db, graphqlUrl, newAccount, operator } = await startFreehold();

const ADD = `mutation ($input: AddOperatorInput!) { addOperator(input: $input) { token operator { id name role state } } }`;
async function add(name: string, role: string) {
  const { data } = await operator(ADD, { input: { name, role } });
  const { token, operator: added } = data.addOperator;
  return { token: token as string, id: added.id as string, call: graphqlClient(graphqlUrl, token) };
}
type Answer = { errors?: { message: string; extensions: { code: string } }[] };
const codeOf = ({ errors }: Answer) => errors?.[0]?.extensions.code;
const ADJUST = `mutation ($id: ID!) { adjustBalance(accountId: $id, amountUsd: 1, reason: "A gift", key: "gift") { __typename } }`;
const SUSPEND = `mutation ($id: ID!) { suspendAccount(id: $id, reason: "Spam") { id } }`;

it('Each root field of operators has the right that the list says', async () => {
  const fields = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()]
    .flatMap((type) => Object.values(type!.getFields()))
    .filter(({ extensions }) => extensions.scope === 'operator');
  const named = (right: string) =>
    fields
      .filter(({ extensions }) => extensions.right === right)
      .map(({ name }) => name)
      .sort();
  const rights = Object.entries(ROLES_WITH).map(([right, roles]) => [
    right,
    { roles: roles.join(' '), fields: named(right) },
  ]);
  await expect(`${JSON.stringify(Object.fromEntries(rights), null, 2)}\n`).toMatchFileSnapshot('rights.json');
});

describe('The name of an operator', () => {
  it.each([
    ['a space at the end', 'operator '],
    ['a space at the beginning', ' operator'],
    ['two spaces', 'Jane  Doe'],
    ['a space alone', ' '],
    ['a space that does not break', 'Jane\u00a0Doe'],
    ['a letter without width', 'ope\u200brator'],
    ['a mark that turns the direction', '\u202eana'],
    ['an invisible letter', 'jane\u3164'],
    ['a variation selector', 'jane\ufe0f'],
    ['a newline', 'a\nb'],
  ])('is refused with %s', async (_, name) => {
    const answer = await operator(ADD, { input: { name, role: 'READ_ONLY' } });
    expect(codeOf(answer)).toBe('BAD_USER_INPUT');
    expect(answer.errors[0].message).toContain('words of printable characters');
  });

  it.each(['Jane Doe', 'Zoë', '李雷', 'backup-tool (night)'])('is accepted as %s', async (name) => {
    expect((await add(name, 'READ_ONLY')).id).toMatch(/^opr_/);
  });
});

describe('A named operator', () => {
  it('of support gets no credential of a customer', async () => {
    const { rest } = await newAccount();
    const { body } = await rest('POST', '/v1/oauth/register', { scope: 'full' });
    const reset = 'mutation ($id: ID!) { resetClient(clientId: $id, reason: "Lost") { clientSecret } }';
    const { call } = await add('sid', 'SUPPORT');
    expect(codeOf(await call(reset, { id: body.client_id }))).toBe('insufficient_scope');
    expect((await operator(reset, { id: body.client_id })).data.resetClient.clientSecret).toMatch(/^svc_cs_/);
  });

  it('does what the role permits, and hears which roles permit the rest', async () => {
    const { id } = await newAccount();
    const [billing, support, reader] = [
      await add('bea', 'BILLING'),
      await add('sam', 'SUPPORT'),
      await add('ron', 'READ_ONLY'),
    ];
    for (const { call } of [billing, support, reader])
      expect((await call('{ payments(limit: 1) { data { id } } }')).errors).toBeUndefined();
    const refused = await support.call(ADJUST, { id });
    expect([codeOf(refused), refused.errors[0].message]).toEqual([
      'insufficient_scope',
      'The role SUPPORT may not do this. Ask an operator with the role OWNER or BILLING.',
    ]);
    expect(codeOf(await billing.call(ADJUST, { id }))).toBeUndefined();
    expect(codeOf(await billing.call(SUSPEND, { id }))).toBe('insufficient_scope');
    expect(codeOf(await reader.call(SUSPEND, { id }))).toBe('insufficient_scope');
    expect(codeOf(await support.call(SUSPEND, { id }))).toBeUndefined();
    for (const { call } of [billing, support, reader])
      expect(codeOf(await call(ADD, { input: { name: 'eve', role: 'OWNER' } }))).toBe('insufficient_scope');
  });

  it('resizes a server and turns its renewal on only as an owner, since both spend the money of its customer', async () => {
    const { rest, fund, balance } = await newAccount();
    await fund(50);
    const order = { service_code: 'vps-1', auto_renew: false };
    const { order_number: number } = (await rest('POST', '/v1/servers', order)).body;
    const { call } = await add('ned', 'SUPPORT');
    const update = (by: typeof call, input: object) =>
      by(
        'mutation ($number: ID!, $input: UpdateServerInput!) { updateServer(orderNumber: $number, input: $input) { chargedUsd } }',
        { number, input },
      );
    await eventually(async () => (await rest('GET', `/v1/servers/${number}`)).body.status === 'running');
    expect(codeOf(await update(call, { powerState: 'OFF' }))).toBeUndefined();
    await eventually(async () => (await rest('GET', `/v1/servers/${number}`)).body.status === 'stopped');
    const before = await balance();
    for (const input of [{ serviceCode: 'vps-4' }, { autoRenew: true }])
      expect((await update(call, input)).errors[0].message).toContain('Ask an operator with the role OWNER.');
    expect(await balance()).toBe(before);
    expect(codeOf(await update(call, { autoRenew: false }))).toBeUndefined();
    expect((await update(operator, { serviceCode: 'vps-4' })).data.updateServer.chargedUsd).toBeGreaterThan(0);
  });

  it('reads no root password of a job without the right to do it', async () => {
    const JOBS = '{ manualJobs { id spec { rootPassword } } }';
    expect(codeOf(await (await add('rita', 'READ_ONLY')).call(JOBS))).toBe('insufficient_scope');
    expect(codeOf(await (await add('bob', 'BILLING')).call(JOBS))).toBe('insufficient_scope');
    expect(codeOf(await (await add('sue', 'SUPPORT')).call(JOBS))).not.toBe('insufficient_scope');
  });

  it('stands in the audit log by name, and customers see no name', async () => {
    const account = await newAccount();
    const { call, id } = await add('ida', 'SUPPORT');
    await call(SUSPEND, { id: account.id });
    const LOG = `query ($id: ID) { auditLog(accountId: $id, action: "account.suspended") { data { actor { type id name } } } }`;
    const seen = await operator(LOG, { id: account.id });
    expect(seen.data.auditLog.data).toEqual([{ actor: { type: 'operator', id, name: 'ida' } }]);
    const shown = await account.rest('GET', '/v1/account/audit-log?action=account.suspended');
    expect(shown.body.data[0].actor).toEqual({ type: 'operator', id: 'operator', name: 'operator' });
  });

  it('is unknown on the public listener', async () => {
    const { token } = await add('pia', 'OWNER');
    expect((await anonymous('GET', '/v1/account', undefined, bearer(token))).body.code).toBe('invalid_credential');
  });

  it('has a name that no other active operator has', async () => {
    const { id } = await add('Una', 'OWNER');
    for (const name of ['una', 'Operator'])
      expect(codeOf(await operator(ADD, { input: { name, role: 'OWNER' } }))).toBe('validation_failed');
    await operator('mutation ($id: ID!) { endOperator(id: $id) { state } }', { id });
    expect(codeOf(await operator(ADD, { input: { name: 'una', role: 'OWNER' } }))).toBeUndefined();
  });

  it.each([0, 366])('has no token of %i days', async (days) => {
    expect(codeOf(await operator(ADD, { input: { name: 'day', role: 'OWNER', days } }))).toBe('BAD_USER_INPUT');
  });
});

describe('The token of an operator', () => {
  const WHO = '{ operators(state: ACTIVE) { id name role } }';
  const isRefused = (id: string) =>
    eventually(async () => {
      const [entry] = await db.query(
        `select 1 from audit_entry where action = 'operator.refused' and resource_id = $1`,
        [id],
      );
      return entry;
    });

  it('ends with the operator, and its running subscriptions, too', async () => {
    const { token, id, call } = await add('max', 'OWNER');
    const [connected, closed] = [Promise.withResolvers<void>(), Promise.withResolvers<number>()];
    const client = createClient({
      url: graphqlUrl.replace('http', 'ws'),
      webSocketImpl: WebSocket,
      connectionParams: { authorization: `Bearer ${token}` },
      retryAttempts: 0,
      on: { connected: () => connected.resolve(), closed: (event) => closed.resolve((event as { code: number }).code) },
    });
    onTestFinished(() => void client.dispose());
    client.subscribe(
      { query: 'subscription { serverUpdated { type } }' },
      { next: () => {}, error: () => {}, complete: () => {} },
    );
    await connected.promise;
    await operator('mutation ($id: ID!) { endOperator(id: $id) { state } }', { id });
    expect(await closed.promise).toBeGreaterThan(4000);
    expect(codeOf(await call(WHO))).toBe('revoked_credential');
    await isRefused(id);
    expect(codeOf(await operator('mutation ($id: ID!) { endOperator(id: $id) { id } }', { id }))).toBe(
      'validation_failed',
    );
  });

  it('expires', async () => {
    const { id, call } = await add('exa', 'OWNER');
    expect(codeOf(await call(WHO))).toBeUndefined();
    await db.query(`update operator set expires_at = now() - interval '1 second' where id = $1`, [id]);
    expect(codeOf(await call(WHO))).toBe('expired_credential');
    await isRefused(id);
  });

  it('gives way to a new one at once', async () => {
    const { id, call } = await add('ren', 'SUPPORT');
    const RENEW = 'mutation ($id: ID!) { renewOperatorToken(id: $id, days: 7) { token operator { role } } }';
    const { token } = (await operator(RENEW, { id })).data.renewOperatorToken;
    expect(codeOf(await call(WHO))).toBe('invalid_credential');
    expect(codeOf(await graphqlClient(graphqlUrl, token)(WHO))).toBeUndefined();
  });

  it('keeps the role that another operator gave meanwhile', async () => {
    const { id } = await add('meanwhile', 'SUPPORT');
    const SET = 'mutation ($id: ID!) { setOperatorRole(id: $id, role: BILLING, seen: SUPPORT) { role } }';
    expect((await operator(SET, { id })).data.setOperatorRole).toEqual({ role: 'BILLING' });
    const [refusal] = (await operator(SET, { id })).errors;
    expect(refusal.message).toMatch(/^operator has changed the role meanwhile, at 20\S+Z \(role BILLING\)/);
  });

  it('is told nothing new when an owner gives the same role again', async () => {
    const { id } = await add('same', 'BILLING');
    const SET = 'mutation ($id: ID!) { setOperatorRole(id: $id, role: BILLING) { role } }';
    expect(JSON.stringify((await operator(SET, { id })).errors)).toContain('has this role already');
    const { data } = await operator('{ operatorEvents(limit: 200) { data { subject data } } }');
    const events = data.operatorEvents.data.filter(({ subject }: { subject: string }) => subject === id);
    expect(events).toHaveLength(1);
  });

  it('gets a new role at once, and is stored as a digest alone', async () => {
    const { id, token, call } = await add('rol', 'OWNER');
    const SET = 'mutation ($id: ID!) { setOperatorRole(id: $id, role: READ_ONLY) { role } }';
    expect((await operator(SET, { id })).data.setOperatorRole).toEqual({ role: 'READ_ONLY' });
    await eventually(async () => codeOf(await call(ADD, { input: { name: 'x', role: 'OWNER' } })) !== undefined);
    const [{ rows }] = (await db.query<{ rows: string }>(
      `select string_agg(operator::text, '') as rows from operator`,
    )) as [{ rows: string }];
    expect(rows).not.toContain(token);
    expect(rows).not.toContain(token.split('_').at(-1));
  });
});
