/** Stock counts addresses as an order does: a bastion without a free address has no stock. */
import { beforeEach, describe, expect, it } from 'vitest';
import { LIST_OFFERS } from '../../entities/servers/offers.ts';
import { ManualDriver } from '../../provisioning/servers/drivers/manual.ts';
import { Servers } from '../../provisioning/servers/index.ts';
import { ManualJobs } from '../../provisioning/servers/manual-jobs.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';
import { VAULT } from '../setup/vault.ts';

const { anonymous, db, newAccount, operator } = await startFreehold({ LIMIT_SERVERS: '1000' });
const account = await newAccount();
await account.fund(1000);

/** Reads over GraphQL, because callers of REST share an answer for a second. */
async function stockOf(region: string, code = 'vps-1'): Promise<string> {
  const { data } = await operator(`{ catalogItem(code: "${code}") { ... on PricedTier { regions { code stock } } } }`);
  return data.catalogItem.regions.find((one: { code: string }) => one.code === region).stock.toLowerCase();
}
const freeOf = async (region: string): Promise<number[]> =>
  (await operator(`{ stock(region: "${region}") { free } }`)).data.stock.map(({ free }: { free: number }) => free);
const order = (region: string) => account.rest('POST', '/v1/servers', { service_code: 'vps-1', region });
const read = async (orderNumber: string) => (await account.rest('GET', `/v1/servers/${orderNumber}`)).body;
const settled = (orderNumber: string) =>
  eventually(async () => {
    const server = await read(orderNumber);
    return ['running', 'failed'].includes(server.status) && server;
  });
/** Takes all free addresses of a family but that many. */
const leave = (region: string, count: number, family = 'IPV4') =>
  db.query(
    `with kept as (select address from address where region_code = $1 and family = $3 and held_by is null order by address limit $2)
    update address set held_by = 'another' where region_code = $1 and family = $3 and held_by is null
      and address not in (select address from kept)`,
    [region, count, family],
  );
beforeEach(async () => {
  for (const { orderNumber } of await db.query<{ orderNumber: string }>(
    `select order_number from server where status not in ('DELETED', 'DELETING')`,
  ))
    await account.rest('DELETE', `/v1/servers/${orderNumber}`);
  await eventually(async () => !(await db.query(`select 1 from server where status <> 'DELETED'`)).length);
  await db.query('update address set held_by = null, free_at = null');
});

describe.each(['IPV4', 'IPV6'])('A bastion without a free address of %s', (family) => {
  it('has no stock, and an order for it is refused before any money moves', async () => {
    expect(await stockOf('zrh')).toBe('available');
    await leave('zrh', 2, family);
    expect([await stockOf('zrh'), await stockOf('zrh', 'ded-1')]).toEqual(['low', 'low']);
    expect(new Set(await freeOf('zrh'))).toEqual(new Set([2]));
    await leave('zrh', 0, family);
    expect([await stockOf('zrh'), await stockOf('zrh', 'ded-1')]).toEqual(['none', 'none']);
    expect(new Set(await freeOf('zrh'))).toEqual(new Set([0]));
    expect(await stockOf('ams')).toBe('available');
    const { body } = await anonymous('GET', '/v1/catalog/vps');
    const regions = (body.data ?? body)[0].regions as { code: string; stock: string }[];
    expect(regions.map(({ stock }) => stock)).toEqual(['available', 'none', 'available', 'available']);

    const before = await account.balance();
    const refused = await order('zrh');
    expect([refused.status, refused.body.code, refused.body.available_regions]).toEqual([
      422,
      'out_of_stock',
      ['ams', 'kef', 'buh'],
    ]);
    const quote = { service_code: 'vps-1', region: 'zrh', dry_run: true };
    expect((await account.rest('POST', '/v1/servers', quote)).body.stock).toBe('none');
    expect(await account.balance()).toBe(before);
    expect(await db.query(`select 1 from server where status <> 'DELETED'`)).toEqual([]);
  });
});

it('A resting address is not free', async () => {
  await leave('kef', 1);
  await db.query(
    `update address set free_at = now() + interval '60 seconds' where region_code = 'kef' and family = 'IPV4' and held_by is null`,
  );
  expect(await stockOf('kef')).toBe('none');
  expect((await order('kef')).body.code).toBe('out_of_stock');
  await db.query('update address set free_at = now() where free_at is not null');
  expect(await stockOf('kef')).toBe('low');
  expect((await settled((await order('kef')).body.order_number)).status).toBe('running');
});

