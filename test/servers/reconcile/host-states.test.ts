/** Hosts follow the reports of their engine. */
import { expect, it, onTestFinished } from 'vitest';
import { listOpenMatters } from '../../../resolvers/open-matters.ts';
import { listHosts, setHostState } from '../../../resolvers/servers/hosts.ts';
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

it('A host that is offline tells the operator why and since when, until it is back', async () => {
  const shop = await openEngines(onTestFinished);
  for (const name of ['n1', 'n2']) await shop.host(name, 'lxc');
  const tell = (...troubles: (string | undefined)[]) => {
    shop.driver.hosts = troubles.map((trouble, index) => ({
      ...{ name: `n${index + 1}`, size: SIZE },
      ...(trouble === undefined ? { state: 'online' } : { state: 'offline', ...(trouble && { trouble }) }),
    }));
    return shop.look();
  };
  const troubles = async () =>
    (await listHosts(shop.operator)).map(({ trouble, troubleAt }) => ({ trouble, troubleAt }));
  const matters = async () => (await listOpenMatters(shop.operator, 100)).filter(({ kind }) => kind === 'HOST');
  await tell('It is\0 burnt.', '');
  const [burnt, silent] = await troubles();
  expect([burnt!.trouble, silent!.trouble]).toEqual([
    'It is burnt.',
    'The engine reports the host offline, and says no more.',
  ]);
  const matter = { kind: 'HOST', subject: 'n1', since: burnt!.troubleAt, severity: 'WARNING' };
  expect((await matters())[0]).toEqual({
    ...matter,
    nextStep: expect.stringContaining('updateHost, or drain it by drainHost. It is burnt.'),
  });
  await tell('It is wet.', undefined);
  expect(await troubles()).toEqual([
    { trouble: 'It is wet.', troubleAt: burnt!.troubleAt },
    { trouble: null, troubleAt: null },
  ]);
  // The operator knows of a host that is drained.
  await setHostState(shop.operator, 'n1', 'DRAINING');
  await tell('It is dry.', undefined);
  expect((await troubles())[0]!.trouble).toBe('It is dry.');
  expect(await matters()).toEqual([]);
});
