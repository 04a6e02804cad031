/** Tests of the lxc driver on a real engine: the contract of all drivers, and the requirements of this one. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type {
  MachineKey,
  MachineSize,
  MachineSpec,
  MachineTraits,
} from '../../../provisioning/servers/drivers/driver.ts';
import { nameOf } from '../../../provisioning/servers/drivers/lxc/instance.ts';
import { LxcDriver } from '../../../provisioning/servers/drivers/lxc/lxc.ts';
import { probeByCommand } from '../../../provisioning/servers/drivers/lxc/ssh-proof.ts';
import { codeOf, describeDriver } from '../../servers/drivers/contract.ts';
import { eventually } from '../../setup/freehold.ts';
import { FOLDER, importImage, type Lxd, newKey, ssh } from '../lxd.ts';
import { newSpec as newMachine } from '../machine.ts';
import { describeMeter } from './meter.ts';
import { describeRebuilds, type Shown } from './rebuilds.ts';

/** The kind of machine under test. Without `traits` it is a container, and the tests of containers follow. */
interface Kind {
  traits?: MachineTraits;
  size?: MachineSize;
  /** The size after a resize. */
  larger: MachineSize;
  bootSeconds: number;
}
const CONTAINER: Kind = { larger: { vcpus: 2, memoryMb: 256, diskGb: 2 }, bootSeconds: 30 };

