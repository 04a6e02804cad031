/** Hosts follow the reports of their engine. */
import { expect, it, onTestFinished } from 'vitest';
import { setHostState } from '../../../resolvers/servers/hosts.ts';
import { openEngines, SIZE } from '../placement/engine-world.ts';

it('A host that its engine calls offline sells nothing, and a drained host stays drained', async () => {
  const shop = await openEngines(onTestFinished);
  for (const name of ['n1', 'n2', 'n3']) await shop.host(name, 'lxc');
  await setHostState(shop.operator, 'n2', 'DRAINING');
  const states = async () =>
    (await shop.db.query<{ state: string }>('select state from host order by name')).map(({ state }) => state);
  const tell = (state: 'online' | 'offline', ...names: string[]) => {
    shop.driver.hosts = names.map((name) => ({ name, state, size: SIZE }));
    return shop.look();
  };
  await tell('offline', 'n1', 'n2');
  expect(await states()).toEqual(['OFFLINE', 'DRAINING', 'ACTIVE']);
  expect(await shop.placeOf(await shop.running())).toEqual([null, 'n3']);
  await tell('offline', 'n1', 'n2', 'n3');
  expect(await states()).toEqual(['OFFLINE', 'DRAINING', 'OFFLINE']);
  await expect(shop.order()).rejects.toMatchObject({ code: 'out_of_stock' });
  await tell('online', 'n1', 'n2', 'n3');
  expect(await states()).toEqual(['ACTIVE', 'DRAINING', 'ACTIVE']);
  expect((await shop.placeOf(await shop.running()))[1]).toMatch(/^n[13]$/);
});
