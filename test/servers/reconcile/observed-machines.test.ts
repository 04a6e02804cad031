/** The observer mends a few differences. It removes machines that were given up, and others go off again. */
import { beforeEach, describe, expect, it } from 'vitest';
import { newId } from '../../../entities/ids.ts';
import { Finding } from '../../../entities/servers/finding.ts';
import { startTask } from '../../../entities/tasks/start.ts';
import { DriverError, type MachineKey, type Observation } from '../../../provisioning/servers/drivers/driver.ts';
import { SimulatedDriver } from '../../../provisioning/servers/drivers/simulated.ts';
import { report } from '../../../provisioning/servers/reconcile/findings.ts';
import { OBSERVER_PROCESS } from '../../../provisioning/servers/reconcile/observe.ts';
import { serverTask } from '../../../provisioning/servers/task.ts';
import { suspendAccount } from '../../../resolvers/accounts/account.ts';
import { takeMeasure } from '../../../resolvers/accounts/cases.ts';
import { openCase } from '../../setup/customer-shop.ts';
import { newDatabase, truncate } from '../../setup/database.ts';
import { atEnd } from '../../setup/end.ts';
import { contextOf, HOUR_MS, openShop, type Shop } from '../../setup/shop.ts';

/** Cannot reach the machines of some orders, such as those with a broken BMC. */
class RemoteDriver extends SimulatedDriver {
  readonly unreachable = new Set<string>();
  override async destroy(key: MachineKey, signal: AbortSignal): Promise<Observation> {
    if (this.unreachable.has(key.order)) throw new DriverError('unreachable', 'no answer of the BMC');
    return super.destroy(key, signal);
  }
}

const db = await newDatabase();
const { signal } = new AbortController();
let driver: RemoteDriver;
let shop: Shop<RemoteDriver>;
let accountId: string;
beforeEach(async () => {
  await truncate(db, 'server, task, finding, brake, abuse_case');
  shop = await openShop(atEnd, { db, driver: (folder) => new RemoteDriver({ folder, bootSeconds: 0 }) });
  driver = shop.driver;
  accountId = await shop.account(100_000_000n);
});

const PAID = { paidUntil: new Date(Date.now() + 24 * HOUR_MS) };
const SUSPENDED = { ...PAID, status: 'SUSPENDED', suspendedFrom: 'RUNNING' } as const;
const look = () => shop.tick(OBSERVER_PROCESS);
const findings = async () =>
  (await db.source.manager.find(Finding))
    .map(({ kind, orderNumber, resolvedAt }) => `${kind} ${orderNumber} ${resolvedAt ? 'resolved' : 'open'}`)
    .toSorted();
const seen = (order: string) => driver.observe({ order, generation: 1 }, signal);

describe('A machine that was given up', () => {
  /** Returns an order whose first machine is being replaced. */
  async function replaced(): Promise<string> {
    const order = await shop.server(accountId, PAID);
    await db.query(`update server set status = 'PROVISIONING', generation = 2 where order_number = $1`, [order]);
    await db.transaction((tx) => report(tx, driver.name, [{ kind: 'STUCK', order, generation: 1, detail: '' }]));
    return order;
  }

  it('is removed by the observer, and not while the circuit breaker is open', async () => {
    const order = await replaced();
    await db.query(`insert into brake (driver, reason) values ('simulated', 'a test')`);
    await look();
    expect((await seen(order)).phase).toBe('present');
    await truncate(db, 'brake');
    await look();
    expect((await seen(order)).phase).toBe('absent');
    expect(await findings()).toEqual([`STUCK ${order} resolved`]);
  });

  it('keeps the observer from no other machine while it is unreachable', async () => {
    const [stuck, removed] = [await replaced(), await replaced()];
    const off = await shop.server(accountId, PAID);
    await driver.power({ order: off, generation: 1 }, 'off', 'by hand', signal);
    driver.unreachable.add(stuck);
    await look();
    expect(await findings()).toEqual(
      [`POWER ${off} open`, `STUCK ${removed} resolved`, `STUCK ${stuck} open`].toSorted(),
    );
  });
});

