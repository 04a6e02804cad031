/** Tiers and prices: the operator sets them, and customers order by them. */
import { describe, expect, it } from 'vitest';
import { cronSubject } from '../../provisioning/tasks/schedule.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';

const { anonymous, db, newAccount, operator } = await startFreehold();
const account = await newAccount();
await account.fund(300);

const SET_PRICE = `mutation ($code: Code!, $month: Usd!, $fee: Usd, $version: Amount) {
  setPrice(code: $code, priceMonthUsd: $month, setupFeeUsd: $fee, version: $version) { priceMonthUsd setupFeeUsd version } }`;
const setPrice = (code: string, month: number, more: object = {}) => operator(SET_PRICE, { code, month, ...more });
const codeOf = ({ errors }: { errors?: { extensions: { code: string } }[] }) => errors?.[0]?.extensions.code;
const fieldOf = ({ errors }: { errors: { extensions: { errors: { field: string }[] } }[] }) =>
  errors[0]!.extensions.errors[0]!.field;
const shown = async (code: string) => (await anonymous('GET', `/v1/catalog/${code}`)).body;
const order = (service_code: string, more: object = {}) =>
  account.rest('POST', '/v1/servers', { service_code, region: 'ams', ...more });
const tierOf = async (code: string) =>
  (await operator('{ tiers { code version offered position name priceMonthUsd trafficTb slowMbps } }')).data.tiers.find(
    (tier: { code: string }) => tier.code === code,
  );

describe('The price of a tier', () => {
  it('counts for new orders, and a server keeps its own at the renewal', async () => {
    const { body: server } = await order('vps-2');
    await account.rest('GET', `/v1/servers/${server.order_number}?wait_for=running`);
    expect((await setPrice('vps-2', 15, { fee: 4 })).data.setPrice).toEqual({
      priceMonthUsd: 15,
      setupFeeUsd: 4,
      version: 2,
    });
    await eventually(async () => (await shown('vps-2')).price_month_usd === 15);
    const before = await account.balance();
    const dearer = await order('vps-2');
    expect(dearer.body.price_month_usd).toBe(15);
    expect(await account.balance()).toBe(before - 19);

    await db.query(`update server set paid_until = now() where order_number = $1`, [server.order_number]);
    await db.query('update task set run_at = now() where subject = $1', [cronSubject('renewals')]);
    await eventually(async () => (await account.balance()) === before - 19 - 12);
    expect((await account.rest('GET', `/v1/servers/${server.order_number}`)).body.price_month_usd).toBe(12);
  });

  it('shows on each server of the tier, once it is announced', async () => {
    const { body: server } = await order('vps-5');
    expect(server).toMatchObject({ next_price_month_usd: null, next_price_from: null });
    const { data } = await operator('{ tiers { code priceMonthUsd } }');
    const { priceMonthUsd } = data.tiers.find(({ code }: { code: string }) => code === 'vps-5');
    await setPrice('vps-5', priceMonthUsd + 1);
    await operator('mutation { repriceServers(code: "vps-5", noticeDays: 14) { servers } }');
    expect((await account.rest('GET', `/v1/servers/${server.order_number}`)).body).toMatchObject({
      ...{ price_month_usd: priceMonthUsd, next_price_month_usd: priceMonthUsd + 1 },
      next_price_from: expect.stringMatching(/Z$/),
    });
    await setPrice('vps-5', priceMonthUsd);
    await operator('mutation { repriceServers(code: "vps-5", noticeDays: 0) { servers } }');
  });

  it('keeps its setup fee without another one', async () => {
    await setPrice('ded-2', 180);
    expect((await setPrice('ded-2', 181)).data.setPrice).toMatchObject({ priceMonthUsd: 181, setupFeeUsd: 49 });
  });

  it('is refused below the smallest hour of the books', async () => {
    expect(fieldOf(await setPrice('vps-1', 0.000729))).toBe('price_month_usd');
    expect(fieldOf(await setPrice('vps-1', -6))).toBe('price_month_usd');
    expect(fieldOf(await setPrice('vps-1', 6, { fee: -1 }))).toBe('setup_fee_usd');
    expect((await tierOf('vps-1')).version).toBe(1);
    expect((await setPrice('vps-5', 0.00073)).data.setPrice.priceMonthUsd).toBe(0.00073);
  });

  it('changes for no code but that of a tier', async () => {
    for (const code of ['nothing', 'ams', 'debian-13'])
      expect(codeOf(await setPrice(code, 9))).toBe('unknown_service_code');
  });

  it('is an event with the price before, and an entry of the audit log', async () => {
    await setPrice('vps-4', 50, { fee: 3 });
    const { data } = await operator('{ operatorEvents(type: "catalog.updated", limit: 1) { data { subject data } } }');
    expect(data.operatorEvents.data).toEqual([
      {
        subject: 'vps-4',
        data: { priceMonthUsd: 50, setupFeeUsd: 3, before: { priceMonthUsd: 48, setupFeeUsd: 0 } },
      },
    ]);
    const audited = await db.query(
      `select actor_type, resource_type from audit_entry where action = 'catalog.updated' and resource_id = 'vps-4'`,
    );
    expect(audited).toEqual([{ actorType: 'operator', resourceType: 'tier' }]);
  });

  it('tells the later of two operators of the earlier change', async () => {
    const { version } = await tierOf('vps-3');
    const both = await Promise.all([20, 21].map((month) => setPrice('vps-3', month, { version })));
    expect(both.map(codeOf).sort()).toEqual(['validation_failed', undefined]);
    const late = both.find(({ errors }) => errors)!;
    expect(late.errors[0].message).toMatch(
      /^operator has changed vps-3 meanwhile, at \S+Z \(.*priceMonthUsd 2[01].*\)\. Look at it again\.$/,
    );
    expect(codeOf(await setPrice('vps-3', 22, { version: version + 1 }))).toBeUndefined();
  });

  it('is changed by an owner only', async () => {
    expect(codeOf(await account.graphql(SET_PRICE, { code: 'vps-1', month: 1 }))).toBe('insufficient_scope');
  });
});

