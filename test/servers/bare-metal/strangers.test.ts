/** A stranger in the boot network gets no secret, because a controller brings it to its machine. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { JOB_BYTES_MAX } from '../../../provisioning/servers/netboot/job.ts';
import { newDatabase } from '../../setup/database.ts';
import { DISKS, NEVER, newRack, openRoom, specOf, writeSums } from './room.ts';

const db = await newDatabase();
const rack = await newRack('box-1', 1, { boot: 'MEDIUM' });
const room = await openRoom(db, [rack]);
const { driver } = room;
const machine = room.machine(rack);
const spec = specOf('SRV-STRANGER01', { rootPassword: 'hush-hush' });
const stateOf = async () => (await db.query<{ state: string }>('select state from deployment'))[0]?.state;
/** An image of sectors: some before the place of a job, the place, and some after it. */
const ISO = Buffer.concat([
  Buffer.alloc(3 * 2048, 'before'),
  Buffer.from('FREEHOLD-JOB\n'.repeat(JOB_BYTES_MAX / 13 + 1)).subarray(0, JOB_BYTES_MAX),
  Buffer.alloc(2 * 2048, 'after'),
]);

beforeEach(async () => {
  await db.query('delete from deployment');
  rack.turnOff();
  rack.journal.length = 0;
  rack.images.length = 0;
  writeFileSync(join(room.folder, 'boot.iso'), ISO);
  writeSums(room.folder);
});

describe('A stranger who knows the MAC address of a machine', () => {
  it('gets neither its password during the installation, nor a way to skip its wipe', async () => {
    await driver.create(spec, NEVER);
    expect(await machine.script()).toBe('#!ipxe\nexit\n');
    await machine.load(rack.images.at(-1)!.replace('/boot.iso', ''));
    expect(machine.file('vendor-data')).toContain('hush-hush');
    expect(await machine.script()).toBe('#!ipxe\nexit\n');
    await driver.destroy(spec, NEVER);
    expect(await machine.script()).toBe('#!ipxe\nexit\n');
    expect(await machine.tell('wiped', DISKS.join('\n'))).toBe(404);
    expect(await stateOf()).toBe('WIPING');
  });

  it('cannot repeat a report that crossed the network with other news, another text, or in another run', async () => {
    await driver.create(spec, NEVER);
    await machine.load(rack.images.at(-1)!.replace('/boot.iso', ''));
    const sent = `${room.url}/d/${(await db.query<{ id: string }>('select id from deployment'))[0]!.id}`;
    const proofs = [machine.setting('key'), '', '0'.repeat(64)];
    for (const proof of proofs)
      expect((await fetch(`${sent}/${proof}/installed`, { method: 'POST', body: 'x' })).status).toBe(404);
    expect(await machine.tell('working', 'install')).toBe(204);
    await driver.destroy(spec, NEVER);
    expect(await machine.tell('working', 'install')).toBe(404);
    expect(await machine.tell('wiped', DISKS.join('\n'))).toBe(404);
  });
});

