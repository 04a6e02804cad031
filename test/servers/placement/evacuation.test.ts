/** The operator evacuates a host: its machines move to other hosts of its engine. */
import { IsNull } from 'typeorm';
import { describe, expect, it } from 'vitest';
import { Finding } from '../../../entities/servers/finding.ts';
import { Host } from '../../../entities/servers/host.ts';
import { DriverError } from '../../../provisioning/servers/drivers/driver.ts';
import { evacuateHost, setHostState } from '../../../resolvers/servers/hosts.ts';
import { updateServer } from '../../../resolvers/servers/update.ts';
import { finish } from '../../setup/customer-shop.ts';
import { SIZE } from './engine-world.ts';
import { hasMoved, NONE, ONE, openCluster } from './evacuation-world.ts';

describe('A machine on a host that the operator evacuates', () => {
  it('is turned off, moved and turned on again, and its customer learns of it', async () => {
    const shop = await openCluster();
    expect((await shop.evacuate()).state).toBe('EVACUATING');
    await shop.look();
    expect(await shop.claims()).toEqual([ONE, ONE]);
    await shop.work();
    await hasMoved(shop);
    expect(await shop.findings()).toEqual([]);
    expect((await shop.read(shop.order)).status).toBe('RUNNING');
    await shop.move();
    await hasMoved(shop);
  });

  it.each(['STOPPED', 'SUSPENDED'])('stays off if its server is %s', async (status) => {
    const shop = await openCluster();
    await updateServer(shop.context, shop.order, { powerState: 'OFF' });
    await finish(shop, shop.order, 'STOPPED');
    if (status === 'SUSPENDED')
      await shop.db.query(
        `update server set status = $2, suspended_at = now(), suspended_from = 'RUNNING' where order_number = $1`,
        [...[shop.order, status]],
      );
    const booted = shop.cluster.journal().length;
    await shop.evacuate();
    await shop.move();
    expect(await shop.machine()).toMatchObject({ power: 'off', host: 'c-2' });
    expect(await shop.claims()).toEqual([NONE, ONE]);
    expect(shop.cluster.journal().slice(booted)).toEqual([`move ${shop.order} 1`]);
    expect((await shop.read(shop.order)).status).toBe(status);
  });

  it('stays without room elsewhere, with a finding, until there is room', async () => {
    const shop = await openCluster({ servers: 2, room: 3000 });
    await shop.evacuate();
    await shop.move();
    expect(await shop.claims()).toEqual([ONE, ONE]);
    const left = shop.orders.toSorted()[1]!;
    const why = 'No other active host of its engine has room.';
    expect(await shop.findings()).toEqual([[left, why, true]]);
    expect(await shop.machine(left)).toMatchObject({ power: 'on' });
    await shop.host('c-3', 'c');
    await shop.look();
    // No member has that name.
    expect(await shop.findings()).toEqual([[left, why, true]]);
    shop.cluster.hosts.push({ name: 'c-3', state: 'online', size: SIZE });
    await shop.move();
    expect(await shop.placeOf(left)).toEqual(['c', 'c-3']);
    await shop.look();
    expect(await shop.findings()).toEqual([[left, why, false]]);
  });

  it('stays on while its driver says that it cannot move, with a finding', async () => {
    const shop = await openCluster();
    const { list } = shop.cluster;
    const stays = 'An earlier move left a copy.';
    shop.cluster.list = async () => (await list.call(shop.cluster)).map((one) => ({ ...one, stays }));
    await shop.evacuate();
    await shop.move();
    expect(await shop.findings()).toEqual([[shop.order, stays, true]]);
    expect(await shop.machine()).toMatchObject({ power: 'on' });
    expect(shop.cluster.journal().filter((line) => line.startsWith('off'))).toEqual([]);
    expect(await shop.claims()).toEqual([ONE, NONE]);
    shop.cluster.list = list;
    await shop.move();
    await hasMoved(shop);
  });

  it('moves with three others at most, and room is claimed for all', async () => {
    const shop = await openCluster({ servers: 6 });
    await shop.evacuate();
    await shop.look();
    expect(await shop.claims()).toEqual([
      [6, 6 * 2048],
      [6, 6 * 2048],
    ]);
    expect(await shop.tasks()).toBe(4);
    await shop.look();
    expect(await shop.tasks()).toBe(4);
    await shop.work();
    await shop.move();
    expect(await shop.claims()).toEqual([NONE, [6, 6 * 2048]]);
  });

  it('stays if its host is activated again, and the claim elsewhere ends', async () => {
    const shop = await openCluster({ servers: 6 });
    await shop.evacuate();
    await shop.look();
    await setHostState(shop.operator, 'c-1', 'ACTIVE');
    await shop.move();
    expect(await shop.claims()).toEqual([[6, 6 * 2048], NONE]);
    expect([shop.moves(), await shop.tasks()]).toEqual([0, 0]);
  });
});

