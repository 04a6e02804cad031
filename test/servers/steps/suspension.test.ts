/** The machine of a server that is suspended and resumed, with interruptions. */
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { Server } from '../../../entities/servers/server.ts';
import { DriverError } from '../../../provisioning/servers/drivers/driver.ts';
import { newDatabase, truncate } from '../../setup/database.ts';
import { atEnd } from '../../setup/end.ts';
import { HOUR_MS, openShop, PRICE } from '../../setup/shop.ts';

const shop = await openShop(atEnd, { db: await newDatabase(), refusedAs: 'unreachable' });
const { driver } = shop;
beforeEach(async () => {
  driver.refused = [];
  await truncate(shop.db, 'task, server, event, audit_entry');
});

const tick = () => shop.tick('renewals');
const seen = (order: string) => driver.observe({ order, generation: 1 }, new AbortController().signal);
const calls = (order: string) =>
  driver
    .journal()
    .filter((line) => line.includes(order))
    .map((line) => line.split(' ')[0]);
const later = () => shop.db.query('update task set run_at = now() where leased_by is null');
const held = async (account: string) =>
  (await shop.db.query<{ n: bigint }>('select held_micros as n from balance where account_id = $1', [account]))[0]!.n;
/** Returns a suspended server whose month has ended. */
async function suspended(micros = 0n, set: Partial<Server> = {}) {
  const account = await shop.account(micros);
  const order = await shop.server(account, set);
  await tick();
  await shop.work();
  expect((await shop.read(order)).status).toBe('SUSPENDED');
  return { account, order };
}

describe('A suspended server', () => {
  it('is turned off once, and its task ends', async () => {
    const { order } = await suspended();
    expect(await seen(order)).toMatchObject({ phase: 'present', power: 'off' });
    expect(calls(order)).toEqual(['create', 'off']);
    expect(await shop.db.query('select 1 from task where subject = $1', [order])).toEqual([]);
  });

  it('is turned off as soon as its machine is reachable', async () => {
    driver.refused = ['power'];
    const { order } = await suspended();
    for (let i = 0; i < 7; i++) {
      await later();
      await shop.work();
    }
    expect((await seen(order)).power).toBe('on');
    expect(await shop.read(order)).toMatchObject({ status: 'SUSPENDED', failureCode: null });
    driver.refused = [];
    await later();
    await shop.work();
    expect((await seen(order)).power).toBe('off');
  });

  it('is turned off by another call, if its engine or an operator refused the first ones', async () => {
    const { power } = driver;
    const ids: string[] = [];
    driver.power = async (_key, _want, id) => {
      ids.push(id);
      throw new DriverError('rejected', 'The operator could not do the job POWER.');
    };
    onTestFinished(() => void Reflect.deleteProperty(driver, 'power'));
    const { order } = await suspended();
    for (let i = 0; i < 4; i++) {
      await later();
      await shop.work();
    }
    expect(new Set(ids).size).toBe(5);
    driver.power = power;
    await later();
    await shop.work();
    expect((await seen(order)).power).toBe('off');
  });

  it('is suspended and turned off when it is stable, if it was busy at the end of its time', async () => {
    const account = await shop.account(0n);
    const order = await shop.server(account, { paidUntil: new Date(Date.now() - HOUR_MS) });
    const change = { id: 'chg_1', from: 'RUNNING', operation: 'rebuild', os: 'alma-9', userData: null };
    await shop.db.query(`update server set status = 'REBUILDING', change = $2 where order_number = $1`, [
      order,
      JSON.stringify({ ...change, sshKeyIds: [], sshPublicKeys: [] }),
    ]);
    await shop.db.transaction((tx) =>
      shop.provisioning.servers.reconcile(tx, { kind: 'VPS', orderNumber: order, accountId: account, host: null }),
    );
    await tick();
    expect((await shop.read(order)).status).toBe('REBUILDING');
    await shop.work();
    expect(await shop.read(order)).toMatchObject({ status: 'RUNNING', os: 'alma-9' });
    await tick();
    await shop.work();
    expect(await shop.read(order)).toMatchObject({ status: 'SUSPENDED', suspendedFrom: 'RUNNING', os: 'alma-9' });
    expect(calls(order)).toEqual(['create', 'rebuild', 'off']);
  });

  it('can be deleted while it is being turned off, or while its machine is unreachable', async () => {
    driver.refused = ['power'];
    const { order } = await suspended();
    const { accountId } = await shop.read(order);
    await shop.db.transaction(async (tx) => {
      await shop.provisioning.servers.destroy(tx, { kind: 'VPS', orderNumber: order, accountId, host: null });
      await tx.query(`update server set status = 'DELETING' where order_number = $1`, [order]);
    });
    await shop.work();
    expect((await shop.read(order)).status).toBe('DELETED');
    expect((await seen(order)).phase).toBe('absent');
  });
});

