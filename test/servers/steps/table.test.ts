/** The table of steps, row by row, as the pure function that it is. */
import { expect, it } from 'vitest';
import { nextStep, type Seen, type Step } from '../../../provisioning/servers/steps/table.ts';
import type { Wanted } from '../../../provisioning/servers/steps/wanted.ts';

const SIZE = { vcpus: 1, memoryMb: 2048, diskGb: 25 };
const RUNNING: Wanted = {
  ...{ exists: true, power: 'on', host: null, once: null, remedy: null, proof: false, late: false, givenUp: false },
  ...{ size: SIZE, image: 'debian-13' },
};
const ON: Seen = { phase: 'present', power: 'on', size: SIZE, image: 'debian-13' };
const LARGE = { ...SIZE, vcpus: 2 };
const ORDER: Partial<Wanted> = { remedy: 'create', proof: true };

it.each<[wanted: Partial<Wanted>, seen: Partial<Seen>, step: Step]>([
  [{ exists: false }, {}, 'remove'],
  [{ exists: false }, { phase: 'unknown' }, 'remove'],
  [{}, { phase: 'unknown' }, 'wait'],
  [ORDER, { phase: 'absent' }, 'create'],
  [ORDER, { phase: 'incomplete' }, 'create'],
  [{ ...ORDER, once: 'create' }, { proven: true }, 'create'],
  [ORDER, { proven: false }, 'prove'],
  [ORDER, { busy: true, power: 'off' }, 'prove'],
  [ORDER, { proven: true }, 'settle'],
  [{ ...ORDER, late: true }, { proven: true }, 'settle'],
  [{ ...ORDER, late: true }, { proven: false }, 'remake'],
  [{ ...ORDER, late: true }, { phase: 'unknown' }, 'wait'],
  [{ ...ORDER, givenUp: true }, { proven: true }, 'remake'],
  [{}, {}, 'settle'],
  [{}, { proven: false }, 'settle'],
  [{}, { power: 'off' }, 'on'],
  [{}, { power: undefined }, 'wait'],
  [{}, { busy: true }, 'wait'],
  [{}, { phase: 'absent' }, 'lost'],
  [{}, { phase: 'incomplete' }, 'lost'],
  [{ power: 'off' }, {}, 'off'],
  [{ power: 'off', exists: null }, { phase: 'absent' }, 'settle'],
  [{ power: 'off', exists: null }, { busy: true }, 'off'],
  [{ power: 'off', exists: null }, { busy: true, power: 'off' }, 'settle'],
  [{ power: 'off' }, { busy: true }, 'wait'],
  [{ host: 'n2' }, { host: 'n1' }, 'off'],
  [{ host: 'n2' }, { host: 'n1', power: 'off' }, 'move'],
  [{ host: 'n2', power: 'off' }, { host: 'n1', power: 'off' }, 'move'],
  [{ host: 'n2', power: 'off', exists: null }, { host: 'n1', power: 'off' }, 'move'],
  [{ host: 'n2' }, { host: 'n2', power: 'off' }, 'on'],
  [{ host: 'n2' }, { host: 'n2' }, 'settle'],
  [{ host: 'n2' }, { host: 'n1', phase: 'unknown' }, 'wait'],
  [{ host: 'n2' }, { host: 'n1', phase: 'absent' }, 'lost'],
  [{ host: 'n2', power: 'off', exists: null }, { phase: 'absent' }, 'settle'],
  [{}, { host: 'n1' }, 'settle'],
  [{ once: 'restart' }, {}, 'restart'],
  [{ once: 'reset' }, { power: 'off' }, 'reset'],
  [{ once: 'rebuild', remedy: 'rebuild' }, {}, 'rebuild'],
  [{ remedy: 'rebuild' }, { phase: 'absent' }, 'rebuild'],
  [{ remedy: 'rebuild' }, { image: 'alma-9' }, 'settle'],
  [{ once: 'rebuild', remedy: 'rebuild' }, { busy: true }, 'rebuild'],
  [{ once: 'reset' }, { busy: true }, 'reset'],
  [{ once: 'restart' }, { phase: 'absent' }, 'lost'],
  [{ remedy: 'rebuild' }, {}, 'settle'],
  [{}, { image: 'alma-9' }, 'settle'],
  [{ power: 'off', once: 'resize', size: LARGE }, {}, 'off'],
  [{ power: 'off', once: 'resize', size: LARGE }, { power: 'off' }, 'resize'],
  [{ power: 'off', remedy: 'resize' }, { power: 'off', size: LARGE }, 'resize'],
  [{ power: 'off' }, { power: 'off', size: LARGE }, 'settle'],
  [{}, { power: 'off', size: LARGE }, 'on'],
  [{}, { size: LARGE }, 'settle'],
  [{ power: 'off' }, { power: 'off', size: undefined, image: undefined }, 'settle'],
])('A machine that should be %j and is %j: the next step is %s', (wanted, seen, step) => {
  expect(nextStep({ ...RUNNING, ...wanted }, { ...ON, ...seen })).toBe(step);
});