describe('The operator', () => {
  it('cannot evacuate a host without another active one of its engine in its region', async () => {
    const shop = await openCluster();
    await shop.add('d');
    const refused = { code: 'validation_failed', message: expect.stringContaining('nowhere to go') };
    await expect(evacuateHost(shop.operator, 'd-1')).rejects.toMatchObject(refused);
    await setHostState(shop.operator, 'c-2', 'DRAINING');
    await expect(shop.evacuate()).rejects.toMatchObject(refused);
    await expect(evacuateHost(shop.operator, 'none')).rejects.toMatchObject({ code: 'not_found' });
  });

  it('sees why machines stay on an engine with one host only', async () => {
    const shop = await openCluster();
    shop.cluster.hosts.pop();
    await shop.evacuate();
    await shop.move();
    expect(await shop.findings()).toEqual([[shop.order, 'Its engine has no other host.', true]]);
    expect(await shop.claims()).toEqual([ONE, NONE]);
  });

  it('hears of moves that wait for the engine, and hold up others', async () => {
    const shop = await openCluster({ servers: 5 });
    shop.cluster.move = () => Promise.reject(new DriverError('unreachable', 'It is busy.'));
    await shop.evacuate();
    await shop.move();
    expect(await shop.findings()).toEqual([]);
    for (let n = 0; n < 6; n++) await shop.move();
    expect((await shop.findings()).map(([, why]) => why)).toEqual(
      Array(4).fill('Its move waits for the engine, and other moves may wait for it. Its task has the error.'),
    );
  });

  it('hears of a machine that is off only if no worker moves it', async () => {
    const shop = await openCluster();
    const told = async () =>
      (await shop.db.source.manager.findBy(Finding, { resolvedAt: IsNull() })).map(({ kind }) => kind).toSorted();
    shop.cluster.move = () => Promise.reject(new DriverError('unreachable', 'It is busy.'));
    await shop.evacuate();
    await shop.move();
    await shop.look();
    expect(await shop.machine()).toMatchObject({ power: 'off' });
    expect(await told()).toEqual([]);
    await shop.db.query(`update task set state = 'DEAD' where subject = $1`, [shop.order]);
    await shop.look();
    expect(await told()).toEqual(['MISPLACED', 'POWER']);
    const why = 'Its task is dead. Mend the cause, and then call `retryTask`.';
    expect(await shop.findings()).toEqual([[shop.order, why, true]]);
  });

  it('gets no orders on the host, also after its engine was seen', async () => {
    const shop = await openCluster();
    await shop.evacuate();
    await shop.move();
    expect(await shop.placeOf(await shop.running())).toEqual(['c', 'c-2']);
    await shop.look();
    expect((await shop.claims())[0]).toEqual(NONE);
    await setHostState(shop.operator, 'c-1', 'ACTIVE');
    expect((await shop.db.source.manager.findOneByOrFail(Host, { name: 'c-1' })).state).toBe('ACTIVE');
  });
});
