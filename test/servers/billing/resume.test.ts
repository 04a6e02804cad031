/** Suspended servers that resume, and the suspension of their account. */
import { afterAll, expect, it } from 'vitest';
import { resumeAccount, suspendAccount } from '../../../resolvers/accounts/account.ts';
import { contextOf, openShop, PRICE } from '../../setup/shop.ts';

const shop = await openShop(afterAll);

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
