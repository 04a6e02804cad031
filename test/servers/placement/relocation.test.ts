/** A machine moves to another host. Each step can be repeated, and its server can change meanwhile. */
import { describe, expect, it } from 'vitest';
import { DriverError } from '../../../provisioning/servers/drivers/driver.ts';
import { deleteServer } from '../../../resolvers/servers/delete.ts';
import { updateServer } from '../../../resolvers/servers/update.ts';
import { finish } from '../../setup/customer-shop.ts';
import { hasMoved, NEVER, NONE, ONE, openCluster } from './evacuation-world.ts';

describe('A move', () => {
  it.each([
    ['unreachable', 'power'],
    ['unreachable', 'move'],
    ['lost', 'power'],
    ['lost', 'move'],
  ] as const)('is repeated after an answer was %s: %s', async (fault, call) => {
    const shop = await openCluster();
    const fails = new Set([1, 2, 3, 4, 5]);
    let calls = 0;
    const real = shop.cluster[call].bind(shop.cluster) as (...given: unknown[]) => Promise<never>;
    shop.cluster[call] = async (...given: unknown[]) => {
      const isFault = fails.has(++calls);
      if (fault === 'lost' || !isFault) await real(...given);
      if (isFault) throw new DriverError('unreachable', 'The test drops the answer.');
      return shop.machine() as never;
    };
    await shop.evacuate();
    await shop.look();
    for (let attempt = 0; attempt < 14; attempt++) {
      await shop.work();
      await shop.db.query(`update task set run_at = now() where subject not like 'cron:%'`);
    }
    await hasMoved(shop);
  });

  it.each([1, 2, 3, 4, 5, 6])('goes on after a worker lost its lease at call %i', async (dying) => {
    const shop = await openCluster();
    let calls = 0;
    for (const call of ['observe', 'power', 'move'] as const) {
      const real = shop.cluster[call].bind(shop.cluster) as (...given: unknown[]) => Promise<never>;
      shop.cluster[call] = async (...given: unknown[]) => {
        const answer = await real(...given);
        // As another worker would, which found the lease of a dead one.
        if (++calls === dying)
          await shop.db.query(
            `update task set fence = fence + 1, leased_by = null, run_at = now() where subject = $1`,
            [shop.order],
          );
        return answer;
      };
    }
    await shop.evacuate();
    await shop.move();
    expect(calls).toBeGreaterThanOrEqual(dying);
    await hasMoved(shop);
  });

  it('has its books finished by the observer, if it ended and its worker did not', async () => {
    const shop = await openCluster();
    await shop.evacuate();
    await shop.look();
    const key = { order: shop.order, generation: 1 };
    await shop.cluster.power(key, 'off', 'test', NEVER);
    await shop.cluster.move(key, 'c-2', NEVER);
    await shop.look();
    expect(await shop.claims()).toEqual([NONE, ONE]);
    await shop.work();
    await hasMoved(shop);
  });

  it('leaves the machine on where it was if it fails, until the operator asks again', async () => {
    const shop = await openCluster();
    const { move } = shop.cluster;
    shop.cluster.move = async () => {
      throw new DriverError('no_capacity', 'The pool is full.');
    };
    await shop.evacuate();
    await shop.look();
    for (let attempt = 0; attempt < 5; attempt++) {
      await shop.work();
      await shop.db.query(`update task set run_at = now() where subject not like 'cron:%'`);
    }
    expect(await shop.machine()).toMatchObject({ power: 'on' });
    expect(await shop.claims()).toEqual([ONE, NONE]);
    await shop.move();
    expect(await shop.findings()).toEqual([[shop.order, 'A move failed, and `evacuateHost` tries it again.', true]]);
    expect([await shop.tasks(), (await shop.read(shop.order)).trouble]).toEqual([0, 'The pool is full.']);
    shop.cluster.move = move;
    await shop.evacuate();
    await shop.move();
    await hasMoved(shop);
  });

  it('ends with the machine on where it was, if the new host goes offline meanwhile', async () => {
    const shop = await openCluster();
    shop.cluster.move = async () => {
      throw new DriverError('unreachable', 'c-2 does not answer.');
    };
    await shop.evacuate();
    await shop.move();
    expect(await shop.machine()).toMatchObject({ power: 'off' });
    shop.cluster.hosts[1]!.state = 'offline';
    await shop.move();
    expect(await shop.machine()).toMatchObject({ power: 'on' });
    expect(await shop.claims()).toEqual([ONE, NONE]);
  });

  it('waits for an engine that is silent, also when the customer asks for something', async () => {
    const shop = await openCluster();
    const { observe } = shop.cluster;
    await shop.evacuate();
    await shop.look();
    shop.cluster.observe = async () => {
      throw new DriverError('unreachable', 'c does not answer.');
    };
    for (let attempt = 0; attempt < 5; attempt++) {
      await shop.work();
      await updateServer(shop.context, shop.order, { powerState: 'ON' });
    }
    await shop.db.query(`update task set deadline_at = now(), run_at = now() where subject = $1`, [shop.order]);
    await shop.work();
    shop.cluster.observe = observe;
    await shop.db.query(`update task set run_at = now() where subject not like 'cron:%'`);
    await shop.work();
    // The deadline of the customer ended this attempt, and the machine is on.
    expect(await shop.machine()).toMatchObject({ power: 'on' });
    expect([await shop.claims(), await shop.tasks()]).toEqual([[ONE, NONE], 0]);
  });
});

