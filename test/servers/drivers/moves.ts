/** The contract of drivers that move machines between the hosts of their engine. */
import { describe, expect, it } from 'vitest';
import type { MachineKey } from '../../../provisioning/servers/drivers/driver.ts';
import { codeOf, type DriverUnderTest } from './contract.ts';
import { keyOf, never, patient, until } from './patience.ts';

interface Moving extends Pick<DriverUnderTest, 'name' | 'newDriver' | 'newSpec' | 'trace' | 'bootSeconds'> {
  /** Two hosts of the engine. */
  hosts: readonly [string, string];
}

const lost = AbortSignal.abort(new Error('lost'));

export function describeMoves({ name, newDriver, newSpec, trace, bootSeconds, hosts: [here, there] }: Moving): void {
  const patience = (bootSeconds * 4 + 60) * 1000;
  const { create, power, destroy } = patient(bootSeconds);
  const move = (key: MachineKey, host: string) => newDriver().move!(keyOf(key), host, never);

  describe(`The ${name} driver moves a machine`, () => {
    it('only while it is off, with its data, and as often as it is told', { timeout: patience }, async () => {
      const [driver, spec] = [newDriver(), { ...newSpec(), host: here }];
      const proven = () =>
        until(
          () => driver.observe(keyOf(spec), never),
          (one) => one.proven,
          bootSeconds,
        );
      await create(driver, spec);
      await proven();
      await trace?.leave(spec);
      expect(await codeOf(move(spec, there))).toBe('rejected');
      await power(driver, spec, 'off', 'chg-away');
      await expect(driver.move!(keyOf(spec), there, lost)).rejects.toThrow('lost');
      for (const host of [there, there, here, there]) {
        expect(await move(spec, host)).toMatchObject({ ...keyOf(spec), phase: 'present', power: 'off', host });
        expect((await driver.list(never)).filter(({ order }) => order === spec.order)).toMatchObject([{ host }]);
      }
      await power(driver, spec, 'on', 'chg-back');
      expect(await proven()).toMatchObject({ power: 'on', host: there, size: spec.size, image: spec.image });
      if (trace) expect(await trace.left(spec)).toBe(true);
      await destroy(driver, spec);
    });

    it('for two workers at once only once', { timeout: patience }, async () => {
      const [driver, spec] = [newDriver(), { ...newSpec(), host: here }];
      await create(driver, spec);
      await power(driver, spec, 'off', 'chg-away');
      await Promise.allSettled([move(spec, there), move(spec, there)]);
      await until(
        () => move(spec, there),
        ({ host }) => host === there,
        bootSeconds,
      );
      expect((await driver.list(never)).filter(({ order }) => order === spec.order)).toMatchObject([{ host: there }]);
      await destroy(driver, spec);
    });

    it('of an existing order alone', { timeout: patience }, async () => {
      expect(await codeOf(move(newSpec(), there))).toBe('failed');
    });
  });
}
