/** Changes of the way to an engine, which may lead to another one. */
import { expect, it, onTestFinished } from 'vitest';
import { Engine } from '../../../entities/servers/engine.ts';
import { CircuitBreaker } from '../../../entities/servers/finding.ts';
import { deleteServer } from '../../../resolvers/servers/delete.ts';
import { addEngine, removeEngine, updateEngine } from '../../../resolvers/servers/engines.ts';
import { closeBreaker } from '../../../resolvers/servers/findings.ts';
import { removeHost } from '../../../resolvers/servers/hosts.ts';
import { ELSEWHERE, openEngines } from './engine-world.ts';

async function open() {
  const shop = await openEngines(onTestFinished);
  await shop.add('north');
  await shop.look();
  const north = shop.engine('north');
  return {
    ...shop,
    north,
    /** The machine vanishes from the engine. */
    lose: (order: string) => north.destroy({ order, generation: 1 }, new AbortController().signal),
    braked: async () => (await shop.db.source.manager.find(CircuitBreaker)).map(({ driver }) => driver),
    isChecked: async () => (await shop.db.source.manager.findOneByOrFail(Engine, { name: 'north' })).seenAt !== null,
    finish: async () => {
      await shop.db.query(`update task set run_at = now() where subject not like 'cron:%'`);
      await shop.work();
    },
  };
}

it('An order that is deleted before it had a machine opens no circuit breaker of a changed engine', async () => {
  const shop = await open();
  const deleted = await shop.order();
  await updateEngine(shop.operator, 'north', { network: 'br0' });
  await deleteServer(shop.context, deleted);
  await shop.look();
  expect([await shop.braked(), await shop.isChecked()]).toEqual([[], true]);
  await shop.finish();
  expect((await shop.read(deleted)).status).toBe('DELETED');
});

it('A machine that was gone before its deletion opens no circuit breaker of a changed engine that has others', async () => {
  const shop = await open();
  const [deleted] = [await shop.running(), await shop.running()];
  await shop.lose(deleted);
  await updateEngine(shop.operator, 'north', { network: 'br0' });
  await deleteServer(shop.context, deleted);
  await shop.look();
  expect([await shop.braked(), await shop.isChecked()]).toEqual([[], true]);
});

it('A changed engine without its machines goes on at the look after the operator closes its circuit breaker', async () => {
  const shop = await open();
  const [deleted, lost] = [await shop.running(), await shop.running()];
  for (const order of [deleted, lost]) await shop.lose(order);
  await updateEngine(shop.operator, 'north', { network: 'br0' });
  await deleteServer(shop.context, deleted);
  for (const _ of [1, 2]) {
    await shop.look();
    expect([await shop.braked(), await shop.isChecked()]).toEqual([['north'], false]);
  }
  await closeBreaker(shop.operator, 'north');
  await shop.look();
  expect([await shop.braked(), await shop.isChecked()]).toEqual([[], true]);
  await shop.finish();
  expect((await shop.read(deleted)).status).toBe('DELETED');
});

it('A closed circuit breaker says nothing of the next connection', async () => {
  const shop = await open();
  await shop.running();
  await updateEngine(shop.operator, 'north', { endpoints: [ELSEWHERE] });
  await shop.look();
  await closeBreaker(shop.operator, 'north');
  await updateEngine(shop.operator, 'north', { network: 'br1' });
  await shop.look();
  expect([await shop.braked(), await shop.isChecked()]).toEqual([['north'], false]);
});

it('An engine that is removed and added again under its name gets another driver', async () => {
  const shop = await open();
  await removeHost(shop.operator, 'north-1');
  await removeEngine(shop.operator, 'north');
  await addEngine(shop.operator, { name: 'north', region: 'zrh', endpoints: [ELSEWHERE] });
  await shop.host('north-1', 'north');
  await shop.look();
  const order = await shop.running();
  const machines = await Promise.all([shop.north, shop.engine('north', 'elsewhere')].map((one) => one.list()));
  expect(machines.map((all) => all.map((one) => one.order))).toEqual([[], [order]]);
});
