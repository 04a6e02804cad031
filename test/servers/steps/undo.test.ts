/** A change fails while its engine is away. The customer asks for another before the worker has undone it. */
import { describe, expect, it, onTestFinished } from 'vitest';
import type { MachineKey } from '../../../provisioning/servers/drivers/driver.ts';
import { updateServer } from '../../../resolvers/servers/update.ts';
import { finish, openFaultyServer } from '../../setup/customer-shop.ts';

async function openServer() {
  const { shop, order, machine } = await openFaultyServer(onTestFinished);
  /** Works once, by the deadline of the task if it is over. */
  const work = async (isLate = false) => {
    await shop.db.query('update task set run_at = now() where subject = $1', [order]);
    if (isLate) await shop.db.query('update task set deadline_at = now() where subject = $1', [order]);
    await shop.work();
  };
  return { shop, order, machine, work };
}

/** A rebuild has parked the machine, and then the engine went away until the change failed. */
async function failRebuild() {
  const { shop, order, machine, work } = await openServer();
  const engine = { isAway: false };
  let parked = false;
  const observe = shop.driver.observe.bind(shop.driver);
  shop.driver.observe = async (...given) => ({
    ...(await observe(...given)),
    ...(parked && { phase: 'incomplete', power: 'off' }),
  });
  const restore = (key: MachineKey, signal: AbortSignal) => {
    parked = false;
    return observe(key, signal);
  };
  Object.assign(shop.driver, { restore });
  shop.faulty.fault = (call) => {
    if (call === 'rebuild') [parked, engine.isAway] = [true, true];
    return engine.isAway ? { kind: 'fail', code: 'unreachable' } : undefined;
  };
  await updateServer(shop.context, order, { action: 'REBUILD', os: 'alma-9' });
  await work();
  await work(true);
  expect(await shop.read(order)).toMatchObject({ status: 'RUNNING', failureCode: 'rebuild_failed' });
  return { shop, order, machine, work, engine };
}

describe('The undo of a change', () => {
  it.each([
    ['another change waits for it', false],
    ['another change fails before it', true],
  ])('brings the machine of a failed rebuild back, although %s', async (_, isLate) => {
    const { shop, order, machine, work, engine } = await failRebuild();
    await updateServer(shop.context, order, { action: 'REBOOT' });
    await work(isLate);
    engine.isAway = false;
    await work();
    await finish(shop, order, 'RUNNING');
    expect(await machine()).toMatchObject({ phase: 'present', power: 'on', image: 'debian-13' });
  });

  it('gives a machine its former size, although its customer turns it on first', async () => {
    const { shop, order, machine, work } = await openServer();
    const { size } = await machine();
    await updateServer(shop.context, order, { powerState: 'OFF' });
    await finish(shop, order, 'STOPPED');
    const away = { kind: 'fail', code: 'unreachable' } as const;
    shop.faulty.fault = (call) => {
      if (call !== 'resize') return undefined;
      shop.faulty.fault = () => away;
      return { kind: 'lose' };
    };
    await updateServer(shop.context, order, { serviceCode: 'vps-2' });
    await work();
    await work(true);
    expect([(await shop.read(order)).status, (await machine()).size]).not.toEqual(['STOPPED', size]);
    await updateServer(shop.context, order, { powerState: 'ON' });
    shop.faulty.fault = () => undefined;
    await work();
    await finish(shop, order, 'RUNNING');
    expect(await machine()).toMatchObject({ power: 'on', size });
    // The operator may then change the machine by hand.
    expect(await shop.db.query('select remedy from server')).toEqual([{ remedy: null }]);
  });
});
