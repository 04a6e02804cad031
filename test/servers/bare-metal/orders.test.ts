/** Orders of dedicated servers, although the worker, the controller or the machine dies on the way. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { noteRestore } from '../../../provisioning/archives/restored.ts';
import { deleteServer } from '../../../resolvers/servers/delete.ts';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { updateServer } from '../../../resolvers/servers/update.ts';
import { openCustomerShop, startWorker, traces } from '../../setup/customer-shop.ts';
import { eventually } from '../../setup/freehold.ts';
import { bothKinds } from '../../setup/shop.ts';
import type { OnEnd } from '../../setup/spawn.ts';
import { deathOf, runScript } from '../../setup/spawn.ts';
import { newRack, openRoom, type Rack } from './room.ts';

const FUNDS = 500_000_000n;
/** The number of acts of the driver for an order and its deletion, and one more. */
const MOMENTS = Array.from({ length: 19 }, (_, i) => i + 1);

async function openHall(onEnd: OnEnd, others: Rack[] = []) {
  const shop = await openCustomerShop(onEnd, { fundsMicros: FUNDS });
  const { db } = shop;
  const rack = await newRack('box-1', 1);
  const room = await openRoom(db, [rack, ...others], onEnd);
  const provisioning = shop.newProvisioning({ drivers: bothKinds(room.driver), proofSeconds: undefined });
  const context = { ...shop.context, provisioning };
  const order = { serviceCode: 'ded-1', region: 'ams', os: 'debian-13', labels: {}, autoRenew: true };
  const number = (await orderServer(context, order)).server.orderNumber;
  const becomes = (status: string) =>
    eventually(async () => {
      const [found] = await db.query<{ status: string; tasks: number }>(
        'select status, (select count(*)::int from task) as tasks from server where order_number = $1',
        [number],
      );
      return found!.status === status && found!.tasks === 0;
    }, 240);
  return { ...shop, rack, room, provisioning, context, number, becomes };
}
type Hall = Awaited<ReturnType<typeof openHall>>;

/** Plays the machine until the test ends. */
function play({ rack, room }: Hall, onEnd: OnEnd): void {
  const machine = room.machine(rack);
  let system = '';
  const turn = async () => {
    const started = rack.journal.findLast((line) => line.startsWith('on'));
    if (!rack.isOn()) return;
    if (started === 'on disk') return void (system && (await machine.boot(system)));
    if (!(await machine.script()).includes('job.cpio')) return;
    if (machine.setting('do') === 'wipe') return void (await machine.wipe());
    system = machine.bootedAt();
    await machine.tell('installed');
  };
  const timer = setInterval(() => turn().catch(() => {}), 150);
  onEnd(() => clearInterval(timer));
}

const startMortalWorker = ({ url, rack }: Hall, onEnd: OnEnd, killAt: number) =>
  runScript(
    join(import.meta.dirname, 'killed-worker.ts'),
    { DATABASE_URL: url, BOX: JSON.stringify(rack.box), KILL_AT: String(killAt) },
    onEnd,
  );

const BOOTED = `select from deployment where state = 'BOOTED' and cycle is null`;
const starts = ({ journal }: Rack) => journal.filter((line) => line.startsWith('on'));

describe('kill -9 of the worker of a dedicated server', () => {
  it.concurrent.for(MOMENTS)(
    'at moment %i: it is installed, sold and wiped once, and its host is free',
    async (moment, { onTestFinished: onEnd }) => {
      const hall = await openHall(onEnd);
      play(hall, onEnd);
      const first = startMortalWorker(hall, onEnd, moment);
      const killed = deathOf(first, onEnd, () => startWorker(hall, onEnd));
      await hall.becomes('RUNNING');
      expect(starts(hall.rack)).toEqual(['on pxe', 'on disk']);
      await deleteServer(hall.context, hall.number);
      await hall.becomes('DELETED');
      expect(starts(hall.rack)).toEqual(['on pxe', 'on disk', 'on pxe']);
      expect(hall.rack.isOn()).toBe(false);
      expect(await hall.db.query('select from deployment')).toEqual([]);
      const { transfers, addresses, places } = await traces(hall, hall.number);
      expect({ transfers, addresses, places }).toEqual({
        transfers: ['hold', 'capture', 'refund', 'refund'],
        addresses: 0,
        places: 0,
      });
      if (moment < MOMENTS.length) await killed;
      else expect(first.exitCode ?? first.signalCode).toBeNull(); // there is no such moment: all are tried
    },
  );
});

