/**
 * The table of steps. It leads each machine from its observed state to the wanted one, one step at a time. The first row that
 * fits names the step. It calls nothing, so it can be read and tested as it is.
 */
import type { Observation } from '../drivers/driver.ts';
import { sizeDiffers } from '../placement/spec.ts';
import type { Wanted } from './wanted.ts';

export type Step =
  | 'remove'
  | 'wait'
  | 'remake'
  | 'create'
  | 'rebuild'
  | 'lost'
  | 'prove'
  | 'off'
  | 'move'
  | 'resize'
  | 'restart'
  | 'reset'
  | 'on'
  | 'settle';

/** A machine as its driver sees it. Missing members are unknown. */
export type Seen = Pick<Observation, 'phase' | 'power' | 'busy' | 'size' | 'image' | 'host'> &
  Partial<Pick<Observation, 'proven'>>;

/** Whether a machine is not on the host to which it moves. */
const isAway = ({ host }: Wanted, seen: Seen): boolean => host !== null && seen.host !== host;

const TABLE: readonly (readonly [step: Step, fits: (wanted: Wanted, seen: Seen) => boolean])[] = [
  ['remove', ({ exists }) => exists === false],
  ['settle', ({ exists }, { phase }) => exists === null && phase === 'absent'],
  ['wait', (_, { phase }) => phase === 'unknown'],
  ['remake', ({ givenUp }) => givenUp],
  ['create', ({ once }) => once === 'create'],
  ['settle', ({ proof }, { phase, proven }) => proof && phase === 'present' && proven === true],
  ['remake', ({ late }) => late],
  ['create', ({ remedy }, { phase }) => remedy === 'create' && phase !== 'present'],
  ['prove', ({ proof }) => proof],
  ['rebuild', ({ once }) => once === 'rebuild'],
  ['restart', ({ once }, { phase }) => once === 'restart' && phase === 'present'],
  ['reset', ({ once }, { phase }) => once === 'reset' && phase === 'present'],
  // An engine may be at work for ever, so it does not keep a suspended machine on.
  ['wait', ({ exists }, { busy }) => exists !== null && busy === true],
  ['rebuild', ({ remedy }, { phase }) => remedy === 'rebuild' && phase !== 'present'],
  ['lost', (_, { phase }) => phase !== 'present'],
  ['off', (wanted, seen) => seen.power === 'on' && (wanted.power === 'off' || isAway(wanted, seen))],
  ['move', (wanted, seen) => seen.power === 'off' && isAway(wanted, seen)],
  ['resize', ({ once }) => once === 'resize'],
  ['resize', (wanted, seen) => wanted.remedy === 'resize' && seen.power === 'off' && sizeDiffers(wanted, seen)],
  ['on', (wanted, { power }) => wanted.power === 'on' && power === 'off'],
  ['wait', (_, { power }) => power === undefined],
  ['settle', () => true],
];

/** The next step of a machine. */
export const nextStep = (wanted: Wanted, seen: Seen): Step => TABLE.find(([, fits]) => fits(wanted, seen))![0];
