/** Machines that differ from their servers, and changes that cannot be made: the worker brings each to its wanted state. */
import { expect, it, onTestFinished } from 'vitest';
import { verifyBooks } from '../../../entities/payments/books.ts';
import { DriverError, type MachineKey } from '../../../provisioning/servers/drivers/driver.ts';
import { OBSERVER_PROCESS } from '../../../provisioning/servers/reconcile/observe.ts';
import { updateServer } from '../../../resolvers/servers/update.ts';
import { finish, openFaultyServer, traces } from '../../setup/customer-shop.ts';

const NEVER = new AbortController().signal;

async function openServer() {
  const { shop, ...server } = await openFaultyServer(onTestFinished);
  const findings = async () => {
    await shop.tick(OBSERVER_PROCESS);
    const open = await shop.db.query<{ kind: string }>('select kind from finding where resolved_at is null order by 1');
    return open.map(({ kind }) => kind);
  };
  return { shop, ...server, findings };
}

it('A machine that shut itself down is turned on when the customer asks for it', async () => {
  const { shop, order, key, machine, findings } = await openServer();
  await shop.driver.power(key, 'off', 'guest', NEVER);
  expect(await findings()).toEqual(['POWER']);
  const { server } = await updateServer(shop.context, order, { powerState: 'ON' });
  expect(server.status).toBe('RUNNING');
  await finish(shop, order, 'RUNNING');
  expect((await machine()).power).toBe('on');
  expect(await findings()).toEqual([]);
});

it('A resize whose answer is lost until its deadline is undone on the machine, and refunded', async () => {
  const { shop, order, machine, findings } = await openServer();
  const { size } = await machine();
  await updateServer(shop.context, order, { powerState: 'OFF' });
  await finish(shop, order, 'STOPPED');
  shop.faulty.fault = (call) => (call === 'resize' ? { kind: 'lose' } : undefined);
  await updateServer(shop.context, order, { serviceCode: 'vps-2' });
  await shop.work();
  expect((await machine()).size).not.toEqual(size);
  shop.faulty.fault = () => undefined;
  await shop.db.query('update task set deadline_at = now(), run_at = now()');
  await finish(shop, order, 'STOPPED');
  expect(await shop.read(order)).toMatchObject({ serviceCode: 'vps-1', failureCode: 'resize_failed' });
  expect((await machine()).size).toEqual(size);
  expect(await findings()).toEqual([]);
  expect((await traces(shop, order)).transfers).toEqual(['hold', 'capture', 'hold', 'release']);
  expect((await verifyBooks(shop.db)).balanced).toBe(true);
});

it('A rebuild that destroys the machine and fails leaves a machine of the old image, and says so', async () => {
  const { shop, order, key, machine } = await openServer();
  shop.faulty.fault = (call) => (call === 'rebuild' ? { kind: 'fail', code: 'rejected' } : undefined);
  await updateServer(shop.context, order, { action: 'REBUILD', os: 'alma-9' });
  await shop.driver.destroy(key, NEVER);
  let broken = true;
  shop.faulty.fault = (call) => (call === 'rebuild' && broken ? { kind: 'fail', code: 'rejected' } : undefined);
  // The simulated engine makes no machine by a rebuild, so the test stands in for one that does.
  shop.driver.rebuild = (spec, _, signal) => shop.driver.create(spec, signal);
  await shop.work();
  expect(await shop.read(order)).toMatchObject({ status: 'RUNNING', os: 'debian-13', failureCode: 'rebuild_failed' });
  expect((await shop.read(order)).failureMessage).toContain('Its data may be gone.');
  broken = false;
  await shop.db.query('update task set run_at = now()');
  await finish(shop, order, 'RUNNING');
  expect(await machine()).toMatchObject({ phase: 'present', power: 'on', image: 'debian-13' });
});

it('A rebuild that fails half-way leaves the machine from before, if the engine still has it', async () => {
  const { shop, order, machine } = await openServer();
  const calls: string[] = [];
  let parked = false;
  shop.faulty.fault = (call) => {
    if (call !== 'rebuild') return undefined;
    parked = true;
    calls.push(call);
    return { kind: 'fail', code: 'rejected' };
  };
  const observe = shop.driver.observe.bind(shop.driver);
  shop.driver.observe = async (key, signal) => ({
    ...(await observe(key, signal)),
    ...(parked && { phase: 'incomplete' }),
  });
  Object.assign(shop.driver, {
    restore: (key: MachineKey, signal: AbortSignal) => {
      parked = false;
      calls.push('restore');
      return shop.driver.observe(key, signal);
    },
  });
  await updateServer(shop.context, order, { action: 'REBUILD', os: 'alma-9' });
  await finish(shop, order, 'RUNNING');
  expect(calls).toEqual(['rebuild', 'restore']);
  expect(await shop.read(order)).toMatchObject({ os: 'debian-13', failureCode: 'rebuild_failed' });
  expect(await machine()).toMatchObject({ phase: 'present', power: 'on', image: 'debian-13' });
});

