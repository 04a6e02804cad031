/** A customer who closes the SSH port, or moves it: only the delivery of the order needs its answer. */
import { expect, it, onTestFinished } from 'vitest';
import { verifyBooks } from '../../../entities/payments/books.ts';
import { RENEWAL_PROCESS } from '../../../provisioning/servers/billing/renew.ts';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { type ServerUpdate, updateServer } from '../../../resolvers/servers/update.ts';
import { finish, openCustomerShop, traces } from '../../setup/customer-shop.ts';

const ORDER = { serviceCode: 'vps-1', os: 'debian-13', labels: {}, autoRenew: true };

async function closedServer() {
  const shop = await openCustomerShop(onTestFinished);
  const { orderNumber } = (await orderServer(shop.context, ORDER)).server;
  await finish(shop, orderNumber, 'RUNNING');
  shop.driver.refused = ['mute'];
  return { shop, orderNumber };
}

it.each<[string, ServerUpdate[], journal: string[]]>([
  ['start', [{ powerState: 'OFF' }, { powerState: 'ON' }], ['off', 'on']],
  ['reboot', [{ action: 'REBOOT' }], ['restart']],
  ['reset', [{ action: 'RESET' }], ['reset']],
  ['rebuild', [{ action: 'REBUILD', os: 'debian-12' }], ['rebuild']],
])('A customer who closed the SSH port can %s the server', async (_, updates, journal) => {
  const { shop, orderNumber } = await closedServer();
  for (const update of updates) {
    await updateServer(shop.context, orderNumber, update);
    await finish(shop, orderNumber, update.powerState === 'OFF' ? 'STOPPED' : 'RUNNING');
  }
  expect(await shop.read(orderNumber)).toMatchObject({ failureCode: null, change: null });
  expect(shop.driver.journal().map((line) => line.split(' ')[0])).toEqual(['create', ...journal]);
});

it('A customer who closed the SSH port pays for each month of the machine, or loses it', async () => {
  const { shop, orderNumber } = await closedServer();
  const day = (set: string) => shop.db.query(`update server set ${set} where order_number = $1`, [orderNumber]);
  await day(`paid_until = now(), auto_renew = false`);
  await shop.tick(RENEWAL_PROCESS);
  await shop.work();
  expect((await shop.read(orderNumber)).status).toBe('SUSPENDED');
  await updateServer(shop.context, orderNumber, { autoRenew: true });
  await shop.tick(RENEWAL_PROCESS);
  await finish(shop, orderNumber, 'RUNNING');
  expect((await traces(shop, orderNumber)).transfers).toEqual(['hold', 'capture', 'renewal', 'capture']);
  await day(`paid_until = now(), auto_renew = false`);
  await shop.tick(RENEWAL_PROCESS);
  await shop.work();
  await day(`suspended_at = now() - interval '8 days'`);
  await shop.tick(RENEWAL_PROCESS);
  await finish(shop, orderNumber, 'DELETED');
  expect(await shop.driver.list()).toEqual([]);
  expect((await verifyBooks(shop.db)).balanced).toBe(true);
});
