/** The looks at several engines: one engine's odd answers and changes cost the others nothing. */
import { expect, it, onTestFinished } from 'vitest';
import { Engine } from '../../../entities/servers/engine.ts';
import { CircuitBreaker, Finding } from '../../../entities/servers/finding.ts';
import { DriverError } from '../../../provisioning/servers/drivers/driver.ts';
import { DRIVER_HEALTH_PROCESS } from '../../../provisioning/servers/reconcile/driver-health.ts';
import { OBSERVER_PROCESS } from '../../../provisioning/servers/reconcile/observe.ts';
import { cronSubject } from '../../../provisioning/tasks/schedule.ts';
import { removeEngine, setEngineState, updateEngine } from '../../../resolvers/servers/engines.ts';
import { removeHost } from '../../../resolvers/servers/hosts.ts';
import { reportsOf } from '../../setup/lock-order.ts';
import { openEngines } from './engine-world.ts';

const open = () => openEngines(onTestFinished);
type Shop = Awaited<ReturnType<typeof open>>;
const row = ({ db }: Shop, name: string) => db.source.manager.findOneByOrFail(Engine, { name });

it('A look under way leaves no finding and no circuit breaker of an engine that is removed meanwhile', async () => {
  const shop = await open();
  await shop.add('north');
  const north = shop.engine('north');
  const told = await north.about();
  const size = { vcpus: 4, memoryMb: 1000, diskGb: 100 };
  north.hosts = ['a', 'b'].map((name) => ({ name, state: 'online', size }));
  north.about = async () => {
    await removeHost(shop.operator, 'north-1');
    await removeEngine(shop.operator, 'north');
    await shop.db.query(`insert into brake (driver, reason) values ('north', 'for the test')`);
    return told;
  };
  expect(await reportsOf(shop.look)).toEqual([]);
  await shop.look();
  const findings = await shop.db.source.manager.find(Finding);
  expect(findings.map(({ kind, resolvedAt }) => [kind, resolvedAt])).toEqual([['CAPACITY', expect.any(Date)]]);
  expect(await shop.db.source.manager.find(CircuitBreaker)).toEqual([]);
});

it('The finding about a machine without a server names the other engine that has its order', async () => {
  const shop = await open();
  await shop.add('north');
  await shop.look();
  const orderNumber = await shop.running();
  shop.driver.list = () => shop.engine('north').list();
  const orphans = { lxc: { [`${orderNumber}.1`]: 1 } };
  await shop.db.query('update task set data = $2 where process = $1', [OBSERVER_PROCESS, { orphans }]);
  await shop.look();
  expect(await shop.db.source.manager.find(Finding)).toMatchObject([
    { kind: 'ORPHAN', driver: 'lxc', orderNumber, detail: expect.stringContaining('on the engine north') },
  ]);
});

it('A look that began before a change of the connection notes neither its answers nor its error', async () => {
  const shop = await open();
  await shop.add('north');
  const north = shop.engine('north');
  const told = await north.about();
  let index = 0;
  /** Changes the connection, without the new look that the service asks for then. */
  const change = async () => {
    await updateEngine(shop.operator, 'north', { network: `br${index++}` });
    await shop.db.query('update task set signals = signals - 1 where subject = $1', [cronSubject(OBSERVER_PROCESS)]);
  };
  north.about = async () => {
    await change();
    return told;
  };
  await shop.look();
  expect(await row(shop, 'north')).toMatchObject({ seenAt: null, product: null, trouble: null });
  north.list = async () => {
    await change();
    throw new DriverError('unreachable', 'for the test');
  };
  await shop.look();
  expect(await row(shop, 'north')).toMatchObject({ seenAt: null, trouble: null });
});

