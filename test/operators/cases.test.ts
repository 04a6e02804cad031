/** An operator goes from a complaint to its customer, to a measure, and to the end of the case. */
import { describe, expect, it } from 'vitest';
import { newId } from '../../entities/ids.ts';
import { eventually, startFreehold, type TestAccount } from '../setup/freehold.ts';

const { db, newAccount, operator } = await startFreehold();

type Customer = TestAccount & { number: string; ipv4: string };
async function customer(): Promise<Customer> {
  const account = await newAccount();
  await account.fund(60);
  const { order_number: number } = (await account.rest('POST', '/v1/servers', { service_code: 'vps-1' })).body;
  const running = await eventually(async () => {
    const { body } = await account.rest('GET', `/v1/servers/${number}`);
    return body.status === 'running' && body;
  });
  return { ...account, number, ipv4: running.ipv4 };
}
const statusOf = async ({ rest, number }: Customer) => (await rest('GET', `/v1/servers/${number}`)).body.status;
const FIELDS = 'id state accountId orderNumber source address at text deadline result closedAt';
const OPEN = `mutation ($input: OpenCaseInput!) { openCase(input: $input) { ${FIELDS} } }`;
const MEASURE = `mutation ($id: ID!, $measure: Measure!) { takeMeasure(id: $id, measure: $measure, reason: "It sends spam.") { id } }`;
const CLOSE = `mutation ($id: ID!, $result: Line!) { closeCase(id: $id, result: $result) { ${FIELDS} } }`;
const OFF = `mutation ($number: ID!) { updateServer(orderNumber: $number, input: { powerState: OFF }) { server { status } } }`;
const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
const complaint = ({ ipv4 }: Pick<Customer, 'ipv4'>, more: object = {}) => ({
  ...{
    source: 'abuse@example.net',
    address: ipv4,
    at: inHours(0),
    text: 'It scans us.',
    deadline: inHours(24),
    ...more,
  },
});
const open = (given: object) => operator(OPEN, { input: given });
const opened = async (from: Customer): Promise<string> => (await open(complaint(from))).data.openCase.id;
const take = (id: string, measure: string) => operator(MEASURE, { id, measure });
const inbox = async ({ rest }: TestAccount) => (await rest('GET', '/v1/account/messages')).body.data;
const eventsOf = (id: string) =>
  db.query<{ data: { measure?: string } }>('select account_id, type, data from event where subject = $1 order by id', [
    id,
  ]);
const openCases = async ({ id }: TestAccount) =>
  (await operator('query ($id: Line!) { accounts(search: $id) { openCases } }', { id })).data.accounts[0].openCases;
const matter = async (id: string) =>
  (await operator('{ openMatters(limit: 200) { kind subject severity nextStep } }')).data.openMatters.find(
    ({ subject }: { subject: string }) => subject === id,
  );

describe('A complaint', () => {
  it('becomes a case of the server and the customer that had the address, and the customer hears of it', async () => {
    const account = await customer();
    const given = complaint(account);
    const { openCase } = (await open(given)).data;
    expect(openCase).toEqual({
      ...{ ...given, id: openCase.id, state: 'OPEN', accountId: account.id, orderNumber: account.number },
      ...{ result: null, closedAt: null },
    });
    const { at, address, deadline } = given;
    expect(await eventsOf(openCase.id)).toEqual([
      { accountId: account.id, type: 'case.opened', data: { orderNumber: account.number, at, address, deadline } },
    ]);
    const [message] = await inbox(account);
    expect(message).toMatchObject({ from: 'operator', related: { type: 'case', id: openCase.id } });
    expect(message.body).toMatch(new RegExp(`${account.number}.*${deadline}.*\n\nIt scans us\\.$`));
    expect(message.body).not.toContain('example.net');
    const answer = { subject: 'Solved', body: 'I closed the port.', related: message.related };
    expect((await account.rest('POST', '/v1/account/messages', answer)).status).toBe(200);
  });

  it('makes one case, although operators repeat it at once', async () => {
    const account = await customer();
    const given = complaint(account);
    const ids = (await Promise.all([1, 2, 3, 4].map(() => open(given)))).map(({ data }) => data.openCase.id);
    expect(new Set(ids).size).toBe(1);
    expect([await eventsOf(ids[0]), await inbox(account)]).toMatchObject([[{}], [{}]]);
    expect(await openCases(account)).toBe(1);
  });

  it('fits into the message whole, or opens no case and hears how many characters fit', async () => {
    const account = await customer();
    const text = (length: number) => complaint(account, { text: '😀'.repeat(length) });
    const { errors } = await open(text(4_000));
    const [, room] = /^The message has room for (\d+) characters/.exec(errors[0].message)!;
    expect([errors[0].extensions.code, await inbox(account)]).toEqual(['validation_failed', []]);
    expect((await open(text(Number(room) + 1))).errors[0].message).toBe(errors[0].message);
    expect((await open(text(Number(room)))).errors).toBeUndefined();
    const [message] = await inbox(account);
    expect([...message.body]).toHaveLength(4_000);
  });

  it('finds the customer of a server that is gone', async () => {
    const account = await customer();
    const given = complaint(account);
    await account.rest('DELETE', `/v1/servers/${account.number}`);
    await eventually(async () => (await account.rest('GET', `/v1/servers/${account.number}`)).status === 404);
    expect((await open(given)).data.openCase).toMatchObject({ accountId: account.id, orderNumber: account.number });
  });

  it.each([
    ['an address without a server', { address: '203.0.113.250' }, 'not_found', /No server had 203\.0\.113\.250 at /],
    ['a time before the server', { at: inHours(-9) }, 'not_found', /addressUses/],
    ['a time to come', { at: inHours(1) }, 'validation_failed', /time zone/],
    ['a deadline that is over', { deadline: inHours(-1) }, 'validation_failed', /later/],
  ])('with %s opens none', async (_, more, code, detail) => {
    const { errors } = await open(complaint(await customer(), more));
    expect([errors[0].extensions.code, errors[0].message]).toEqual([code, expect.stringMatching(detail)]);
  });
});

