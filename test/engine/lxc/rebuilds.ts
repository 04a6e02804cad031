/** Rebuilds by the lxc driver on a real engine: the old machine stays until the new one exists. */
import { describe, expect, it } from 'vitest';
import type { MachineKey, MachineSpec } from '../../../provisioning/servers/drivers/driver.ts';
import { nameOf } from '../../../provisioning/servers/drivers/lxc/instance.ts';
import type { LxcDriver } from '../../../provisioning/servers/drivers/lxc/lxc.ts';
import { codeOf } from '../../servers/drivers/contract.ts';
import { eventually } from '../../setup/freehold.ts';
import type { Lxd } from '../lxd.ts';

/** An instance as the engine shows it. */
export interface Shown {
  name: string;
  status: string;
  config: Record<string, string>;
}

/** The means of the tests. The engine has an image `broken`, whose machines do not start. */
export interface Bench {
  call: Lxd['call'];
  newDriver(): LxcDriver;
  newSpec(): MachineSpec;
  /** All instances of an order. */
  instancesOf(key: MachineKey): Promise<Shown[]>;
  /** The only instance of an order. */
  instanceOf(key: MachineKey): Promise<Shown>;
  /** Runs a command in the machine. */
  login(spec: MachineSpec, command: string): Promise<string | undefined>;
}

const never = new AbortController().signal;

export function describeRebuilds(name: string, bench: Bench): void {
  const { call, newDriver, newSpec, instancesOf, instanceOf, login } = bench;
  describe(`Rebuilds by the lxc driver on ${name}`, () => {
    it('keeps a machine if the image of its rebuild is missing', async () => {
      const driver = newDriver();
      const spec = newSpec();
      await driver.create(spec, never);
      const rebuilt = driver.rebuild({ ...spec, image: 'no-such-image' }, 'change-1', never);
      expect(await codeOf(rebuilt)).toBe('rejected');
      expect(await driver.observe(spec, never)).toMatchObject({ phase: 'present', power: 'on', proven: true });
      await driver.destroy(spec, never);
    });

    /** Kills the rebuild of a machine with a trace on its disk, once the engine has both machines. */
    const killRebuild = async (): Promise<MachineSpec> => {
      const driver = newDriver();
      const spec = newSpec();
      await driver.create(spec, never);
      await login(spec, 'touch /root/trace; sync');
      const killed = new AbortController();
      const rebuilding = driver.rebuild(spec, 'change-1', killed.signal).catch(() => 'killed');
      await eventually(async () => (await instancesOf(spec)).length === 2, 30);
      killed.abort();
      expect(await rebuilding).toBe('killed');
      return spec;
    };

    const idOf = async (key: MachineKey) => (await instanceOf(key)).config['volatile.cloud-init.instance-id'];

    it.each(['on', 'off'] as const)(
      'gives a machine that was %s back as it was when its rebuild fails',
      async (power) => {
        const driver = newDriver();
        const spec = newSpec();
        await driver.create(spec, never);
        await login(spec, 'touch /root/trace; sync');
        if (power === 'off') await driver.power(spec, 'off', 'change-0', never);
        const id = await idOf(spec);
        expect(await codeOf(driver.rebuild({ ...spec, image: 'broken' }, 'change-1', never))).toBe('failed');
        expect(await driver.observe(spec, never)).toMatchObject({ phase: 'present', power });
        expect(await idOf(spec)).toBe(id);
        await driver.power(spec, 'on', 'change-2', never);
        expect(await login(spec, 'ls /root')).toContain('trace');
        await driver.destroy(spec, never);
      },
    );

    it('keeps the old machine until the new one exists, and gives it back after a killed worker', async () => {
      const spec = await killRebuild();
      const other = newDriver();
      expect((await other.list(never)).filter(({ order }) => order === spec.order)).toHaveLength(1);
      expect(await other.observe(spec, never)).toMatchObject({ phase: 'incomplete', proven: false });
      await other.power(spec, 'on', 'change-2', never);
      expect(await login(spec, 'ls /root')).toContain('trace');
      await other.rebuild(spec, 'change-1', never);
      expect(await login(spec, 'ls /root')).toBe('');
      expect(await instancesOf(spec)).toHaveLength(1);
      await other.destroy(spec, never);
    });

    /** Makes the engine refuse to remove an instance, or not. */
    const protect = (name: string, on: boolean) =>
      call('PATCH', `/1.0/instances/${name}?project=freehold`, {
        config: { 'security.protection.delete': String(on) },
      });

    it('refuses a rebuild, and keeps the machine, while an older one cannot be removed', async () => {
      const driver = newDriver();
      const spec = newSpec();
      await driver.create(spec, never);
      await protect(nameOf(spec), true);
      await driver.rebuild(spec, 'change-1', never);
      expect(await instancesOf(spec)).toHaveLength(2);
      await login(spec, 'touch /root/trace; sync');
      expect(await codeOf(driver.rebuild(spec, 'change-2', never))).toBe('stuck');
      const large = { ...spec, size: { ...spec.size, diskGb: 9 } };
      expect(await codeOf(driver.rebuild(large, 'change-3', never))).toBe('stuck');
      expect(await login(spec, 'ls /root')).toContain('trace');
      await protect(nameOf(spec), false);
      await driver.rebuild(spec, 'change-4', never);
      expect(await login(spec, 'ls /root')).toBe('');
      expect(await instancesOf(spec)).toHaveLength(1);
      await driver.destroy(spec, never);
    });

    it('removes the new machine even if the old one cannot be removed', async () => {
      const driver = newDriver();
      const spec = newSpec();
      await driver.create(spec, never);
      await protect(nameOf(spec), true);
      await driver.rebuild(spec, 'change-1', never);
      expect(await codeOf(driver.destroy(spec, never))).toBe('stuck');
      expect((await instanceOf(spec)).name).toBe(nameOf(spec));
      await protect(nameOf(spec), false);
      expect(await driver.destroy(spec, never)).toMatchObject({ phase: 'absent' });
    });

    it('gives back the machine that a killed rebuild was replacing, and does nothing without one', async () => {
      const spec = await killRebuild();
      const driver = newDriver();
      expect(await newDriver().restore(spec, never)).toMatchObject({ phase: 'present', power: 'on' });
      expect(await driver.restore(spec, never)).toMatchObject({ phase: 'present', power: 'on' });
      await eventually(async () => (await login(spec, 'ls /root'))?.includes('trace') ?? false, 30);
      await driver.destroy(spec, never);
      expect(await driver.restore(spec, never)).toMatchObject({ phase: 'absent' });
    });

    it('removes the old machine first where the pool has no room for both', async () => {
      const driver = newDriver();
      const spec = newSpec();
      await driver.create(spec, never);
      const { name } = await instanceOf(spec);
      await driver.rebuild({ ...spec, size: { ...spec.size, diskGb: 9 } }, 'change-1', never);
      expect((await instanceOf(spec)).name).toBe(name);
      expect(await driver.observe(spec, never)).toMatchObject({ phase: 'present', power: 'on' });
      await driver.destroy(spec, never);
    });
  });
}
