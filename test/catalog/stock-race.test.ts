/** An order claims its own place, so no two of many simultaneous orders share one. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually, startFreehold, type TestAccount } from '../setup/freehold.ts';

const { db, newAccount, operator } = await startFreehold({ LIMIT_SERVERS: '1000' });
/** Orders of one account run one after the other, so the races need several. */
const accounts = await Promise.all(Array.from({ length: 10 }, newAccount));
await Promise.all(accounts.map((account) => account.fund(2000)));

const ask = async (mutation: string) => {
  const { data, errors } = await operator(`mutation { ${mutation} }`);
  expect(errors).toBeUndefined();
  return data;
};
const setStock = (region: string, serviceCode: string, total: number) =>
  ask(`setStock(region: "${region}", serviceCode: "${serviceCode}", total: ${total}) { total }`);
const order = (account: TestAccount, body: object) => account.rest('POST', '/v1/servers', body);
/** Sends orders at once, spread over the accounts. */
const orders = (count: number, body: object) =>
  Promise.all(Array.from({ length: count }, (_, n) => order(accounts[n % accounts.length]!, body)));
const countOf = async (where: string): Promise<number> =>
  (await db.query<{ count: number }>(`select count(*)::int from ${where}`))[0]!.count;
const allRun = (count: number) => eventually(async () => (await countOf(`server where status = 'RUNNING'`)) === count);

/** Expects that five orders succeeded, and that the others were refused before any money moved. */
async function expectFiveOf(answers: Awaited<ReturnType<typeof orders>>, elsewhere: string[]) {
  const [sold, refused] = [200, 422].map((status) => answers.filter((answer) => answer.status === status));
  expect([sold!.length, refused!.length]).toEqual([5, answers.length - 5]);
  for (const { body } of refused!) expect(body).toMatchObject({ code: 'out_of_stock', available_regions: elsewhere });
  await allRun(5);
  expect(await countOf(`server where status <> 'DELETED'`)).toBe(5);
  expect(await countOf(`transfer where kind = 'release'`)).toBe(0);
}

beforeEach(async () => {
  const owned = await Promise.all(
    accounts.map(async (account) => ({
      account,
      list: (await account.rest('GET', '/v1/servers?limit=200')).body.data,
    })),
  );
  await Promise.all(
    owned.flatMap(({ account, list }) =>
      list.map(({ order_number: number }: { order_number: string }) => account.rest('DELETE', `/v1/servers/${number}`)),
    ),
  );
  await eventually(async () => (await countOf(`server where status <> 'DELETED'`)) === 0);
  await db.query('update address set held_by = null, free_at = null');
  for (const { name } of (await operator('{ hosts { name } }')).data.hosts)
    await ask(`removeHost(name: "${name}") { name }`);
});
afterEach(async () => {
  const [counted] = await db.query('select deadlocks::int from pg_stat_database where datname = current_database()');
  expect(counted).toEqual({ deadlocks: 0 });
});

describe('Twenty orders at once', () => {
  it('share five places, and fifteen refusals name the regions with stock', async () => {
    await setStock('buh', 'vps-2', 5);
    await expectFiveOf(await orders(20, { service_code: 'vps-2', region: 'buh' }), ['ams', 'zrh', 'kef']);
  });

  it('share five addresses, and fifteen refusals name the regions with stock', async () => {
    await db.query(
      `with kept as (select address from address where region_code = 'kef' and family = 'IPV4' order by address limit 5)
      update address set held_by = 'another' where region_code = 'kef' and family = 'IPV4'
        and address not in (select address from kept)`,
    );
    await expectFiveOf(await orders(20, { service_code: 'vps-1', region: 'kef' }), ['ams', 'zrh', 'buh']);
  });

  it('share hosts with room for five, and fifteen refusals name the regions with stock', async () => {
    for (const [name, vcpus] of Object.entries({ a: 2, b: 2, c: 1 }))
      await ask(
        `addHost(input: { name: "${name}", region: "zrh", kind: VPS, vcpus: ${vcpus}, memoryMb: 65536, diskGb: 1000 }) { name }`,
      );
    await expectFiveOf(await orders(20, { service_code: 'vps-1', region: 'zrh' }), ['ams', 'kef', 'buh']);
    const hosts = (await operator('{ hosts { name machines claimedVcpus } }')).data.hosts;
    expect(hosts).toEqual(
      Object.entries({ a: 2, b: 2, c: 1 }).map(([name, n]) => ({ name, machines: n, claimedVcpus: n })),
    );
  });
});