describe('An operator', () => {
  it('turns the server off, and tells the reason once', async () => {
    const account = await customer();
    const id = await opened(account);
    await take(id, 'POWER_OFF');
    await eventually(async () => (await statusOf(account)) === 'stopped');
    expect((await take(id, 'POWER_OFF')).errors).toBeUndefined();
    expect((await eventsOf(id)).slice(1)).toEqual([
      { accountId: account.id, type: 'case.measure_taken', data: { measure: 'power_off', reason: 'It sends spam.' } },
    ]);
    expect((await inbox(account)).map(({ body }: { body: string }) => body)).toEqual([
      `We turn ${account.number} off. Our reason: It sends spam.`,
      expect.anything(),
    ]);
    expect((await account.rest('PATCH', `/v1/servers/${account.number}`, { power_state: 'on' })).status).toBe(200);
  });

  it('suspends the account with its servers', async () => {
    const account = await customer();
    const id = await opened(account);
    await Promise.all([take(id, 'SUSPEND'), take(id, 'SUSPEND')]);
    await eventually(async () => (await statusOf(account)) === 'stopped');
    expect((await account.rest('POST', '/v1/servers', { service_code: 'vps-1' })).body.detail).toMatch(
      /It sends spam\./,
    );
    expect(await inbox(account)).toHaveLength(2);
  });

  it.each([
    ['a measure', 'stopped', (id: string) => take(id, 'POWER_OFF')],
    ['a measure', 'suspended', (id: string) => take(id, 'POWER_OFF')],
    ['an update', 'stopped', (_: string, number: string) => operator(OFF, { number })],
  ])(
    'turns a server off by %s while the suspension has it %s, and it stays off afterwards',
    async (_, status, turnOff) => {
      const account = await customer();
      const id = await opened(account);
      await take(id, 'SUSPEND');
      await eventually(async () => (await statusOf(account)) === 'stopped');
      if (status === 'suspended')
        await db.query(
          `update server set status = 'SUSPENDED', suspended_at = now(), suspended_from = 'STOPPED' where order_number = $1`,
          [account.number],
        );
      expect((await turnOff(id, account.number)).errors).toBeUndefined();
      await operator('mutation ($id: ID!) { resumeAccount(id: $id) { id } }', { id: account.id });
      const [server] = await db.query('select status, kept_off, suspended_from from server where order_number = $1', [
        account.number,
      ]);
      expect(server).toEqual({
        ...{ status: status.toUpperCase(), keptOff: false },
        suspendedFrom: status === 'suspended' ? 'STOPPED' : null,
      });
    },
  );

  it('turns a server off after the suspension of its account, and tells it once', async () => {
    const account = await customer();
    const id = await opened(account);
    await take(id, 'SUSPEND');
    for (const _ of [1, 2]) await take(id, 'POWER_OFF');
    expect((await inbox(account)).map(({ body }: { body: string }) => body)).toEqual([
      `We turn ${account.number} off. Our reason: It sends spam.`,
      ...[expect.stringMatching(/suspended/), expect.anything()],
    ]);
    expect((await eventsOf(id)).map(({ data }) => data.measure)).toEqual([...[undefined, 'suspend', 'power_off']]);
  });

  it('turns an unpaid server off, so that a payment does not turn it on', async () => {
    const account = await customer();
    const id = await opened(account);
    await db.query(
      `update server set status = 'SUSPENDED', suspended_at = now(), suspended_from = 'RUNNING' where order_number = $1`,
      [account.number],
    );
    await take(id, 'POWER_OFF');
    expect(await db.query('select suspended_from from server where order_number = $1', [account.number])).toEqual([
      { suspendedFrom: 'STOPPED' },
    ]);
    expect(await inbox(account)).toHaveLength(2);
  });

  it('hears that a server is gone, and can still suspend the account', async () => {
    const account = await customer();
    const id = await opened(account);
    await account.rest('DELETE', `/v1/servers/${account.number}`);
    expect((await take(id, 'POWER_OFF')).errors[0].message).toMatch(/is gone\. Suspend the account/);
    expect((await take(id, 'SUSPEND')).errors).toBeUndefined();
  });

  it('leaves nothing of a measure that is refused', async () => {
    const account = await customer();
    const id = await opened(account);
    await db.query(`update server set status = 'PROVISIONING' where order_number = $1`, [account.number]);
    expect((await take(id, 'POWER_OFF')).errors[0].extensions.code).toBe('server_busy');
    expect([await eventsOf(id), await inbox(account)]).toMatchObject([[{}], [{}]]);
  });

  it('closes a case once, tells the customer the result, and takes no measure in it afterwards', async () => {
    const account = await customer();
    const id = await opened(account);
    const [first, second] = [
      await operator(CLOSE, { id, result: 'Solved' }),
      await operator(CLOSE, { id, result: 'No' }),
    ];
    expect(first.data.closeCase).toMatchObject({ state: 'CLOSED', result: 'Solved', closedAt: expect.any(String) });
    expect(second.data).toEqual(first.data);
    expect((await eventsOf(id)).slice(1)).toEqual([
      { accountId: account.id, type: 'case.closed', data: { result: 'Solved' } },
    ]);
    expect((await inbox(account)).map(({ body }: { body: string }) => body)).toEqual([
      'We closed the case. Our result: Solved',
      expect.anything(),
    ]);
    expect((await take(id, 'SUSPEND')).errors[0].message).toMatch(/closed/);
    expect(await openCases(account)).toBe(0);
    const { data } = await operator(`{ cases(accountId: "${account.id}", state: CLOSED) { id } }`);
    expect(data.cases).toEqual([{ id }]);
  });

  it('needs a case that exists, and the right of support', async () => {
    const account = await customer();
    for (const id of [newId('case'), 'x'])
      expect((await take(id, 'SUSPEND')).errors[0].extensions.code).toBe('not_found');
    for (const query of [OPEN, '{ cases { id } }'])
      expect((await account.graphql(query, { input: complaint(account) })).errors[0].extensions.code).toBe(
        'insufficient_scope',
      );
  });
});