describe('A server that resumes', () => {
  it.each([
    ['RUNNING', 'on', ['create', 'off', 'on']],
    ['STOPPED', 'off', ['create', 'off']],
  ] as const)('is %s as before, and its machine %s', async (status, power, journal) => {
    const { account, order } = await suspended(0n, { status });
    await shop.fund(account, PRICE);
    await tick();
    expect((await shop.read(order)).status).toBe('SUSPENDED');
    expect([await shop.balance(account), await held(account)]).toEqual([0n, PRICE]);
    await shop.work();
    expect(await shop.read(order)).toMatchObject({ status, change: null, suspendedAt: null, suspendedFrom: null });
    expect(await seen(order)).toMatchObject({ power });
    expect(calls(order)).toEqual(journal);
    expect([await shop.balance(account), await held(account)]).toEqual([0n, 0n]);
    expect(await shop.balanced()).toBe(true);
    const kinds = await shop.db.query('select kind from transfer where order_number = $1 order by id', [order]);
    expect(kinds).toEqual([{ kind: 'renewal' }, { kind: 'capture' }]);
  });

  it('pays for its month as soon as its machine is on, even if the customer closes the SSH port', async () => {
    const { account, order } = await suspended();
    const power = driver.power.bind(driver);
    driver.power = async (...given) => ({ ...(await power(...given)), proven: false });
    onTestFinished(() => void Reflect.deleteProperty(driver, 'power'));
    await shop.fund(account, PRICE);
    await tick();
    await shop.work();
    expect((await seen(order)).power).toBe('on');
    expect(await shop.read(order)).toMatchObject({ status: 'RUNNING', change: null, suspendedAt: null });
    expect([await shop.balance(account), await held(account)]).toEqual([0n, 0n]);
    expect(await shop.balanced()).toBe(true);
    await shop.db.query(`update server set paid_until = now() where order_number = $1`, [order]);
    await tick();
    await shop.work();
    expect((await shop.read(order)).status).toBe('SUSPENDED');
    expect((await seen(order)).power).toBe('off');
  });

  it('is not billed while its engine does not say that its machine is on', async () => {
    const { account, order } = await suspended();
    const power = driver.power.bind(driver);
    driver.power = async (...given) => ({ ...(await power(...given)), phase: 'unknown', power: undefined });
    onTestFinished(() => void Reflect.deleteProperty(driver, 'power'));
    await shop.fund(account, PRICE);
    await tick();
    await shop.work();
    expect((await shop.read(order)).status).toBe('SUSPENDED');
    expect(await held(account)).toBe(PRICE);
  });

  it('is turned on after it was turned off, even if it is paid again in between', async () => {
    const account = await shop.account(0n);
    const order = await shop.server(account);
    await tick();
    await shop.fund(account, PRICE);
    await tick();
    await shop.work();
    expect(await shop.read(order)).toMatchObject({ status: 'RUNNING', change: null });
    expect((await seen(order)).proven).toBe(true);
  });

  it('holds one month, even if several transactions try it at once', async () => {
    const { account, order } = await suspended();
    await shop.fund(account, 5n * PRICE);
    for (let i = 0; i < 3; i++)
      await shop.db.query(
        `insert into task (id, lane, process, subject, account_id, step)
          values ('task_' || $1, 'periodic', 'renewals', $1, $2, 'resume-account')`,
        [`rival ${i}`, account],
      );
    const worker = shop.provisioning.newWorker();
    const leases = await worker.lease('periodic', 10);
    expect(leases.length).toBeGreaterThanOrEqual(3);
    await Promise.all(leases.map((lease) => worker.run(lease)));
    expect(await held(account)).toBe(PRICE);
    await shop.work();
    expect((await shop.read(order)).status).toBe('RUNNING');
    expect(await shop.balance(account)).toBe(4n * PRICE);
  });

  it('reports once that it cannot be turned on, is tried again, and is neither billed nor deleted meanwhile', async () => {
    const { account, order } = await suspended();
    driver.refused = ['power'];
    await shop.fund(account, PRICE);
    await tick();
    await shop.db.query('update task set deadline_at = now() where subject = $1', [order]);
    for (let i = 0; i < 10; i++) {
      await later();
      await shop.work();
    }
    await shop.db.query(`update server set suspended_at = now() - interval '8 days' where order_number = $1`, [order]);
    await tick();
    expect(await shop.read(order)).toMatchObject({ status: 'SUSPENDED', failureCode: 'resume_failed' });
    expect(await shop.events(order)).toEqual(['server.suspended', 'server.action_failed']);
    expect([await shop.balance(account), await held(account)]).toEqual([0n, PRICE]);
    driver.refused = [];
    await later();
    await shop.work();
    expect(await shop.read(order)).toMatchObject({ status: 'RUNNING', failureCode: null, failureMessage: null });
    expect(await held(account)).toBe(0n);
  });

  it('keeps the undo of its rebuild, although it could not be turned on in time', async () => {
    const { account, order } = await suspended();
    await shop.db.query(
      `update server set failure_code = 'rebuild_failed', remedy = 'rebuild' where order_number = $1`,
      [order],
    );
    const observe = driver.observe.bind(driver);
    let [reachable, restored] = [false, false];
    driver.observe = async (...given) => ({ ...(await observe(...given)), ...(!restored && { phase: 'incomplete' }) });
    const restore: typeof driver.observe = (...given) => {
      if (!reachable) throw new DriverError('unreachable', 'The engine is silent.');
      restored = true;
      return driver.observe(...given);
    };
    Object.assign(driver, { restore });
    onTestFinished(() => void Reflect.deleteProperty(driver, 'observe'));
    onTestFinished(() => void Reflect.deleteProperty(driver, 'restore'));
    await shop.fund(account, PRICE);
    await tick();
    await shop.db.query(`update task set step = 'undo', deadline_at = now() where subject = $1`, [order]);
    for (let i = 0; i < 5; i++) {
      await later();
      await shop.work();
    }
    expect(await shop.events(order)).toEqual(['server.suspended', 'server.action_failed']);
    reachable = true;
    await later();
    await shop.work();
    expect(await shop.read(order)).toMatchObject({ status: 'RUNNING', failureCode: null });
    expect(calls(order)).not.toContain('rebuild');
  });
});
