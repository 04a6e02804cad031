/** A wipe lasts until every disk of the host is verified. A silent wiper is started again, and new users of a controller go. */
import { beforeEach, describe, expect, it } from 'vitest';
import { BmcDriver } from '../../../provisioning/servers/drivers/bmc/bmc.ts';
import { Deployments } from '../../../provisioning/servers/netboot/deployments.ts';
import { newDatabase } from '../../setup/database.ts';
import { VAULT } from '../../setup/vault.ts';
import { DISKS, NEVER, newRack, openRoom, specOf } from './room.ts';

const db = await newDatabase();
const rack = await newRack('box-1', 1);
const room = await openRoom(db, [rack]);
const { driver } = room;
const machine = room.machine(rack);
let orders = 0;
let spec = specOf('SRV-WIPES00000');
const starts = () => rack.journal.filter((line) => line === 'on pxe').length;
const deployment = async () =>
  (await db.query<{ state: string; report: string | null }>('select state, report from deployment'))[0];
const passes = (seconds: number) =>
  db.query(`update deployment set updated_at = updated_at - $1 * interval '1 second'`, [seconds]);

beforeEach(async () => {
  await db.query('delete from deployment');
  rack.turnOff();
  spec = specOf(`SRV-WIPES${String(++orders).padStart(5, '0')}`);
  await driver.create(spec, NEVER);
  await machine.install(driver, spec);
  await driver.observe(spec, NEVER);
  rack.journal.length = 0;
});

describe('A wipe', () => {
  it('ends only when the wiper has verified every disk of the host', async () => {
    await driver.destroy(spec, NEVER);
    await machine.script();
    for (const text of ['', 'ok', DISKS[0]!, `x ${DISKS[1]}\n${DISKS[0]}`]) {
      expect(await machine.tell('wiped', text)).toBe(404);
      expect(await driver.destroy(spec, NEVER)).toMatchObject({ phase: 'incomplete' });
    }
    expect(await deployment()).toEqual({ state: 'WIPING', report: `The wiper did not verify: ${DISKS[1]}.` });
    expect(await machine.tell('failed', `There is no disk ${DISKS[1]}.\u0007`)).toBe(204);
    expect((await deployment())!.report).toBe(`There is no disk ${DISKS[1]}.`);
    expect(await machine.tell('wiped', DISKS.map((disk) => `${disk} 1000 bytes`).join('\n'))).toBe(204);
    expect(await driver.destroy(spec, NEVER)).toMatchObject({ phase: 'absent' });
  });

  it('covers the disks that the operator states later', async () => {
    await driver.destroy(spec, NEVER);
    await db.query(`update host set disks = disks || '{third}'`);
    await machine.script();
    expect(machine.setting('disks')).toBe([...DISKS, 'third'].join(' '));
    expect(await machine.tell('wiped', DISKS.join('\n'))).toBe(404);
    expect(await machine.wipe()).toBe(204);
    await db.query('update host set disks = $1', [DISKS]);
  });

  it('does not begin on a host whose disks are unknown', async () => {
    const unready = 'The disks of box-1 are unknown.';
    const other = new BmcDriver({
      inventory: async () => [{ ...rack.box, unready }],
      store: new Deployments(db, VAULT),
    });
    await expect(other.destroy(spec, NEVER)).rejects.toThrow(unready);
    await expect(other.rebuild(spec, 'chg_1', NEVER)).rejects.toThrow(unready);
    await expect(other.create(specOf('SRV-WIPESOTHER'), NEVER)).rejects.toMatchObject({ code: 'no_capacity' });
    expect((await deployment())!.state).toBe('BOOTED');
  });
});

describe('The system of a customer whose server is being deleted', () => {
  it('gets no job, and cannot report the wipe, until its power is cut', async () => {
    const store = new Deployments(db, VAULT);
    await store.wipe((await store.find(spec))!);
    expect(await deployment()).toMatchObject({ state: 'WIPING' });
    expect([rack.isOn(), await machine.script()]).toEqual([true, '#!ipxe\nexit\n']);
    await driver.destroy(spec, NEVER);
    expect(rack.journal).toEqual(['off', 'on pxe']);
    expect(await machine.script()).toMatch(/job\.cpio/);
    expect(await machine.wipe()).toBe(204);
  });
});