it('An open case is an open matter, and an overdue one is critical', async () => {
  const account = await customer();
  const id = await opened(account);
  expect(await matter(id)).toMatchObject({ kind: 'CASE', severity: 'WARNING' });
  await db.query(`update abuse_case set deadline = now() where id = $1`, [id]);
  expect(await matter(id)).toMatchObject({ severity: 'CRITICAL', nextStep: expect.stringMatching(/takeMeasure/) });
  await operator(CLOSE, { id, result: 'Solved' });
  expect(await matter(id)).toBeUndefined();
});

it('An open case is critical while the engine refuses to turn its server off', async () => {
  const account = await customer();
  const id = await opened(account);
  await db.query(`update server set failure_code = 'stop_failed' where order_number = $1`, [account.number]);
  expect(await matter(id)).toMatchObject({
    severity: 'CRITICAL',
    nextStep: expect.stringMatching(new RegExp(`turn ${account.number} off.*takeMeasure`)),
  });
  await take(id, 'POWER_OFF');
  await eventually(async () => (await statusOf(account)) === 'stopped');
  expect(await matter(id)).toMatchObject({ severity: 'WARNING' });
});

it('A worker deletes a case a year after its end', async () => {
  const account = await customer();
  const [old, young] = [await opened(account), await opened(account)];
  for (const id of [old, young]) await operator(CLOSE, { id, result: 'Solved' });
  await db.query(`update abuse_case set closed_at = now() - interval '366 days' where id = $1`, [old]);
  await db.query(`update task set run_at = now() where subject = 'cron:history-retention'`);
  const left = async () => (await operator(`{ cases(accountId: "${account.id}") { id } }`)).data.cases;
  await eventually(async () => (await left()).length === 1);
  expect(await left()).toEqual([{ id: young }]);
});
