/** Several engines: the operator adds, drains and removes them while the service runs. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { Engine } from '../../../entities/servers/engine.ts';
import { CircuitBreaker, Finding } from '../../../entities/servers/finding.ts';
import { OBSERVER_PROCESS } from '../../../provisioning/servers/reconcile/observe.ts';
import { cronSubject } from '../../../provisioning/tasks/schedule.ts';
import { deleteServer } from '../../../resolvers/servers/delete.ts';
import { removeEngine, setEngineState, updateEngine } from '../../../resolvers/servers/engines.ts';
import { closeBreaker } from '../../../resolvers/servers/findings.ts';
import { removeHost } from '../../../resolvers/servers/hosts.ts';
import { updateServer } from '../../../resolvers/servers/update.ts';
import { finish, startWorker } from '../../setup/customer-shop.ts';
import { eventually } from '../../setup/freehold.ts';
import { ELSEWHERE, openEngines } from './engine-world.ts';

const open = () => openEngines(onTestFinished);
type Shop = Awaited<ReturnType<typeof open>>;
const row = ({ db }: Shop, name: string) => db.source.manager.findOneByOrFail(Engine, { name });
const ordersOf = async (shop: Shop, name: string) =>
  (await shop.engine(name).list()).map(({ order }) => order).toSorted();
const refused = { code: 'out_of_stock' };

describe('An engine that the operator adds', () => {
  it('gets orders on its hosts after a worker has reached it, and tells of itself', async () => {
    const shop = await open();
    await shop.add('north');
    await expect(shop.order()).rejects.toMatchObject(refused);
    shop.engine('north').hosts = [
      { name: 'north-1', state: 'online', size: { vcpus: 4, memoryMb: 1000, diskGb: 100 } },
    ];
    await shop.look();
    const orderNumber = await shop.running();
    expect(await shop.placeOf(orderNumber)).toEqual(['north', 'north-1']);
    expect([await ordersOf(shop, 'north'), await ordersOf(shop, 'lxc')]).toEqual([[orderNumber], []]);
    expect(await row(shop, 'north')).toMatchObject({
      ...{ product: 'INCUS', version: '6.0.4', images: ['debian-13'], seenAt: expect.any(Date), trouble: null },
      members: [{ name: 'north-1', state: 'online', vcpus: 4, memoryMb: 1000, diskGb: 100 }],
    });
  });

  it('sells in its region alone, and the engine of the environment sells elsewhere without hosts', async () => {
    const shop = await open();
    await shop.add('north');
    await shop.look();
    expect(await shop.placeOf(await shop.running('zrh'))).toEqual(['north', 'north-1']);
    expect(await shop.placeOf(await shop.running('ams'))).toEqual([null, null]);
    await expect(shop.host('far', 'north', { region: 'ams' })).rejects.toMatchObject({ code: 'validation_failed' });
  });

  it('gets no orders while it is drained, and its machines go on', async () => {
    const shop = await open();
    for (const name of ['north', 'south']) await shop.add(name);
    await shop.look();
    await setEngineState(shop.operator, 'north', 'DRAINED');
    for (const _ of [1, 2, 3]) expect(await shop.placeOf(await shop.running())).toEqual(['south', 'south-1']);
    await setEngineState(shop.operator, 'south', 'DRAINED');
    await expect(shop.order()).rejects.toMatchObject(refused);
    await setEngineState(shop.operator, 'north', 'ACTIVE');
    const orderNumber = await shop.running();
    expect(await shop.placeOf(orderNumber)).toEqual(['north', 'north-1']);
    await setEngineState(shop.operator, 'north', 'DRAINED');
    await deleteServer(shop.context, orderNumber);
    await finish(shop, orderNumber, 'DELETED');
    expect(await ordersOf(shop, 'north')).toEqual([]);
  });

  it('is unknown while it is silent, and the others are looked at', async () => {
    const shop = await open();
    for (const name of ['north', 'south']) await shop.add(name);
    await shop.look();
    const running = [];
    for (const _ of Array(8)) running.push(await shop.running());
    const [lost, kept] = await Promise.all(['south', 'north'].map((name) => ordersOf(shop, name)));
    expect([lost, kept].flat().toSorted()).toEqual(running.toSorted());
    shop.engine('north').down = true;
    const { signal } = new AbortController();
    for (const order of lost!) await shop.engine('south').destroy({ order, generation: 1 }, signal);
    await shop.look();
    const findings = await shop.db.source.manager.find(Finding);
    expect(findings.map(({ kind, driver, orderNumber }) => [kind, driver, orderNumber]).toSorted()).toEqual(
      lost!.map((orderNumber) => ['LOST', 'south', orderNumber]),
    );
    expect((await row(shop, 'north')).trouble).toBe('north does not answer.');
    // Many machines of one engine vanished, and the other may still remove machines.
    expect((await shop.db.source.manager.find(CircuitBreaker)).map(({ driver }) => driver)).toEqual(['south']);
    for (const order of [kept![0]!, lost![0]!]) await deleteServer(shop.context, order);
    await shop.work();
    expect((await shop.read(kept![0]!)).status).toBe('DELETED');
    expect((await shop.read(lost![0]!)).status).toBe('DELETING');
  });

  it('opens the circuit breaker of another while it is silent, for machines that were missing long ago', async () => {
    const shop = await open();
    await shop.add('north');
    await shop.look();
    const south = [await shop.running('ams'), await shop.running('ams')];
    // The last look had no time to ask about these machines. They are back.
    await shop.db.query('update task set data = $2 where process = $1', [
      OBSERVER_PROCESS,
      {
        counted: { lxc: south.map((order) => `${order}.1`), north: ['SRV-1.1'] },
        orphans: { north: { 'SRV-2.1': 5 } },
      },
    ]);
    shop.engine('north').down = true;
    await shop.look();
    const [task] = await shop.db.query<{ data: object }>('select data from task where process = $1', [
      OBSERVER_PROCESS,
    ]);
    expect(task!.data).toEqual({
      counted: { lxc: [], north: ['SRV-1.1'] },
      orphans: { lxc: {}, north: { 'SRV-2.1': 5 } },
    });
    const { signal } = new AbortController();
    for (const order of south) await shop.driver.destroy({ order, generation: 1 }, signal);
    await shop.look();
    expect((await shop.db.source.manager.find(CircuitBreaker)).map(({ driver }) => driver)).toEqual(['lxc']);
  });

  it('has a new driver after a change of its connection, without a restart, and waits for a look', async () => {
    const shop = await open();
    await shop.add('north');
    await shop.look();
    const orderNumber = await shop.running();
    expect(shop.connected).toEqual(['north']);
    const { revision } = await row(shop, 'north');
    await updateEngine(shop.operator, 'north', { endpoints: ['unix:/moved'] });
    await expect(shop.order()).rejects.toMatchObject(refused);
    await shop.look();
    await shop.look();
    expect(shop.connected).toEqual(['north', 'north']);
    expect(await row(shop, 'north')).toMatchObject({
      revision: revision + 1,
      connection: { endpoints: ['unix:/moved'] },
    });
    await deleteServer(shop.context, orderNumber);
    await finish(shop, orderNumber, 'DELETED');
  });

  it('stays unknown after a change that leads to another cluster, until the operator closes its circuit breaker', async () => {
    const shop = await open();
    await shop.add('north');
    await shop.look();
    const [deleted, rebuilt] = [await shop.running(), await shop.running()];
    await updateEngine(shop.operator, 'north', { endpoints: [ELSEWHERE] });
    await deleteServer(shop.context, deleted);
    await updateServer(shop.context, rebuilt, { action: 'REBUILD', os: 'debian-13' });
    const work = async () => {
      await shop.db.query(`update task set run_at = now() where subject not like 'cron:%'`);
      await shop.work();
      return [(await shop.read(deleted)).status, (await shop.read(rebuilt)).status];
    };
    // Before the first look, and after it: the engine answers, and has none of the machines.
    expect(await work()).toEqual(['DELETING', 'REBUILDING']);
    expect((await shop.read(rebuilt)).trouble).toBe('No look has reached the engine north yet.');
    await shop.look();
    expect(await work()).toEqual(['DELETING', 'REBUILDING']);
    expect((await shop.db.source.manager.find(CircuitBreaker)).map(({ driver }) => driver)).toEqual(['north']);
    expect((await row(shop, 'north')).seenAt).toBeNull();
    expect(await shop.engine('north', 'elsewhere').list()).toEqual([]);
    await updateEngine(shop.operator, 'north', { endpoints: ['unix:/north'] });
    await closeBreaker(shop.operator, 'north');
    await shop.look();
    expect(await work()).toEqual(['DELETED', 'RUNNING']);
    expect(await ordersOf(shop, 'north')).toEqual([rebuilt]);
  });

  it('keeps its project while it has servers', async () => {
    const shop = await open();
    await shop.add('north');
    await shop.look();
    await updateEngine(shop.operator, 'north', { project: 'machines' });
    await shop.look();
    const orderNumber = await shop.running();
    const refusal = { code: 'validation_failed', message: expect.stringContaining(orderNumber) };
    await expect(updateEngine(shop.operator, 'north', { project: 'other' })).rejects.toMatchObject(refusal);
    await updateEngine(shop.operator, 'north', { project: 'machines', openMail: true });
  });

  it('is removed only without hosts and servers, and takes its findings with it', async () => {
    const shop = await open();
    await shop.add('north');
    await shop.look();
    const orderNumber = await shop.running();
    const left = { code: 'validation_failed', message: expect.stringContaining('north-1') };
    await expect(removeEngine(shop.operator, 'north')).rejects.toMatchObject(left);
    await deleteServer(shop.context, orderNumber);
    await finish(shop, orderNumber, 'DELETED');
    await removeHost(shop.operator, 'north-1');
    await removeEngine(shop.operator, 'north');
    await expect(removeEngine(shop.operator, 'lxc')).rejects.toMatchObject({ code: 'validation_failed' });
    expect((await shop.db.source.manager.find(Engine)).map(({ name }) => name)).toEqual(['lxc']);
    await shop.look();
    expect(await shop.placeOf(await shop.running())).toEqual([null, null]);
    const told = await shop.db.query<{ data: object }>(
      `select data from event where type = 'engine.updated' and not data ? 'looked' order by id`,
    );
    expect(told.map(({ data }) => data)).toEqual([{ added: true }, { removed: true }]);
  });
});

describe('The next machine of an order', () => {
  it('can be on another engine after the first one is gone', async () => {
    const shop = await open();
    for (const name of ['north', 'south']) await shop.add(name);
    await shop.look();
    for (const name of ['north', 'south']) shop.engine(name).refused = ['silent'];
    const orderNumber = await shop.order();
    const [first] = await shop.placeOf(orderNumber);
    await finish(shop, orderNumber, 'RUNNING');
    const [second] = await shop.placeOf(orderNumber);
    expect([first, second].toSorted()).toEqual(['north', 'south']);
    expect([await ordersOf(shop, first!), await ordersOf(shop, second!)]).toEqual([[], [orderNumber]]);
  });

  it('stays on the engine of a machine that cannot be removed', async () => {
    const shop = await open();
    for (const name of ['north', 'south']) await shop.add(name);
    await shop.look();
    for (const name of ['north', 'south']) shop.engine(name).refused = ['stuck'];
    const orderNumber = await shop.order();
    const [first] = await shop.placeOf(orderNumber);
    await finish(shop, orderNumber, 'RUNNING');
    expect((await shop.placeOf(orderNumber))[0]).toBe(first);
    expect((await shop.read(orderNumber)).generation).toBe(2);
  });
});

describe('A paid order waits for the look after a change of the connection', () => {
  /** Changes an engine, and keeps the worker from its look. */
  async function change(shop: Shop, name: string): Promise<void> {
    await updateEngine(shop.operator, name, { network: 'br0' });
    const later = `update task set run_at = now() + interval '1 hour' where subject = $1`;
    await shop.db.query(later, [cronSubject(OBSERVER_PROCESS)]);
  }
  const waits = (shop: Shop, orderNumber: string) =>
    eventually(async () => {
      const [task] = await shop.db.query<{ outages: number }>('select outages from task where subject = $1', [
        orderNumber,
      ]);
      return task ? task.outages > 0 : Promise.reject(new Error('The order has failed.'));
    });

  it('when it claims its capacity', async () => {
    const shop = await open();
    await shop.add('north');
    await shop.look();
    await change(shop, 'north');
    const orderNumber = await shop.server(shop.accountId, { status: 'PENDING', region: 'zrh', paidUntil: null });
    const server = await shop.read(orderNumber);
    await shop.db.transaction((tx) => shop.provisioning.servers.reconcile(tx, server));
    startWorker(shop, onTestFinished);
    await waits(shop, orderNumber);
    expect((await shop.read(orderNumber)).status).toBe('PENDING');
    await shop.look();
    await eventually(async () => (await shop.placeOf(orderNumber)).join() === 'north,north-1');
  });

  it('when its machine gave no proof', async () => {
    const shop = await open();
    for (const name of ['north', 'south']) await shop.add(name);
    await shop.look();
    for (const name of ['north', 'south']) shop.engine(name).refused = ['silent'];
    const orderNumber = await shop.order();
    const [first] = await shop.placeOf(orderNumber);
    const second = first === 'north' ? 'south' : 'north';
    await setEngineState(shop.operator, first!, 'DRAINED');
    await change(shop, second);
    const worker = startWorker(shop, onTestFinished);
    await waits(shop, orderNumber);
    expect((await shop.read(orderNumber)).status).toBe('PROVISIONING');
    await worker.stop();
    await shop.look();
    await finish(shop, orderNumber, 'RUNNING');
    expect((await shop.placeOf(orderNumber))[0]).toBe(second);
  });
});

it('Simulated VPS cannot be beside an engine that the operator added', async () => {
  const shop = await open();
  await shop.add('north');
  await shop.db.query('update engine set simulated = true where connection is null');
  Object.assign(shop.driver, { simulated: true });
  await expect(shop.provisioning.servers.writeEngines()).rejects.toThrow(/The engine north is real/);
});