const VPS = {
  ...{ code: 'vps-6', name: 'VPS 6', vcpus: 2, memoryMb: 2048, diskGb: 20, trafficTb: 1.5 },
  ...{ priceMonthUsd: 7.5, setupFeeUsd: 1, slowMbps: 5 },
};
const ADD_VPS = 'mutation ($input: AddVpsTierInput!) { addVpsTier(input: $input) { code version offered kind } }';
const ADD_DEDICATED =
  'mutation ($input: AddDedicatedTierInput!) { addDedicatedTier(input: $input) { code kind disks { count sizeGb type } } }';
const DEDICATED = {
  ...{ code: 'ded-9', name: 'Dedicated 9', cpuModel: 'AMD EPYC 4564P', cores: 16, threads: 32, memoryMb: 131072 },
  ...{ disks: [{ count: 2, sizeGb: 960, type: 'NVMe' }], deliveryHours: 24, priceMonthUsd: 120 },
};

describe('A new tier', () => {
  it('is on offer at once, and sold where the operator sets its stock', async () => {
    expect((await operator(ADD_VPS, { input: VPS })).data.addVpsTier).toEqual({
      ...{ code: 'vps-6', version: 1, offered: true, kind: 'VPS' },
    });
    await eventually(async () => (await shown('vps-6')).code === 'vps-6');
    expect(await shown('vps-6')).toMatchObject({
      traffic_tb: 1.5,
      price_month_usd: 7.5,
      disk_type: 'NVMe',
      regions: [],
    });
    expect((await order('vps-6')).body.code).toBe('out_of_stock');
    await operator('mutation { setStock(region: "ams", serviceCode: "vps-6", total: 1) { free } }');
    expect((await order('vps-6')).body).toMatchObject({ status: 'pending', price_month_usd: 7.5 });
  });

  it('of dedicated servers has disks and unmetered traffic', async () => {
    const { data } = await operator(ADD_DEDICATED, { input: DEDICATED });
    expect(data.addDedicatedTier).toEqual({ code: 'ded-9', kind: 'DEDICATED', disks: DEDICATED.disks });
    await eventually(async () => (await shown('ded-9')).code === 'ded-9');
    expect(await shown('ded-9')).toMatchObject({ traffic_tb: null, setup_fee_usd: 0, delivery_hours: 24 });
  });

  it.each([
    [{ code: 'vps-1' }, 'code'],
    [{ code: 'ams' }, 'code'],
    [{ code: 'bastions' }, 'code'],
    [{ code: 'VPS' }, 'code'],
    [{ code: 'vps-7', vcpus: 0 }, 'vcpus'],
    [{ code: 'vps-7', trafficTb: 0 }, 'traffic_tb'],
    [{ code: 'vps-7', priceMonthUsd: 0 }, 'price_month_usd'],
    [{ code: 'vps-7', extraTrafficTbUsd: -1 }, 'extra_traffic_tb_usd'],
  ])('is refused as %j', async (input, field) => {
    expect(fieldOf(await operator(ADD_VPS, { input: { ...VPS, ...input } }))).toBe(field);
  });

  it.each([[[]], [[{ count: 0, sizeGb: 960, type: 'NVMe' }]]])('is refused with the disks %j', async (disks) => {
    expect(fieldOf(await operator(ADD_DEDICATED, { input: { ...DEDICATED, code: 'ded-8', disks } }))).toBe('disks');
  });
});

