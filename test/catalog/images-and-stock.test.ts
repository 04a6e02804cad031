/** Images and stock: the operator sets them, and customers see them. */
import { describe, expect, it } from 'vitest';
import { eventually, startFreehold } from '../setup/freehold.ts';

const { anonymous, db, newAccount, operator } = await startFreehold();
const account = await newAccount();
await account.fund(200);

const IMAGE = { code: 'debian-14', name: 'Debian 14', family: 'debian', version: '14', minDiskGb: 4, minMemoryMb: 512 };
const ADD = 'mutation ($input: AddImageInput!) { addImage(input: $input) { code offered deprecatedAt } }';
const act = (mutation: string, code: string) =>
  operator(`mutation { ${mutation}(code: "${code}") { code offered deprecatedAt } }`);
const offered = async () =>
  (await anonymous('GET', '/v1/catalog/images')).body.data.map(({ code }: { code: string }) => code);
const order = (os: string) => account.rest('POST', '/v1/servers', { service_code: 'vps-1', region: 'ams', os });

describe('An image', () => {
  it('is offered once added, and no longer once retired', async () => {
    expect((await order('debian-14')).body.code).toBe('unknown_os');
    expect((await operator(ADD, { input: IMAGE })).data.addImage).toEqual({
      code: 'debian-14',
      offered: true,
      deprecatedAt: null,
    });
    await eventually(async () => (await offered()).at(-1) === 'debian-14');
    expect((await order('debian-14')).status).toBe(200);
    const { data } = await act('retireImage', 'debian-14');
    expect(data.retireImage).toMatchObject({ offered: false, deprecatedAt: expect.any(String) });
    await eventually(async () => !(await offered()).includes('debian-14'));
    expect((await order('debian-14')).body.code).toBe('unknown_os');
    const all = await operator('{ images { code offered family version } }');
    expect(all.data.images).toContainEqual({ code: 'debian-14', offered: false, family: 'debian', version: '14' });
    expect((await act('offerImage', 'debian-14')).data.offerImage).toMatchObject({ offered: true, deprecatedAt: null });
    const audited = await db.query(
      `select actor_type from audit_entry where resource_type = 'image' and resource_id = 'debian-14'`,
    );
    expect(audited).toEqual(Array(3).fill({ actorType: 'operator' }));
  });

  it.each([[{ code: 'debian-13' }], [{ code: 'vps-1' }], [{ code: 'images' }], [{ code: 'Debian' }], [{ code: '-x' }]])(
    'is refused as %j',
    async (input) => {
      const { errors } = await operator(ADD, { input: { ...IMAGE, ...input } });
      expect(errors[0].extensions.code).toBe('validation_failed');
    },
  );

  it('can be changed by the operator only, and only if it exists', async () => {
    expect((await account.graphql(ADD, { input: IMAGE })).errors[0].extensions.code).toBe('insufficient_scope');
    expect((await act('retireImage', 'vps-1')).errors[0].extensions.code).toBe('not_found');
  });
});

describe('An image of an engine', () => {
  const IMPORT = 'mutation ($input: ImportImageInput!) { importImage(input: $input) { state virtualMachine url } }';
  const url = 'http://127.0.0.1:1/alma.tar';
  const input = { engine: 'fra', code: 'alma-9', url, sha256: 'A'.repeat(64) };

  it('is imported and withdrawn by the operator only', async () => {
    expect((await account.graphql(IMPORT, { input })).errors[0].extensions.code).toBe('insufficient_scope');
    await db.query(
      `insert into engine (name, kinds, needs_hosts, simulated, product, state) values ('fra', '{VPS}', true, false, 'LXD', 'DRAINED')`,
    );
    const { data } = await operator(IMPORT, { input });
    expect(data.importImage).toEqual({ state: 'IMPORTING', virtualMachine: false, url });
    const key = '(input: {engine: "fra", code: "alma-9"}) { state }';
    expect((await operator(`mutation { refreshImage${key} }`)).data.refreshImage.state).toBe('IMPORTING');
    expect((await operator(`mutation { withdrawImage${key} }`)).data.withdrawImage.state).toBe('WITHDRAWING');
    const listed = await operator('{ engineImages { engine code sha256 fingerprint } }');
    expect(listed.data.engineImages).toEqual([
      { engine: 'fra', code: 'alma-9', sha256: 'a'.repeat(64), fingerprint: null },
    ]);
    await db.query(`delete from engine where name = 'fra'`);
  });

  it('is refused for simulated machines', async () => {
    const { errors } = await operator(IMPORT, { input: { ...input, engine: 'simulated' } });
    expect(errors[0].extensions.errors[0]).toMatchObject({ field: 'engine' });
  });
});

