import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Database } from '../../../entities/database/database.ts';
import { newDatabase } from '../../setup/database.ts';
import { DISKS, NEVER, newRack, openRoom, type Rack, specOf } from './room.ts';

let db: Database;
let racks: Rack[];
let room: Awaited<ReturnType<typeof openRoom>>;
let orders = 0;
const nextOrder = () => `SRV-BMC${String(++orders).padStart(7, '0')}`;
const stateOf = async (order: string) =>
  (
    await db.query<{ state: string; seed: Buffer | null }>(
      'select state, seed from deployment where order_number = $1',
      [order],
    )
  )[0];

beforeAll(async () => {
  db = await newDatabase();
  racks = [await newRack('box-1', 1), await newRack('box-2', 2)];
  room = await openRoom(db, racks);
});
beforeEach(async () => {
  await db.query('delete from deployment');
  for (const { turnOff } of racks) turnOff();
  for (const { journal } of racks) journal.length = 0;
});

describe('A dedicated server', () => {
  it('is installed from the network, gives proof by its own system, restarts once for a change, and is wiped', async () => {
    const { driver } = room;
    const [rack] = racks as [Rack];
    const spec = specOf(nextOrder());
    const machine = room.machine(rack);
    expect(await driver.create(spec, NEVER)).toMatchObject({ phase: 'present', proven: false, host: 'box-1' });
    expect(await machine.script()).toMatch(/kernel .*\/files\/vmlinuz .*\n.*\/initrd.img\n.*\/job.cpio\nboot\n/);
    expect(machine.file('user-data')).toBe(spec.userData);
    expect(machine.file('meta-data')).toContain(`local-hostname: "metal"`);
    expect([machine.setting('do'), machine.setting('disks')]).toEqual(['install', DISKS.join(' ')]);
    expect(machine.setting('image')).toMatch(/\/debian-13\.img\.gz$/);
    expect(machine.setting('sha256')).toMatch(/^[0-9a-f]{64}$/);
    const system = machine.bootedAt();
    expect(await machine.tell('installed')).toBe(204);
    expect(await driver.observe(spec, NEVER)).toMatchObject({ proven: false, detail: 'INSTALLED' });
    expect(rack.journal).toEqual(['on pxe', 'off', 'on disk']);
    expect(await machine.script()).toBe('#!ipxe\nexit\n');
    expect(await machine.boot(system)).toBe(204);
    expect(await driver.observe(spec, NEVER)).toMatchObject({ phase: 'present', proven: true, power: 'on' });
    expect((await stateOf(spec.order))!.seed).toBeNull();

    rack.journal.length = 0;
    await Promise.all([1, 2].map(() => driver.power(spec, 'restart', 'chg_1', NEVER)));
    await room.newDriver().power(spec, 'restart', 'chg_1', NEVER);
    expect(rack.journal).toEqual(['soft', 'on disk']);

    expect(await driver.destroy(spec, NEVER)).toMatchObject({ phase: 'incomplete' });
    await machine.script();
    expect([machine.setting('do'), machine.file('user-data')]).toEqual(['wipe', '']);
    expect(await driver.destroy(spec, NEVER)).toMatchObject({ phase: 'incomplete' });
    expect(await machine.wipe()).toBe(204);
    expect(await driver.destroy(spec, NEVER)).toMatchObject({ phase: 'absent' });
    expect(rack.isOn()).toBe(false);
    expect(await driver.observe(spec, NEVER)).toMatchObject({ phase: 'absent' });
    expect(rack.journal).toEqual(['soft', 'on disk', 'off', 'on pxe', 'off']);
  });

  it('is rebuilt once for each change, and the tokens of the earlier system become void', async () => {
    const { driver } = room;
    const machine = room.machine(racks[0]!);
    const spec = specOf(nextOrder());
    await driver.create(spec, NEVER);
    await machine.install(driver, spec);
    const before = machine.archive();
    racks[0]!.journal.length = 0;
    const other = specOf(spec.order, { userData: '#cloud-config\n{}\n', hostname: 'other' });
    await driver.rebuild(other, 'chg_2', NEVER);
    await room.newDriver().rebuild(other, 'chg_2', NEVER);
    expect(racks[0]!.journal).toEqual(['off', 'on pxe']);
    expect(await machine.tell('installed')).toBe(404);
    expect((await fetch(`${before}/job.cpio`)).status).toBe(404);
    await machine.script();
    expect(machine.archive()).not.toBe(before);
    expect(machine.file('meta-data')).toContain('"other"');
    expect(await driver.observe(spec, NEVER)).toMatchObject({ proven: false });
    await machine.install(driver, spec);
    await driver.rebuild(other, 'chg_2', NEVER);
    expect(await driver.observe(spec, NEVER)).toMatchObject({ proven: true });
  });

  it('goes off and on as told after its installation, although its system never reports', async () => {
    const { driver } = room;
    const [rack] = racks as [Rack];
    const spec = specOf(nextOrder());
    await driver.create(spec, NEVER);
    const machine = room.machine(rack);
    await machine.script();
    await machine.tell('installed');
    expect((await stateOf(spec.order))!.seed).toBeNull();
    expect(await driver.observe(spec, NEVER)).toMatchObject({ power: 'on', busy: false, proven: false });
    expect(await driver.power(spec, 'off', 'chg_1', NEVER)).toMatchObject({ power: 'off', busy: false });
    expect(await driver.observe(spec, NEVER)).toMatchObject({ power: 'off', busy: false, detail: 'INSTALLED' });
    expect(await driver.power(spec, 'on', 'chg_2', NEVER)).toMatchObject({ power: 'on', busy: false });
    expect(rack.journal).toEqual(['on pxe', 'off', 'on disk', 'soft', 'on disk']);
  });

  it('is made once for repeated requests, and conflicts with another specification', async () => {
    const spec = specOf(nextOrder());
    const all = [1, 2, 3].map(() => room.driver.create(spec, NEVER));
    expect(new Set((await Promise.all(all)).map(({ host }) => host)).size).toBe(1);
    expect(racks[0]!.journal).toEqual(['on pxe']);
    // The task excludes a second process. If the first one is alive after all, its attempt may fail, and repeats.
    await Promise.allSettled([1, 2].map(() => room.newDriver().create(spec, NEVER)));
    expect(await room.driver.create(spec, NEVER)).toMatchObject({ host: 'box-1', power: 'on' });
    expect(await db.query('select from deployment')).toHaveLength(1);
    await expect(room.driver.create({ ...spec, image: 'debian-12' }, NEVER)).rejects.toMatchObject({
      code: 'conflict',
    });
    await expect(room.driver.resize(spec)).rejects.toMatchObject({ code: 'rejected' });
  });

  it('has its own host, and fails for lack of capacity without a free one', async () => {
    const made = await Promise.all(
      [1, 2].map(() =>
        room
          .newDriver()
          .create(specOf(nextOrder()), NEVER)
          .catch((e) => e),
      ),
    );
    const last = await room.driver.create(specOf(nextOrder()), NEVER).catch((error) => error);
    const boxes = (await db.query<{ box: string }>('select box from deployment')).map(({ box }) => box);
    expect(new Set(boxes).size).toBe(boxes.length);
    expect([...made, last].filter(({ code }) => code === 'no_capacity').length).toBeGreaterThan(0);
    const wanted = specOf(nextOrder(), { serviceCode: 'ded-2' });
    await expect(room.driver.create(wanted, NEVER)).rejects.toMatchObject({ code: 'no_capacity' });
    await expect(room.driver.create(specOf(nextOrder(), { host: boxes[0]! }), NEVER)).rejects.toMatchObject({
      code: 'no_capacity',
    });
  });

  it('frees its host at once if the host never got an installer, but not before it is off', async () => {
    const spec = specOf(nextOrder());
    await room.driver.create(spec, NEVER);
    expect(racks[0]!.isOn()).toBe(true);
    expect(await room.driver.destroy(spec, NEVER)).toMatchObject({ phase: 'absent' });
    expect(racks[0]!.isOn()).toBe(false);
    expect(await db.query('select from deployment')).toEqual([]);
  });

  it('is unreachable, and never absent, while its controller is away; a new order gets another host', async () => {
    const { driver } = room;
    const [first, second] = racks as [Rack, Rack];
    const spec = specOf(nextOrder());
    await driver.create(spec, NEVER);
    await room.machine(first).install(driver, spec);
    await first.disconnect();
    for (const call of [
      driver.observe(spec, NEVER),
      driver.destroy(spec, NEVER),
      driver.destroy(spec, NEVER),
      driver.power(spec, 'reset', 'chg_9', NEVER),
    ])
      await expect(call).rejects.toMatchObject({ code: 'unreachable' });
    expect(await driver.list(NEVER)).toMatchObject([{ order: spec.order, phase: 'unknown' }]);
    expect((await driver.capacity(NEVER)).map(({ state }) => state)).toEqual(['offline', 'online']);
    expect(await driver.reachable('ams', NEVER)).toBe(true);
    expect(await driver.create(specOf(nextOrder()), NEVER)).toMatchObject({ host: 'box-2' });
    await second.disconnect();
    expect(await driver.reachable('ams', NEVER)).toBe(false);
    await Promise.all([first.connect(), second.connect()]);
    expect(await driver.destroy(spec, NEVER)).toMatchObject({ phase: 'incomplete' });
    await room.machine(first).wipe();
    expect(await driver.destroy(spec, NEVER)).toMatchObject({ phase: 'absent' });
  });

  it('continues after a process died during a power cycle, and after its host went off by itself', async () => {
    const spec = specOf(nextOrder());
    const [rack] = racks as [Rack];
    await room.driver.create(spec, NEVER);
    await room.machine(rack).install(room.driver, spec);
    rack.journal.length = 0;
    // The state after a process was killed between a command to the controller and its write.
    const left = (cycle: string) => db.query('update deployment set cycle = $1, change = $2', [cycle, 'chg_5']);
    await left('OFF');
    await room.newDriver().power(spec, 'reset', 'chg_5', NEVER);
    expect(rack.journal).toEqual(['off', 'on disk']);
    await left('ON');
    await room.newDriver().power(spec, 'reset', 'chg_5', NEVER);
    expect(rack.journal).toEqual(['off', 'on disk']);
    await room.driver.power(spec, 'off', 'chg_6', NEVER);
    expect(await room.driver.observe(spec, NEVER)).toMatchObject({ power: 'off', proven: false });
    expect(await room.driver.power(spec, 'on', 'chg_7', NEVER)).toMatchObject({ power: 'on', proven: true });
  });
});