describe('A tier', () => {
  const update = (code: string, input: object, version?: number) =>
    operator(
      'mutation ($code: Code!, $version: Amount, $input: UpdateTierInput!) { updateTier(code: $code, version: $version, input: $input) { code } }',
      { code, version, input },
    );

  it('keeps the fields that a change leaves out', async () => {
    const before = await tierOf('vps-1');
    await update('vps-1', { slowMbps: 20, extraTrafficTbUsd: 1.5 });
    expect(await tierOf('vps-1')).toEqual({ ...before, slowMbps: 20, version: before.version + 1 });
    await eventually(async () => (await shown('vps-1')).extra_traffic_tb_usd === 1.5);
    await update('vps-1', { extraTrafficTbUsd: 0 });
    await eventually(async () => (await shown('vps-1')).extra_traffic_tb_usd === null);
    await update('vps-1', { position: 99, name: 'The small one' });
    await eventually(async () => (await anonymous('GET', '/v1/catalog/vps')).body.data.at(-1).name === 'The small one');
  });

  it('has no field of the other kind, and no change that another operator has overtaken', async () => {
    expect(fieldOf(await update('vps-1', { deliveryHours: 4 }))).toBe('delivery_hours');
    expect(fieldOf(await update('ded-1', { slowMbps: 4 }))).toBe('slow_mbps');
    expect(fieldOf(await update('ded-1', { deliveryHours: 0 }))).toBe('delivery_hours');
    expect(fieldOf(await update('ded-1', { deliveryHours: 4 }, 7))).toBe('version');
  });

  it('gives its servers no less than it was sold with, and gives them more', async () => {
    await update('vps-4', { trafficTb: 7, slowMbps: 9, extraTrafficTbUsd: 3 });
    const before = await tierOf('vps-4');
    await order('vps-4');
    for (const [field, input] of [
      ['traffic_tb', { trafficTb: 6.9 }],
      ['port_mbps', { portMbps: 1 }],
      ['extra_traffic_tb_usd', { extraTrafficTbUsd: 3.1 }],
      ['slow_mbps', { trafficTb: 9, slowMbps: 8 }],
    ] as const)
      expect(fieldOf(await update('vps-4', input))).toBe(field);
    const { errors } = await update('vps-4', { trafficTb: 1 });
    expect(errors[0].extensions.errors[0].message).toBe(
      'The tier has 1 server, which was sold with 7 TB of traffic. Add another tier, or give more.',
    );
    expect(await tierOf('vps-4')).toEqual(before);
    await update('vps-4', { trafficTb: 8, slowMbps: 10, extraTrafficTbUsd: 2 });
    expect(await tierOf('vps-4')).toMatchObject({ trafficTb: 8, slowMbps: 10 });
    await update('vps-4', { extraTrafficTbUsd: 0 });
    expect(fieldOf(await update('vps-4', { extraTrafficTbUsd: 2 }))).toBe('extra_traffic_tb_usd');
  });

  it('takes no orders once the operator withdraws it, and its servers stay', async () => {
    const { body: server } = await order('vps-1');
    await operator('mutation { withdrawTier(code: "vps-1") { offered } }');
    await eventually(async () => (await shown('vps-1')).code === 'not_found');
    expect((await order('vps-1')).body.code).toBe('unknown_service_code');
    expect((await account.rest('GET', `/v1/servers/${server.order_number}`)).status).toBe(200);
    expect((await tierOf('vps-1')).offered).toBe(false);
    await operator('mutation { offerTier(code: "vps-1") { offered } }');
    expect((await order('vps-1')).status).toBe(200);
  });
});
