/** The observer of machines that differ from their servers, and the circuit breaker. The tests wait for no clock. */
import { beforeEach, describe, expect, it } from 'vitest';
import { CircuitBreaker, Finding } from '../../../entities/servers/finding.ts';
import { startTask } from '../../../entities/tasks/start.ts';
import {
  DriverError,
  type HostReport,
  type MachineKey,
  type Observation,
} from '../../../provisioning/servers/drivers/driver.ts';
import { SimulatedDriver } from '../../../provisioning/servers/drivers/simulated.ts';
import { report } from '../../../provisioning/servers/reconcile/findings.ts';
import { confirmMissing } from '../../../provisioning/servers/reconcile/missing.ts';
import { OBSERVER_PROCESS } from '../../../provisioning/servers/reconcile/observe.ts';
import { destroyTask } from '../../../provisioning/servers/task.ts';
import { asSuperuser, newDatabase, truncate } from '../../setup/database.ts';
import { atEnd } from '../../setup/end.ts';
import { reportsOf } from '../../setup/lock-order.ts';
import { openShop, type Shop } from '../../setup/shop.ts';

/** Reports its machines as the test demands. */
class LyingDriver extends SimulatedDriver {
  hidden: 'all' | 'listed' | undefined;
  down = false;
  hosts: HostReport[] = [];
  /** Runs while it lists. */
  meanwhile = async () => {};
  /** Runs before each answer about one machine. */
  slowly = async () => {};
  override async list(): Promise<Observation[]> {
    if (this.down) throw new DriverError('unreachable', 'down for the test');
    await this.meanwhile();
    return this.hidden ? [] : super.list();
  }
  override async capacity(): Promise<HostReport[]> {
    return this.hosts;
  }
  override async observe(key: MachineKey, signal: AbortSignal): Promise<Observation> {
    await this.slowly();
    if (this.hidden === 'listed') return { ...key, phase: 'unknown', proven: false };
    return super.observe(key, signal);
  }
}

const db = await newDatabase();
const { signal } = new AbortController();
let driver: LyingDriver;
let shop: Shop<LyingDriver>;
let accountId: string;
beforeEach(async () => {
  await truncate(db, 'server, task, finding, brake, host, placement');
  shop = await openShop(atEnd, { db, driver: (folder) => new LyingDriver({ folder, bootSeconds: 0 }) });
  driver = shop.driver;
  accountId = await shop.account(100_000_000n);
});

const DAY = { paidUntil: new Date(Date.now() + 86_400_000) };
const servers = (count: number) =>
  Promise.all(Array.from({ length: count }, () => shop.server(accountId, { ...DAY, ipv4: null })));
const look = () => shop.tick(OBSERVER_PROCESS);
const findings = async () =>
  (await db.source.manager.find(Finding, { order: { id: 'ASC' } })).map(({ kind, orderNumber, resolvedAt }) => [
    kind,
    orderNumber,
    resolvedAt ? 'resolved' : 'open',
  ]);
const openBreakers = async () => (await db.source.manager.find(CircuitBreaker)).map(({ driver }) => driver);
const gone = (order: string) => driver.destroy({ order, generation: 1 }, signal);

describe('The observer', () => {
  it('reports nothing if engine and database agree, and nothing about servers with a change in progress', async () => {
    await servers(3);
    const [changing] = await servers(1);
    await db.query(`update server set status = 'REBUILDING' where order_number = $1`, [changing]);
    await gone(changing!);
    await look();
    expect(await findings()).toEqual([]);
    expect(await openBreakers()).toEqual([]);
  });

  it('reports a missing machine once, tells the operator, and notices its return', async () => {
    const [lost] = await servers(20);
    await gone(lost!);
    await look();
    await look();
    expect(await findings()).toEqual([['LOST', lost, 'open']]);
    const told = await db.query(`select account_id from event where type = 'finding.reported'`);
    expect(told).toEqual([{ accountId: 'operator' }]);
    await db.query(`update server set status = 'DELETED' where order_number = $1`, [lost]);
    await look();
    expect(await findings()).toEqual([['LOST', lost, 'resolved']]);
    await db.query(`update finding set resolved_at = now() - interval '91 days'`);
    await look();
    expect(await findings()).toEqual([]);
  });

  it('does not report unknown machines as missing, and nothing while the engine is unreachable', async () => {
    await servers(2);
    driver.hidden = 'listed';
    await look();
    expect(await findings()).toEqual([]);
    driver.hidden = undefined;
    driver.down = true;
    await truncate(db, 'brake');
    await look();
    expect(await findings()).toEqual([]);
    expect(await openBreakers()).toEqual([]);
  });

  it('reports a machine without a server after ten minutes, and never removes it', async () => {
    const [orphan] = await servers(2);
    await asSuperuser(db, 'delete from server where order_number = $1', [orphan]);
    await look();
    expect(await findings()).toEqual([]);
    await db.query(
      `update task set data = jsonb_set(data, array['orphans', 'simulated', $1], to_jsonb(extract(epoch from now())::bigint * 1000 - 601000)) where process = $2`,
      [`${orphan}.1`, OBSERVER_PROCESS],
    );
    await look();
    expect(await findings()).toEqual([['ORPHAN', orphan, 'open']]);
    await shop.work();
    expect((await driver.observe({ order: orphan!, generation: 1 }, signal)).phase).toBe('present');
    expect(driver.journal().filter((line) => line.startsWith('destroy'))).toEqual([]);
  });

  it('remembers since when a machine has no server, even if the engine was unreachable in between', async () => {
    const [orphan] = await servers(2);
    await asSuperuser(db, 'delete from server where order_number = $1', [orphan]);
    const since = async () =>
      (
        await db.query<{ since: string }>(
          `select data->'orphans'->'simulated'->>$1 as since from task where process = $2`,
          [`${orphan}.1`, OBSERVER_PROCESS],
        )
      )[0]!.since;
    await look();
    const noted = await since();
    expect(noted).toBeTruthy();
    driver.down = true;
    await look();
    driver.down = false;
    await look();
    expect(await since()).toBe(noted);
  });

  it('reports no machine that is changed or removed while the engine lists its machines', async () => {
    const [removed, stopped] = await servers(3);
    driver.meanwhile = async () => {
      await db.query(`update server set status = 'DELETING' where order_number = $1`, [removed]);
      await db.query(`update server set status = 'STOPPING' where order_number = $1`, [stopped]);
      await gone(removed!);
      await driver.power({ order: stopped!, generation: 1 }, 'off', 'meanwhile', signal);
    };
    await look();
    expect(await findings()).toEqual([]);
    expect(await openBreakers()).toEqual([]);
  });

  it('reports power that differs', async () => {
    const [off] = await servers(1);
    const on = await shop.server(accountId, { ...DAY, status: 'STOPPED' });
    await driver.power({ order: off!, generation: 1 }, 'off', 'by hand', signal);
    await driver.power({ order: on, generation: 1 }, 'on', 'by hand', signal);
    await look();
    const power = [off!, on].map((order) => ['POWER', order, 'open']).sort();
    expect((await findings()).sort()).toEqual(power);
    // The next look writes findings and then resolves one with a lower key: it locks all of them before.
    const lost = { kind: 'LOST', order: 'SRV-0000000000', generation: 1, detail: '' } as const;
    await db.transaction((tx) => report(tx, driver.name, [lost]));
    expect(await reportsOf(look)).toEqual([]);
    expect((await findings()).sort()).toEqual([['LOST', lost.order, 'resolved'], ...power]);
  });
});