describe('A machine whose controller has virtual media', () => {
  it('boots an image at an unguessable address, and the controller ejects it before the system boots', async () => {
    await driver.create(spec, NEVER);
    expect(rack.journal).toEqual(['on cd']);
    const image = rack.images.at(-1)!;
    expect(image).toMatch(/\/d\/dep_\w+\/[0-9a-f]{64}\/boot\.iso$/);
    await machine.load(image.replace('/boot.iso', ''));
    expect(await stateOf()).toBe('INSTALLING');
    expect(await machine.tell('installed')).toBe(204);
    await driver.observe(spec, NEVER);
    expect(rack.images.at(-1)).toBeUndefined();
    expect(rack.journal.at(-1)).toBe('on disk');
    expect((await fetch(image)).status).toBe(404);
    await driver.destroy(spec, NEVER);
    await machine.load(rack.images.at(-1)!.replace('/boot.iso', ''));
    const verified = DISKS.map((disk) => `${disk} 1000 bytes, 258 samples`).join('\n');
    expect(await machine.tell('wiped', verified)).toBe(204);
    expect(await driver.destroy(spec, NEVER)).toMatchObject({ phase: 'absent' });
  });

  it('gets the whole image with its job, or any part of it', async () => {
    await driver.create(spec, NEVER);
    const image = rack.images.at(-1)!;
    const job = Buffer.from(await (await fetch(image.replace('boot.iso', 'job.cpio'))).arrayBuffer());
    const whole = Buffer.concat([
      ISO.subarray(0, 3 * 2048),
      job,
      Buffer.alloc(JOB_BYTES_MAX - job.length),
      ISO.subarray(3 * 2048 + JOB_BYTES_MAX),
    ]);
    expect(Buffer.from(await (await fetch(image)).arrayBuffer()).equals(whole)).toBe(true);
    const head = await fetch(image, { method: 'HEAD' });
    expect([head.headers.get('content-length'), head.headers.get('accept-ranges')]).toEqual([
      String(whole.length),
      'bytes',
    ]);
    const end = whole.length - 1;
    for (const [from, to] of [
      [0, 0],
      [0, end],
      [6143, 6144],
      [6144, 6200],
      [100, 530_433],
      [530_431, end],
      [530_432, end],
    ]) {
      const part = await fetch(image, { headers: { range: `bytes=${from}-${to}` } });
      expect([part.status, part.headers.get('content-range')]).toEqual([206, `bytes ${from}-${to}/${whole.length}`]);
      expect(Buffer.from(await part.arrayBuffer()).equals(whole.subarray(from, to! + 1))).toBe(true);
    }
    expect((await fetch(image, { headers: { range: `bytes=${end + 1}-` } })).status).toBe(416);
  });

  it('gets no order if the controller has no virtual media, with the reason', async () => {
    const bare = await newRack('box-2', 2);
    const other = { ...bare, box: { ...bare.box, boot: 'MEDIUM' as const } };
    const elsewhere = await openRoom(db, [other]);
    await expect(elsewhere.driver.create(spec, NEVER)).rejects.toThrow(
      /box-2 has no virtual media.*bootNetworkIsolated/,
    );
    expect(await elsewhere.driver.capacity(NEVER)).toMatchObject([{ state: 'offline' }]);
    expect(await db.query('select from deployment')).toEqual([]);
  });
});

describe('A file to boot from', () => {
  it('is kept back if it differs from its checksum', async () => {
    await driver.create(spec, NEVER);
    const image = rack.images.at(-1)!;
    writeFileSync(join(room.folder, 'boot.iso'), Buffer.concat([ISO, Buffer.from('more')]));
    expect((await fetch(image)).status).toBe(500);
    expect(String(room.faults.pop())).toMatch(/boot\.iso differs from its line in SHA256SUMS/);
    rmSync(join(room.folder, 'SHA256SUMS'));
    expect((await fetch(image.replace('boot.iso', 'job.cpio'))).status).toBe(500);
    expect(String(room.faults.pop())).toMatch(/image of debian-13 is missing/);
  });

  it('is checked for machines in an isolated network, too', async () => {
    await db.query(`update host set boot_network_isolated = true where name = 'box-1'`);
    await driver.create(spec, NEVER);
    const kernel = readFileSync(join(room.folder, 'vmlinuz'));
    writeFileSync(join(room.folder, 'vmlinuz'), 'another kernel');
    expect(await machine.script()).toMatch(/sleep 60\nreboot/);
    expect(String(room.faults.pop())).toMatch(/vmlinuz differs/);
    writeFileSync(join(room.folder, 'vmlinuz'), kernel);
    expect(await machine.script()).toMatch(/job\.cpio/);
    await db.query(`update host set boot_network_isolated = false where name = 'box-1'`);
  });

  it('is found only if SHA256SUMS names it', async () => {
    const statusOf = async (name: string) => (await fetch(`${room.url}/files/${name}`)).status;
    writeFileSync(join(room.folder, 'operator-notes'), 'secret');
    expect(await statusOf('operator-notes')).toBe(404);
    expect(await statusOf('vmlinuz')).toBe(200);
    rmSync(join(room.folder, 'operator-notes'));
  });

  it('keeps the machine waiting while it is missing, since the machine has got no installer', async () => {
    await driver.create(spec, NEVER);
    const image = rack.images.at(-1)!;
    const sums = readFileSync(join(room.folder, 'SHA256SUMS'));
    rmSync(join(room.folder, 'SHA256SUMS'));
    for (const path of [image, image.replace('boot.iso', 'job.cpio')]) expect((await fetch(path)).status).toBe(500);
    room.faults.length = 0;
    expect(await stateOf()).toBe('WAITING');
    writeFileSync(join(room.folder, 'SHA256SUMS'), sums);
    const both = await Promise.all([fetch(image), fetch(image)]);
    expect(both.map(({ status }) => status)).toEqual([200, 200]);
    expect(await stateOf()).toBe('INSTALLING');
  });
});