it("Only addresses of the operator's networks for that kind of server count where the operator has one", async () => {
  const add = `mutation { addAddressPool(input: { region: "buh", cidr: "10.7.0.0/31" }) { id } }`;
  const { id } = (await operator(add)).data.addAddressPool;
  expect([await stockOf('buh'), await stockOf('buh', 'ded-1')]).toEqual(['low', 'available']);
  const { data } = await operator('{ stock(region: "buh") { serviceCode free } }');
  expect(data.stock).toContainEqual({ serviceCode: 'vps-1', free: 2 });
  await operator(`mutation { removeAddressPool(id: "${id}") { id } }`);
  expect(await stockOf('buh')).toBe('available');
});

it('Simulated addresses are not free for a real driver, so it sells nothing before the operator adds a network', async () => {
  await db.query(`update engine set kinds = '{DEDICATED}'`);
  await db.query(`insert into engine (name, kinds, needs_hosts, simulated) values ('real', '{VPS}', false, false)`);
  try {
    expect([await stockOf('zrh'), await stockOf('zrh', 'ded-1')]).toEqual(['none', 'available']);
    expect((await order('zrh')).body.code).toBe('out_of_stock');
    const add = `mutation { addAddressPool(input: { region: "zrh", cidr: "10.8.0.0/31" }) { id } }`;
    const { id } = (await operator(add)).data.addAddressPool;
    const server = await settled((await order('zrh')).body.order_number);
    expect(server).toMatchObject({ status: 'running', ipv4: '10.8.0.0', ipv6: null, ipv6_prefix: null });
    await account.rest('DELETE', `/v1/servers/${server.order_number}`);
    await eventually(async () => !(await db.query(`select 1 from server where status <> 'DELETED'`)).length);
    await operator(`mutation { removeAddressPool(id: "${id}") { id } }`);
  } finally {
    await db.query(`delete from engine where name = 'real'`);
    await db.query(`update engine set kinds = '{VPS,DEDICATED}'`);
  }
});

it('A real driver refuses to start beside simulated servers of its kind, and takes over when they are gone', async () => {
  const driver = new ManualDriver(new ManualJobs(db, VAULT));
  const servers = new Servers({ db, vault: VAULT, drivers: { VPS: driver, DEDICATED: driver }, pollSeconds: 1 });
  const { body } = await order('zrh');
  await settled(body.order_number);
  await expect(servers.writeEngines()).rejects.toThrow(/1 servers of the kind VPS are simulated.*another DATA_DIR/);
  expect(await db.query('select from engine where simulated')).toHaveLength(1);
  await account.rest('DELETE', `/v1/servers/${body.order_number}`);
  await eventually(async () => !(await db.query(`select 1 from server where status <> 'DELETED'`)).length);
  await servers.writeEngines();
  expect(await stockOf('zrh')).toBe('none');
  await db.query(`update engine set simulated = true, name = 'simulated'`);
});

it('One of many orders at once gets the last address, and the refused ones claim nothing', async () => {
  await leave('ams', 1);
  const before = await account.balance();
  const answers = await Promise.all(Array.from({ length: 8 }, () => order('ams')));
  const refused = answers.filter(({ status }) => status !== 200);
  expect(refused).toHaveLength(7);
  for (const { body } of refused) expect(body.code).toBe('out_of_stock');
  const [taken] = answers.filter(({ status }) => status === 200);
  expect((await settled(taken!.body.order_number)).status).toBe('running');
  expect(await account.balance()).toBe(before - 6);
  const held = await db.query(`select order_number from place where order_number is not null`);
  expect(held).toEqual([{ orderNumber: taken!.body.order_number }]);
  expect(await stockOf('ams')).toBe('none');
});

it.each(['bastion', 'image'])('A list of the kind %s counts no addresses and no hosts', async (kind) => {
  const lines = await db.query<{ 'QUERY PLAN': string }>(`explain (analyze, costs off) ${LIST_OFFERS.text}`, [kind]);
  const scans = lines.map((line) => line['QUERY PLAN']).filter((line) => / on (address|host|place)\b/.test(line));
  expect(scans.length).toBeGreaterThan(0);
  expect(scans.filter((line) => !line.includes('never executed'))).toEqual([]);
});