/** For each change of a running server: the request, the next start of its host, and its acts plus one. */
const CHANGES = [
  ['rebuild', { action: 'REBUILD' }, ['on pxe', 'on disk'], 12],
  ['reboot', { action: 'REBOOT' }, ['on disk'], 7],
] as const;

describe.each(CHANGES)('kill -9 of the worker during a %s of a dedicated server', (_, wanted, turnedOn, moments) => {
  it.concurrent.for(Array.from({ length: moments }, (_, i) => i + 1))(
    'at moment %i: it is done once',
    async (moment, { onTestFinished: onEnd }) => {
      const hall = await openHall(onEnd);
      play(hall, onEnd);
      const before = startWorker(hall, onEnd);
      await hall.becomes('RUNNING');
      await before.stop();
      const made = starts(hall.rack).length;
      await updateServer(hall.context, hall.number, wanted);
      const first = startMortalWorker(hall, onEnd, moment);
      const killed = deathOf(first, onEnd, () => startWorker(hall, onEnd));
      await hall.becomes('RUNNING');
      expect(starts(hall.rack).slice(made)).toEqual(turnedOn);
      expect(hall.rack.isOn()).toBe(true);
      await eventually(async () => (await hall.db.query(BOOTED)).length);
      if (moment < moments) await killed;
      else expect(first.exitCode ?? first.signalCode).toBeNull(); // there is no such moment: all are tried
    },
  );
});