describe('The listener for machines', () => {
  it('gives nothing without a token of the deployment, the run and the stage', async () => {
    const spec = specOf(nextOrder());
    const machine = room.machine(racks[0]!);
    await room.driver.create(spec, NEVER);
    await machine.script();
    const base = machine.archive();
    const forged = base.replace(/[^/]+$/, Buffer.alloc(32).toString('hex'));
    for (const at of [forged, `${base}0`, base.slice(0, -1), base.replace(/dep_\w+/, 'dep_1'), `${base}/..`]) {
      expect((await fetch(`${at}/job.cpio`)).status).toBe(404);
      expect((await fetch(`${at}/boot.iso`)).status).toBe(404);
      expect((await fetch(`${at}/installed`, { method: 'POST' })).status).toBe(404);
    }
    for (const news of ['booted', 'wiped', 'toString', '']) expect(await machine.tell(news)).toBe(404);
    expect((await stateOf(spec.order))!.state).toBe('INSTALLING');
    const system = machine.bootedAt();
    expect(await machine.boot(system)).toBe(404);
    expect((await fetch(`${system}/job.cpio`)).status).toBe(404);
    expect(await machine.tell('installed')).toBe(204);
    expect(await machine.tell('installed')).toBe(204);
    expect((await fetch(`${base}/job.cpio`)).status).toBe(404);
    expect(await machine.boot(system)).toBe(204);
    expect(await machine.tell('installed')).toBe(404);
    expect(room.faults).toEqual([]);
  });

  it('serves files only by their names, and answers 404 to unknown paths', async () => {
    expect(await (await fetch(`${room.url}/files/vmlinuz`)).text()).toBe('it is vmlinuz');
    for (const path of [
      ...['/', '/files', '/files/', '/files/deeper', '/files/none', '/files/..%2f..%2fetc%2fpasswd', '/files/.hidden'],
      ...['/boot/nonsense', '/boot/52-54-00-00-01-01/more', '/d', '/d/a/b', '/d/a/b/user-data', '/d/%00/b/user-data'],
    ])
      expect([path, (await fetch(room.url + path)).status]).toEqual([path, 404]);
    expect((await fetch(`${room.url}/boot`, { method: 'PUT' })).status).toBe(405);
    expect((await fetch(`${room.url}/boot`, { method: 'POST', body: 'x' })).status).toBe(404);
    expect((await fetch(`${room.url}/boot`, { method: 'POST', body: 'x'.repeat(100_000) })).status).toBe(413);
    expect((await fetch(`${room.url}/boot/%zz`)).status).toBe(404);
    expect(await (await fetch(`${room.url}/boot/52-54-00-00-09-09`)).text()).toBe('#!ipxe\nexit\n');
    expect(await (await fetch(`${room.url}/boot`)).text()).toMatch(/^#!ipxe\nchain --replace http:\/\/127/);
  });

  it('names a missing image, and lets the machine ask again', async () => {
    await room.driver.create(specOf(nextOrder(), { image: 'alpine-3' }), NEVER);
    expect(await room.machine(racks[0]!).script()).toMatch(/sleep 60\nreboot/);
    expect(String(room.faults.pop())).toMatch(/image of alpine-3 is missing.*alpine-3\.img.*SHA256SUMS/);
  });

  it('keeps the text of a customer within its line', async () => {
    const spec = specOf(nextOrder(), { rootPassword: 'a"}\nruncmd: [x]\n', hostname: 'h' });
    await room.driver.create(spec, NEVER);
    const machine = room.machine(racks[0]!);
    await machine.script();
    const text = machine.file('vendor-data');
    expect(text).not.toMatch(/^runcmd/m);
    expect(text).toContain(String.raw`password: "a\"}\nruncmd: [x]\n"`);
    expect((await stateOf(spec.order))!.seed!.toString('latin1')).not.toContain('runcmd');
  });
});
