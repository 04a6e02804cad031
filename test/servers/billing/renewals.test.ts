/** Renewal and suspension of servers whose paid time has ended. The tests move time in the database. */
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { newId } from '../../../entities/ids.ts';
import type { Server, ServerStatus } from '../../../entities/servers/server.ts';
import { suspendAccount } from '../../../resolvers/accounts/account.ts';
import { updateServer } from '../../../resolvers/servers/update.ts';
import { newDatabase, truncate } from '../../setup/database.ts';
import { atEnd } from '../../setup/end.ts';
import { eventually } from '../../setup/freehold.ts';
import { contextOf, HOUR_MS, openShop, PRICE } from '../../setup/shop.ts';
import { deathOf, runScript } from '../../setup/spawn.ts';

const MONTH_MS = 730 * HOUR_MS;
const shop = await openShop(atEnd, { db: await newDatabase() });
beforeEach(() => truncate(shop.db, 'task, server, event, audit_entry'));

const tick = () => shop.tick('renewals');
const ago = (hours: number) => new Date(Date.now() - hours * HOUR_MS);

describe('A server whose paid time has ended', () => {
  it('is renewed once from the balance, for 730 hours from the end of that time', async () => {
    const account = await shop.account(2n * PRICE);
    const paidUntil = ago(5);
    const order = await shop.server(account, { paidUntil });
    for (let i = 0; i < 3; i++) await tick();
    const server = await shop.read(order);
    expect(server).toMatchObject({ status: 'RUNNING', paidUntil: new Date(paidUntil.getTime() + MONTH_MS) });
    expect(await shop.balance(account)).toBe(PRICE);
    expect(await shop.events(order)).toEqual(['server.renewed']);
    const [charge] = await shop.db.query(
      `select kind, debit, credit, amount_micros, external_key, period_from, period_to from transfer where order_number = $1`,
      [order],
    );
    expect(charge).toEqual({
      kind: 'renewal',
      debit: `available:${account}`,
      credit: 'revenue',
      amountMicros: PRICE,
      externalKey: `renewal:${order}:${paidUntil.toISOString()}`,
      periodFrom: paidUntil,
      periodTo: server.paidUntil,
    });
    expect(await shop.db.query(`select action, actor_type, resource_type from audit_entry`)).toEqual([
      { action: 'server.renewed', actorType: 'system', resourceType: 'server' },
    ]);
  });

  it('pays for every month that passed without a worker', async () => {
    const account = await shop.account(10n * PRICE);
    const paidUntil = ago(2 * 730 + 1);
    const order = await shop.server(account, { paidUntil });
    for (let i = 0; i < 4; i++) await tick();
    expect((await shop.read(order)).paidUntil!.getTime()).toBe(paidUntil.getTime() + 3 * MONTH_MS);
    expect(await shop.balance(account)).toBe(7n * PRICE);
  });

  it.each(['RUNNING', 'STOPPED'] as const)('is suspended without funds when it is %s', async (status) => {
    const account = await shop.account(PRICE - 1n);
    const order = await shop.server(account, { status });
    await tick();
    expect(await shop.read(order)).toMatchObject({ status: 'SUSPENDED', suspendedFrom: status });
    expect(await shop.balance(account)).toBe(PRICE - 1n);
    expect(await shop.events(order)).toEqual(['server.suspended']);
  });

  it('is suspended without automatic renewal, even if the balance suffices', async () => {
    const account = await shop.account(10n * PRICE);
    const order = await shop.server(account, { autoRenew: false });
    await tick();
    expect((await shop.read(order)).status).toBe('SUSPENDED');
    await shop.fund(account, PRICE);
    await tick();
    expect((await shop.read(order)).status).toBe('SUSPENDED');
    expect(await shop.balance(account)).toBe(11n * PRICE);
  });

  it('leaves the money for later servers if it is too expensive', async () => {
    const account = await shop.account(2n * PRICE);
    const first = await shop.server(account, { paidUntil: ago(3) });
    const dear = await shop.server(account, { paidUntil: ago(2), priceMonthMicros: 9n * PRICE });
    const last = await shop.server(account, { paidUntil: ago(1) });
    await tick();
    const states = await Promise.all([first, dear, last].map(async (order) => (await shop.read(order)).status));
    expect(states).toEqual(['RUNNING', 'SUSPENDED', 'RUNNING']);
    expect(await shop.balance(account)).toBe(0n);
  });

  it.each(['PENDING', 'PROVISIONING', 'RESIZING', 'FAILED', 'DELETING'])(
    'is not renewed while it is %s',
    async (status) => {
      const account = await shop.account(PRICE);
      const order = await shop.server(account, { status: status as ServerStatus });
      const before = await shop.read(order);
      await tick();
      expect(await shop.read(order)).toEqual(before);
      expect(await shop.balance(account)).toBe(PRICE);
    },
  );

  it.each(['STARTING', 'STOPPING', 'REBOOTING', 'REBUILDING'] as const)('is renewed while it is %s', async (status) => {
    const account = await shop.account(PRICE);
    const order = await shop.server(account, { status });
    await tick();
    expect([(await shop.read(order)).status, await shop.balance(account)]).toEqual([status, 0n]);
    expect(await shop.events(order)).toEqual(['server.renewed']);
  });

  const changing = (status: ServerStatus, operation: 'start' | 'stop' | 'reboot', from: 'RUNNING' | 'STOPPED') =>
    ({ status, change: { id: newId('chg'), operation, from } }) as const;
  it.each([
    changing('STARTING', 'start', 'STOPPED'),
    changing('STOPPING', 'stop', 'RUNNING'),
    changing('REBOOTING', 'reboot', 'RUNNING'),
  ])('is suspended without funds while it is $status, and its machine is turned off', async (set) => {
    const account = await shop.account(0n);
    const order = await shop.server(account, set);
    await tick();
    expect(await shop.read(order)).toMatchObject({ status: 'SUSPENDED', suspendedFrom: set.change.from, change: null });
    expect(await shop.events(order)).toEqual(['server.action_failed', 'server.suspended']);
    await shop.work();
    const seen = await shop.driver.observe({ order, generation: 1 }, new AbortController().signal);
    expect([seen.power, (await shop.read(order)).status]).toEqual(['off', 'SUSPENDED']);
  });

  it('ends its rebuild without funds, and no other change may begin before it is suspended', async () => {
    const account = await shop.account(0n);
    const order = await shop.server(account, { status: 'REBUILDING' });
    await tick();
    expect((await shop.read(order)).status).toBe('REBUILDING');
    await shop.db.query(`update server set status = 'RUNNING'`);
    const rebuild = updateServer(contextOf(shop, account), order, { action: 'REBUILD', rootPassword: 'a heron flies' });
    await expect(rebuild).rejects.toMatchObject({ code: 'server_busy' });
    await tick();
    expect((await shop.read(order)).status).toBe('SUSPENDED');
  });
});

