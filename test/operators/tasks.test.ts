/** How the operator handles tasks that do not end. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { expandScopes } from '../../entities/accounts/credential.ts';
import { newId } from '../../entities/ids.ts';
import { verifyBooks } from '../../entities/payments/books.ts';
import type { DriverErrorCode } from '../../provisioning/servers/drivers/driver.ts';
import { SERVER_LANE } from '../../provisioning/servers/task.ts';
import type { Context } from '../../resolvers/context.ts';
import { deleteServer } from '../../resolvers/servers/delete.ts';
import { orderServer } from '../../resolvers/servers/order.ts';
import { updateServer } from '../../resolvers/servers/update.ts';
import { cancelTask, listTasks, retryTask } from '../../resolvers/tasks.ts';
import { type CustomerShop, finish, openCustomerShop, traces } from '../setup/customer-shop.ts';

const asOperator = ({ context }: CustomerShop): Context => ({
  ...context,
  requestId: newId('req'),
  viewer: {
    ...context.viewer!,
    accountId: null,
    kind: 'operator',
    credentialId: 'operator',
    scopes: expandScopes('full'),
  },
});
const open = (refused: string[], code?: DriverErrorCode) =>
  openCustomerShop(onTestFinished, { refused, refusedAs: code });
const order = async ({ context }: CustomerShop) =>
  (await orderServer(context, { serviceCode: 'vps-1', os: 'debian-13', labels: {}, autoRenew: true })).server
    .orderNumber;
const statusOf = async ({ db }: CustomerShop, orderNumber: string) =>
  (await db.query<{ status: string }>('select status from server where order_number = $1', [orderNumber]))[0]!.status;
const stuck = async (shop: CustomerShop) =>
  (await listTasks(asOperator(shop), 50, 'STUCK')).map(({ subject }) => subject);
const audited = async ({ db }: CustomerShop) =>
  (
    await db.query<{ account: string; type: string; what: string }>(
      `select account_id as account, actor_type as type, (select data->>'what' from event where event.subject = resource_id and type = 'task.updated' limit 1) as what
        from audit_entry where action = 'task.updated'`,
    )
  )[0];

describe('Stuck work', () => {
  it('is listed with its error, and tried again when the operator says so', async () => {
    const shop = await open(['create'], 'unreachable');
    const orderNumber = await order(shop);
    const worker = shop.provisioning.newWorker();
    expect(await stuck(shop)).toEqual([]);
    expect(await listTasks(asOperator(shop), 50, 'WAITING')).toMatchObject([{ subject: orderNumber }]);
    await worker.drain(SERVER_LANE);
    expect(await stuck(shop)).toEqual([orderNumber]);
    expect(await listTasks(asOperator(shop), 50, 'RUNNING')).toEqual([]);
    shop.driver.refused = [];
    await retryTask(asOperator(shop), orderNumber);
    await finish(shop, orderNumber, 'RUNNING');
    expect(await audited(shop)).toEqual({ account: 'operator', type: 'operator', what: 'retried' });
    await expect(retryTask(asOperator(shop), orderNumber)).rejects.toThrow('The resource does not exist.');
    await expect(cancelTask(asOperator(shop), orderNumber)).rejects.toThrow('The resource does not exist.');
  });

  it('of an order is cancelled: the customer gets a full refund, and a running worker commits nothing', async () => {
    const shop = await open(['create'], 'unreachable');
    const orderNumber = await order(shop);
    const worker = shop.provisioning.newWorker();
    await worker.drain(SERVER_LANE);
    await shop.db.query('update task set run_at = now()');
    const [lease] = await worker.lease(SERVER_LANE);
    shop.driver.refused = [];
    await cancelTask(asOperator(shop), orderNumber);
    await worker.run(lease!);
    expect(await statusOf(shop, orderNumber)).toBe('FAILED');
    await finish(shop, orderNumber, 'FAILED');
    const { transfers, addresses, places, balance } = await traces(shop, orderNumber);
    expect({ transfers, addresses, places }).toEqual({ transfers: ['hold', 'release'], addresses: 0, places: 0 });
    expect(balance.held).toBe(0n);
    expect((await verifyBooks(shop.db)).balanced).toBe(true);
    expect(await audited(shop)).toEqual({ account: 'operator', type: 'operator', what: 'given up' });
  });

  it('of a change is cancelled: the server returns to its former state', async () => {
    const shop = await open([]);
    const orderNumber = await order(shop);
    await finish(shop, orderNumber, 'RUNNING');
    shop.driver.refused = ['rebuild'];
    await updateServer(shop.context, orderNumber, { action: 'REBUILD' });
    await cancelTask(asOperator(shop), orderNumber);
    await finish(shop, orderNumber, 'RUNNING');
    expect((await traces(shop, orderNumber)).events).toContain('action_failed');
    expect(shop.driver.journal().filter((line) => line.startsWith('rebuild'))).toEqual([]);
  });

  it('of a deletion is cancelled by a confirmation that the machine is gone, which frees its place', async () => {
    const shop = await open([]);
    const orderNumber = await order(shop);
    await finish(shop, orderNumber, 'RUNNING');
    shop.driver.refused = ['stuck'];
    await deleteServer(shop.context, orderNumber);
    await shop.provisioning.newWorker().drain(SERVER_LANE);
    expect(await statusOf(shop, orderNumber)).toBe('DELETING');
    expect(await stuck(shop)).toEqual([orderNumber]);
    await cancelTask(asOperator(shop), orderNumber);
    expect(await statusOf(shop, orderNumber)).toBe('DELETED');
    const { addresses, places } = await traces(shop, orderNumber);
    expect({ addresses, places }).toEqual({ addresses: 0, places: 0 });
    expect(await listTasks(asOperator(shop), 50)).toEqual([]);
  });

  it('is not cancelled without a server, or if it is periodic', async () => {
    const shop = await open([]);
    await shop.provisioning.schedule();
    await expect(cancelTask(asOperator(shop), 'cron:renewals')).rejects.toThrow('can be cancelled');
    await expect(cancelTask(asOperator(shop), 'nothing')).rejects.toThrow('The resource does not exist.');
  });
});
