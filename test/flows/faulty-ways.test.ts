/**
 * Each call that each way makes of a driver goes wrong in each manner, once. Generated from the ways and from the interface of
 * drivers, so that an action that neither has is noticed.
 */
import { describe, expect, it } from 'vitest';
import { verifyBooks } from '../../entities/payments/ledger.ts';
import { RENEWAL_PROCESS } from '../../provisioning/servers/billing/renew.ts';
import { type Call, type Fault, FaultyDriver } from '../servers/drivers/faulty-driver.ts';
import { type CustomerShop, finish, openFaultyShop, traces } from '../setup/customer-shop.ts';
import type { OnEnd } from '../setup/database.ts';
import { eventually } from '../setup/freehold.ts';
import { setOut, WAYS, type Way } from './ways.ts';

/** Every manner: one that is missing is an error of types. */
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
/** Those that are asked by watchers, and by no way: see watched-faults.test.ts. */
const WATCHED: Record<Exclude<Call, 'create' | 'observe' | 'power' | 'rebuild' | 'resize' | 'destroy'>, true> = {
  capacity: true,
  list: true,
  reachable: true,
};

/** What is done to machines does not depend on luck, unless the driver has lied, or troubles that are met anyway add up. */
const isExact = ({ refuse }: Way, { kind }: Fault) => !refuse && kind !== 'lie';
/** What says that it was done and was not is noticed when the time for it has passed: the change falls back. */
const fallsBack = ({ steps }: Way, call: Call, { kind }: Fault) =>
  kind === 'lie' && call !== 'observe' && steps.includes('change');

async function openFaulty(onEnd: OnEnd, way: Way, call: Call, fault: Fault) {
  const shop = await openFaultyShop(onEnd, { refused: [way.refuse ?? ''] });
  const orderNumber = await setOut(shop, way);
  let went = false;
  shop.faulty.fault = (called) => {
    if (went || called !== call) return undefined;
    went = true;
    return fault;
  };
  return { shop, orderNumber, went: () => went };
}

/** Lets a worker go as far as the call that does not end, and stops it there. */
async function stopIn({ provisioning }: CustomerShop, went: () => boolean): Promise<void> {
  const worker = provisioning.newWorker({ leaseSeconds: 1 });
  worker.start();
  await eventually(async () => went());
  await worker.stop(0.1);
}

/** Settled in whatever state, with what belongs to that: nothing held, the books balanced, no machine too many. */
async function isSound(shop: CustomerShop, orderNumber: string) {
  const { addresses, places, balance, transfers } = await traces(shop, orderNumber);
  const [{ status }] = (await shop.db.query<{ status: string }>('select status from server where order_number = $1', [
    orderNumber,
  ])) as [{ status: string }];
  const isGone = status === 'FAILED' || status === 'DELETED';
  expect([addresses, places]).toEqual(isGone ? [0, 0] : [2, 1]);
  expect(balance.held).toBe(0n);
  expect((await verifyBooks(shop.db)).balanced).toBe(true);
  // One that could not be removed is reported, and goes with the server.
  const stuck = await shop.db.query<{ generation: number }>(`select generation from finding where kind = 'STUCK'`);
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
// What renewals lead to is done by the same steps as the same without them.
const TOLD = Object.entries(WAYS).filter(([, { steps }]) => !steps.every((step) => step.startsWith(RENEWAL_PROCESS)));
const CASES = TOLD.flatMap(([name, way]) =>
  way.calls.flatMap((call) =>
    Object.values(FAULTS).flatMap((faults) => faults.map((fault) => [name, call, nameOf(fault), way, fault] as const)),
  ),
);

describe('A driver that errs once', () => {
  it.concurrent.for(CASES)(
    'during %s at %s, in this manner: %s',
    { timeout: 90_000 },
    async ([, call, , way, fault], { onTestFinished: onEnd }) => {
      const { shop, orderNumber, went } = await openFaulty(onEnd, way, call, fault);
      if (fallsBack(way, call, fault)) {
        const worker = shop.provisioning.newWorker({ leaseSeconds: 1 });
        worker.start();
        await eventually(async () => went());
        await shop.db.query('update task set deadline_at = now()');
        await eventually(async () => !(await shop.db.query(`select from task where subject not like 'cron:%'`)).length);
        await worker.stop();
        await isSound(shop, orderNumber);
        return;
      }
      if (fault.kind === 'hang' || fault.kind === 'late') await stopIn(shop, went);
      await finish(shop, orderNumber, way.ends, way.events.length);
      expect(went()).toBe(true);
      const { transfers } = await isSound(shop, orderNumber);
      expect(transfers).toEqual(way.transfers);
      const { events } = await traces(shop, orderNumber);
      expect(events).toEqual(way.events);
      const journal = shop.driver.journal().map((line) => line.split(' ')[0]);
      if (isExact(way, fault)) expect(journal).toEqual(way.journal);
    },
  );
});

describe('The ways', () => {
  it('have every action of a driver that watchers do not have', () => {
    const called = new Set<Call>([
      ...Object.values(WAYS).flatMap(({ calls }) => calls),
      ...(Object.keys(WATCHED) as Call[]),
    ]);
    const actions = Object.getOwnPropertyNames(FaultyDriver.prototype).filter((name) => name !== 'constructor');
    expect([...called].sort()).toEqual(actions.sort());
  });

  it.concurrent.for(Object.entries(WAYS))(
    'name what is asked of the driver: %s',
    async ([, way], { onTestFinished }) => {
      const shop = await openFaultyShop(onTestFinished, { refused: [way.refuse ?? ''] });
      const orderNumber = await setOut(shop, way);
      const called = new Set<Call>();
      shop.faulty.fault = (call) => void called.add(call);
      await finish(shop, orderNumber, way.ends, way.events.length);
      expect([...called].sort()).toEqual([...way.calls].sort());
    },
  );
});
