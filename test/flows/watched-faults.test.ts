/** Each driver call of the observers fails once, with each fault. The observers conclude nothing from it, and remove nothing. */
import { describe, expect, it } from 'vitest';
import { DRIVER_HEALTH_PROCESS } from '../../provisioning/servers/reconcile/driver-health.ts';
import { OBSERVER_PROCESS } from '../../provisioning/servers/reconcile/observe.ts';
import { schedule } from '../../provisioning/tasks/schedule.ts';
import type { Call, Fault } from '../servers/drivers/faulty-driver.ts';
import { finish, openFaultyShop, traces } from '../setup/customer-shop.ts';
import { eventually } from '../setup/freehold.ts';
import { setOut, WAYS } from './ways.ts';

const FAULTS: Record<Fault['kind'], Fault> = {
  fail: { kind: 'fail', code: 'unreachable' },
  lose: { kind: 'lose' },
  hang: { kind: 'hang' },
  late: { kind: 'late' },
  twice: { kind: 'twice' },
  lie: { kind: 'lie', observation: {} },
};
const WATCHED = {
  about: OBSERVER_PROCESS,
  list: OBSERVER_PROCESS,
  capacity: OBSERVER_PROCESS,
  reachable: DRIVER_HEALTH_PROCESS,
} satisfies Partial<Record<Call, string>>;
const CASES = Object.entries(WATCHED).flatMap(([call, process]) =>
  Object.values(FAULTS).map((fault) => [call as Call, fault.kind, process, fault] as const),
);

/** The periodic task has ended without an error. */
const RESTS = `select from task where leased_by is null and error is null and run_at > now() + interval '10 seconds'`;

describe('A server', () => {
  it.concurrent.for(CASES)(
    'stays the same although the call %s of the driver has the fault: %s',
    { timeout: 240_000 },
    async ([call, kind, process, fault], { onTestFinished: onEnd }) => {
      const shop = await openFaultyShop(onEnd);
      const { db } = shop;
      const orderNumber = await setOut(shop, WAYS['an order']!);
      await finish(shop, orderNumber, 'RUNNING');
      let went = false;
      shop.faulty.fault = (called) => {
        if (went || called !== call) return undefined;
        went = true;
        return fault;
      };
      const looked = () => eventually(async () => (await db.query(RESTS)).length);
      await schedule(db, [process]);
      const first = shop.provisioning.newWorker({ leaseSeconds: 1 });
      first.start();
      await eventually(async () => went);
      if (kind === 'hang' || kind === 'late') await first.stop(0.1);
      else onEnd(() => first.stop());
      const second = shop.provisioning.newWorker({ leaseSeconds: 1 });
      second.start();
      onEnd(() => second.stop());
      await looked();
      await db.query('update task set run_at = now()');
      await looked();
      // The observer does not believe an engine that reports no machine at all. It opens the circuit breaker.
      expect(await db.query('select from brake')).toHaveLength(call === 'list' && kind === 'lie' ? 1 : 0);
      expect(await db.query('select from finding')).toEqual([]);
      expect(await db.query(`select from health where status = 'major_outage'`)).toEqual([]);
      expect(await db.query('select status from server')).toEqual([{ status: 'RUNNING' }]);
      expect(await traces(shop, orderNumber)).toMatchObject({
        addresses: 2,
        places: 1,
        transfers: ['hold', 'capture'],
      });
      expect(shop.driver.journal()).toHaveLength(1);
    },
  );
});
