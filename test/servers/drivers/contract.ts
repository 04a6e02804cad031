/**
 * The contract of every hardware driver. `describeDriver` tests one driver against it. The caller provides the
 * surroundings, such as a view into machines or an absent engine.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import type {
  DriverError,
  HardwareDriver,
  MachineKey,
  MachineSize,
  MachineSpec,
  Observation,
  PowerChange,
} from '../../../provisioning/servers/drivers/driver.ts';
import { atEnd } from '../../setup/end.ts';
import { keyOf, never, patient, until } from './patience.ts';

export interface DriverUnderTest {
  name: string;
  /** Returns a new driver over the same machines, like that of another process. */
  newDriver(): HardwareDriver;
  /** Returns a valid specification for a machine of a new order. */
  newSpec(): MachineSpec;
  /** A larger size than that of new specifications. Absent: machines of this kind keep their size. */
  larger?: MachineSize;
  /** A driver over the same machines whose hardware does not answer. Absent: the driver has no remote hardware. */
  unreachable?: HardwareDriver;
  /** Returns a value that changes at each boot of the machine. */
  bootOf(key: MachineKey): Promise<string>;
  /** Leaves a trace on the disk, and tells whether it is still there. */
  trace?: { leave(spec: MachineSpec): Promise<void>; left(spec: MachineSpec): Promise<boolean> };
  /** Whether the first key of the specification opens the machine. */
  opens?(spec: MachineSpec): Promise<boolean>;
  /**
   * Puts a foreign object in the place of a machine, such as an instance with its name.
   * @returns functions that look for the object and remove it
   */
  plant?(spec: MachineSpec): Promise<{ there(): Promise<boolean>; remove(): Promise<void> }>;
  /** The limit for a machine to be made, to give proof of life, or to go. */
  bootSeconds: number;
}

const lost = AbortSignal.abort(new Error('lost'));

/** Returns the error code of a failed call; undefined after a success. */
export const codeOf = (call: Promise<unknown>): Promise<string | undefined> =>
  call.then(
    () => undefined,
    (error: DriverError) => error.code,
  );

export function describeDriver(world: DriverUnderTest): void {
  describe(`A machine of the ${world.name} driver`, () => machineKeeps(world));
  describe(`The ${world.name} driver`, () => driverKeeps(world));
}

