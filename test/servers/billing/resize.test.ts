/** The money of a resize, after the catalog changed or the paid time ended. */
import { expect, it, onTestFinished } from 'vitest';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { updateServer } from '../../../resolvers/servers/update.ts';
import { finish, openCustomerShop } from '../../setup/customer-shop.ts';
import { startFreehold } from '../../setup/freehold.ts';

const { db, newAccount, operator } = await startFreehold();

it('A resize to a tier that became cheaper refunds the difference, and a later deletion refunds the rest', async () => {
  const account = await newAccount();
  await account.fund(60);
  const { body: ordered } = await account.rest('POST', '/v1/servers', { service_code: 'vps-1' });
  const orderNumber = ordered.order_number;
  const becomes = async (status: string) =>
    (await account.rest('GET', `/v1/servers/${orderNumber}?wait_for=${status}`)).body;
  await becomes('running');
  await account.rest('PATCH', `/v1/servers/${orderNumber}`, { power_state: 'off' });
  await becomes('stopped');
  const setPrice = (micros: number) =>
    db.query(`update catalog_item set price_month_micros = $1 where code = 'vps-2'`, [micros]);
  const [{ was }] = (await db.query<{ was: number }>(
    `select price_month_micros::int as was from catalog_item where code = 'vps-2'`,
  )) as [{ was: number }];
  await setPrice(2_000_000);
  const { body } = await account.rest('PATCH', `/v1/servers/${orderNumber}`, { service_code: 'vps-2' });
  await setPrice(was);
  expect(body).toMatchObject({ status: 'resizing', charged_usd: 0 });
  expect(await becomes('stopped')).toMatchObject({ service_code: 'vps-2', price_month_usd: 2 });
  const money = async () => {
    const { balance_usd, pending_usd } = (await account.rest('GET', '/v1/account/balance')).body;
    return balance_usd + pending_usd;
  };
  expect(await money()).toBeGreaterThan(57.9);
  expect(await money()).toBeLessThanOrEqual(58);
  await account.rest('DELETE', `/v1/servers/${orderNumber}`);
  expect(await money()).toBeGreaterThan(59.9);
  expect(await money()).toBeLessThanOrEqual(60);
  const { body: usage } = await account.rest('GET', '/v1/account/usage');
  expect(usage.data).toContainEqual(
    expect.objectContaining({ kind: 'refund', description: 'Resize of vps-1 to vps-2' }),
  );
  const { data } = await operator('{ books { balanced firstMismatch } }');
  expect(data.books).toEqual({ balanced: true, firstMismatch: null });
});

it('A resize that ends after the paid time costs nothing for that time', async () => {
  const shop = await openCustomerShop(onTestFinished, { fundsMicros: 100_000_000n });
  const { server } = await orderServer(shop.context, { serviceCode: 'vps-1', os: 'debian-13', autoRenew: true });
  await finish(shop, server.orderNumber, 'RUNNING');
  await updateServer(shop.context, server.orderNumber, { powerState: 'OFF' });
  await finish(shop, server.orderNumber, 'STOPPED');
  const before = await shop.balance(shop.accountId);
  await updateServer(shop.context, server.orderNumber, { serviceCode: 'vps-3' });
  expect(await shop.balance(shop.accountId)).toBeLessThan(before);
  await shop.db.query(`update server set paid_until = now() - interval '7 seconds' where order_number = $1`, [
    server.orderNumber,
  ]);
  await finish(shop, server.orderNumber, 'STOPPED');
  expect(await shop.read(server.orderNumber)).toMatchObject({ serviceCode: 'vps-3', priceMonthMicros: 24_000_000n });
  expect(await shop.balance(shop.accountId)).toBe(before);
  expect(await shop.db.query('select id from transfer where period_to <= period_from')).toEqual([]);
  await shop.tick('renewals');
  expect(await shop.balance(shop.accountId)).toBe(before - 24_000_000n);
  expect(await shop.balanced()).toBe(true);
});