describe('A suspended server', () => {
  const suspended = (from: 'RUNNING' | 'STOPPED', hours: number) =>
    ({ status: 'SUSPENDED', suspendedFrom: from, suspendedAt: ago(hours), paidUntil: ago(hours) }) as const;

  it.each(['RUNNING', 'STOPPED'] as const)(
    'is %s again when the balance suffices, and its month begins then',
    async (from) => {
      const account = await shop.account(0n);
      const order = await shop.server(account, suspended(from, 50));
      await tick();
      expect((await shop.read(order)).status).toBe('SUSPENDED');
      await shop.fund(account, PRICE);
      await tick();
      await shop.work();
      await tick();
      const server = await shop.read(order);
      expect(server).toMatchObject({ status: from, suspendedAt: null, suspendedFrom: null });
      expect(Math.abs(server.paidUntil!.getTime() - Date.now() - MONTH_MS)).toBeLessThan(HOUR_MS);
      expect(await shop.balance(account)).toBe(0n);
      expect(await shop.events(order)).toEqual([`server.${from.toLowerCase()}`, 'server.renewed']);
    },
  );

  it('is tried again by the transaction that pays its account, unlike servers of other accounts', async () => {
    const [account, other] = [await shop.account(0n), await shop.account(5n * PRICE)];
    const orders = [
      await shop.server(account, suspended('RUNNING', 60)),
      await shop.server(account, suspended('RUNNING', 50)),
      await shop.server(other, suspended('RUNNING', 50)),
    ];
    await shop.fund(account, PRICE);
    await shop.db.transaction((tx) => shop.provisioning.servers.retrySuspended(tx, account));
    await shop.db.transaction((tx) => shop.provisioning.servers.retrySuspended(tx, account));
    expect(await shop.provisioning.newWorker().drain('periodic')).toBe(1);
    await shop.work();
    const states = await Promise.all(orders.map(async (order) => (await shop.read(order)).status));
    expect(states).toEqual(['RUNNING', 'SUSPENDED', 'SUSPENDED']);
  });

  it('is deleted after seven days, even if it is protected, and not before', async () => {
    const account = await shop.account(0n);
    const old = await shop.server(account, { ...suspended('RUNNING', 7 * 24 + 1), deleteProtection: true });
    const young = await shop.server(account, suspended('RUNNING', 7 * 24 - 1));
    await tick();
    expect([(await shop.read(old)).status, (await shop.read(young)).status]).toEqual(['DELETING', 'SUSPENDED']);
    await shop.provisioning.newWorker().drain('servers');
    expect((await shop.read(old)).status).toBe('DELETED');
    expect(await shop.events(old)).toEqual(['server.updated', 'server.deleted']);
  });
});