describe('The circuit breaker', () => {
  it.each([
    ['many machines vanish at once', 20, 3, undefined],
    ['the engine lists nothing, though it may have all', 1, 0, 'listed' as const],
    ['the engine has nothing', 5, 0, 'all' as const],
  ])('stops the destroyer if %s', async (_, count, vanishing, hidden) => {
    const numbers = await servers(count);
    for (const number of numbers.slice(0, vanishing)) await gone(number);
    driver.hidden = hidden;
    const doomed = numbers.at(-1)!;
    await look();
    expect(await openBreakers()).toEqual(['simulated']);

    const before = driver.journal().length;
    await db.query(`update server set status = 'DELETING' where order_number = $1`, [doomed]);
    await db.transaction((tx) =>
      startTask(tx, destroyTask({ kind: 'VPS', orderNumber: doomed, accountId, host: null })),
    );
    await shop.work();
    expect((await shop.read(doomed)).status).toBe('DELETING');
    expect(driver.journal()).toHaveLength(before);

    driver.hidden = undefined;
    await db.query('delete from brake');
    await db.query('update task set run_at = now() where subject = $1', [doomed]);
    await shop.work();
    expect((await shop.read(doomed)).status).toBe('DELETED');
    await look();
    expect(await openBreakers()).toEqual([]);
  });

  it('opens before the observer asks about each of thousands, and does not open for them again', async () => {
    await servers(1);
    await shop.copies(3000);
    let asked = 0;
    driver.slowly = async () => {
      if (asked++ % 100 === 0) expect(await openBreakers()).toEqual(['simulated']);
    };
    await look();
    expect(asked).toBe(3000);
    expect(await findings()).toHaveLength(3000);
    const [told] = await db.query(`select count(*)::int as count from event where type = 'finding.reported'`);

    await db.query('delete from brake');
    driver.slowly = async () => {};
    await look();
    expect(await openBreakers()).toEqual([]);
    expect(await db.query(`select count(*)::int as count from event where type = 'finding.reported'`)).toEqual([told]);
  });

  it('opens even if the engine then does not answer about any machine', async () => {
    const numbers = await servers(3);
    for (const number of numbers.slice(1)) await gone(number);
    driver.slowly = () => Promise.reject(new DriverError('unreachable', 'down for the test'));
    await look();
    expect(await openBreakers()).toEqual(['simulated']);
    expect(await findings()).toEqual([]);
  });

  it('does not open again for machines that the observer had no time for, and asks about them next', async () => {
    const numbers = await servers(4);
    for (const number of numbers.slice(1)) await gone(number);
    const believed = numbers.slice(1).map((order) => ({ order, generation: 1, status: 'RUNNING' as const }));
    const over = new AbortController();
    driver.observe = async (key, within) => {
      if (key.order !== numbers[1]) over.abort();
      within.throwIfAborted();
      return { ...key, phase: 'absent', proven: false };
    };
    const { found, unasked } = await confirmMissing(driver, believed, over.signal);
    expect([found.length, unasked.length]).toEqual([1, 2]);

    await shop.provisioning.schedule();
    await db.query(`update task set data = $2 where process = $1`, [
      OBSERVER_PROCESS,
      { counted: { simulated: unasked.map(({ order }) => `${order}.1`) } },
    ]);
    await db.transaction((tx) => report(tx, 'simulated', [found[0]!]));
    driver.observe = (key, within) => SimulatedDriver.prototype.observe.call(driver, key, within);
    await look();
    expect(await openBreakers()).toEqual([]);
    expect(await findings()).toHaveLength(3);
  });

  it('does not open for few machines among many', async () => {
    const numbers = await servers(20);
    for (const number of numbers.slice(0, 2)) await gone(number);
    await look();
    expect(await openBreakers()).toEqual([]);
    expect(await findings()).toHaveLength(2);
  });
});