/** One machine from its creation to its end: each test continues from the one before. */
function machineKeeps(world: DriverUnderTest): void {
  const { newDriver, newSpec, bootOf, trace, opens, larger, bootSeconds } = world;
  const patience = (bootSeconds * 4 + 30) * 1000;
  let driver: HardwareDriver;
  let spec: MachineSpec;
  const observe = () => driver.observe(keyOf(spec), never);
  const { create, power, rebuild, resize, destroy } = patient(bootSeconds);
  /** Waits for proof of life, and checks that the machine deserves it. */
  const proven = async () => {
    const seen = await until(observe, (one) => one.proven, bootSeconds);
    expect(seen).toMatchObject({ ...keyOf(spec), phase: 'present', power: 'on' });
    if (opens) expect(await opens(spec)).toBe(true);
  };
  beforeAll(() => {
    driver = newDriver();
    spec = newSpec();
  });
  atEnd(async () => {
    await destroy(driver, spec);
  });

  it('is absent before its creation', { timeout: patience }, async () => {
    expect(await observe()).toMatchObject({ ...keyOf(spec), phase: 'absent', proven: false });
  });

  it('is made, turned on, and gives proof of life', { timeout: patience }, async () => {
    expect(await create(driver, spec)).toMatchObject(keyOf(spec));
    await proven();
  });

  it('stays the same if another process makes it again', { timeout: patience }, async () => {
    const boot = await bootOf(spec);
    expect(await driver.create(spec, never)).toMatchObject({ phase: 'present', power: 'on' });
    expect(await newDriver().create(spec, never)).toMatchObject({ phase: 'present', power: 'on' });
    expect(await bootOf(spec)).toBe(boot);
    expect((await driver.list(never)).filter(({ order }) => order === spec.order)).toHaveLength(1);
  });

  it('does not count as a machine of another specification', { timeout: patience }, async () => {
    const other = { ...spec, hostname: 'other.example.org' };
    expect(await codeOf(driver.create(other, never))).toBe('conflict');
    expect(await observe()).toMatchObject({ phase: 'present', proven: true });
  });

  it('turns off and on, and keeps that state when told again', { timeout: patience }, async () => {
    for (const want of ['off', 'off', 'on', 'on'] as const) {
      await power(driver, spec, want, `chg-${want}`);
      if (want === 'off') expect(await observe()).toMatchObject({ phase: 'present', power: 'off', proven: false });
    }
    await proven();
  });

  it('keeps its data when it is turned off and on', { timeout: patience }, async () => {
    await trace?.leave(spec);
    await power(driver, spec, 'off', 'chg-off-2');
    await power(driver, spec, 'on', 'chg-on-2');
    await proven();
    if (trace) expect(await trace.left(spec)).toBe(true);
  });

  it.each<PowerChange>(['restart', 'reset'])('does a %s once for each change', { timeout: patience }, async (want) => {
    const before = await bootOf(spec);
    const [first, second] = [`chg-${want}-1`, `chg-${want}-2`];
    await power(driver, spec, want, first);
    await proven();
    const after = await bootOf(spec);
    expect(after).not.toBe(before);
    await driver.power(keyOf(spec), want, first, never);
    await newDriver().power(keyOf(spec), want, first, never);
    expect(await bootOf(spec)).toBe(after);
    await power(driver, spec, want, second);
    await proven();
    expect(await bootOf(spec)).not.toBe(after);
  });

  if (larger)
    it('is resized once while it is off, and keeps its data', { timeout: patience }, async () => {
      const resized = { ...spec, size: larger };
      expect(await codeOf(driver.resize(resized, 'chg-size-on', never))).toBe('rejected');
      await power(driver, spec, 'off', 'chg-off-3');
      for (const one of [driver, newDriver()]) await resize(one, resized, 'chg-size');
      await power(driver, spec, 'on', 'chg-on-3');
      spec = resized;
      await proven();
      if (trace) expect(await trace.left(spec)).toBe(true);
      expect(await driver.create(spec, never)).toMatchObject({ phase: 'present', power: 'on' });
    });

  it('is neither restarted, rebuilt nor removed by a worker that has lost its lease', {
    timeout: patience,
  }, async () => {
    const boot = await bootOf(spec);
    for (const begun of [
      driver.power(keyOf(spec), 'reset', 'chg-lost-1', lost),
      driver.power(keyOf(spec), 'off', 'chg-lost-2', lost),
      driver.rebuild(spec, 'chg-lost-3', lost),
      driver.destroy(keyOf(spec), lost),
    ])
      await expect(begun).rejects.toThrow();
    await proven();
    expect(await bootOf(spec)).toBe(boot);
  });

  it('is rebuilt once for each change, without its old data', { timeout: patience }, async () => {
    const rebuilt = { ...spec, sshPublicKeys: [...spec.sshPublicKeys].reverse() };
    const before = await bootOf(spec);
    await rebuild(driver, rebuilt, 'chg-rebuild');
    spec = rebuilt;
    await proven();
    if (trace) expect(await trace.left(spec)).toBe(false);
    const after = await bootOf(spec);
    expect(after).not.toBe(before);
    await trace?.leave(spec);
    await driver.rebuild(rebuilt, 'chg-rebuild', never);
    await newDriver().rebuild(rebuilt, 'chg-rebuild', never);
    expect(await bootOf(spec)).toBe(after);
    if (trace) expect(await trace.left(spec)).toBe(true);
  });

  it('is confirmed absent when it is destroyed, once or twice', { timeout: patience }, async () => {
    await destroy(driver, spec);
    expect(await driver.destroy(keyOf(spec), never)).toMatchObject({ phase: 'absent', proven: false });
    expect((await driver.list(never)).filter(({ order }) => order === spec.order)).toEqual([]);
  });
}

