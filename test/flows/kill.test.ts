/** kill -9 at every step of every way of a server, and the state after a restart. The cases are generated. */
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { verifyBooks } from '../../entities/payments/books.ts';
import { CHANGING, type ServerStatus } from '../../entities/servers/server.ts';
import { RENEWAL_PROCESS, renewalProcess } from '../../provisioning/servers/billing/renew.ts';
import { SimulatedDriver } from '../../provisioning/servers/drivers/simulated.ts';
import { Engines } from '../../provisioning/servers/engines.ts';
import { serverProcess } from '../../provisioning/servers/steps/process.ts';
import { RECONCILE, UNDO } from '../../provisioning/servers/task.ts';
import { FUNDS_MICROS, finish, newShops, openCustomerShop, type ReusedShop, traces } from '../setup/customer-shop.ts';
import { atEnd } from '../setup/end.ts';
import type { OnEnd } from '../setup/spawn.ts';
import { deathOf, newFolder, runScript } from '../setup/spawn.ts';
import type { KilledShop } from './killed-worker.ts';
import { setOut, WAY_OF, WAYS, type Way } from './ways.ts';

/** A death right before the commit is one during the commit: the database keeps as little. */
const MOMENTS = ['before', 'committing', 'committed'] as const;
/** The first step of an order begins it in a transaction of its own. */
const momentsOf = ({ via }: Way, step: string): readonly Case['moment'][] =>
  via === 'PENDING' && step === 'reconcile' ? [...MOMENTS, 'begun'] : MOMENTS;

const HOLDS: Partial<Record<ServerStatus, [addresses: number, places: number]>> = { FAILED: [0, 0], DELETED: [0, 0] };

const takeShop = newShops(atEnd, openCustomerShop);

/** A server in a shop that no other case uses, and the moment at which its worker dies. */
interface Case {
  shop: ReusedShop;
  orderNumber: string;
  step: string;
  moment: KilledShop['moment'];
}

async function setOutUntil(way: Way, step: string, moment: Case['moment']): Promise<Case> {
  const shop = await takeShop(way.refuse);
  const orderNumber = await setOut(shop, way);
  const begun = await shop.db.query('select status from server where order_number = $1', [orderNumber]);
  expect(begun).toEqual([{ status: way.via }]);
  return { shop, orderNumber, step, moment };
}

/** Runs one worker process of all shops, which kills itself. @returns the signal that ended it */
function killedAt(onEnd: OnEnd, { refuse = '' }: Way, cases: Case[]) {
  const shops = cases.map(({ shop: { url, folder }, step, moment }) => ({ url, folder, refuse, step, moment }));
  const script = join(import.meta.dirname, 'killed-worker.ts');
  return deathOf(runScript(script, { SHOPS: JSON.stringify(shops satisfies KilledShop[]) }, onEnd));
}

/** Expects each effect of the way, once. */
async function hasEffects(way: Way, { shop, orderNumber, step, moment }: Case) {
  const { transfers, events, addresses, places, balance } = await traces(shop, orderNumber);
  const journal = shop.driver.journal().map((line) => line.split(' ')[0]);
  const found = { transfers, events, journal, capacity: [addresses, places], held: balance.held };
  const { transfers: moved, events: told, journal: made } = way;
  const capacity = HOLDS[way.ends] ?? [2, 1];
  expect({ step, moment, ...found }).toEqual({
    ...{ step, moment, transfers: moved, events: told, journal: made, capacity, held: 0n },
  });
  expect(balance.available).toBeGreaterThanOrEqual(BigInt(way.leavesUsd) * 1_000_000n);
  expect(balance.available).toBeLessThanOrEqual(FUNDS_MICROS);
  expect((await verifyBooks(shop.db)).balanced).toBe(true);
}

describe('kill -9 at any moment of a step', () => {
  it.concurrent.for(Object.entries(WAYS))(
    'leaves each effect once after a restart: %s',
    async ([, way], { onTestFinished: onEnd }) => {
      const moments = way.steps.flatMap((step) => momentsOf(way, step).map((moment) => [step, moment] as const));
      const cases = await Promise.all(moments.map(([step, moment]) => setOutUntil(way, step, moment)));
      expect(await killedAt(onEnd, way, cases)).toBe('SIGKILL');
      await Promise.all(cases.map((one) => finish(one.shop, one.orderNumber, way.ends, way.events.length)));
      for (const one of cases) await hasEffects(way, one);
      for (const { shop } of cases) shop.giveBack();
    },
  );
});

it('The ways have every step of a server', async () => {
  const { context } = await openCustomerShop(onTestFinished);
  const driver = new SimulatedDriver({ folder: newFolder(), bootSeconds: 0 });
  const process = serverProcess({
    db: context.db,
    vault: context.vault,
    engines: new Engines(context.db, { VPS: driver, DEDICATED: driver }),
    pollSeconds: 1,
  });
  const covered = new Set(Object.values(WAYS).flatMap(({ steps }) => steps.map((step) => step.replace(/ \d$/, ''))));
  const renewals = Object.keys(renewalProcess(context.db).steps).map((step) => `${RENEWAL_PROCESS}:${step}`);
  expect([RECONCILE, UNDO, ...renewals].sort()).toEqual([...covered].sort());
  expect(Object.keys(process.steps)).toEqual(expect.arrayContaining([RECONCILE, UNDO]));
  const states = new Set(Object.values(WAYS).map(({ via }) => via));
  expect([...CHANGING].filter((status) => !states.has(status))).toEqual([]);
  expect(Object.values(WAY_OF).filter((way) => !WAYS[way])).toEqual([]);
});