describe('A silent wiper', () => {
  it('is started again with growing pauses, and not while it makes progress', async () => {
    await driver.destroy(spec, NEVER);
    expect(starts()).toBe(1);
    for (const [restart, minutes] of [20, 40, 80, 160, 320, 360, 360].entries()) {
      await passes(minutes * 60 - 30);
      await driver.destroy(spec, NEVER);
      expect(starts()).toBe(restart + 1);
      await passes(60);
      await driver.destroy(spec, NEVER);
      await driver.destroy(spec, NEVER);
      expect(starts()).toBe(restart + 2);
    }
    const before = starts();
    await machine.script();
    for (let hour = 0; hour < 10; hour++) {
      await passes(3600);
      expect(await machine.tell('working', 'wipe')).toBe(204);
      await driver.destroy(spec, NEVER);
    }
    await passes(3600);
    expect(await machine.tell('failed', 'There is no disk.')).toBe(204);
    await driver.destroy(spec, NEVER);
    expect(starts()).toBe(before);
    await passes(6 * 3600);
    await driver.destroy(spec, NEVER);
    expect(starts()).toBe(before + 1);
    expect(await machine.wipe()).toBe(204);
    expect(await driver.destroy(spec, NEVER)).toMatchObject({ phase: 'absent' });
  });
});

describe('A user that root on the host has added to its controller', () => {
  it('loses the access before the host is free, and those that were there before keep it', async () => {
    rack.users.push({ name: 'backdoor', enabled: true }, { name: 'u2', enabled: false });
    await driver.destroy(spec, NEVER);
    expect(rack.users[1]!.enabled).toBe(true);
    await machine.wipe();
    expect(await driver.destroy(spec, NEVER)).toMatchObject({ phase: 'absent' });
    expect(rack.users).toEqual([
      { name: 'u', enabled: true },
      { name: 'backdoor', enabled: false },
      { name: 'u2', enabled: false },
    ]);
  });

  it('loses the access, too, if it was there with a lower privilege, and the user of the service never does', async () => {
    await room.driver.destroy(spec, NEVER);
    await machine.wipe();
    await driver.destroy(spec, NEVER);
    rack.users.splice(1, rack.users.length, { name: 'monitor', enabled: true, role: 'ReadOnly' });
    const next = specOf('SRV-WIPESROLES');
    await driver.create(next, NEVER);
    await machine.install(driver, next);
    for (const user of rack.users) user.role = user.name === 'monitor' ? 'Administrator' : 'Operator';
    await driver.destroy(next, NEVER);
    await machine.wipe();
    expect(await driver.destroy(next, NEVER)).toMatchObject({ phase: 'absent' });
    expect(rack.users.map(({ name, enabled }) => [name, enabled])).toEqual([
      ['u', true],
      ['monitor', false],
    ]);
  });

  it('loses the access at the next order, if the operator has declared the host wiped', async () => {
    const known = ['/redfish/v1/AccountService/Accounts/0:u:Administrator'];
    rack.users.splice(0, rack.users.length, { name: 'u', enabled: true }, { name: 'backdoor', enabled: true });
    await db.query('delete from deployment');
    await db.query(`update host set bmc_users = $1`, [known]);
    const other = new BmcDriver({
      inventory: async () => [{ ...rack.box, bmcUsers: known }],
      store: new Deployments(db, VAULT),
      ...{ powerSeconds: 2, pollSeconds: 0.02 },
    });
    await other.create(specOf('SRV-WIPESNEXT1'), NEVER);
    expect(rack.users.map(({ enabled }) => enabled)).toEqual([true, false]);
    expect(await db.query('select bmc_users from deployment')).toEqual([{ bmcUsers: known }]);
    expect(await db.query('select bmc_users from host')).toEqual([{ bmcUsers: null }]);
  });

  it('loses the access, and the user that the operator has given to the service meanwhile keeps it', async () => {
    rack.users.splice(0, rack.users.length, { name: 'u', enabled: true }, { name: 'backdoor', enabled: true });
    await db.query(`update deployment set bmc_users = '{/redfish/v1/AccountService/Accounts/9:earlier:Administrator}'`);
    rack.users.push({ name: 'u', enabled: true });
    await driver.destroy(spec, NEVER);
    await machine.wipe();
    await expect(driver.destroy(spec, NEVER)).rejects.toThrow('2 users named u');
    expect(rack.users.every(({ enabled }) => enabled)).toBe(true);
    rack.users.pop();
    expect(await driver.destroy(spec, NEVER)).toMatchObject({ phase: 'absent' });
    expect(rack.users.map(({ enabled }) => enabled)).toEqual([true, false]);
  });

  it('keeps the host taken while the controller does not list its users any more', async () => {
    await driver.destroy(spec, NEVER);
    await machine.wipe();
    rack.listsUsers = false;
    await expect(driver.destroy(spec, NEVER)).rejects.toThrow(/listed its users at the order/);
    expect((await deployment())!.state).toBe('WIPED');
    rack.listsUsers = true;
    expect(await driver.destroy(spec, NEVER)).toMatchObject({ phase: 'absent' });
  });
});
