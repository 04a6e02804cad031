/** The operator's networks and their addresses. No address is given twice or too early. */
import { describe, expect, it } from 'vitest';
import { eventually, startFreehold } from '../../setup/freehold.ts';

const { db, newAccount, operator } = await startFreehold({ LIMIT_SERVERS: '1000' });
const account = await newAccount();
await account.fund(10_000);

const FIELDS = 'id region kind cidr gateway routed total held resting';
const ADD = `mutation ($input: AddAddressPoolInput!) { addAddressPool(input: $input) { ${FIELDS} } }`;
const add = (input: object) => operator(ADD, { input: { region: 'zrh', ...input } });
const added = async (input: object) => (await add(input)).data.addAddressPool;
const remove = (id: string) => operator(`mutation { removeAddressPool(id: "${id}") { id } }`);
const pool = async (id: string) =>
  (await operator(`{ addressPools { ${FIELDS} } }`)).data.addressPools.find((one: { id: string }) => one.id === id);
const rows = (id: string) =>
  db.query<{ address: string; bits: number | null; gateway: string | null }>(
    `select text(address) as address, prefix_length as bits, host(gateway) as gateway from address where pool_id = $1 order by address.address`,
    [id],
  );
const running = async (region: string) => {
  const { body } = await account.rest('POST', '/v1/servers', { service_code: 'vps-1', region });
  return eventually(async () => {
    const found = (await account.rest('GET', `/v1/servers/${body.order_number}`)).body;
    return found.status === 'running' && found;
  });
};
const destroyed = async (orderNumber: string) => {
  await account.rest('DELETE', `/v1/servers/${orderNumber}`);
  await eventually(async () => (await account.rest('GET', `/v1/servers/${orderNumber}`)).status === 404);
};

describe('A network', () => {
  it('of IPv4 has all addresses except its own, its broadcast address and its gateway', async () => {
    const { id, ...shown } = await added({ cidr: '10.7.0.9/29', gateway: '10.7.0.14' });
    expect(shown).toEqual({
      ...{ region: 'zrh', kind: 'VPS', cidr: '10.7.0.8/29', gateway: '10.7.0.14', routed: false },
      ...{ total: 5, held: 0, resting: 0 },
    });
    expect(await rows(id)).toEqual(
      [9, 10, 11, 12, 13].map((n) => ({ address: `10.7.0.${n}/32`, bits: 29, gateway: '10.7.0.14' })),
    );
    expect((await remove(id)).data.removeAddressPool.id).toBe(id);
    expect(await rows(id)).toEqual([]);
  });

  it('of IPv4 can have bounds and no gateway, and can be a single address', async () => {
    const bounded = await added({ cidr: '10.8.0.0/16', first: '10.8.3.254', last: '10.8.4.1' });
    expect((await rows(bounded.id)).map(({ address }) => address)).toEqual([
      '10.8.3.254/32',
      '10.8.3.255/32',
      '10.8.4.0/32',
      '10.8.4.1/32',
    ]);
    expect((await rows(bounded.id))[0]).toMatchObject({ bits: null, gateway: null });
    const one = await added({ cidr: '10.9.0.1/32' });
    expect((await rows(one.id)).map(({ address }) => address)).toEqual(['10.9.0.1/32']);
    for (const { id } of [bounded, one]) await remove(id);
  });

  it('of IPv6 is divided into /64s', async () => {
    const { id, total } = await added({ cidr: '2001:db8:aa00:fff0::/60', gateway: 'fe80::1' });
    expect(total).toBe(16);
    const cut = await rows(id);
    expect(cut[0]).toEqual({ address: '2001:db8:aa00:fff0::/64', bits: 64, gateway: 'fe80::1' });
    expect(cut[15]!.address).toBe('2001:db8:aa00:ffff::/64');
    await remove(id);
  });

  it('of IPv6 has no /64 that contains its gateway', async () => {
    const { id, total } = await added({ cidr: '2001:db8:aa00:fff0::/62', gateway: '2001:db8:aa00:fff1::1' });
    expect(total).toBe(3);
    expect((await rows(id)).map(({ address }) => address)).toEqual(
      ['fff0', 'fff2', 'fff3'].map((group) => `2001:db8:aa00:${group}::/64`),
    );
    await remove(id);
    expect((await add({ cidr: '2001:db8:aa00::/64', gateway: '2001:db8:aa00::1' })).errors).toHaveLength(1);
  });

  it.each([
    [{ cidr: '10.0.0.0' }, undefined],
    [{ cidr: '10.0.0.0/8' }, 'cidr'],
    [{ cidr: '10.0.0.0/33' }, 'cidr'],
    [{ cidr: '300.0.0.0/24' }, 'cidr'],
    [{ cidr: '2001:db8::/32' }, 'cidr'],
    [{ cidr: '2001:db8::/65' }, 'cidr'],
    [{ cidr: '10.1.0.0/24', gateway: '10.2.0.1' }, 'cidr'],
    [{ cidr: '10.1.0.0/24', gateway: 'fe80::1' }, 'gateway'],
    [{ cidr: '10.1.0.0/24', first: '10.1.1.1' }, 'cidr'],
    [{ cidr: '10.1.0.0/24', last: '10.0.255.255' }, 'cidr'],
    [{ cidr: '10.1.0.0/24', first: '10.1.0.9', last: '10.1.0.8' }, 'cidr'],
    [{ cidr: '10.1.0.1/32', gateway: '10.1.0.1' }, 'cidr'],
    [{ cidr: '2001:db8:1::/56', first: '2001:db8:1::1' }, 'first'],
    [{ cidr: '10.1.0.0/24', routed: true }, 'routed'],
    [{ cidr: '2001:db8:1::/56', kind: 'DEDICATED' }, 'gateway'],
    [{ cidr: '10.1.0.0/24', region: 'nowhere' }, 'region'],
  ])('is refused as %j', async (input, field) => {
    const { errors } = await add(input);
    expect(errors).toHaveLength(1);
    if (field === 'region') expect(errors[0].extensions.code).toBe('unknown_region');
    else if (field) expect(errors[0].extensions.errors[0].field).toBe(field);
    expect((await operator('{ addressPools { id } }')).data.addressPools).toEqual([]);
  });

  it('is refused if it overlaps another, even if both are added at once', async () => {
    const { id } = await added({ cidr: '10.3.0.0/24', first: '10.3.0.1', last: '10.3.0.9' });
    expect((await add({ cidr: '10.3.0.128/25' })).errors[0].extensions.code).toBe('validation_failed');
    expect((await add({ cidr: '10.2.0.0/15', region: 'ams' })).errors).toHaveLength(1);
    await remove(id);
    const both = await Promise.all([add({ cidr: '10.4.0.0/24' }), add({ cidr: '10.4.0.0/25' })]);
    expect(both.filter(({ errors }) => errors)).toHaveLength(1);
    for (const { data } of both) if (data) await remove(data.addAddressPool.id);
  });

  it('is not available to customers', async () => {
    const { errors } = await account.graphql(ADD, { input: { region: 'zrh', cidr: '10.5.0.0/24' } });
    expect(errors[0].extensions.code).toBe('insufficient_scope');
    for (const id of ['pool_x', 'pool_00000000000000000000000000'])
      expect((await remove(id)).errors[0].extensions.code).toBe('not_found');
  });
});

