/**
 * Each driver call of each way fails once, with each fault. The cases come from the ways and from the interface of drivers, so
 * the tests notice a missing action.
 */
import { describe, expect, it } from 'vitest';
import { verifyBooks } from '../../entities/payments/books.ts';
import { RENEWAL_PROCESS } from '../../provisioning/servers/billing/renew.ts';
import { type Call, type Fault, FaultyDriver } from '../servers/drivers/faulty-driver.ts';
import { type CustomerShop, finish, newShops, openFaultyShop, traces } from '../setup/customer-shop.ts';
import { atEnd } from '../setup/end.ts';
import { eventually } from '../setup/freehold.ts';
import { setOut, WAYS, type Way } from './ways.ts';

/** Every fault. A missing one is a type error. */
const FAULTS: Record<Fault['kind'], Fault[]> = {
  fail: [
    { kind: 'fail', code: 'unreachable' },
    { kind: 'fail', code: 'failed' },
  ],
  lose: [{ kind: 'lose' }],
  hang: [{ kind: 'hang' }],
  late: [{ kind: 'late' }],
  twice: [{ kind: 'twice' }],
  lie: [
    { kind: 'lie', observation: { phase: 'unknown' } },
    { kind: 'lie', observation: { phase: 'incomplete' } },
  ],
};
type Made = 'create' | 'observe' | 'power' | 'rebuild' | 'restore' | 'resize' | 'move' | 'destroy';
/** The calls of observers, which belong to no way: see watched-faults.test.ts. */
const WATCHED: Record<Exclude<Call, Made>, true> = {
  about: true,
  capacity: true,
  check: true,
  list: true,
  meter: true,
  reachable: true,
  setSpeed: true,
};

/** Calls that belong to no way: see steps/wanted-state.test.ts and placement/relocation.test.ts. */
const APART: Call[] = ['restore', 'move'];

/** Whether the journal is certain: it is not if the driver lies, or if the way refuses calls, too. */
const isExact = ({ refuse }: Way, { kind }: Fault) => !refuse && kind !== 'lie';

const takeShop = newShops(atEnd, openFaultyShop);

async function openFaulty(way: Way, call: Call, fault: Fault) {
  const shop = await takeShop(way.refuse);
  const orderNumber = await setOut(shop, way);
  let went = false;
  shop.faulty.fault = (called) => {
    if (went || called !== call) return undefined;
    went = true;
    return fault;
  };
  return { shop, orderNumber, went: () => went };
}

/** Lets a worker reach the call that does not end, and stops it there. */
async function stopIn({ provisioning }: CustomerShop, went: () => boolean): Promise<void> {
  const worker = provisioning.newWorker({ leaseSeconds: 1 });
  worker.start();
  await eventually(async () => went());
  await worker.stop(0.1);
}

/** Expects a stable status with the machine and the capacity of that status, no held money, and balanced books. */
async function isSound(shop: CustomerShop, orderNumber: string) {
  const { addresses, places, balance, transfers } = await traces(shop, orderNumber);
  const [{ status }] = (await shop.db.query<{ status: string }>('select status from server where order_number = $1', [
    orderNumber,
  ])) as [{ status: string }];
  const isGone = status === 'FAILED' || status === 'DELETED';
  expect([addresses, places]).toEqual(isGone ? [0, 0] : [2, 1]);
  expect(balance.held).toBe(0n);
  expect((await verifyBooks(shop.db)).balanced).toBe(true);
  // A finding reports a machine that the driver could not remove.
  const stuck = await shop.db.query<{ generation: number }>(
    `select generation from finding where kind = 'STUCK' and order_number = $1`,
    [orderNumber],
  );
  const machines = (await shop.driver.list()).filter(
    (one) => !stuck.some(({ generation }) => generation === one.generation),
  );
  expect(machines).toHaveLength(isGone ? 0 : 1);
  return { status, transfers };
}

const nameOf = (fault: Fault) =>
  [fault.kind, 'code' in fault ? fault.code : '', 'observation' in fault ? fault.observation.phase : '']
    .join(' ')
    .trim();
// A renewal starts steps that other ways cover.
const TOLD = Object.entries(WAYS).filter(([, { steps }]) => !steps.every((step) => step.startsWith(RENEWAL_PROCESS)));
const CASES = TOLD.flatMap(([name, way]) =>
  way.calls.flatMap((call) =>
    Object.values(FAULTS).flatMap((faults) => faults.map((fault) => [name, call, nameOf(fault), way, fault] as const)),
  ),
);

describe('A driver that errs once', () => {
  it.concurrent.for(CASES)(
    'does not harm %s, when %s has the fault: %s',
    { timeout: 240_000 },
    async ([, call, , way, fault]) => {
      const { shop, orderNumber, went } = await openFaulty(way, call, fault);
      if (fault.kind === 'hang' || fault.kind === 'late') await stopIn(shop, went);
      await finish(shop, orderNumber, way.ends, way.events.length);
      expect(went()).toBe(true);
      const { transfers } = await isSound(shop, orderNumber);
      expect(transfers).toEqual(way.transfers);
      const { events } = await traces(shop, orderNumber);
      expect(events).toEqual(way.events);
      const journal = shop.driver.journal().map((line) => line.split(' ')[0]);
      if (isExact(way, fault)) expect(journal).toEqual(way.journal);
      shop.faulty.fault = () => undefined;
      shop.giveBack();
    },
  );
});

describe('The ways', () => {
  it('have every action of a driver that observers do not have', () => {
    const called = new Set<Call>([
      ...Object.values(WAYS).flatMap(({ calls }) => calls),
      ...(Object.keys(WATCHED) as Call[]),
      ...APART,
    ]);
    const actions = Object.getOwnPropertyNames(FaultyDriver.prototype).filter((name) => name !== 'constructor');
    expect([...called].sort()).toEqual(actions.sort());
  });

  it.concurrent.for(Object.entries(WAYS))('name their driver calls: %s', async ([, way]) => {
    const shop = await takeShop(way.refuse);
    const orderNumber = await setOut(shop, way);
    const called = new Set<Call>();
    shop.faulty.fault = (call) => void called.add(call);
    await finish(shop, orderNumber, way.ends, way.events.length);
    expect([...called].sort()).toEqual([...way.calls].sort());
    shop.giveBack();
  });
});
