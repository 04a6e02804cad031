/** Orders with a faulty driver: each ends with one machine, or with a refund and no machine. */
import { describe, expect, it } from 'vitest';
import { orderServer } from '../../resolvers/servers/order.ts';
import type { Call, Fault } from '../servers/drivers/faulty-driver.ts';
import { FUNDS_MICROS, finish, openFaultyShop, traces } from '../setup/customer-shop.ts';
import { eventually } from '../setup/freehold.ts';
import type { OnEnd } from '../setup/spawn.ts';

const ORDER = { serviceCode: 'vps-1', hostname: 'web', os: 'debian-13', autoRenew: true };

/** A shop where the first calls of one kind fail. */
async function openFaulty(onEnd: OnEnd, call: Call, fault: Fault, times: number) {
  const shop = await openFaultyShop(onEnd);
  let left = times;
  shop.faulty.fault = (called) => (called === call && left-- > 0 ? fault : undefined);
  const { orderNumber } = (await orderServer(shop.context, ORDER)).server;
  return { shop, orderNumber, begun: () => left < times };
}
const made = (journal: string[]) => journal.filter((line) => line.startsWith('create')).length;

const ONCE: [Call, Fault][] = [
  ['create', { kind: 'fail', code: 'failed' }],
  ['create', { kind: 'fail', code: 'unreachable' }],
  ['create', { kind: 'lose' }],
  ['create', { kind: 'twice' }],
  ['create', { kind: 'lie', observation: { proven: true, power: 'on' } }],
  ['observe', { kind: 'fail', code: 'unreachable' }],
  ['observe', { kind: 'lie', observation: { phase: 'absent' } }],
  ['observe', { kind: 'lie', observation: { phase: 'incomplete' } }],
  ['observe', { kind: 'lie', observation: { phase: 'unknown' } }],
];
const ALWAYS: [Call, Fault][] = [
  ['create', { kind: 'fail', code: 'failed' }],
  ['create', { kind: 'fail', code: 'no_capacity' }],
  ['create', { kind: 'fail', code: 'conflict' }],
  ['create', { kind: 'fail', code: 'stuck' }],
];
/** The engine is away, so only the deadline ends the order. */
const AWAY: [Call, Fault][] = [
  ['create', { kind: 'fail', code: 'unreachable' }],
  ['create', { kind: 'lose' }],
];
const nameOf = ([call, fault]: [Call, Fault]) =>
  [
    call,
    fault.kind,
    'code' in fault ? fault.code : 'observation' in fault ? JSON.stringify(fault.observation) : '',
  ].join(' ');

describe.concurrent('An order', () => {
  for (const one of ONCE) {
    it(`gets one machine although the driver fails once: ${nameOf(one)}`, async ({ onTestFinished }) => {
      const { shop, orderNumber } = await openFaulty(onTestFinished, ...one, 1);
      await finish(shop, orderNumber, 'RUNNING');
      expect(await traces(shop, orderNumber)).toMatchObject({
        transfers: ['hold', 'capture'],
        addresses: 2,
        places: 1,
      });
      expect(made(shop.driver.journal())).toBe(1);
    });
  }

  for (const one of [...ALWAYS, ...AWAY]) {
    it(`is refunded and leaves nothing if the driver always fails: ${nameOf(one)}`, async ({ onTestFinished }) => {
      const { shop, orderNumber } = await openFaulty(onTestFinished, ...one, Number.POSITIVE_INFINITY);
      if (AWAY.includes(one)) {
        await shop.work();
        await shop.db.query('update task set deadline_at = now(), run_at = now()');
      }
      await finish(shop, orderNumber, 'FAILED');
      expect(await traces(shop, orderNumber)).toMatchObject({
        transfers: ['hold', 'release'],
        addresses: 0,
        places: 0,
        balance: { available: FUNDS_MICROS, held: 0n },
      });
      expect(await shop.driver.list()).toEqual([]);
    });
  }

  for (const kind of ['hang', 'late'] as const) {
    it(`gets one machine although the first worker stops during a call: ${kind}`, async ({ onTestFinished }) => {
      const { shop, orderNumber, begun } = await openFaulty(onTestFinished, 'create', { kind }, 1);
      const first = shop.provisioning.newWorker({ leaseSeconds: 1 });
      first.start();
      await eventually(async () => begun());
      await first.stop(0.1);
      await finish(shop, orderNumber, 'RUNNING');
      expect(await traces(shop, orderNumber)).toMatchObject({
        transfers: ['hold', 'capture'],
        addresses: 2,
        places: 1,
      });
      expect(made(shop.driver.journal())).toBe(1);
    });
  }
});
