/** An engine refuses to turn the server of a suspended account off. */
import { expect, it } from 'vitest';
import { suspendAccount } from '../../../resolvers/accounts/account.ts';
import { atEnd } from '../../setup/end.ts';
import { contextOf, openShop } from '../../setup/shop.ts';

it('The service tries again after an hour, and not in each round of renewals', async () => {
  const shop = await openShop(atEnd, { refused: ['power'], refusedAs: 'rejected' });
  const account = await shop.account(0n);
  const server = await shop.server(account, { paidUntil: new Date(Date.now() + 86_400_000) });
  const failures = async () => (await shop.events(server)).filter((type) => type === 'server.action_failed').length;
  const settle = async () => {
    while ((await shop.read(server)).status !== 'RUNNING') {
      await shop.db.query('update task set run_at = now() where subject = $1', [server]);
      await shop.work();
    }
  };
  await suspendAccount(contextOf(shop, account), account, 'Abuse', 'OFF');
  await settle();
  for (const _ of [1, 2]) {
    await shop.tick('renewals');
    await settle();
  }
  expect([await failures(), await shop.read(server)]).toMatchObject([1, { keptOff: true, failureCode: 'stop_failed' }]);
  await shop.db.query(`update server set updated_at = now() - interval '1 hour' where order_number = $1`, [server]);
  await shop.tick('renewals');
  await settle();
  expect(await failures()).toBe(2);
});