describe('Many servers that are due at once', () => {
  const COUNT = 250;
  /** Accounts that can pay for all of their servers except one. */
  async function prepare() {
    await truncate(shop.db, 'task, server, event, audit_entry');
    const accounts = await Promise.all(Array.from({ length: 10 }, () => shop.account(24n * PRICE)));
    const orders: string[] = [];
    for (const [i, account] of accounts.entries())
      orders.push(await shop.server(account, { paidUntil: ago(100 - i / 10) }));
    orders.push(...(await shop.copies(COUNT / 10 - 1)));
    await shop.provisioning.schedule();
    return { accounts, orders: new Set(orders), before: (await shop.renewals()).length };
  }
  async function verify({ accounts, orders, before }: Awaited<ReturnType<typeof prepare>>) {
    const renewals = (await shop.renewals()).slice(before);
    expect(renewals).toHaveLength(240);
    expect(new Set(renewals.map(({ orderNumber }) => orderNumber)).size).toBe(240);
    expect(renewals.every(({ orderNumber }) => orders.has(orderNumber))).toBe(true);
    for (const account of accounts) expect(await shop.balance(account)).toBe(0n);
    const states = await shop.db.query(
      `select status, count(*)::int, bool_and(paid_until > now()) as paid from server group by 1 order by 1`,
    );
    expect(states).toEqual([
      { status: 'RUNNING', count: 240, paid: true },
      { status: 'SUSPENDED', count: 10, paid: false },
    ]);
    const events = await shop.db.query(
      `select type, count(*)::int from event where type like 'server.%' group by 1 order by 1`,
    );
    expect(events).toEqual([
      { type: 'server.renewed', count: 240 },
      { type: 'server.suspended', count: 10 },
    ]);
    expect(await shop.balanced()).toBe(true);
  }
  /** More servers of an account than a transaction renews, and a later one that its own account cannot pay for. */
  async function crowd(set: Partial<Server>) {
    const accountId = await shop.account(250n * PRICE);
    await shop.server(accountId, { ...set, paidUntil: ago(2) });
    await shop.copies(200);
    return { accountId, last: await shop.server(await shop.account(0n), { paidUntil: ago(1) }) };
  }

  it('do not delay later ones while a suspended account has them rebuilt', async () => {
    const { accountId, last } = await crowd({ status: 'REBUILDING' });
    await suspendAccount(contextOf(shop, accountId), accountId, 'Abuse', 'RUN');
    await tick();
    expect((await shop.read(last)).status).toBe('SUSPENDED');
  });

  it('do not delay later ones while another transaction has them locked', async () => {
    const { last } = await crowd({});
    await shop.db.transaction(async (tx) => {
      await tx.query('select from server where order_number <> $1 for update', [last]);
      await tick();
    });
    expect((await shop.read(last)).status).toBe('SUSPENDED');
    await tick();
    expect(await shop.db.query(`select 1 from server where status = 'RUNNING' and paid_until <= now()`)).toEqual([]);
  });

  const finished = async () =>
    (await shop.db.query(`select 1 from server where paid_until <= now() and status <> 'SUSPENDED'`)).length === 0;

  it('are renewed once each by two workers', async () => {
    const prepared = await prepare();
    const workers = [shop.provisioning.newWorker(), shop.provisioning.newWorker()];
    for (const worker of workers) worker.start();
    await eventually(finished);
    for (let i = 0; i < 5; i++) await shop.db.query(`update task set run_at = now() where leased_by is null`);
    await Promise.all(workers.map((worker) => worker.stop()));
    await verify(prepared);
  });

  it('are renewed once each even if two transactions renew at the same time without a lease', async () => {
    const prepared = await prepare();
    const processes = shop.provisioning.newWorker();
    await shop.db.query(
      `insert into task (id, lane, process, subject, account_id, step)
        select 'task_' || n, 'periodic', 'renewals', 'rival-' || n, '', 'start' from generate_series(1, 6) n`,
    );
    const leases = await processes.lease('periodic', 20);
    await Promise.all(leases.map((lease) => processes.run(lease)));
    await processes.drain('periodic');
    await verify(prepared);
  });

  it.each(['committing', 'committed'])(
    'are renewed once each when the worker is killed -9 while %s',
    async (moment) => {
      const prepared = await prepare();
      const environment = { DATABASE_URL: shop.url, FOLDER: shop.folder, MOMENT: moment };
      const script = runScript(join(import.meta.dirname, 'renewing-worker.ts'), environment, onTestFinished);
      expect(await deathOf(script)).toBe('SIGKILL');
      expect((await shop.renewals()).length - prepared.before > 0).toBe(moment === 'committed');
      await shop.db.query(`update task set run_at = now()`); // The lease ends.
      await shop.provisioning.newWorker().drain('periodic');
      await verify(prepared);
    },
  );
});
