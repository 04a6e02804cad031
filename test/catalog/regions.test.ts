/** Regions: the operator adds and withdraws them, and they sell where there is room. */
import { expect, it } from 'vitest';
import { eventually, startFreehold } from '../setup/freehold.ts';

const { anonymous, newAccount, operator } = await startFreehold();
const account = await newAccount();
await account.fund(100);

const OSLO = { code: 'osl', name: 'Oslo', city: 'Oslo', country: 'NO', latitude: 59.9, longitude: 10.7 };
const add = (input: object) =>
  operator('mutation ($input: AddRegionInput!) { addRegion(input: $input) { code version offered } }', { input });
const update = (code: string, input: object, version?: number) =>
  operator(
    `mutation ($code: Code!, $version: Amount, $input: UpdateRegionInput!) {
      updateRegion(code: $code, version: $version, input: $input) { name city latitude longitude version } }`,
    { code, version, input },
  );
const shown = async (code: string) => (await anonymous('GET', `/v1/catalog/${code}`)).body;
const order = () => account.rest('POST', '/v1/servers', { service_code: 'vps-1', region: 'osl' });
const problem = ({ errors }: { errors: { extensions: { code: string; errors?: { field: string }[] } }[] }) =>
  errors[0]!.extensions.errors?.[0]?.field ?? errors[0]!.extensions.code;

it('A new region sells once it has stock and room', async () => {
  expect((await order()).body.code).toBe('unknown_region');
  expect((await add(OSLO)).data.addRegion).toEqual({ code: 'osl', version: 1, offered: true });
  await eventually(async () => (await shown('osl')).code === 'osl');
  expect(await shown('osl')).toMatchObject({ kind: 'bastion', country: 'NO', latitude: 59.9, status: 'operational' });
  expect((await order()).body.code).toBe('out_of_stock');
  await operator('mutation { setStock(region: "osl", serviceCode: "vps-1", total: 1) { free } }');
  expect((await order()).body.code).toBe('out_of_stock');
  for (const cidr of ['10.9.0.0/28', 'fd00:9::/60'])
    await operator(`mutation { addAddressPool(input: {region: "osl", cidr: "${cidr}"}) { id } }`);
  expect((await order()).body).toMatchObject({ status: 'pending', region: 'osl' });
});

it('A withdrawn region takes no orders, and its servers stay', async () => {
  const { body } = await account.rest('POST', '/v1/servers', { service_code: 'vps-1', region: 'zrh' });
  const { version } = (await operator('{ regions { code version } }')).data.regions.find(
    ({ code }: { code: string }) => code === 'zrh',
  );
  const withdraw = `mutation { withdrawRegion(code: "zrh", version: ${version}) { offered } }`;
  expect((await operator(withdraw)).data.withdrawRegion).toEqual({ offered: false });
  expect(problem(await operator(withdraw))).toBe('version');
  await eventually(async () => (await shown('zrh')).code === 'not_found');
  await eventually(async () => !(await shown('vps-1')).regions.some(({ code }: { code: string }) => code === 'zrh'));
  const again = await account.rest('POST', '/v1/servers', { service_code: 'vps-1', region: 'zrh' });
  expect(again.body.code).toBe('unknown_region');
  expect((await account.rest('GET', `/v1/servers/${body.order_number}`)).body.region).toBe('zrh');
  expect((await operator('mutation { offerRegion(code: "zrh") { offered } }')).data.offerRegion.offered).toBe(true);
});

it('A change of a region keeps what it leaves out, and removes what it sets to null', async () => {
  const { data } = await update('ams', { name: 'Amsterdam Zuid', longitude: null }, 1);
  expect(data.updateRegion).toEqual({
    ...{ name: 'Amsterdam Zuid', city: 'Amsterdam', latitude: 52.3, longitude: null, version: 2 },
  });
  expect(problem(await update('ams', { name: 'Amsterdam' }, 1))).toBe('version');
  expect(problem(await update('ams', { country: 'Holland' }))).toBe('country');
  expect(problem(await update('vps-1', { name: 'A region' }))).toBe('unknown_region');
});

it.each([
  [{ code: 'ams' }, 'code'],
  [{ code: 'vps-1' }, 'code'],
  [{ code: 'images' }, 'code'],
  [{ country: 'no' }, 'country'],
])('A region is refused with %j', async (input, field) => {
  expect(problem(await add({ ...OSLO, code: 'trd', ...input }))).toBe(field);
});

it('Each change of a region is an event, and an entry of the audit log', async () => {
  await add({ ...OSLO, code: 'bgo' });
  await update('bgo', { name: 'Bergen' });
  const { data } = await operator('{ operatorEvents(type: "catalog.updated", limit: 2) { data { subject data } } }');
  expect(data.operatorEvents.data).toEqual([
    { subject: 'bgo', data: { updated: ['name'] } },
    { subject: 'bgo', data: { added: true } },
  ]);
});

it('Only operators change regions', async () => {
  const { errors } = await account.graphql('mutation { withdrawRegion(code: "ams") { code } }');
  expect(errors[0].extensions.code).toBe('insufficient_scope');
});
