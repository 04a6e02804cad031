/** Hosts: their administration, the choice of a host for a machine, and the catalog, which offers only machines that fit. */
import { beforeEach, describe, expect, it } from 'vitest';
import { eventually, startFreehold } from '../../setup/freehold.ts';

const { db, newAccount, operator } = await startFreehold({ LIMIT_SERVERS: '1000' });
const account = await newAccount();
await account.fund(10_000);

const FIELDS =
  'name state vcpus memoryMb diskGb claimedVcpus claimedMemoryMb claimedDiskGb machines serviceCode engine';
const ADD = `mutation ($input: AddHostInput!) { addHost(input: $input) { ${FIELDS} } }`;
const add = async (input: object) => await operator(ADD, { input: { region: 'zrh', kind: 'VPS', ...input } });
const act = (mutation: string, name: string) =>
  operator(`mutation ($name: HostName!) { ${mutation}(name: $name) { ${FIELDS} } }`, { name });
const hosts = async () => (await operator(`{ hosts { ${FIELDS} } }`)).data.hosts;
const host = async (name: string) => (await hosts()).find((one: { name: string }) => one.name === name);
const SMALL = { vcpus: 2, memoryMb: 8192, diskGb: 100 };

/** Reads over GraphQL, because callers of REST share an answer for a second. */
const stockOf = async (item: string): Promise<string> => {
  const { data } = await operator(`{ catalogItem(code: "${item}") { ... on PricedTier { regions { code stock } } } }`);
  return data.catalogItem.regions.find(({ code }: { code: string }) => code === 'zrh').stock.toLowerCase();
};
const order = async (body: object = {}) =>
  account.rest('POST', '/v1/servers', { service_code: 'vps-1', region: 'zrh', ...body });
const read = async (orderNumber: string) => (await account.rest('GET', `/v1/servers/${orderNumber}`)).body;
const running = async (body: object = {}) => {
  const { body: ordered } = await order(body);
  await eventually(async () => (await read(ordered.order_number)).status === 'running');
  return ordered.order_number as string;
};
const remove = async (orderNumber: string) => {
  await account.rest('DELETE', `/v1/servers/${orderNumber}`);
  await eventually(async () => (await account.rest('GET', `/v1/servers/${orderNumber}`)).status === 404);
};
const hostOf = async (orderNumber: string) =>
  (await db.query<{ host: string | null }>('select host from server where order_number = $1', [orderNumber]))[0]!.host;

beforeEach(async () => {
  for (const { orderNumber } of await db.query<{ orderNumber: string }>(
    `select order_number as "orderNumber" from server where status not in ('DELETED', 'DELETING')`,
  ))
    await remove(orderNumber);
  for (const { name } of await hosts()) await act('removeHost', name);
  expect(await hosts()).toEqual([]);
});

