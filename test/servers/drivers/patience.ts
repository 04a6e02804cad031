/** Repeats driver calls until they are done, as the workers do. */
import { expect } from 'vitest';
import type {
  HardwareDriver,
  MachineKey,
  MachineSpec,
  Observation,
  PowerChange,
} from '../../../provisioning/servers/drivers/driver.ts';
import { eventually } from '../../setup/freehold.ts';

export const never = new AbortController().signal;
export const keyOf = ({ order, generation }: MachineKey): MachineKey => ({ order, generation });

/**
 * Repeats the same call until its answer is final, as the workers do. A driver does not wait within a call for machines
 * or people. Meanwhile it must not promise too much: an unfinished machine is neither proven nor gone.
 */
export async function until(
  ask: () => Promise<Observation>,
  isIt: (seen: Observation) => boolean,
  seconds: number,
): Promise<Observation> {
  return eventually(async () => {
    const seen = await ask();
    if (isIt(seen)) return seen;
    expect(seen).toMatchObject({ phase: expect.stringMatching(/^(incomplete|present|unknown)$/), proven: false });
    return undefined;
  }, seconds);
}

/** The driver calls of the tests, each repeated until it is done. */
export const patient = (seconds: number) => ({
  create: (driver: HardwareDriver, spec: MachineSpec) => until(() => driver.create(spec, never), isOn, seconds),
  power: (driver: HardwareDriver, spec: MachineKey, want: PowerChange, change: string) =>
    until(() => driver.power(keyOf(spec), want, change, never), want === 'off' ? isOff : isOn, seconds),
  rebuild: (driver: HardwareDriver, spec: MachineSpec, change: string) =>
    until(() => driver.rebuild(spec, change, never), isOn, seconds),
  resize: (driver: HardwareDriver, spec: MachineSpec, change: string) =>
    until(() => driver.resize(spec, change, never), isOff, seconds),
  /** Once its removal began, a machine never again looks usable. */
  destroy: async (driver: HardwareDriver, spec: MachineKey) => {
    const gone = await until(
      async () => {
        const seen = await driver.destroy(keyOf(spec), never);
        expect(seen.phase).not.toBe('present');
        return seen;
      },
      ({ phase }) => phase === 'absent',
      seconds,
    );
    expect(gone).toMatchObject({ ...keyOf(spec), proven: false });
    expect(await driver.observe(keyOf(spec), never)).toMatchObject({ phase: 'absent', proven: false });
  },
});
const isOn = ({ phase, power }: Observation) => phase === 'present' && power === 'on';
const isOff = ({ phase, power }: Observation) => phase === 'present' && power === 'off';