describe('A server that changes while its machine is to move', () => {
  it('is deleted, and both hosts are free', async () => {
    const shop = await openCluster();
    const { move } = shop.cluster;
    shop.cluster.move = async (...given) => {
      await deleteServer(shop.context, shop.order);
      return move.apply(shop.cluster, given);
    };
    await shop.evacuate();
    await shop.look();
    await finish(shop, shop.order, 'DELETED');
    expect(await shop.claims()).toEqual([NONE, NONE]);
    expect(await shop.cluster.list()).toEqual([]);
  });

  it('is rebooted first, and moves after that', async () => {
    const shop = await openCluster();
    await shop.evacuate();
    await shop.look();
    await updateServer(shop.context, shop.order, { action: 'REBOOT' });
    await finish(shop, shop.order, 'RUNNING');
    expect(shop.moves()).toBe(0);
    expect(await shop.claims()).toEqual([ONE, ONE]);
    await shop.move();
    expect(await shop.claims()).toEqual([NONE, ONE]);
    expect(await shop.machine()).toMatchObject({ power: 'on', host: 'c-2' });
  });

  it('is rebooted while its machine is copied, and the books follow', async () => {
    const shop = await openCluster();
    const { move } = shop.cluster;
    shop.cluster.move = async (...given) => {
      await updateServer(shop.context, shop.order, { action: 'REBOOT' });
      return move.apply(shop.cluster, given);
    };
    await shop.evacuate();
    await shop.look();
    await finish(shop, shop.order, 'RUNNING');
    expect(await shop.machine()).toMatchObject({ power: 'on', host: 'c-2' });
    await shop.move();
    expect(await shop.placeOf(shop.order)).toEqual(['c', 'c-2']);
    expect(await shop.claims()).toEqual([NONE, ONE]);
  });

  it('is resized first, and then claims the room of its new tier', async () => {
    const shop = await openCluster();
    await updateServer(shop.context, shop.order, { powerState: 'OFF' });
    await finish(shop, shop.order, 'STOPPED');
    await shop.evacuate();
    await shop.look();
    await updateServer(shop.context, shop.order, { serviceCode: 'vps-2' });
    await finish(shop, shop.order, 'STOPPED');
    expect(await shop.machine()).toMatchObject({ power: 'off' });
    await shop.look();
    await shop.move();
    const [before, after] = await shop.claims();
    expect([before, after![0]]).toEqual([NONE, 1]);
    expect(after![1]).toBeGreaterThan(2048);
    expect(await shop.machine()).toMatchObject({ power: 'off', host: 'c-2' });
  });
});
