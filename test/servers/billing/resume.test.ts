/** Suspended servers that resume, and the suspension of their account. */
import { expect, it } from 'vitest';
import { startTask } from '../../../entities/tasks/start.ts';
import { serverTask } from '../../../provisioning/servers/task.ts';
import { resumeAccount, suspendAccount } from '../../../resolvers/accounts/account.ts';
import { atEnd } from '../../setup/end.ts';
import { reportsOf } from '../../setup/lock-order.ts';
import { contextOf, openShop, PRICE } from '../../setup/shop.ts';

const shop = await openShop(atEnd);

it('A server resumes no more when the operator suspends its account, which gets the month back', async () => {
  const account = await shop.account(PRICE);
  const order = await shop.server(account, { status: 'SUSPENDED', suspendedFrom: 'RUNNING', suspendedAt: new Date() });
  await shop.tick('renewals');
  expect([(await shop.read(order)).change?.operation, await shop.balance(account)]).toEqual(['resume', 0n]);
  await suspendAccount(contextOf(shop, account), account, 'Abuse', 'RUN');
  await shop.work();
  await shop.tick('renewals');
  expect(await shop.read(order)).toMatchObject({ status: 'SUSPENDED', change: null });
  expect(await shop.balance(account)).toBe(PRICE);
  await resumeAccount(contextOf(shop, account), account);
  await shop.tick('renewals');
  await shop.work();
  expect([(await shop.read(order)).status, await shop.balance(account)]).toEqual(['RUNNING', 0n]);
  expect(await shop.balanced()).toBe(true);
});

it('A server that was paid in time has a week again when a suspension returns its month', async () => {
  const account = await shop.account(PRICE);
  const order = await shop.server(account, { status: 'SUSPENDED', suspendedFrom: 'RUNNING', suspendedAt: new Date() });
  await shop.tick('renewals');
  // Its engine is away, and its week ends.
  await shop.db.query(`update server set suspended_at = now() - interval '8 days' where order_number = $1`, [order]);
  await suspendAccount(contextOf(shop, account), account, 'A mistake', 'RUN');
  await shop.tick('renewals');
  await resumeAccount(contextOf(shop, account), account);
  expect((await shop.read(order)).status).toBe('SUSPENDED');
  await shop.db.query(`update server set auto_renew = false, suspended_at = suspended_at - interval '7 days'`);
  await shop.tick('renewals');
  expect((await shop.read(order)).status).toBe('DELETING');
});

it('A suspension locks all servers of its account before their tasks, and the tasks in their order', async () => {
  const account = await shop.account(2n * PRICE);
  const ahead = { paidUntil: new Date(Date.now() + 86_400_000) };
  const orders = await Promise.all([1, 2, 3].map(() => shop.server(account, ahead)));
  const [first, resuming, last] = orders.sort() as [string, string, string];
  await shop.db.query(
    `update server set status = 'SUSPENDED', suspended_from = 'RUNNING', suspended_at = now(), paid_until = now()
      where order_number = $1`,
    [resuming],
  );
  await shop.tick('renewals');
  for (const order of [first, last]) {
    const task = serverTask(await shop.read(order));
    await shop.db.transaction((tx) => startTask(tx, task));
  }
  const suspend = () => suspendAccount(contextOf(shop, account), account, 'Abuse', 'OFF');
  expect(await reportsOf(suspend)).toEqual([]);
  expect(await Promise.all(orders.map(async (order) => (await shop.read(order)).status))).toEqual([
    ...['STOPPING', 'SUSPENDED', 'STOPPING'],
  ]);
});
