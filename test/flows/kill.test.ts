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
import { type CustomerShop, FUNDS_MICROS, finish, openCustomerShop, traces } from '../setup/customer-shop.ts';
import type { OnEnd } from '../setup/spawn.ts';
import { deathOf, newFolder, runScript } from '../setup/spawn.ts';
import { setOut, WAY_OF, WAYS } from './ways.ts';

/** A death right before the commit is one during the commit: the database keeps as little. */
const MOMENTS = ['before', 'committing', 'committed'] as const;

const HOLDS: Partial<Record<ServerStatus, [addresses: number, places: number]>> = { FAILED: [0, 0], DELETED: [0, 0] };

/** A worker process that kills itself; resolves with the signal that ended it. */
function killedAt(onEnd: OnEnd, { url, folder }: CustomerShop, environment: Record<string, string>) {
  const given = { DATABASE_URL: url, FOLDER: folder, ...environment };
  return deathOf(runScript(join(import.meta.dirname, 'killed-worker.ts'), given, onEnd));
}

describe.each(Object.entries(WAYS))('kill -9 during %s', (_, way) => {
  const { steps, refuse = '', ends } = way;
  const moments = steps.flatMap((step) => MOMENTS.map((moment) => [step, moment] as const));

  it.concurrent.for(moments)(
    'at the step %s, %s: after a restart each effect exists once',
    async ([step, moment], { onTestFinished: onEnd }) => {
      const shop = await openCustomerShop(onEnd, { refused: [refuse] });
      const orderNumber = await setOut(shop, way);
      const begun = await shop.db.query('select status from server where order_number = $1', [orderNumber]);
      expect(begun).toEqual([{ status: way.via }]);
      const environment = { REFUSE: refuse, KILL_STEP: step, KILL_MOMENT: moment };
      expect(await killedAt(onEnd, shop, environment)).toBe('SIGKILL');
      await finish(shop, orderNumber, ends, way.events.length);

      const { transfers, events, addresses, places, balance } = await traces(shop, orderNumber);
      expect({ transfers, events }).toEqual({ transfers: way.transfers, events: way.events });
      const journal = shop.driver.journal().map((line) => line.split(' ')[0]);
      expect(journal).toEqual(way.journal);
      expect([addresses, places]).toEqual(HOLDS[ends] ?? [2, 1]);
      expect(balance.held).toBe(0n);
      expect(balance.available).toBeGreaterThanOrEqual(BigInt(way.leavesUsd) * 1_000_000n);
      expect(balance.available).toBeLessThanOrEqual(FUNDS_MICROS);
      expect((await verifyBooks(shop.db)).balanced).toBe(true);
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