describe('An order of a dedicated server', () => {
  it('waits for an absent controller, during its installation and its deletion', async ({ onTestFinished: onEnd }) => {
    const hall = await openHall(onEnd);
    const { rack, db, number } = hall;
    startWorker(hall, onEnd);
    await eventually(async () => rack.isOn());
    await rack.disconnect();
    play(hall, onEnd);
    await eventually(async () => (await db.query(`select from task where error like '%is unreachable%'`)).length);
    expect((await traces(hall, number)).transfers).toEqual(['hold']);
    await rack.connect();
    await hall.becomes('RUNNING');
    await rack.disconnect();
    await deleteServer(hall.context, number);
    await eventually(async () => (await db.query(`select from task where error like '%is unreachable%'`)).length);
    expect((await traces(hall, number)).addresses).toBe(2);
    await rack.connect();
    await hall.becomes('DELETED');
    expect(await db.query('select from deployment')).toEqual([]);
  });

  it('is refunded in full if its machine never boots, and leaves nothing behind', async ({ onTestFinished: onEnd }) => {
    const hall = await openHall(onEnd);
    const { rack, db, number } = hall;
    startWorker(hall, onEnd);
    await eventually(async () => rack.isOn());
    await db.query(`update task set deadline_at = now() where subject = $1`, [number]);
    await hall.becomes('FAILED');
    const { transfers, addresses, places, balance } = await traces(hall, number);
    expect({ transfers, addresses, places }).toEqual({ transfers: ['hold', 'release'], addresses: 0, places: 0 });
    expect(balance).toEqual({ available: FUNDS, held: 0n });
    expect(rack.isOn()).toBe(false);
    expect(await db.query('select from deployment')).toEqual([]);
  });

  it('is refunded at once if its machine hangs during the installation; its host is free after the wipe', async ({
    onTestFinished: onEnd,
  }) => {
    const hall = await openHall(onEnd);
    const { rack, room, db, number } = hall;
    startWorker(hall, onEnd);
    await eventually(async () => rack.isOn());
    await room.machine(rack).script();
    await db.query(`update task set deadline_at = now() where subject = $1`, [number]);
    await eventually(async () => (await traces(hall, number)).transfers.includes('release'));
    await eventually(async () => (await db.query(`select from deployment where state = 'WIPING'`)).length);
    expect((await traces(hall, number)).addresses).toBe(2);
    play(hall, onEnd);
    await hall.becomes('FAILED');
    expect((await traces(hall, number)).addresses).toBe(0);
    expect(await db.query('select from deployment')).toEqual([]);
  });

  it('gets another machine on another host, and its first host is free after the wipe, while the second machine lives', async ({
    onTestFinished: onEnd,
  }) => {
    const other = await newRack('box-2', 2);
    const hall = await openHall(onEnd, [other]);
    const { room, db, number } = hall;
    const racks = [hall.rack, other];
    startWorker(hall, onEnd);
    await eventually(async () => racks.some(({ isOn }) => isOn()));
    const [rack, next] = (other.isOn() ? racks.reverse() : racks) as [Rack, Rack];
    await room.machine(rack).script();
    const late = { proofBy: '2020-01-01T00:00:00Z' };
    const task = 'update task set data = data || $2::jsonb where subject = $1 and leased_by is null returning id';
    await eventually(async () => (await db.query(task, [number, late])).length);
    const boxes = async () =>
      (await db.query<{ box: string; generation: number }>('select box, generation from deployment order by 2')).map(
        ({ box, generation }) => [box, generation],
      );
    const both = [
      [rack.box.name, 1],
      [next.box.name, 2],
    ];
    await eventually(async () => JSON.stringify(await boxes()) === JSON.stringify(both));
    expect(rack.journal).toEqual(['on pxe', 'off', 'on pxe']);
    expect(await room.machine(rack).wipe()).toBe(204);
    await hall.provisioning.schedule();
    await eventually(async () => {
      await db.query(`update task set run_at = now() where subject = 'cron:observer' and leased_by is null`);
      return (await boxes()).length === 1;
    });
    expect([await boxes(), rack.isOn()]).toEqual([both.slice(1), false]);
  });
});

describe('A dedicated server whose new system never reports', () => {
  it('is rebuilt when it boots from its disk, and then goes off and on', async ({ onTestFinished: onEnd }) => {
    const hall = await openHall(onEnd);
    const { rack, room, context, number } = hall;
    const ends: (() => unknown)[] = [];
    play(hall, (end) => void ends.push(end));
    startWorker(hall, onEnd);
    await hall.becomes('RUNNING');
    for (const end of ends) end();
    await updateServer(context, number, { action: 'REBUILD' });
    await eventually(async () => rack.journal.at(-1) === 'on pxe');
    const machine = room.machine(rack);
    await machine.script();
    expect(await machine.tell('installed')).toBe(204);
    await hall.becomes('RUNNING');
    expect(rack.journal.at(-1)).toBe('on disk');
    await updateServer(context, number, { powerState: 'OFF' });
    await hall.becomes('STOPPED');
    expect(rack.isOn()).toBe(false);
    await updateServer(context, number, { powerState: 'ON' });
    await hall.becomes('RUNNING');
    expect(rack.isOn()).toBe(true);
  });
});

it('After a restore, no host gets an installer or a wiper, and no worker touches its power', async ({
  onTestFinished: onEnd,
}) => {
  const hall = await openHall(onEnd);
  const worker = hall.provisioning.newWorker();
  worker.start();
  onEnd(() => worker.stop());
  const machine = hall.room.machine(hall.rack);
  await eventually(async () => (await machine.script()).includes('job.cpio'));
  await hall.provisioning.prepare();
  expect((await noteRestore(hall.db, SYSTEM)).retired).toEqual(['box-1']);
  const before = [...hall.rack.journal];
  expect(await machine.script()).not.toContain('job.cpio');
  await deleteServer(hall.context, hall.number);
  await sleep(500);
  expect(hall.rack.journal).toEqual(before);
});
