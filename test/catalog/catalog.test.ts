import { expect, it } from 'vitest';
import { startFreehold } from '../setup/freehold.ts';

const { anonymous } = await startFreehold({ ROLES: 'api' });

it('The catalog is public, and shows an item by its code', async () => {
  const { body } = await anonymous('GET', '/v1/catalog');
  expect(Object.keys(body)).toEqual(['vps', 'dedicated', 'bastions', 'images']);
  expect(body.vps[0]).toMatchObject({
    code: 'vps-1',
    kind: 'vps',
    vcpus: 1,
    price_month_usd: 6,
    price_hour_usd: 0.008219,
    regions: [{ code: 'ams', stock: 'available' }, {}, {}, {}],
  });
  expect((await anonymous('GET', '/v1/catalog/zrh')).body).toMatchObject({ kind: 'bastion', country: 'CH' });
  expect((await anonymous('GET', '/v1/catalog/nothing')).body.code).toBe('not_found');
});
