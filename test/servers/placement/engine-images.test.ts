/** Images are on offer only where an active engine has them. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { catalogGroup } from '../../../resolvers/catalog/catalog.ts';
import { setEngineState } from '../../../resolvers/servers/engines.ts';
import { updateServer } from '../../../resolvers/servers/update.ts';
import { openEngines } from './engine-world.ts';

/** Two engines of Zürich: `north` has both images, and `south` only Debian. */
async function open() {
  const shop = await openEngines(onTestFinished);
  for (const name of ['north', 'south']) await shop.add(name);
  shop.engine('north').images = ['debian-13', 'alma-9'];
  shop.engine('lxc').images = ['debian-13'];
  await shop.look();
  return shop;
}
type Shop = Awaited<ReturnType<typeof open>>;
const offered = async (shop: Shop) => (await catalogGroup(shop.context, 'image')).map(({ item }) => item.code);

describe('An image', () => {
  it('is in the catalog while an active engine has it', async () => {
    const shop = await open();
    expect(await offered(shop)).toEqual(['debian-13', 'alma-9']);
    await setEngineState(shop.operator, 'north', 'DRAINED');
    expect(await offered(shop)).toEqual(['debian-13']);
    await expect(shop.order('zrh', 'alma-9')).rejects.toMatchObject({ code: 'unknown_os' });
  });

  it('is ordered on an engine that has it', async () => {
    const shop = await open();
    const orders = [];
    for (let i = 0; i < 6; i++) orders.push(await shop.order('zrh', 'alma-9'));
    for (const order of orders) expect(await shop.placeOf(order)).toEqual(['north', 'north-1']);
  });

  it('is out of stock in a region whose engines lack it, and the error names the other regions', async () => {
    const shop = await open();
    const refused = { code: 'out_of_stock', extras: { availableRegions: ['zrh'] } };
    await expect(shop.order('ams', 'alma-9')).rejects.toMatchObject(refused);
    expect(await shop.placeOf(await shop.order('ams'))).toEqual([null, null]);
  });

  it('is for containers alone, unless the engine has the image for virtual machines', async () => {
    const shop = await open();
    await shop.db.query(
      `update catalog_item set details = details || '{"virtualization": "kvm"}' where code = 'vps-1'`,
    );
    await expect(shop.order('zrh', 'alma-9')).rejects.toMatchObject({ code: 'out_of_stock' });
    shop.engine('south').images = ['alma-9-vm'];
    await shop.look();
    expect(await shop.placeOf(await shop.order('zrh', 'alma-9'))).toEqual(['south', 'south-1']);
  });

  it('is refused for a rebuild on an engine without it', async () => {
    const shop = await open();
    await setEngineState(shop.operator, 'north', 'DRAINED');
    const orderNumber = await shop.running();
    await setEngineState(shop.operator, 'north', 'ACTIVE');
    const rebuild = (os?: string) => updateServer(shop.context, orderNumber, { action: 'REBUILD', os });
    const refused = { code: 'unknown_os', message: expect.stringContaining('alma-9') };
    await expect(rebuild('alma-9')).rejects.toMatchObject(refused);
    shop.engine('south').images = ['alma-9'];
    await shop.look();
    await expect(rebuild()).rejects.toMatchObject({ code: 'unknown_os' });
    expect((await rebuild('alma-9')).server.status).toBe('REBUILDING');
  });
});