describe('Orders without a region', () => {
  it('fill the first region with room, then the next, and all run', async () => {
    await setStock('ams', 'vps-2', 2);
    const answers = await orders(12, { service_code: 'vps-2' });
    expect(answers.map(({ status }) => status)).toEqual(Array(12).fill(200));
    await allRun(12);
    const places = answers.map(({ body }) => body.region).toSorted();
    expect(places).toEqual(['ams', 'ams', ...Array(10).fill('zrh')]);
  });
});

/** Checks all the time that a server holds one place, and two during a resize. @returns how many resizes it saw */
async function watch(goesOn: () => boolean): Promise<number> {
  let resized = 0;
  while (goesOn()) {
    const [now] = await db.query<{ held: number; servers: number; resizes: number }>(
      `select (select count(*)::int from place where order_number is not null) as held, count(*)::int as servers,
        count(*) filter (where change->>'operation' = 'resize')::int as resizes from server where status <> 'DELETED'`,
    );
    expect(now!.held).toBe(now!.servers + now!.resizes);
    resized += now!.resizes;
  }
  return resized;
}

it('Orders, resizes and deletions at once lose no place, room or address, and share none', async () => {
  const host = 'region: "zrh", kind: VPS, vcpus: 30, memoryMb: 122880, diskGb: 2000';
  for (const name of ['a', 'b']) await ask(`addHost(input: { name: "${name}", ${host} }) { name }`);
  await setStock('zrh', 'vps-1', 10);
  await setStock('zrh', 'vps-3', 4);
  /** Orders a server. The seed decides whether the customer resizes it, and whether and when the customer deletes it. */
  const live = async (account: TestAccount, seed: number) => {
    const { status, body } = await order(account, { service_code: 'vps-1', region: 'zrh' });
    if (status !== 200) return expect(body.code).toBe('out_of_stock');
    const path = `/v1/servers/${body.order_number}`;
    const settle = async (state: string) =>
      expect((await account.rest('GET', `${path}?wait_for=${state}`)).body.status).toBe(state);
    if (seed % 4) {
      await settle('running');
      await account.rest('PATCH', path, { power_state: 'off' });
      await settle('stopped');
      const resized = await account.rest('PATCH', path, { service_code: 'vps-3' });
      if (resized.status !== 200) expect(resized.body.code).toBe('out_of_stock');
    }
    if (seed % 4 > 1) await settle('stopped');
    if (seed % 11) await account.rest('DELETE', path);
  };
  // One stays, also if chance refuses all others that would.
  expect((await order(accounts[0]!, { service_code: 'vps-1', region: 'zrh' })).status).toBe(200);
  let living = true;
  const watched = watch(() => living);
  for (let round = 0; round < 3; round++)
    await Promise.all(Array.from({ length: 30 }, (_, n) => live(accounts[n % accounts.length]!, round * 30 + n)));
  living = false;
  expect(await watched).toBeGreaterThan(0);
  await eventually(async () => (await countOf('task where subject like $$SRV%$$')) === 0);

  const held = await db.query(
    `select place.service_code as tier, place.order_number from place where order_number is not null order by 2`,
  );
  const servers = await db.query<{ tier: string }>(
    `select service_code as tier, order_number from server where status <> 'DELETED' order by 2`,
  );
  expect(held).toEqual(servers);
  expect(servers.length).toBeGreaterThan(0);
  expect(await countOf('address where held_by is not null')).toBe(2 * servers.length);
  const [hosts] = await db.query(
    `select sum(machines)::int as machines, sum(claimed_memory_mb)::int as memory_mb,
      (select sum(memory_mb)::int from placement) as placed from host`,
  );
  const memoryMb = servers.map(({ tier }) => (tier === 'vps-1' ? 2048 : 8192)).reduce((a, b) => a + b, 0);
  expect(hosts).toEqual({ machines: servers.length, memoryMb, placed: memoryMb });
  const { stock } = (await operator('{ stock(region: "zrh") { serviceCode total claimed free } }')).data;
  for (const one of stock) expect(one.claimed + one.free).toBeLessThanOrEqual(one.total);
});
