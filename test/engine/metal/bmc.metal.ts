/** Dedicated servers from the order to the wiped disk: real RMCP+, Redfish and network boot, with QEMU machines. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { atEnd } from '../../setup/end.ts';
import { eventually, type Freehold, startFreehold, type TestAccount } from '../../setup/freehold.ts';
import { say } from '../../setup/say.ts';
import { freePort, newFolder, removeFolder } from '../../setup/spawn.ts';
import { makeNetbootFiles, missing } from './files.ts';
import { bannerAt, DISK_NAMES, newMachine, type TestMachine } from './machine.ts';

const reason = missing();
if (reason) say(`Skipped: dedicated servers with a BMC, because ${reason}.`);

/** Emulated machines are slow on a busy host. */
const BOOT_SECONDS = 300;
const TEST_MS = 900_000;

describe.skipIf(reason).each(['ipmi', 'redfish'] as const)('A dedicated server over %s', (protocol) => {
  const folder = newFolder();
  const keyFile = join(folder, 'key');
  let machine: TestMachine;
  let freehold: Freehold;
  let account: TestAccount;
  let keyId: string;

  beforeAll(async () => {
    makeNetbootFiles(join(folder, 'netboot'));
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', keyFile]);
    const port = await freePort();
    machine = await newMachine(protocol, port);
    freehold = await startFreehold({
      DEDICATED_DRIVER: 'bmc',
      ALLOW_SIMULATED: 'true',
      PROVISIONING_PORT: String(port),
      PROVISIONING_URL: `http://10.0.2.2:${port}`,
      NETBOOT_DIR: join(folder, 'netboot'),
      POLL_SECONDS: '1',
    });
    const pool = 'mutation ($input: AddAddressPoolInput!) { addAddressPool(input: $input) { id } }';
    for (const network of [{ cidr: '192.0.2.0/24' }, { cidr: '2001:db8::/56', gateway: 'fe80::1' }])
      await freehold.operator(pool, { input: { region: 'ams', kind: 'DEDICATED', ...network } });
    const { bmc, size, boot, ...box } = machine.box;
    const how = { disks: DISK_NAMES, bootNetworkIsolated: boot === 'NETWORK' };
    const input = { ...box, ...size, ...how, kind: 'DEDICATED', bmc: { ...bmc, protocol: protocol.toUpperCase() } };
    const added = await freehold.operator('mutation ($input: AddHostInput!) { addHost(input: $input) { name } }', {
      input,
    });
    expect(added.data.addHost.name).toBe(machine.box.name);
    account = await freehold.newAccount();
    await account.fund(1000);
    const key = await account.rest('POST', '/v1/ssh-keys', {
      name: 'key',
      public_key: readFileSync(`${keyFile}.pub`, 'utf8'),
    });
    keyId = key.body.id;
  }, TEST_MS);
  atEnd(async () => {
    await machine?.end();
    removeFolder(folder);
  });

  const order = () =>
    account.rest('POST', '/v1/servers', {
      service_code: 'ded-1',
      os: 'debian-13',
      region: 'ams',
      hostname: 'metal',
      ssh_key_ids: [keyId],
    });
  const statusOf = async (number: string) => (await account.rest('GET', `/v1/servers/${number}`)).body.status;
  const becomes = (number: string, status: string) =>
    eventually(async () => (await statusOf(number)) === status, BOOT_SECONDS);
  const isGone = (number: string) =>
    eventually(async () => {
      const [row] = await freehold.db.query<{ status: string }>('select status from server where order_number = $1', [
        number,
      ]);
      return row!.status === 'DELETED';
    }, BOOT_SECONDS);

  it(
    'is installed, accepts its owner, restarts with its disks in another order, and leaves three empty disks',
    async () => {
      machine.soil();
      const { body } = await order();
      const number = body.order_number;
      await becomes(number, 'running');
      expect(machine.ssh(keyFile, 'hostname')).toBe('metal');
      expect(machine.ssh(keyFile, 'cat /proc/cmdline')).not.toContain('fh_');
      // The first disk has the system, although its name changes.
      const firstDisk = () => machine.ssh(keyFile, 'cat /sys/block/vda/serial');
      const first = firstDisk();
      const network = protocol === 'ipmi' ? 'on pxe' : 'on cd';
      const booted = machine.ssh(keyFile, 'cat /proc/sys/kernel/random/boot_id');

      expect(machine.journal().filter((line) => line.startsWith('on'))).toEqual([network, 'on disk']);
      await account.rest('PATCH', `/v1/servers/${number}`, { action: 'reboot' });
      await becomes(number, 'running');
      await eventually(() => bannerAt(machine.sshPort), BOOT_SECONDS);
      expect(machine.ssh(keyFile, 'cat /proc/sys/kernel/random/boot_id')).not.toBe(booted);
      expect(machine.journal().filter((line) => line.startsWith('on'))).toEqual([network, 'on disk', 'on disk']);
      expect(firstDisk()).not.toBe(first);

      await account.rest('PATCH', `/v1/servers/${number}`, { action: 'rebuild', os: 'debian-12' });
      await becomes(number, 'running');
      expect(
        machine
          .journal()
          .filter((line) => line.startsWith('on'))
          .slice(3),
      ).toEqual([network, 'on disk']);
      await eventually(() => bannerAt(machine.sshPort), BOOT_SECONDS);
      expect(machine.ssh(keyFile, 'hostname')).toBe('metal');

      await account.rest('DELETE', `/v1/servers/${number}`);
      await isGone(number);
      expect(machine.isOn()).toBe(false);
      expect(machine.soiledDisks()).toEqual([]);
      expect(await freehold.db.query('select from deployment')).toEqual([]);
    },
    TEST_MS,
  );
});
