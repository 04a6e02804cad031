/** The counters of the lxc driver on a real engine. Root in a machine must not be able to change them. */
import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import type { MachineSpec } from '../../../provisioning/servers/drivers/driver.ts';
import { say } from '../../setup/say.ts';
import type { Bench } from './rebuilds.ts';

const never = new AbortController().signal;
const MIB = 2 ** 20;
/** Sends 8 MiB from the machine, through its SSH server. */
const SEND = 'busybox dd if=/dev/zero bs=1024 count=8192';

/** The ways by which root in a machine tries to hide its traffic. */
const DISGUISES = {
  'renames its card, and gives another one its name':
    'ip link set eth0 down; ip link set eth0 name real; ip link add eth0 type veth peer name peer',
  'changes the MAC of its card, and gives another one the right MAC':
    'MAC=$(cat /sys/class/net/eth0/address); ip link set eth0 down; ip link set eth0 address 02:00:00:00:00:99; ip link add fake address $MAC type veth peer name peer',
};
const HIDE = 'busybox unshare -n busybox sleep 1000 & busybox sleep 1; ip link set eth0 netns $!; busybox sleep 1';

export function describeMeter(name: string, { call, newDriver, newSpec, instanceOf, login }: Bench): void {
  describe(`The meter of the lxc driver on ${name}`, () => {
    const readingOf = async ({ order }: MachineSpec) =>
      (await newDriver().meter(never)).find((one) => one.order === order)!;
    const within = async (spec: MachineSpec, script: string) => {
      const path = `/1.0/instances/${(await instanceOf(spec)).name}/exec?project=freehold`;
      const command = ['/bin/sh', '-c', `export PATH=/bin; ${script}`];
      await call('POST', path, { command, interactive: false, 'wait-for-websocket': false });
    };

    it('counts what a machine sends and uses, all machines by one request', async () => {
      const specs = [newSpec(), newSpec(), newSpec()];
      for (const spec of specs) await newDriver().create(spec, never);
      const [spec] = specs as [MachineSpec];
      const before = await readingOf(spec);
      expect(await login(spec, `${SEND} | busybox wc -c; ${SEND} 2>/dev/null`)).toBeTruthy();
      const after = await readingOf(spec);
      const sent = after.sentBytes! - before.sentBytes!;
      say(
        `\n${name}: 8 MiB by SSH count as ${sent} sent and ${after.receivedBytes! - before.receivedBytes!} received bytes.`,
      );
      expect(sent).toBeGreaterThan(8 * MIB);
      expect(sent).toBeLessThan(9.5 * MIB);
      expect(after.receivedBytes! - before.receivedBytes!).toBeLessThan(MIB);
      expect(after.sentPackets).toBeGreaterThan(before.sentPackets!);
      expect(after.cpuNs).toBeGreaterThan(before.cpuNs!);
      expect(after.memoryBytes).toBeGreaterThan(100_000);
      // Without the image, which btrfs shares.
      expect(after.diskBytes).toBeGreaterThan(10_000);

      const began = performance.now();
      const readings = await newDriver().meter(never);
      const ms = Math.round(performance.now() - began);
      const answer = JSON.stringify(await call('GET', '/1.0/instances?recursion=2&project=freehold'));
      say(
        `${name}: one request for ${readings.length} machines took ${ms} ms, and its answer has ${answer.length} bytes.`,
      );
      expect(readings.map(({ order }) => order).sort()).toEqual(specs.map(({ order }) => order).sort());
      for (const one of specs) await newDriver().destroy(one, never);
    });

    it('changes the speed of a machine that is on, and its counters go on', async () => {
      const spec: MachineSpec = {
        ...newSpec(),
        traits: { virtualization: 'container', nesting: false, portMbps: 200 },
      };
      const driver = newDriver();
      await driver.create(spec, never);
      expect(await login(spec, `${SEND} 2>/dev/null`)).toBeTruthy();
      const before = await readingOf(spec);
      expect(before.portMbps).toBe(200);
      await driver.setSpeed(spec, 10, never);
      const after = await readingOf(spec);
      expect(after).toMatchObject({ portMbps: 10, epoch: before.epoch });
      expect(after.sentBytes).toBeGreaterThanOrEqual(before.sentBytes!);
      const { config } = await instanceOf(spec);
      const queue = execFileSync('tc', ['class', 'show', 'dev', config['volatile.eth0.host_name']!], {
        encoding: 'utf8',
      });
      expect(queue).toContain('rate 10Mbit');
      expect(await login(spec, 'echo in')).toBe('in');
      await driver.destroy(spec, never);
    });

    it.each(Object.entries(DISGUISES))('counts the card of a machine that %s', async (_, disguise) => {
      const spec = newSpec();
      await newDriver().create(spec, never);
      expect(await login(spec, `${SEND} 2>/dev/null`)).toBeTruthy();
      const before = await readingOf(spec);
      await within(spec, disguise);
      const path = `/1.0/instances/${(await instanceOf(spec)).name}/state?project=freehold`;
      const { network } = (await call('GET', path)) as { network: Record<string, unknown> };
      // The other card has the name or the MAC of the real one.
      expect(Object.keys(network).filter((one) => one === 'real' || one === 'fake')).toHaveLength(1);
      const after = await readingOf(spec);
      expect(after.sentBytes).toBeGreaterThanOrEqual(before.sentBytes!);
      await newDriver().destroy(spec, never);
    });

    it('tells when a machine hides its card', async () => {
      const spec = newSpec();
      await newDriver().create(spec, never);
      expect((await readingOf(spec)).sentBytes).not.toBeNull();
      await within(spec, HIDE);
      expect(await readingOf(spec)).toMatchObject({ sentBytes: null, sentPackets: null });
      await newDriver().destroy(spec, never);
    });
  });
}