it('Odd texts and sizes of an engine stop no look at others', async () => {
  const shop = await open();
  await shop.add('north');
  const north = shop.engine('north');
  north.hosts = [{ name: 'a\0b', state: 'online', size: { vcpus: 1.5, memoryMb: 2 ** 40, diskGb: 100 } }];
  north.images = ['debian\0-13', 'odd\ud800'];
  north.list = async () => [{ order: 'SRV-1', generation: 1, phase: 'present', proven: false, host: 'a\0\ud800' }];
  await shop.look();
  await shop.db.query(`update task set data = jsonb_set(data, '{orphans,north,SRV-1.1}', '1') where process = $1`, [
    OBSERVER_PROCESS,
  ]);
  await shop.look();
  expect(await row(shop, 'north')).toMatchObject({
    members: [{ name: 'ab', vcpus: 0, memoryMb: 0, diskGb: 100 }],
    ...{ images: ['debian-13', 'odd\ufffd'], seenAt: expect.any(Date) },
  });
  expect((await row(shop, 'lxc')).seenAt).toEqual(expect.any(Date));
  const details = (await shop.db.source.manager.find(Finding)).map(({ detail }) => detail);
  expect(details).toContain('The machine belongs to no server. present on a\ufffd.');
});

it.each([
  ['no number as its generation', { order: 'SRV-1', generation: Number.NaN }],
  ['a part of a generation', { order: 'SRV-1', generation: 1.5 }],
  ['a generation that is too large', { order: 'SRV-1', generation: 2 ** 31 }],
  ['NUL in its order', { order: 'SRV-\0', generation: 1 }],
  ['half a letter in its order', { order: 'SRV-\ud800', generation: 1 }],
  ['a long order', { order: 'SRV-'.repeat(10_000), generation: 1 }],
])('A machine with %s stops no look, and the trouble of its engine tells of it', async (_, key) => {
  const shop = await open();
  await shop.add('north');
  shop.engine('north').list = async () => [{ ...key, phase: 'present', proven: false }];
  await shop.look();
  await shop.db.query(`update task set data = data || $2 where process = $1`, [
    OBSERVER_PROCESS,
    { orphans: { north: { [`${key.order.replace('\0', '').toWellFormed()}.${key.generation}`]: 1 } } },
  ]);
  await shop.look();
  expect(await row(shop, 'north')).toMatchObject({
    ...{
      seenAt: expect.any(Date),
      trouble: expect.stringMatching(/^Machines with odd marks do not count, such as SRV-/),
    },
  });
  expect(await shop.db.source.manager.find(Finding)).toEqual([]);
});

it('The status of a region does not follow an engine without customers that is new or drained', async () => {
  const shop = await open();
  await shop.add('north');
  shop.engine('north').reachable = async () => false;
  const zurich = async () => {
    await shop.tick(DRIVER_HEALTH_PROCESS);
    const [one] = await shop.db.query<{ status: string }>(`select status from health where component = 'machines-zrh'`);
    return one!.status;
  };
  expect(await zurich()).toBe('operational');
  await shop.look();
  expect(await zurich()).toBe('partial_outage');
  await setEngineState(shop.operator, 'north', 'DRAINED');
  expect(await zurich()).toBe('operational');
  await setEngineState(shop.operator, 'north', 'ACTIVE');
  await shop.running();
  await setEngineState(shop.operator, 'north', 'DRAINED');
  expect(await zurich()).toBe('partial_outage');
});

it('A look counts although the engine does not tell of itself, and its old answers stay', async () => {
  const shop = await open();
  await shop.add('north');
  await shop.look();
  const north = shop.engine('north');
  north.hosts = [{ name: 'n1', state: 'online', size: { vcpus: 8, memoryMb: 1000, diskGb: 100 } }];
  north.about = () => Promise.reject(new DriverError('failed', 'No images for the test.'));
  await shop.look();
  expect(await row(shop, 'north')).toMatchObject({
    ...{ product: 'INCUS', version: '6.0.4', images: ['debian-13'], trouble: 'No images for the test.' },
    members: [{ name: 'n1' }],
  });
});
