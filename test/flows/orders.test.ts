/** Many orders at once, over hosts and networks of the operator. */
import { expect, it } from 'vitest';
import { eventually, startFreehold } from '../setup/freehold.ts';

const ORDERS = 200;

it('Two hundred orders at once all run with their own addresses and room, and deletions free all of it', async () => {
  const { db, newAccount, operator } = await startFreehold({ LIMIT_SERVERS: '1000' });
  const account = await newAccount();
  await account.fund(10_000);
  const ask = async (mutation: string) => {
    const { data, errors } = await operator(`mutation { ${mutation} }`);
    expect(errors).toBeUndefined();
    return data;
  };
  await ask(`setStock(region: "zrh", serviceCode: "vps-1", total: ${ORDERS}) { total }`);
  await ask('addAddressPool(input: { region: "zrh", cidr: "10.20.0.0/24", gateway: "10.20.0.1" }) { id }');
  await ask('addAddressPool(input: { region: "zrh", cidr: "2001:db8:20::/56", routed: true }) { id }');
  for (const name of ['a', 'b', 'c', 'd', 'e'])
    await ask(
      `addHost(input: { name: "${name}", region: "zrh", kind: VPS, vcpus: 20, memoryMb: ${40 * 2048}, diskGb: 1000, vcpuOvercommit: 2 }) { name }`,
    );

  const answers = await Promise.all(
    Array.from({ length: ORDERS }, () => account.rest('POST', '/v1/servers', { service_code: 'vps-1', region: 'zrh' })),
  );
  expect(answers.map(({ status }) => status)).toEqual(Array(ORDERS).fill(200));
  const count = async (status: string) =>
    (await db.query<{ count: number }>('select count(*)::int from server where status = $1', [status]))[0]!.count;
  await eventually(async () => (await count('RUNNING')) === ORDERS, 120);

  const [given] = await db.query<Record<string, number>>(
    `select count(distinct ipv4)::int as ipv4, count(distinct ipv6_prefix)::int as ipv6,
      count(*) filter (where ipv4 << '10.20.0.0/24' and ipv6 << '2001:db8:20::/56')::int as inside from server`,
  );
  expect(given).toEqual({ ipv4: ORDERS, ipv6: ORDERS, inside: ORDERS });
  const full = { machines: 40, claimedVcpus: 40, claimedMemoryMb: 81_920, claimedDiskGb: 1000 };
  const hosts = async () =>
    (await operator('{ hosts { machines claimedVcpus claimedMemoryMb claimedDiskGb } }')).data.hosts;
  expect(await hosts()).toEqual(Array(5).fill(full));
  const more = await account.rest('POST', '/v1/servers', { service_code: 'vps-1', region: 'zrh' });
  expect(more.body.code).toBe('out_of_stock');

  await Promise.all(answers.map(({ body }) => account.rest('DELETE', `/v1/servers/${body.order_number}`)));
  await eventually(async () => (await count('DELETED')) === ORDERS, 120);
  const empty = { machines: 0, claimedVcpus: 0, claimedMemoryMb: 0, claimedDiskGb: 0 };
  expect(await hosts()).toEqual(Array(5).fill(empty));
  const [held] = await db.query('select count(*)::int as held from address where held_by is not null');
  expect(held).toEqual({ held: 0 });
});