describe('Machines', () => {
  it('get addresses only from the networks of their region, and these rest when they are freed', async () => {
    const ipv4 = await added({ region: 'buh', cidr: '10.6.0.0/30', gateway: '10.6.0.1' });
    const ipv6 = await added({ region: 'buh', cidr: '2001:db8:bb::/63', routed: true });
    const server = await running('buh');
    const given = { ipv6: '2001:db8:bb::1', ipv6_prefix: '2001:db8:bb::/64' };
    expect(server).toMatchObject({ ipv4: '10.6.0.2', ...given });
    expect(await pool(ipv4.id)).toMatchObject({ total: 1, held: 1, resting: 0 });
    expect((await remove(ipv4.id)).errors[0].extensions.code).toBe('validation_failed');

    await destroyed(server.order_number);
    expect(await pool(ipv4.id)).toMatchObject({ held: 0, resting: 1 });
    const { body } = await account.rest('POST', '/v1/servers', { service_code: 'vps-1', region: 'buh' });
    expect(body.code).toBe('out_of_stock');
    const [{ left }] = (await db.query(
      'select extract(epoch from free_at - now())::int as left from address where pool_id = $1',
      [ipv4.id],
    )) as [{ left: number }];
    expect(Math.abs(left - 900)).toBeLessThan(60);
    await db.query(`update address set free_at = now() where pool_id = $1`, [ipv4.id]);
    const next = await running('buh');
    expect(next.ipv4).toBe('10.6.0.2');
    await destroyed(next.order_number);
    for (const { id } of [ipv4, ipv6]) expect((await remove(id)).data.removeAddressPool.id).toBe(id);
    const audited = await db.query(
      `select 1 from audit_entry where action = 'address_pool.updated' and resource_id = $1`,
      [ipv4.id],
    );
    expect(audited).toHaveLength(2);
  });

  it('get the address that has rested longest', async () => {
    const { id } = await added({ region: 'kef', cidr: '10.11.0.0/29' });
    await added({ region: 'kef', cidr: '2001:db8:cc::/63' });
    const rested = (last: number, minutes: number) =>
      db.query(`update address set free_at = now() - $2 * interval '1 minute' where address = $1`, [
        `10.11.0.${last}`,
        minutes,
      ]);
    for (const [last, minutes] of [
      [1, 5],
      [2, 30],
      [3, -5],
      [4, 60],
      [5, 20],
      [6, 40],
    ] as const)
      await rested(last, minutes);
    const first = await running('kef');
    expect(first).toMatchObject({ ipv4: '10.11.0.4', ipv6: '2001:db8:cc::1', ipv6_prefix: null });
    expect((await running('kef')).ipv4).toBe('10.11.0.6');
    expect(await pool(id)).toMatchObject({ held: 2, resting: 1 });
  });

  it('get no address of a network for another kind of server', async () => {
    const input = { region: 'ams', cidr: '10.12.0.0/30', kind: 'DEDICATED' };
    const { id } = await added(input);
    const vps = await running('ams');
    expect(vps.ipv4).not.toMatch(/^10\.12\./);
    const { body } = await account.rest('POST', '/v1/servers', { service_code: 'ded-1', region: 'ams' });
    expect((await account.rest('GET', `/v1/servers/${body.order_number}`)).body.ipv4).toMatch(/^10\.12\.0\.[12]$/);
    expect(await pool(id)).toMatchObject({ kind: 'DEDICATED', total: 2, held: 1 });
  });
});
