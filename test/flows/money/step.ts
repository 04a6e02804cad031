/** The steps of the walk, with their weights. */
import fc from 'fast-check';
import { MOODS, type Mood } from './coin-chain.ts';
import { CRASH_MOMENTS } from './crashes.ts';
import { FATES, NODE_MOODS } from './fork.ts';

/** The codes of the coins that top-ups ask for, with their prices. The first is on the network that does not tell finality. */
export const PRICES = { TST: 100_000_000n, TAG: 3_000_000_000n };
export type CoinCode = keyof typeof PRICES;
const CODES = Object.keys(PRICES) as CoinCode[];

function of<K extends string>(kind: K) {
  return { kind: fc.constant(kind), who: fc.nat(2), which: fc.nat(1_000) };
}
const weighed = <T>(weight: number, arbitrary: fc.Arbitrary<T>) => ({ weight, arbitrary });
const plain = <K extends string>(weight: number, kind: K) => weighed(weight, fc.record(of(kind)));

/** Mostly small amounts, and some in each tier of the bonus. */
const usd = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 30, max: 400 }) },
  { weight: 2, arbitrary: fc.integer({ min: 500, max: 1_500 }) },
  { weight: 1, arbitrary: fc.integer({ min: 5_000, max: 10_000 }) },
);
const crypto = fc.constantFrom(...CODES);
const serviceCode = fc.constantFrom('vps-1', 'vps-2', 'vps-5');
const network = fc.nat(1);
/** Seconds for which an authorization is valid. The service refuses those above ten minutes, and those that end soon. */
const validSeconds = fc.constantFrom(300, 300, 300, 300, 300, 300, 590, 3, 605, 86_400 * 365);

/** A request with a payment by x402. The chain has one mood then, and another later. A transaction may crash. */
function requested<K extends string>(kind: K) {
  const mood = fc.constantFrom('settles', 'settles', 'settles', 'settles', 'settles', ...MOODS);
  const later = fc.constantFrom<Mood>('settles', 'settles', 'silent', 'refuses', 'away', 'lies');
  // One in six.
  const crash = fc.nat(17).map((which) => CRASH_MOMENTS[which]);
  return { ...of(kind), mood, later, crash };
}

export const STEP = fc.oneof(
  // Customers
  weighed(4, fc.record({ ...of('topUp'), usd, crypto })),
  weighed(7, fc.record({ ...of('pay'), percent: fc.constantFrom(100, 100, 100, 50, 37, 140, 200) })),
  weighed(1, fc.record({ ...of('payOther'), isElsewhere: fc.boolean() })),
  plain(2, 'cancel'),
  weighed(5, fc.record({ ...of('order'), serviceCode: fc.constantFrom('vps-1', 'vps-5', 'vps-5', 'ded-1') })),
  plain(3, 'delete'),
  plain(2, 'resize'),
  weighed(2, fc.record({ ...of('power'), isOn: fc.boolean() })),
  weighed(
    5,
    fc.record({
      ...requested('buy'),
      // Without an amount it buys a server.
      usd: fc.option(usd, { freq: 2 }),
      validSeconds,
      isTaken: fc.nat(7).map((n) => n === 0),
    }),
  ),
  weighed(3, fc.record(requested('repeat'))),
  // The world
  weighed(6, fc.record({ ...of('mine'), network, count: fc.integer({ min: 1, max: 3 }) })),
  weighed(
    1,
    fc.record({ ...of('reorganise'), network, depth: fc.integer({ min: 1, max: 4 }), fate: fc.constantFrom(...FATES) }),
  ),
  weighed(
    2,
    fc.record({
      ...of('disagree'),
      network,
      node: fc.nat(1),
      mood: fc.constantFrom('agrees', ...NODE_MOODS),
      depth: fc.integer({ min: 1, max: 4 }),
      extra: fc.nat(3),
    }),
  ),
  plain(1, 'agree'),
  weighed(1, fc.record({ ...of('rate'), crypto, percent: fc.constantFrom(100, 100, 97, 50, 80, 125, 200, 0) })),
  plain(1, 'lapse'),
  weighed(1, fc.record({ ...of('blind'), isAway: fc.nat(4).map((n) => n === 0) })),
  plain(2, 'expire'),
  plain(3, 'renew'),
  weighed(
    1,
    fc.record({
      ...of('refuse'),
      calls: fc.constantFrom<string[]>(
        [],
        [],
        ['create'],
        ['resize'],
        ['silent'],
        ['stuck'],
        ['mute'],
        ['mute', 'stuck'],
      ),
    }),
  ),
  // The operator
  weighed(1, fc.record({ ...of('assign'), isOther: fc.boolean() })),
  plain(1, 'writeOff'),
  plain(2, 'giveBack'),
  weighed(1, fc.record({ ...of('adjust'), usd: fc.integer({ min: -100, max: 100 }) })),
  weighed(
    3,
    fc.record({
      ...of('payOut'),
      crypto: fc.constantFrom(...CODES, 'USDC-TEST'),
      percent: fc.constantFrom(100, 50, 10, 101),
    }),
  ),
  plain(2, 'sendBack'),
  plain(1, 'export'),
  plain(2, 'broadcast'),
  plain(2, 'finish'),
  plain(1, 'cancelPayout'),
  weighed(1, fc.record({ ...of('sweep'), crypto, percent: fc.constantFrom(5, 30), isFee: fc.boolean() })),
  weighed(1, fc.record({ ...of('lookUp'), network })),
  weighed(
    2,
    fc.record({ ...of('price'), serviceCode, micros: fc.integer({ min: 731, max: 13_000_000 }), setupUsd: fc.nat(3) }),
  ),
  weighed(2, fc.record({ ...of('reprice'), serviceCode, days: fc.constantFrom(0, 14) })),
  weighed(1, fc.record({ ...of('withdrawPrice'), serviceCode })),
  plain(1, 'startPrice'),
  weighed(
    1,
    fc.record({ ...of('bonuses'), percents: fc.uniqueArray(fc.integer({ min: 1, max: 60 }), { maxLength: 3 }) }),
  ),
  weighed(1, fc.record({ ...of('suspend'), servers: fc.constantFrom('RUN', 'OFF') })),
  plain(3, 'resumeAll'),
  weighed(1, fc.record({ ...of('close'), refund: fc.boolean(), isRare: fc.nat(4).map((n) => n === 0) })),
  weighed(1, fc.record({ ...of('remove'), refund: fc.boolean() })),
  plain(1, 'endUnpaid'),
  // The service
  weighed(2, fc.record({ ...of('crash'), moment: fc.constantFrom(...CRASH_MOMENTS) })),
  plain(2, 'abandon'),
  plain(9, 'work'),
);
export type Step = typeof STEP extends fc.Arbitrary<infer T> ? T : never;
export type StepOf<K extends Step['kind']> = Extract<Step, { kind: K }>;
