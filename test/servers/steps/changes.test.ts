/** Changes that the driver does not carry out, and servers that are deleted during a change. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { verifyBooks } from '../../../entities/payments/books.ts';
import type { Server } from '../../../entities/servers/server.ts';
import { SERVER_LANE } from '../../../provisioning/servers/task.ts';
import { deleteServer } from '../../../resolvers/servers/delete.ts';
import { findServer } from '../../../resolvers/servers/find.ts';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { type ServerUpdate, updateServer } from '../../../resolvers/servers/update.ts';
import { type CustomerShop, finish, openCustomerShop, traces } from '../../setup/customer-shop.ts';

const FAILING = [
  ['start', 'STOPPED', { powerState: 'ON' }, 'power'],
  ['stop', 'RUNNING', { powerState: 'OFF' }, 'power'],
  ['reboot', 'RUNNING', { action: 'REBOOT' }, 'power'],
  ['reset', 'RUNNING', { action: 'RESET' }, 'power'],
  ['rebuild', 'RUNNING', { action: 'REBUILD', os: 'debian-12' }, 'rebuild'],
  ['rebuild', 'STOPPED', { action: 'REBUILD' }, 'rebuild'],
  ['resize', 'STOPPED', { serviceCode: 'vps-3' }, 'resize'],
] as const satisfies [string, Server['status'], ServerUpdate, string][];

/** Opens a shop with a running or stopped server. */
async function shopWith(status: 'RUNNING' | 'STOPPED', code?: 'rejected' | 'failed'): Promise<[CustomerShop, string]> {
  const shop = await openCustomerShop(onTestFinished, { refusedAs: code });
  await shop.db.query('update balance set available_micros = available_micros + 80000000');
  await shop.db.query(
    `insert into transfer (id, account_id, kind, debit, credit, amount_micros, external_key, description)
    select 'xfr_more', account_id, 'topup', 'gateway:test', 'available:' || account_id, 80000000, 'more', 'more' from balance`,
  );
  const { server } = await orderServer(shop.context, { serviceCode: 'vps-1', os: 'debian-13', autoRenew: true });
  await finish(shop, server.orderNumber, 'RUNNING');
  if (status === 'STOPPED') {
    await updateServer(shop.context, server.orderNumber, { powerState: 'OFF' });
    await finish(shop, server.orderNumber, 'STOPPED');
  }
  return [shop, server.orderNumber];
}

const machine = async ({ driver }: CustomerShop, order: string) =>
  driver.observe({ order, generation: 1 }, new AbortController().signal);
const hurry = ({ db }: CustomerShop) => db.query('update task set run_at = now()');

describe('A change that the driver refuses', () => {
  it.each(FAILING)(
    '%s of a server that is %s: it goes back, says why, and nothing was paid',
    async (operation, from, update, call) => {
      const [shop, orderNumber] = await shopWith(from);
      const before = await findServer(shop.context, orderNumber);
      const balance = (await traces(shop, orderNumber)).balance;
      shop.driver.refused = [call];
      const { server } = await updateServer(shop.context, orderNumber, update);
      expect(server.status).toMatch(/ING$/);
      await finish(shop, orderNumber, from);
      const after = await findServer(shop.context, orderNumber);
      expect(after).toEqual({
        ...before,
        failureCode: `${operation}_failed`,
        failureMessage: expect.stringContaining('could not be'),
        updatedAt: after.updatedAt,
      });
      const left = await traces(shop, orderNumber);
      expect(left.events.at(-1)).toBe('action_failed');
      expect(left.balance).toEqual(balance);
      expect([left.addresses, left.places]).toEqual([2, 1]);
      expect((await machine(shop, orderNumber)).power).toBe(from === 'RUNNING' ? 'on' : 'off');
      expect((await verifyBooks(shop.db)).balanced).toBe(true);

      shop.driver.refused = [];
      await updateServer(shop.context, orderNumber, update);
      const target =
        from === 'STOPPED' && operation !== 'resize'
          ? 'RUNNING'
          : operation === 'stop' || operation === 'resize'
            ? 'STOPPED'
            : 'RUNNING';
      await finish(shop, orderNumber, target);
      expect(await findServer(shop.context, orderNumber)).toMatchObject({ failureCode: null, change: null });
    },
  );
});

