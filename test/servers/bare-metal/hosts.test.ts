/** Dedicated hosts: the operator adds them, and the bmc driver uses them at once. */
import { afterEach, describe, expect, it } from 'vitest';
import { CONTROLLER } from '../../setup/certificates.ts';
import { BMC, BOX, fieldOf, openHostWorld } from './host-world.ts';
import { DISKS } from './room.ts';

const { act, add, audited, db, inventory, operator, override, update } = await openHostWorld();

afterEach(async () => {
  await db.query(`delete from host where region_code = 'zrh'`);
});

describe('A bare-metal host', () => {
  it('reaches the driver as the operator has added it, and never shows its password again', async () => {
    const added = await add();
    expect(added.data.addHost).toEqual({
      ...{ name: 'b1', state: 'ACTIVE', engine: 'bmc', mac: '52:54:00:ab:00:01', disks: DISKS, firmware: null },
      bootNetworkIsolated: true,
      bmc: { protocol: 'IPMI', address: 'bmc-1.example:6230', certificateSha256: null },
    });
    expect(await inventory('b1')).toEqual([
      {
        ...{ name: 'b1', region: 'zrh', serviceCode: 'ded-1', mac: '52:54:00:ab:00:01', boot: 'NETWORK' },
        bmc: { protocol: 'ipmi', address: 'bmc-1.example:6230', user: 'ADMIN', password: BMC.password },
        size: { vcpus: 16, memoryMb: 65_536, diskGb: 1920 },
      },
    ]);
    expect(await inventory('b2')).toEqual([]);
    const rows = await db.query(`select to_jsonb(host)::text || to_jsonb(event)::text from host, event`);
    expect(JSON.stringify(rows)).not.toContain('hush');
    expect(rows.length).toBeGreaterThan(0);
    const [{ sealed }] = (await db.query('select bmc_password as sealed from host')) as [{ sealed: Buffer }];
    expect(sealed.includes('hush')).toBe(false);
    const type = await operator('{ __type(name: "Bmc") { fields { name } } }');
    expect(type.data.__type.fields.map(({ name }: { name: string }) => name)).not.toContain('password');
  });

  it('changes at once for the driver, and keeps the fields that a change leaves out', async () => {
    await add({ firmware: 'UEFI' });
    const bmc = { protocol: 'REDFISH', address: 'https://10.1.0.12/', user: 'root', password: 'other' };
    const { data } = await update('b1', { bmc: { ...bmc, certificate: `${CONTROLLER.cert}\n` } });
    expect(data.updateHost).toMatchObject({ mac: '52:54:00:ab:00:01', firmware: 'UEFI' });
    expect(data.updateHost.bmc).toEqual({
      ...{ protocol: 'REDFISH', address: 'https://10.1.0.12' },
      certificateSha256: expect.stringMatching(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/),
    });
    const [told] = await inventory('b1');
    expect(told).toMatchObject({
      firmware: 'UEFI',
      bmc: { ...bmc, protocol: 'redfish', address: 'https://10.1.0.12' },
    });
    expect(told!.bmc.certificate).toBe(CONTROLLER.cert);
    await update('b1', { mac: '52:54:00:ab:00:02', disks: ['/dev/disk/by-id/nvme-eui.1'], bootNetworkIsolated: false });
    expect((await inventory('b1'))[0]!.bmc).toEqual(told!.bmc);
    await update('b1', { bmc });
    expect((await inventory('b1'))[0]!.bmc.certificate).toBeUndefined();
    expect(await inventory('b1')).toMatchObject([{ mac: '52:54:00:ab:00:02', boot: 'MEDIUM' }]);
    const changes = await audited('host.updated', 'b1');
    expect(changes.slice(-3)).toEqual(
      [['bmc'], ['mac', 'disks', 'bootNetworkIsolated'], ['bmc']].map((updated) => ({ updated })),
    );
    expect(JSON.stringify(changes)).not.toContain('other');
  });

  const REDFISH = { ...BMC, protocol: 'REDFISH', address: 'https://10.1.0.12' };
  it.each<[string, object, string?]>([
    ['without a controller', { bmc: null }, 'bmc'],
    ['without a MAC', { mac: null }, 'mac'],
    ['without disks', { disks: null }, 'disks'],
    ['with no disk', { disks: [] }, 'disks'],
    ['with a disk twice', { disks: [DISKS[0], `/dev/disk/by-id/${DISKS[0]}`] }, 'disks'],
    ['over IPMI in a network that is not isolated', { bootNetworkIsolated: false }, 'boot_network_isolated'],
    ['of a protocol that there is not', { bmc: { ...BMC, protocol: 'TELNET' } }],
    ['of a disk that is none', { disks: ["x' fh_do='wipe"] }],
    ['of a disk by the name of its device', { disks: ['/dev/nvme0n1'] }],
    ['of a disk that leads elsewhere', { disks: ['/dev/disk/by-id/../sda'] }],
    ['of a MAC that is none', { mac: 'aa' }],
    ['with an address that is an option', { bmc: { ...BMC, address: '-f/etc/passwd' } }, 'bmc.address'],
    ['with IPv6 for IPMI', { bmc: { ...BMC, address: 'fd00::1' } }, 'bmc.address'],
    ['with a line too many', { bmc: { ...BMC, user: 'a\nb' } }, 'bmc'],
    ['with a password that IPMI has no room for', { bmc: { ...BMC, password: 'x'.repeat(21) } }, 'bmc.password'],
    ['with a user that IPMI has no room for', { bmc: { ...BMC, user: 'ü'.repeat(9) } }, 'bmc.user'],
    ['with a certificate for IPMI', { bmc: { ...BMC, certificate: 'x' } }, 'bmc.certificate'],
    ['with a name instead of a URL', { bmc: { ...REDFISH, address: '10.1.0.12' } }, 'bmc.address'],
    ['with a URL of another kind', { bmc: { ...REDFISH, address: 'file:///etc' } }, 'bmc.address'],
    ['with a URL with a path', { bmc: { ...REDFISH, address: 'https://10.1.0.12/redfish' } }, 'bmc.address'],
    ['with a URL with a password', { bmc: { ...REDFISH, address: 'https://a:b@10.1.0.12' } }, 'bmc.address'],
    ['with a user that Basic cannot tell', { bmc: { ...REDFISH, user: 'a:b' } }, 'bmc.user'],
    ['with a certificate that is none', { bmc: { ...REDFISH, certificate: '-----BEGIN' } }, 'bmc.certificate'],
    ['that is a VPS host', { kind: 'VPS', serviceCode: null, vcpus: 1, memoryMb: 1, diskGb: 1 }, 'kind'],
  ])('%s is refused', async (_, input, field) => {
    const refused = await add(input);
    expect(refused.errors).toHaveLength(1);
    expect(fieldOf(refused)).toBe(field);
    expect(JSON.stringify(refused)).not.toContain('hush');
    expect(await db.query(`select from host where region_code = 'zrh'`)).toEqual([]);
  });

  it('shares neither its card nor its controller with another host', async () => {
    await add();
    const other = { name: 'b2', mac: '52:54:00:ab:00:09', bmc: { ...BMC, address: 'bmc-2' } };
    expect(fieldOf(await add({ ...other, mac: '52:54:00:ab:00:01' }))).toBe('mac');
    expect(fieldOf(await add({ ...other, bmc: BMC }))).toBe('bmc.address');
    await update('b1', { bmc: { ...BMC, address: '10.1.0.11' } });
    const forms = [{ address: '10.1.0.11:623' }, { protocol: 'REDFISH', address: 'https://10.1.0.11' }];
    for (const form of forms) expect(fieldOf(await add({ ...other, bmc: { ...BMC, ...form } }))).toBe('bmc.address');
    await update('b1', { bmc: BMC });
    expect((await add(other)).data.addHost.name).toBe('b2');
    expect(fieldOf(await update('b2', { mac: BOX.mac }))).toBe('mac');
    expect(fieldOf(await update('b2', { bmc: BMC }))).toBe('bmc.address');
    expect((await update('b2', { bmc: other.bmc, mac: other.mac })).errors).toBeUndefined();
  });

  it('keeps the users that its controller had before, and forgets them with another controller', async () => {
    await add();
    const users = ['2:ADMIN:ADMINISTRATOR'];
    const deploy = () =>
      db.query(
        `insert into deployment (id, order_number, generation, box, mac, image, spec_digest, state, bmc_users)
         values ('dep_2', 'SRV-RETIRED002', 1, 'b1', '52:54:00:ab:00:01', 'debian-13', '', 'RETIRED', $1)`,
        [users],
      );
    await deploy();
    await override('declareWiped', 'b1', 'new disk');
    expect(await inventory('b1')).toMatchObject([{ bmcUsers: users }]);
    await update('b1', { bmc: { ...BMC, user: 'other' } });
    expect(await inventory('b1')).toMatchObject([{ bmcUsers: users }]);
    await deploy();
    await update('b1', { bmc: { ...BMC, address: 'bmc-3' } });
    expect((await inventory('b1'))[0]!.bmcUsers).toBeUndefined();
    expect(await db.query('select bmc_users from deployment')).toEqual([{ bmcUsers: null }]);
    await db.query('delete from deployment');
  });

  it('cannot come back under another name after the operator retired it and changed its card', async () => {
    await add();
    await db.query(
      `insert into deployment (id, order_number, generation, box, mac, image, spec_digest, state)
       values ('dep_1', 'SRV-RETIRED001', 1, 'b1', '52:54:00:ab:00:01', 'debian-13', '', 'RETIRED')`,
    );
    const card = async () => (await db.query<{ mac: string }>('select mac from deployment'))[0]!.mac;
    expect((await update('b1', { mac: '52:54:00:ab:00:05' })).data.updateHost.mac).toBe('52:54:00:ab:00:05');
    expect(await card()).toBe('52:54:00:ab:00:01');
    expect((await act('removeHost', 'b1')).errors).toBeUndefined();
    expect((await add({ mac: '52:54:00:ab:00:06' })).errors).toBeUndefined();
    expect(await card()).toBe('52:54:00:ab:00:01');
    const old = { name: 'b2', mac: '52:54:00:ab:00:01', bmc: { ...BMC, address: 'bmc-2' } };
    expect(fieldOf(await add(old))).toBe('mac');
    await db.query('delete from deployment');
  });
});
