import { describe, expect, it } from 'vitest';
import { eventually, startFreehold } from '../../setup/freehold.ts';

const { newAccount, operator, db, anonymous } = await startFreehold({
  DEDICATED_DRIVER: 'manual',
  ALLOW_SIMULATED: 'true',
});
const ADD = 'mutation ($input: AddAddressPoolInput!) { addAddressPool(input: $input) { id } }';
for (const network of [{ cidr: '192.0.2.0/24' }, { cidr: '2001:db8::/56', gateway: 'fe80::1' }])
  await operator(ADD, { input: { region: 'ams', kind: 'DEDICATED', ...network } });

const FIELDS = 'id orderNumber action power state note spec { hostname image ipv4 userData }';
const jobs = async () => (await operator(`{ manualJobs { ${FIELDS} } }`)).data.manualJobs;
const openJob = (orderNumber: string, action: string) =>
  eventually(async () =>
    // biome-ignore lint/suspicious/noExplicitAny: an answer of GraphQL
    (await jobs()).find((job: any) => job.orderNumber === orderNumber && job.action === action && job.state === 'OPEN'),
  );
const close = (mutation: 'completeManualJob' | 'failManualJob', id: string, note?: string) =>
  operator(`mutation ($id: ID!, $note: Line) { ${mutation}(id: $id, note: $note) { ${FIELDS} } }`, { id, note });

const newOrder = async () => {
  const account = await newAccount();
  await account.fund(500);
  const funds = await account.balance();
  const order = { service_code: 'ded-1', region: 'ams', hostname: 'metal', user_data: '#cloud-config\n{}\n' };
  const { body } = await account.rest('POST', '/v1/servers', order);
  const number: string = body.order_number;
  const becomes = (status: string) =>
    eventually(async () => (await account.rest('GET', `/v1/servers/${number}`)).body.status === status);
  return { account, funds, number, becomes };
};

describe('A hand-made dedicated server', () => {
  it('leaves a trace when the operator reads its passwords', async () => {
    const { account, number } = await newOrder();
    await openJob(number, 'CREATE');
    const log = `{ auditLog(accountId: "operator", limit: 50) { data { path resource { id } } } }`;
    await eventually(async () =>
      (await operator(log)).data.auditLog.data.some(
        // biome-ignore lint/suspicious/noExplicitAny: an answer of GraphQL
        ({ path, resource }: any) => path === '/graphql#manualJobs' && resource?.id === account.id,
      ),
    );
  });

  it('leaves no open job and no held money when the operator cancels its deletion, since its addresses are free then', async () => {
    const { account, funds, number } = await newOrder();
    await openJob(number, 'CREATE');
    expect((await account.rest('DELETE', `/v1/servers/${number}`)).body.refunded_usd).toBe(0);
    await openJob(number, 'DESTROY');
    expect((await account.rest('GET', '/v1/account/balance')).body).toMatchObject({ pending_usd: 99 });
    const { data } = await operator('mutation ($s: Line!) { giveUpTask(subject: $s) { subject } }', { s: number });
    expect(data.giveUpTask.subject).toBe(number);
    expect(await account.balance()).toBe(funds);
    // biome-ignore lint/suspicious/noExplicitAny: an answer of GraphQL
    const left = (await jobs()).filter((job: any) => job.orderNumber === number);
    // biome-ignore lint/suspicious/noExplicitAny: as above
    expect(left.map(({ action, state, spec }: any) => [action, state, spec])).toEqual([
      ['CREATE', 'FAILED', null],
      ['DESTROY', 'FAILED', null],
    ]);
  });

  it('waits for the operator at each step, and costs nothing before the operator confirms that it runs', async () => {
    const { account, number, becomes } = await newOrder();
    const create = await openJob(number, 'CREATE');
    expect(create.spec).toMatchObject({ hostname: 'metal', userData: '#cloud-config\n{}\n' });
    expect(create.spec.ipv4).toMatch(/^\d/);
    await becomes('provisioning');
    expect((await close('completeManualJob', create.id, 'rack 3')).data.completeManualJob).toMatchObject({
      state: 'DONE',
      note: 'rack 3',
      spec: null,
    });
    await becomes('running');

    await account.rest('PATCH', `/v1/servers/${number}`, { action: 'reboot' });
    const reboot = await openJob(number, 'POWER');
    expect(reboot.power).toBe('restart');
    await becomes('rebooting');
    await close('completeManualJob', reboot.id);
    await becomes('running');

    await account.rest('PATCH', `/v1/servers/${number}`, { power_state: 'off' });
    await close('completeManualJob', (await openJob(number, 'POWER')).id);
    await becomes('stopped');
    await account.rest('PATCH', `/v1/servers/${number}`, { action: 'rebuild' });
    await close('failManualJob', (await openJob(number, 'REBUILD')).id);
    await becomes('stopped');

    await account.rest('DELETE', `/v1/servers/${number}`);
    const destroy = await openJob(number, 'DESTROY');
    expect(await db.query('select from address where held_by = $1', [number])).toHaveLength(2);
    await close('completeManualJob', destroy.id);
    await eventually(async () => !(await db.query('select from address where held_by = $1', [number])).length);
  });

  it('is refunded in full if the operator cannot make it, and keeps its capacity until the operator confirms its absence', async () => {
    const { account, funds, number, becomes } = await newOrder();
    await close('failManualJob', (await openJob(number, 'CREATE')).id, 'no such disk');
    await becomes('failed');
    expect(await account.balance()).toBe(funds);
    expect(await db.query('select from address where held_by = $1', [number])).toHaveLength(2);
    await close('completeManualJob', (await openJob(number, 'DESTROY')).id);
    await eventually(async () => !(await db.query('select from address where held_by = $1', [number])).length);
  });

  it('has a queue only for the operator, who closes each job once, with an audit entry', async () => {
    const { account, number } = await newOrder();
    const { id } = await openJob(number, 'CREATE');
    for (const graphql of [account.graphql])
      expect((await graphql('{ manualJobs { id } }')).errors[0].extensions.code).toBe('insufficient_scope');
    expect((await anonymous('GET', '/v1/servers')).status).toBe(401);
    for (const wrong of ['nonsense', 'job_00000000000000000000000000', number])
      expect((await close('completeManualJob', wrong)).errors[0].extensions.code).toBe('not_found');
    const answers = await Promise.all([close('completeManualJob', id), close('failManualJob', id)]);
    expect(answers.filter(({ errors }) => !errors)).toHaveLength(1);
    const audits = await db.query(
      `select actor_type from audit_entry where action = 'manual_job.closed' and resource_id = $1`,
      [id],
    );
    expect(audits).toEqual([{ actorType: 'operator' }]);
    const [{ sealed } = { sealed: 1 }] = await db.query<{ sealed: number }>(
      `select count(spec)::int as sealed from manual_job where state <> 'OPEN'`,
    );
    expect(sealed).toBe(0);
  });
});