function driverKeeps({ newDriver, newSpec, unreachable, plant, bootSeconds, bootOf }: DriverUnderTest): void {
  const patience = (bootSeconds * 4 + 30) * 1000;
  const { create, destroy } = patient(bootSeconds);

  it('makes one machine for five concurrent requests', { timeout: patience }, async () => {
    const spec = newSpec();
    const [one, other] = [newDriver(), newDriver()];
    const raced = await Promise.allSettled([one, other, one, other, one].map((driver) => driver.create(spec, never)));
    // The driver may refuse the later requests for now.
    const refused = raced.flatMap((result) => (result.status === 'rejected' ? [result.reason as DriverError] : []));
    expect(
      refused.map(({ code, message }) => `${code} ${message}`).filter((text) => !/^(failed|unreachable) /.test(text)),
    ).toEqual([]);
    await create(one, spec);
    const ours = (await one.list(never)).filter(({ order }) => order === spec.order);
    expect(ours).toMatchObject([{ ...keyOf(spec), phase: 'present' }]);
    expect(await bootOf(spec)).toBeTruthy();
    await destroy(one, spec);
  });

  it('counts machines that are on, from each start again, and changes their speed without a break', {
    timeout: patience,
  }, async () => {
    const [driver, spec] = [newDriver(), newSpec()];
    if (!driver.meter) return;
    const reading = async () => (await driver.meter!(never)).find(({ order }) => order === spec.order);
    const { power } = patient(bootSeconds);
    await create(driver, spec);
    await until(
      () => driver.observe(keyOf(spec), never),
      (one) => one.proven,
      bootSeconds,
    );
    const first = (await reading())!;
    await driver.setSpeed?.(keyOf(spec), 10, never);
    const second = (await reading())!;
    expect(second).toMatchObject({ ...keyOf(spec), epoch: first.epoch, portMbps: 10 });
    expect(second.sentBytes).toBeGreaterThanOrEqual(first.sentBytes!);
    await power(driver, spec, 'off', 'chg-off');
    expect(await reading()).toBeUndefined();
    await power(driver, spec, 'on', 'chg-on');
    expect((await reading())!.epoch).not.toBe(first.epoch);
    await destroy(driver, spec);
  });

  it('does nothing to an absent machine', { timeout: patience }, async () => {
    const [driver, spec] = [newDriver(), newSpec()];
    expect(await codeOf(driver.power(keyOf(spec), 'on', 'chg-1', never))).toBe('failed');
    expect(await codeOf(driver.resize(spec, 'chg-2', never))).toBe('failed');
    expect(await driver.destroy(keyOf(spec), never)).toMatchObject({ phase: 'absent' });
    expect(await driver.observe(keyOf(spec), never)).toMatchObject({ phase: 'absent' });
  });

  it('distinguishes the generations of an order', { timeout: patience }, async () => {
    const [driver, spec] = [newDriver(), newSpec()];
    await create(driver, spec);
    const next = { ...keyOf(spec), generation: spec.generation + 1 };
    expect(await driver.observe(next, never)).toMatchObject({ ...next, phase: 'absent' });
    expect(await driver.destroy(next, never)).toMatchObject({ ...next, phase: 'absent' });
    expect(await driver.observe(keyOf(spec), never)).toMatchObject({ phase: 'present' });
    await destroy(driver, spec);
  });

  it('reports each host once, with a size', { timeout: patience }, async () => {
    const hosts = await newDriver().capacity(never);
    expect(new Set(hosts.map(({ name }) => name)).size).toBe(hosts.length);
    for (const { state, size } of hosts.filter((host) => host.state === 'online')) {
      expect(state).toBe('online');
      expect(Math.min(size.vcpus, size.memoryMb, size.diskGb)).toBeGreaterThan(0);
    }
  });

  if (unreachable)
    it('does not report a machine as absent if its hardware does not answer', { timeout: patience }, async () => {
      const [driver, spec] = [newDriver(), newSpec()];
      await create(driver, spec);
      const unknown = async (call: Promise<Observation>) => {
        const { phase, code } = await call.then(
          (seen) => ({ phase: seen.phase, code: undefined }),
          (error: DriverError) => ({ phase: undefined, code: error.code }),
        );
        expect(phase ?? code).toMatch(/^(unknown|unreachable)$/);
      };
      await unknown(unreachable.observe(keyOf(spec), never));
      await unknown(unreachable.create(spec, never));
      await unknown(unreachable.create(newSpec(), never));
      await unknown(unreachable.power(keyOf(spec), 'on', 'chg-1', never));
      await unknown(unreachable.destroy(keyOf(spec), never));
      if (unreachable.meter) expect(await codeOf(unreachable.meter(never))).toBe('unreachable');
      // An absent engine lists nothing. With a controller for each machine, the driver still knows the machines.
      const listed = await unreachable.list(never).catch((error: DriverError) => error.code);
      if (listed !== 'unreachable') expect(listed).toMatchObject([{ ...keyOf(spec), phase: 'unknown', proven: false }]);
      expect((await unreachable.reachable?.(spec.region, never).catch(() => false)) ?? false).toBe(false);
      await destroy(driver, spec);
    });

  if (plant)
    it('neither reports nor touches a machine without our mark', { timeout: patience }, async () => {
      const [driver, spec] = [newDriver(), newSpec()];
      const { there, remove } = await plant(spec);
      expect((await driver.list(never)).filter(({ order }) => order === spec.order)).toEqual([]);
      expect(await codeOf(driver.create(spec, never))).toBe('conflict');
      expect(await codeOf(driver.power(keyOf(spec), 'off', 'chg-1', never))).toBe('failed');
      expect(await driver.destroy(keyOf(spec), never)).toMatchObject({ phase: 'absent' });
      expect(await there()).toBe(true);
      await remove();
    });

  it('begins no work for a worker that has lost its lease', { timeout: patience }, async () => {
    const [driver, spec] = [newDriver(), newSpec()];
    await expect(driver.create(spec, lost)).rejects.toThrow('lost');
    expect(await driver.observe(keyOf(spec), never)).toMatchObject({ phase: 'absent' });
  });
}