describe('Stock', () => {
  const set = (region: string, serviceCode: string, total: number) =>
    operator(
      'mutation ($region: Code!, $serviceCode: Code!, $total: Amount!) { setStock(region: $region, serviceCode: $serviceCode, total: $total) { total claimed free } }',
      { region, serviceCode, total },
    );
  const level = async () =>
    (await anonymous('GET', '/v1/catalog/vps-2')).body.regions.find(({ code }: { code: string }) => code === 'buh')
      .stock;

  it('shows in the catalog within a second', async () => {
    expect((await set('buh', 'vps-2', 2)).data.setStock).toEqual({ total: 2, claimed: 0, free: 2 });
    await eventually(async () => (await level()) === 'low');
    expect((await account.rest('POST', '/v1/servers', { service_code: 'vps-2', region: 'buh' })).status).toBe(200);
    expect((await set('buh', 'vps-2', 1)).data.setStock).toEqual({ total: 1, claimed: 1, free: 0 });
    await eventually(async () => (await level()) === 'none');
    expect((await set('buh', 'vps-2', 4)).data.setStock).toEqual({ total: 4, claimed: 1, free: 3 });
    await eventually(async () => (await level()) === 'available');
    expect((await set('buh', 'vps-2', 100_001)).errors[0].extensions.code).toBe('validation_failed');
  });

  it('tells the later of two operators that the earlier one has changed it', async () => {
    await set('buh', 'vps-2', 3);
    const SET =
      'mutation ($seen: Amount!) { setStock(region: "buh", serviceCode: "vps-2", total: 5, seen: $seen) { total } }';
    const refused = (await operator(SET, { seen: 2 })).errors[0];
    expect(JSON.stringify(refused)).toMatch(/operator has changed the limit meanwhile, at \S+Z \(total 3\)/);
    expect((await operator(SET, { seen: 3 })).data.setStock).toEqual({ total: 5 });
  });

  it('below the sold machines sells no freed place until the total allows it', async () => {
    const order = () => account.rest('POST', '/v1/servers', { service_code: 'vps-1', region: 'kef' });
    const sold = (await Promise.all([order(), order(), order()])).map(({ body }) => body.order_number as string);
    expect((await set('kef', 'vps-1', 0)).data.setStock).toEqual({ total: 0, claimed: 3, free: 0 });
    await account.rest('DELETE', `/v1/servers/${sold[2]}`);
    const stock = async () =>
      (await operator('{ stock(region: "kef") { serviceCode total claimed free } }')).data.stock;
    await eventually(async () => (await stock())[0].claimed === 2);
    expect((await stock())[0]).toEqual({ serviceCode: 'vps-1', total: 0, claimed: 2, free: 0 });
    expect((await order()).body.code).toBe('out_of_stock');
    expect((await set('kef', 'vps-1', 1)).data.setStock).toEqual({ total: 1, claimed: 2, free: 0 });
    expect((await set('kef', 'vps-1', 3)).data.setStock).toEqual({ total: 3, claimed: 2, free: 1 });
    expect((await order()).status).toBe(200);
    expect((await order()).body.code).toBe('out_of_stock');
    await account.rest('DELETE', `/v1/servers/${sold[0]}`);
    await eventually(async () => (await stock())[0].free === 1);
  });

  it('loses no place when it falls below the sold machines while customers delete them', async () => {
    const post = () => account.rest('POST', '/v1/servers', { service_code: 'vps-1', region: 'zrh' });
    const sold = await Promise.all(Array.from({ length: 6 }, post));
    await Promise.all([
      ...sold.map(({ body }) => account.rest('DELETE', `/v1/servers/${body.order_number}`)),
      ...[2, 0, 5, 1, 4].map((total) => set('zrh', 'vps-1', total)),
    ]);
    const places = `select count(*)::int, count(order_number)::int as held from place
      where region_code = 'zrh' and service_code = 'vps-1'`;
    await eventually(async () => (await db.query<{ held: number }>(places))[0]!.held === 0);
    const [{ total }] = (await db.query<{ total: number }>(
      `select total from stock where region_code = 'zrh' and service_code = 'vps-1'`,
    )) as [{ total: number }];
    expect(await db.query(places)).toEqual([{ count: total, held: 0 }]);
  });

  it('has a row for each place, or for each sold one, also when it changes while orders claim places', async () => {
    const shrink = [3, 30, 2, 20, 5].map((total) => set('zrh', 'vps-2', total));
    const orders = Array.from({ length: 4 }, () =>
      account.rest('POST', '/v1/servers', { service_code: 'vps-2', region: 'zrh' }),
    );
    await Promise.all([...shrink, ...orders]);
    const [found] = await db.query(
      `select count(*) = greatest(total, count(order_number)) as is_right from place join stock using (region_code, service_code)
        where region_code = 'zrh' and service_code = 'vps-2' group by total`,
    );
    expect(found).toEqual({ isRight: true });
  });

  it('can be set for all tiers and bastions of the catalog, and for no other code', async () => {
    expect((await set('kef', 'ded-3', 1)).data.setStock).toEqual({ total: 1, claimed: 0, free: 1 });
    expect((await set('kef', 'debian-13', 1)).errors[0].extensions.code).toBe('unknown_service_code');
    expect((await set('vps-1', 'vps-1', 1)).errors[0].extensions.code).toBe('unknown_region');
    expect((await set('kef', 'vps-1', -1)).errors).toHaveLength(1);
    const { errors } = await account.graphql('{ stock { total } }');
    expect(errors[0].extensions.code).toBe('insufficient_scope');
  });
});