describe('The machine of a suspended server', () => {
  it('is turned off again if it came on by itself', async () => {
    const [awake, asleep] = [await shop.server(accountId, SUSPENDED), await shop.server(accountId, SUSPENDED)];
    const stopped = await shop.server(accountId, { ...PAID, status: 'STOPPED' });
    for (const order of [awake, stopped]) await driver.power({ order, generation: 1 }, 'on', 'by itself', signal);
    await look();
    expect(await db.query(`select subject from task where process = 'server'`)).toEqual([{ subject: awake }]);
    await shop.work();
    const seenAll = await Promise.all([awake, asleep, stopped].map(seen));
    expect(seenAll.map(({ power }) => power)).toEqual(['off', 'off', 'on']);
    await look();
    expect(await findings()).toEqual([`POWER ${awake} resolved`, `POWER ${stopped} open`].toSorted());
  });

  it('is reported if the worker cannot turn it off for an hour, or not on in time', async () => {
    const suspended = { ...SUSPENDED, suspendedAt: new Date(Date.now() - 2 * HOUR_MS) };
    const [on, off, undone] = [
      await shop.server(accountId, suspended),
      await shop.server(accountId, suspended),
      await shop.server(accountId, suspended),
    ];
    const all = [on, off, undone];
    const task = serverTask({ kind: 'VPS', accountId, host: null, orderNumber: on });
    await db.transaction((tx) => startTask(tx, task));
    const resume = { id: 'chg_1', operation: 'resume', from: 'RUNNING', heldMicros: '1' };
    const resuming = (order: string, failureCode: string, change: object) =>
      db.query('update server set failure_code = $2, change = $3 where order_number = $1', [
        ...[order, failureCode, JSON.stringify(change)],
      ]);
    await resuming(off, 'resume_failed', resume);
    // The worker undoes an earlier change at the same time, whose failure stays.
    await resuming(undone, 'resize_failed', { ...resume, reported: true });
    await look();
    await look();
    expect(await findings()).toEqual(all.map((order) => `POWER ${order} open`).toSorted());
    await db.query('delete from task where subject = $1', [on]);
    await db.query('update server set change = null where order_number = any($1)', [[off, undone]]);
    await look();
    expect(await findings()).toEqual(all.map((order) => `POWER ${order} resolved`).toSorted());
  });
});

describe('The machine of a stopped server that comes on by itself', () => {
  const STOPPED = { ...PAID, status: 'STOPPED' } as const;
  const wake = (order: string) => driver.power({ order, generation: 1 }, 'on', newId('chg'), signal);
  const powerOf = async (order: string) => (await seen(order)).power;

  it('is turned off while its account is suspended with its servers', async () => {
    const order = await shop.server(accountId, STOPPED);
    const suspend = () => suspendAccount(contextOf(shop, accountId), accountId, 'Abuse', 'OFF');
    await wake(order);
    await suspend();
    await shop.work();
    expect(await powerOf(order)).toBe('off');
    await wake(order);
    await look();
    await shop.work();
    expect(await powerOf(order)).toBe('off');
    await wake(order);
    await suspend();
    await shop.work();
    expect(await powerOf(order)).toBe('off');
  });

  it('is turned off while a complaint about it is open, and by a measure at once', async () => {
    const [accused, other] = [await shop.server(accountId, STOPPED), await shop.server(accountId, STOPPED)];
    const id = await openCase({ db, accountId }, accused);
    for (const order of [accused, other]) await wake(order);
    await look();
    await shop.work();
    expect([await powerOf(accused), await powerOf(other)]).toEqual(['off', 'on']);
    await wake(accused);
    await takeMeasure(contextOf(shop, accountId), id, 'POWER_OFF', 'It still scans.');
    await shop.work();
    expect(await powerOf(accused)).toBe('off');
  });
});