describe('A change that fails again and again', () => {
  it.each([
    ['a stop', 'RUNNING', { powerState: 'OFF' }],
    ['a resize', 'STOPPED', { serviceCode: 'vps-2' }],
  ] as const)('falls back after three attempts: %s', async (_, from, update) => {
    const [shop, orderNumber] = await shopWith(from, 'failed');
    shop.driver.refused = ['power', 'resize'];
    await updateServer(shop.context, orderNumber, update);
    const worker = shop.provisioning.newWorker();
    const statuses: string[] = [];
    for (let attempt = 1; attempt <= 3; attempt++) {
      await hurry(shop);
      // On a busy computer, a pause can end before the worker has drained its tasks.
      await worker.run((await worker.lease(SERVER_LANE))[0]!);
      if (attempt === 3) await worker.drain(SERVER_LANE);
      statuses.push((await findServer(shop.context, orderNumber)).status);
    }
    expect(statuses).toEqual([expect.stringMatching(/ING$/), statuses[0], from]);
    await hurry(shop);
    await worker.drain(SERVER_LANE);
    expect(await shop.db.query('select from task')).toEqual([]);
    const { addresses, places, balance } = await traces(shop, orderNumber);
    expect([addresses, places, balance.held]).toEqual([2, 1, 0n]);
    expect((await verifyBooks(shop.db)).balanced).toBe(true);
  });

  it('falls back at its deadline if the machine never gives proof', async () => {
    const [shop, orderNumber] = await shopWith('RUNNING');
    await updateServer(shop.context, orderNumber, { action: 'REBOOT' });
    const worker = shop.provisioning.newWorker();
    shop.driver.observe = async (key) => ({ ...key, phase: 'unknown', proven: false });
    for (const _ of ['change', 'confirm']) {
      await hurry(shop);
      await worker.run((await worker.lease(SERVER_LANE))[0]!);
    }
    expect((await findServer(shop.context, orderNumber)).status).toBe('REBOOTING');
    await shop.db.query(`update task set run_at = now(), deadline_at = now() - interval '1 second'`);
    await worker.drain(SERVER_LANE);
    expect(await findServer(shop.context, orderNumber)).toMatchObject({
      status: 'RUNNING',
      failureCode: 'reboot_failed',
    });
  });
});

describe('A server that is deleted during a change', () => {
  it.each([
    ['RUNNING', { powerState: 'OFF' }],
    ['STOPPED', { powerState: 'ON' }],
    ['RUNNING', { action: 'REBOOT' }],
    ['RUNNING', { action: 'REBUILD' }],
    ['STOPPED', { serviceCode: 'vps-2' }],
  ] as const)('from %s, with %j: it ends, its capacity is free, and the books balance', async (from, update) => {
    for (const steps of [0, 1]) {
      const [shop, orderNumber] = await shopWith(from);
      const { chargedMicros } = await updateServer(shop.context, orderNumber, update);
      if (steps) {
        const worker = shop.provisioning.newWorker();
        await worker.run((await worker.lease(SERVER_LANE))[0]!);
      }
      const { refundedMicros, server } = await deleteServer(shop.context, orderNumber);
      expect(server.status).toBe('DELETING');
      expect(refundedMicros).toBeGreaterThan(5_900_000n + chargedMicros);
      await finish(shop, orderNumber, 'DELETED');
      const { addresses, places, balance, events } = await traces(shop, orderNumber);
      expect([addresses, places, balance.held]).toEqual([0, 0, 0n]);
      expect(events.at(-1)).toBe('deleted');
      expect((await machine(shop, orderNumber)).phase).toBe('absent');
      expect((await verifyBooks(shop.db)).balanced).toBe(true);
    }
  });
});

it('A change during another step of the task starts from its beginning', async () => {
  const [shop, orderNumber] = await shopWith('RUNNING');
  await updateServer(shop.context, orderNumber, { powerState: 'OFF' });
  await shop.db.query(`update task set step = 'prove'`);
  await finish(shop, orderNumber, 'STOPPED');
  expect((await machine(shop, orderNumber)).power).toBe('off');
});

it('A machine restarts once for each change, and again for another', async () => {
  const [{ driver }, order] = await shopWith('RUNNING');
  const signal = new AbortController().signal;
  for (const change of ['chg_1', 'chg_1', 'chg_2'])
    await driver.power({ order, generation: 1 }, 'restart', change, signal);
  expect(driver.journal().filter((line) => line.startsWith('restart'))).toHaveLength(2);
});