describe('A host', () => {
  it('is added, changed and removed only by the operator, and the audit log has all of it', async () => {
    const { data } = await add({ name: 'n1.zrh', ...SMALL });
    expect(data.addHost).toMatchObject({ name: 'n1.zrh', state: 'ACTIVE', ...SMALL, machines: 0, engine: 'simulated' });
    expect((await add({ name: 'n1.zrh', ...SMALL })).errors[0].extensions.code).toBe('validation_failed');
    const { errors } = await account.graphql(ADD, { input: { name: 'n2', region: 'zrh', kind: 'VPS', ...SMALL } });
    expect(errors[0].extensions.code).toBe('insufficient_scope');
    expect((await account.graphql('{ hosts { name } }')).errors[0].extensions.code).toBe('insufficient_scope');
    const UPDATE = `mutation ($input: UpdateHostInput!) { updateHost(name: "n1.zrh", input: $input) { vcpus memoryMb } }`;
    expect((await operator(UPDATE, { input: { vcpus: 4 } })).data.updateHost).toEqual({ vcpus: 4, memoryMb: 8192 });
    expect((await operator(UPDATE, { input: { memoryMb: 0 } })).errors[0].extensions.code).toBe('validation_failed');
    expect((await act('drainHost', 'n1.zrh')).data.drainHost.state).toBe('DRAINING');
    expect((await act('drainHost', 'n1.zrh')).data.drainHost.state).toBe('DRAINING');
    expect((await act('activateHost', 'n1.zrh')).data.activateHost.state).toBe('ACTIVE');
    expect((await act('removeHost', 'n1.zrh')).data.removeHost.name).toBe('n1.zrh');
    expect((await act('removeHost', 'n1.zrh')).errors[0].extensions.code).toBe('not_found');
    const audit = await db.query(
      `select actor_type from audit_entry where account_id = 'operator' and action = 'host.updated' and resource_id = 'n1.zrh'`,
    );
    expect(audit).toEqual(Array(5).fill({ actorType: 'operator' }));
  });

  it.each([
    [{ name: 'a b' }, undefined],
    [{ name: '../etc' }, undefined],
    [{ name: 'n', region: 'nowhere' }, 'unknown_region'],
    [{ name: 'n', vcpus: null }, 'validation_failed'],
    [{ name: 'n', vcpus: 0 }, 'validation_failed'],
    [{ name: 'n', vcpus: -1 }, undefined],
    [{ name: 'n', vcpuOvercommit: 0 }, undefined],
    [{ name: 'n', serviceCode: 'ded-1' }, 'validation_failed'],
    [{ name: 'n', kind: 'DEDICATED' }, 'validation_failed'],
    [{ name: 'n', kind: 'DEDICATED', serviceCode: 'vps-1' }, 'unknown_service_code'],
  ])('is refused as %j', async (input, code) => {
    const { errors } = await add({ ...SMALL, ...input });
    expect(errors).toHaveLength(1);
    if (code) expect(errors[0].extensions.code).toBe(code);
    expect(await hosts()).toEqual([]);
  });

  it('of a dedicated server has the size of its tier, and one machine', async () => {
    const { data } = await add({ name: 'box-1', kind: 'DEDICATED', serviceCode: 'ded-1' });
    expect(data.addHost).toMatchObject({ vcpus: 16, memoryMb: 65_536, diskGb: 1920, serviceCode: 'ded-1' });
    expect(await stockOf('ded-1')).toBe('low');
    expect(await stockOf('ded-2')).toBe('none');
    const orderNumber = await running({ service_code: 'ded-1' });
    expect(await hostOf(orderNumber)).toBe('box-1');
    expect((await order({ service_code: 'ded-1' })).body.code).toBe('out_of_stock');
    await remove(orderNumber);
    expect(await stockOf('ded-1')).toBe('low');
  });
});