/** @param start starts an engine with this name */
export function describeLxc(name: string, start: () => Promise<Lxd>, kind = CONTAINER): void {
  const { traits, size, larger, bootSeconds } = kind;
  let lxd: Lxd;
  beforeAll(async () => {
    lxd = await start();
    await importBroken(lxd);
  });
  const keys = [newKey('one'), newKey('two')];
  const never = new AbortController().signal;

  const newDriver = (more: Partial<ConstructorParameters<typeof LxcDriver>[0]> = {}) =>
    new LxcDriver({
      endpoints: [{ socketPath: lxd.socketPath }],
      project: 'freehold',
      pool: 'machines',
      network: 'machines',
      nameservers: ['10.79.0.1'],
      ...more,
    });

  const newSpec = (): MachineSpec => ({
    ...newMachine(keys.map(({ publicKey }) => publicKey).slice(0, 2)),
    ...(traits && { traits }),
    ...(size && { size }),
  });
  /** All instances of an order. */
  const instancesOf = async ({ order }: MachineKey) =>
    ((await lxd.call('GET', '/1.0/instances?recursion=1&project=freehold')) as Shown[]).filter(
      ({ config }) => config['user.freehold-order'] === order,
    );
  /** The instance of a machine, which a rebuild replaces by one of another name. */
  const instanceOf = async (key: MachineKey) => {
    const [found, ...others] = await instancesOf(key);
    expect(others).toEqual([]);
    return found!;
  };
  const login = ({ network, sshPublicKeys }: MachineSpec, command: string) =>
    ssh(network.ipv4!.address, keys.find(({ publicKey }) => publicKey === sshPublicKeys[0])!.file, command);

  describeDriver({
    name: `lxc, on ${name}`,
    newDriver,
    newSpec,
    larger,
    unreachable: new LxcDriver({
      endpoints: [{ socketPath: '/nowhere' }],
      project: 'freehold',
      pool: 'machines',
      network: 'machines',
      nameservers: [],
    }),
    bootOf: async (key) => {
      const { name } = await instanceOf(key);
      const { pid } = (await lxd.call('GET', `/1.0/instances/${name}/state?project=freehold`)) as { pid: number };
      return String(pid);
    },
    trace: {
      leave: async (spec) => void (await login(spec, 'touch /root/trace; sync')),
      left: async (spec) => (await login(spec, 'ls /root'))?.includes('trace') ?? false,
    },
    opens: async (spec) => (await login(spec, 'hostname')) !== undefined,
    plant: async (spec) => {
      const place = nameOf(spec);
      const source = { type: 'image', alias: 'debian-13' };
      const devices = { root: { type: 'disk', path: '/', pool: 'machines' } };
      await lxd.call('POST', '/1.0/instances?project=freehold', { name: place, source, devices });
      return {
        there: () =>
          lxd.call('GET', `/1.0/instances/${place}?project=freehold`).then(
            () => true,
            () => false,
          ),
        remove: async () => void (await lxd.call('DELETE', `/1.0/instances/${place}?project=freehold`)),
      };
    },
    bootSeconds,
  });
  if (traits) return;

  const call = (...request: Parameters<Lxd['call']>) => lxd.call(...request);
  const bench = { call, newDriver, newSpec, instancesOf, instanceOf, login };
  describeRebuilds(name, bench);
  describeMeter(name, bench);

  describe(`The lxc driver on ${name}`, () => {
    it('tells the product, the version and the images of the engine, and the size of its host', async () => {
      const about = await newDriver().about(never);
      expect(about).toMatchObject({ product: name.includes('Incus') ? 'INCUS' : 'LXD', version: expect.any(String) });
      expect(about.images).toContain('debian-13');
      const [host, ...others] = await newDriver().capacity(never);
      expect([host!.state, others]).toEqual(['online', []]);
      for (const size of Object.values(host!.size)) expect(size).toBeGreaterThan(0);
    });

    it('permanently refuses a machine that the engine cannot make', async () => {
      const driver = newDriver();
      expect(await codeOf(driver.create({ ...newSpec(), image: 'no-such-image' }, never))).toBe('rejected');
      expect(await driver.list(never)).toEqual([]);
    });

    it('gives a machine the size of its tier and its own address and MAC, and blocks all others', async () => {
      const driver = newDriver();
      const spec = newSpec();
      await driver.create(spec, never);
      const { expanded_config: config, expanded_devices: devices } = (await lxd.call(
        'GET',
        `/1.0/instances/${nameOf(spec)}?project=freehold`,
      )) as Record<string, Record<string, unknown>>;
      expect(config).toMatchObject({ 'limits.cpu': '1', 'limits.memory': '128MiB' });
      expect(devices).toMatchObject({
        root: { size: '1GiB' },
        eth0: { hwaddr: spec.network.mac, 'ipv4.address': spec.network.ipv4!.address },
      });
      expect(await login(spec, 'nproc; hostname; cat /sys/class/net/eth0/address')).toBe(`1\nweb\n${spec.network.mac}`);
      const spoofed = '10.79.0.49';
      await login(spec, `ip addr add ${spoofed}/24 dev eth0`);
      const hears = (source: string) =>
        login(spec, `ping -c 1 -W 1 -I ${source} 10.79.0.1 >/dev/null && echo heard || echo not`);
      expect([await hears(spec.network.ipv4!.address), await hears(spoofed)]).toEqual(['heard', 'not']);
      await driver.destroy(spec, never);
    });

    it('filters an older network card at the next start, and gives it the speed of a new tier', async () => {
      const driver = newDriver();
      const spec = newSpec();
      await driver.create(spec, never);
      const path = `/1.0/instances/${nameOf(spec)}?project=freehold`;
      const card = async () => {
        const { devices } = (await lxd.call('GET', path)) as { devices: Record<string, Record<string, string>> };
        return devices.eth0!;
      };
      const filters = await card();
      const { 'security.port_isolation': _, 'security.ipv6_filtering': __, 'ipv6.address': ___, ...older } = filters;
      const loosen = async () => {
        await driver.power(spec, 'off', 'off', never);
        await lxd.call('PATCH', path, { devices: { eth0: older } });
      };
      const id = (await instanceOf(spec)).config['volatile.cloud-init.instance-id'];
      await loosen();
      expect((await driver.check(never)).join()).toContain(`1 of our machines, such as ${nameOf(spec)}`);
      expect(await driver.power(spec, 'on', 'on', never)).toMatchObject({ power: 'on' });
      expect(await card()).toEqual(filters);
      expect((await driver.check(never)).join()).not.toContain('our machines');
      expect((await instanceOf(spec)).config['volatile.cloud-init.instance-id']).toBe(id);
      await loosen();
      const slow = { virtualization: 'container', nesting: false, portMbps: 100 } as const;
      await driver.resize({ ...spec, size: larger, traits: slow }, 'resize', never);
      expect(await card()).toMatchObject({ 'security.port_isolation': 'true', 'limits.ingress': '100Mbit' });
      await driver.power(spec, 'on', 'on again', never);
      await eventually(async () => (await driver.observe(spec, never)).proven, bootSeconds);
      await driver.destroy(spec, never);
    });

    it('does not reveal the root password to readers of the engine', async () => {
      const driver = newDriver();
      const spec = { ...newSpec(), rootPassword: 'correct horse battery' };
      await driver.create(spec, never);
      const seen = JSON.stringify(await lxd.call('GET', `/1.0/instances/${nameOf(spec)}?recursion=1&project=freehold`));
      expect(seen).not.toContain(spec.rootPassword);
      expect(seen).toContain('$6$');
      await driver.destroy(spec, never);
    });

    it('keeps its user-data for life, because without it the engine makes cloud-init run again', async () => {
      const driver = newDriver();
      const spec = { ...newSpec(), userData: '#!/bin/sh\necho mine' };
      await driver.create(spec, never);
      const path = `/1.0/instances/${nameOf(spec)}?project=freehold`;
      // cloud-init begins anew, with new host keys, when this id has changed at a boot.
      const ID = 'volatile.cloud-init.instance-id';
      const idNow = async () => ((await lxd.call('GET', path)) as { config: Record<string, string> }).config[ID];
      const id = await idNow();
      await driver.power(spec, 'restart', 'change-1', never);
      await driver.power(spec, 'off', 'change-2', never);
      await driver.resize({ ...spec, size: { vcpus: 2, memoryMb: 256, diskGb: 2 } }, 'change-3', never);
      await driver.power(spec, 'on', 'change-4', never);
      expect(await idNow()).toBe(id);
      await lxd.call('PATCH', path, { config: { 'cloud-init.user-data': '', [ID]: id } });
      expect(await idNow()).not.toBe(id);
      await driver.destroy(spec, never);
    });

    it('gets proof of life by a command if it cannot connect to the machine', async () => {
      const spec = newSpec();
      await newDriver().create(spec, never);
      const driver = newDriver({ probe: probeByCommand('timeout 2 nc -w 1 {address} 22') });
      expect(await driver.observe(spec, never)).toMatchObject({ proven: true });
      const blind = newDriver({ probe: probeByCommand('echo {address} {host}') });
      expect(await blind.observe(spec, never)).toMatchObject({ proven: false, power: 'on' });
      await driver.destroy(spec, never);
    });

    it('finds and removes a machine that the operator has renamed', async () => {
      const [driver, spec] = [newDriver(), newSpec()];
      await driver.create(spec, never);
      await driver.power(spec, 'off', 'off', never);
      await lxd.call('POST', `/1.0/instances/${nameOf(spec)}?project=freehold`, { name: 'renamed' });
      expect(await driver.observe(spec, never)).toMatchObject({ phase: 'present', power: 'off' });
      expect(await driver.destroy(spec, never)).toMatchObject({ phase: 'absent' });
      expect(await instancesOf(spec)).toEqual([]);
    });

    it('starts a machine again after a restart of the engine', async () => {
      const [driver, spec] = [newDriver(), newSpec()];
      await driver.create(spec, never);
      await lxd.kill();
      await lxd.start();
      expect(await driver.power(spec, 'off', 'off', never)).toMatchObject({ power: 'off' });
      await driver.power(spec, 'on', 'on', never);
      await eventually(async () => (await driver.observe(spec, never)).proven, bootSeconds);
      await driver.destroy(spec, never);
    });

    it('reports no room if the project has none left', async () => {
      await lxd.call('POST', '/1.0/projects', {
        name: 'full',
        config: { 'features.images': 'false', 'features.profiles': 'true', 'limits.instances': '0' },
      });
      const driver = newDriver({ project: 'full' });
      expect(await codeOf(driver.create(newSpec(), never))).toBe('no_capacity');
    });

    it('reports the resources of the server', async () => {
      const [host, ...others] = await newDriver().capacity(never);
      expect(others).toEqual([]);
      expect(host).toMatchObject({ state: 'online', size: { diskGb: 8 } });
      expect(host!.diskFreeGb).toBeGreaterThan(0);
      expect(host!.diskFreeGb).toBeLessThan(8);
      expect(await newDriver().reachable('zrh', never)).toBe(true);
    });
  });
}

/** Gives the engine an image without an init: an engine unpacks it, and cannot start it. */
async function importBroken(lxd: Lxd): Promise<void> {
  const folder = join(FOLDER, 'broken');
  mkdirSync(join(folder, 'rootfs'), { recursive: true });
  writeFileSync(join(folder, 'metadata.yaml'), 'architecture: x86_64\ncreation_date: 1700000000\n');
  execFileSync('tar', ['-C', folder, '-cf', `${folder}.tar`, 'metadata.yaml', 'rootfs']);
  await importImage(lxd, ['broken'], `${folder}.tar`);
}