it('The observer reports another size, another image and a half-made machine', async () => {
  const { shop, order, findings } = await openServer();
  const list = shop.driver.list.bind(shop.driver);
  const seen = async (change: object) => {
    shop.driver.list = async () => (await list()).map((one) => ({ ...one, ...change }));
    return findings();
  };
  expect(await seen({ size: { vcpus: 64, memoryMb: 1, diskGb: 1 } })).toEqual(['SIZE']);
  expect(await seen({ image: 'plan-9' })).toEqual(['IMAGE']);
  expect(await seen({ phase: 'incomplete' })).toEqual(['INCOMPLETE']);
  expect(await seen({ phase: 'unknown' })).toEqual([]);
  expect((await shop.read(order)).status).toBe('RUNNING');
});

it('A machine that cannot be mended leaves a dead task for the operator', async () => {
  const { shop, order, key } = await openServer();
  await shop.driver.power(key, 'off', 'guest', NEVER);
  shop.faulty.fault = (call) => (call === 'power' ? { kind: 'fail', code: 'rejected' } : undefined);
  await updateServer(shop.context, order, { powerState: 'ON' });
  for (let attempt = 0; attempt < 3; attempt++) {
    await shop.db.query('update task set run_at = now()');
    await shop.work();
  }
  expect(await shop.db.query('select state, error from task where subject = $1', [order])).toEqual([
    { state: 'DEAD', error: 'The test makes power fail.' },
  ]);
  shop.faulty.fault = () => undefined;
  await updateServer(shop.context, order, { powerState: 'ON' });
  await finish(shop, order, 'RUNNING');
});

it('A failure that comes after the paid time ended leaves the suspension alone', async () => {
  const { shop, order } = await openServer();
  await updateServer(shop.context, order, { powerState: 'OFF' });
  await finish(shop, order, 'STOPPED');
  await updateServer(shop.context, order, { powerState: 'ON' });
  shop.driver.power = async () => {
    await shop.db.query(
      `update server set status = 'SUSPENDED', change = null, suspended_at = now(), suspended_from = 'STOPPED'
        where order_number = $1 and status = 'STARTING'`,
      [order],
    );
    throw new DriverError('no_capacity', 'The host is full.');
  };
  await shop.work();
  expect(await shop.read(order)).toMatchObject({ status: 'SUSPENDED', failureCode: null });
});

it('A change has its own deadline, also when the worker still waits for the engine without one', async () => {
  const { shop, order } = await openServer();
  shop.faulty.fault = () => ({ kind: 'fail', code: 'unreachable' });
  await updateServer(shop.context, order, { powerState: 'ON' });
  await shop.db.query('update task set deadline_at = null where subject = $1', [order]);
  await updateServer(shop.context, order, { action: 'REBOOT' });
  const [task] = await shop.db.query<{ minutes: number }>(
    'select extract(epoch from deadline_at - now())::float8 / 60 as minutes from task where subject = $1',
    [order],
  );
  expect(task!.minutes).toBeGreaterThan(25);
});

it('A rebuild that failed in its answer leaves the new system, and no later change erases it', async () => {
  const { shop, order, machine } = await openServer();
  shop.faulty.fault = (call) => (call === 'rebuild' ? { kind: 'lose' } : undefined);
  await updateServer(shop.context, order, { action: 'REBUILD', os: 'alma-9' });
  await shop.work();
  shop.faulty.fault = () => undefined;
  await shop.db.query('update task set deadline_at = now(), run_at = now()');
  await finish(shop, order, 'RUNNING');
  await updateServer(shop.context, order, { powerState: 'OFF' });
  await finish(shop, order, 'STOPPED');
  await updateServer(shop.context, order, { powerState: 'ON' });
  await finish(shop, order, 'RUNNING');
  expect(await machine()).toMatchObject({ power: 'on', image: 'alma-9' });
});

it('An engine that works on a machine without end leaves a dead task, and the customer can rebuild', async () => {
  const { shop, order, key, machine } = await openServer();
  await shop.driver.power(key, 'off', 'guest', NEVER);
  shop.faulty.fault = (call) =>
    call === 'observe' ? { kind: 'lie', observation: { phase: 'present', power: 'off', busy: true } } : undefined;
  await updateServer(shop.context, order, { powerState: 'ON' });
  const late = `update task set deadline_at = null, run_at = now(), data = data || '{"busyBy":"2020-01-01T00:00:00Z"}'`;
  for (let attempt = 0; attempt < 3; attempt++) {
    await shop.db.query(late);
    await shop.work();
  }
  expect(await shop.db.query('select state, error from task where subject = $1', [order])).toEqual([
    { state: 'DEAD', error: 'The engine still works on the machine.' },
  ]);
  await updateServer(shop.context, order, { action: 'REBUILD', os: 'alma-9' });
  await shop.work();
  expect((await machine()).image).toBe('alma-9');
});