describe('A machine', () => {
  it('is on a host of its region that has room; without hosts only the stock decides', async () => {
    expect(await hostOf(await running())).toBeNull();
    await add({ name: 'full', vcpus: 1, memoryMb: 1024, diskGb: 100 });
    await add({ name: 'elsewhere', region: 'ams', ...SMALL });
    await add({ name: 'roomy', ...SMALL });
    expect(await hostOf(await running())).toBe('roomy');
    expect(await host('roomy')).toMatchObject({
      claimedVcpus: 1,
      claimedMemoryMb: 2048,
      claimedDiskGb: 25,
      machines: 1,
    });
    expect((await act('removeHost', 'roomy')).errors[0].extensions.code).toBe('validation_failed');
  });

  it('is never on a host of an engine for other kinds, and the catalog offers none there', async () => {
    for (const [name, serviceCode] of Object.entries({ n1: undefined, b1: 'ded-1', b2: 'ded-1' }))
      await add({ name, ...SMALL, ...(serviceCode && { kind: 'DEDICATED', serviceCode }) });
    await db.query(`update host set driver = 'another' where name in ('n1', 'b1')`);
    // None of the hosts counts, so only the stock decides.
    expect(await hostOf(await running())).toBeNull();
    expect(await stockOf('ded-1')).toBe('low');
    expect(await hostOf(await running({ service_code: 'ded-1' }))).toBe('b2');
    expect(await stockOf('ded-1')).toBe('none');
    expect((await order({ service_code: 'ded-1' })).body.code).toBe('out_of_stock');
  });

  it('claims oversold vCPUs, but memory and disk once, and the catalog agrees', async () => {
    await add({ name: 'n1', vcpus: 2, memoryMb: 4 * 2048, diskGb: 1000 });
    expect(await stockOf('vps-1')).toBe('low');
    const input = { vcpuOvercommit: 2 };
    await operator('mutation ($input: UpdateHostInput!) { updateHost(name: "n1", input: $input) { name } }', { input });
    expect(await stockOf('vps-1')).toBe('available');
    expect(await stockOf('vps-5')).toBe('none');
    const made = await Promise.all([1, 2, 3, 4].map(() => running()));
    expect(await host('n1')).toMatchObject({ claimedVcpus: 4, claimedMemoryMb: 8192, machines: 4 });
    expect((await order()).body).toMatchObject({ code: 'out_of_stock' });
    const shrink = 'mutation { updateHost(name: "n1", input: { memoryMb: 4096 }) { name } }';
    expect((await operator(shrink)).errors[0].extensions.code).toBe('validation_failed');
    await remove(made[0]!);
    expect(await host('n1')).toMatchObject({ claimedVcpus: 3, claimedMemoryMb: 6144, claimedDiskGb: 75, machines: 3 });
  });

  it('is not offered above the limit of the operator, even if more would fit', async () => {
    await add({ name: 'huge', vcpus: 1000, memoryMb: 10_000_000, diskGb: 1_000_000 });
    const { data } = await operator('{ stock(region: "zrh") { serviceCode total claimed free } }');
    const [vps1] = data.stock;
    expect(vps1).toMatchObject({ serviceCode: 'vps-1', free: vps1.total - vps1.claimed });
  });

  it('claims the difference of a resize on its host, and releases its claim at the end', async () => {
    await add({ name: 'n1', vcpus: 4, memoryMb: 8192, diskGb: 100 });
    const orderNumber = await running();
    const patch = (body: object) => account.rest('PATCH', `/v1/servers/${orderNumber}`, body);
    await patch({ power_state: 'off' });
    await eventually(async () => (await read(orderNumber)).status === 'stopped');
    expect((await patch({ service_code: 'vps-4' })).body.code).toBe('out_of_stock');
    expect((await patch({ service_code: 'vps-2' })).status).toBe(200);
    expect(await host('n1')).toMatchObject({ claimedVcpus: 2, claimedMemoryMb: 4096, claimedDiskGb: 60, machines: 1 });
    await eventually(async () => (await read(orderNumber)).status === 'stopped');
    expect(await host('n1')).toMatchObject({ claimedVcpus: 2, claimedMemoryMb: 4096, claimedDiskGb: 60, machines: 1 });
    await remove(orderNumber);
    expect(await host('n1')).toMatchObject({ claimedVcpus: 0, claimedMemoryMb: 0, claimedDiskGb: 0, machines: 0 });
  });

  it('stays on its host when that is drained, and new machines go to other hosts', async () => {
    await add({ name: 'n1', ...SMALL });
    const first = await running();
    await act('drainHost', 'n1');
    await add({ name: 'n2', ...SMALL });
    expect(await hostOf(await running())).toBe('n2');
    expect((await read(first)).status).toBe('running');
    await act('drainHost', 'n2');
    expect(await stockOf('vps-1')).toBe('none');
    expect((await order()).body.code).toBe('out_of_stock');
  });
});

describe('An accepted order', () => {
  it('keeps its room if its host is drained before its machine is made', async () => {
    await add({ name: 'n1', ...SMALL });
    const { body } = await order();
    const [drained, held] = await Promise.all([act('drainHost', 'n1'), hostOf(body.order_number)]);
    expect([drained.data.drainHost.machines, held]).toEqual([1, 'n1']);
    await eventually(async () => (await read(body.order_number)).status === 'running');
  });
});

it('forty simultaneous orders over three hosts claim all room, and the others are refused', async () => {
  for (const name of ['a', 'b', 'c']) await add({ name, vcpus: 5, memoryMb: 5 * 2048, diskGb: 500 });
  const answers = await Promise.all(Array.from({ length: 40 }, () => order()));
  const taken = answers.filter(({ status }) => status === 200);
  expect(taken).toHaveLength(15);
  for (const { status, body } of answers) if (status !== 200) expect(body.code).toBe('out_of_stock');
  await eventually(async () => {
    const servers = await Promise.all(taken.map(({ body }) => read(body.order_number)));
    return servers.every(({ status }) => status === 'running');
  });
  for (const name of ['a', 'b', 'c']) expect(await host(name)).toMatchObject({ claimedVcpus: 5, machines: 5 });
});
