/** A silent payment processor delays no other coin, and free accounts of one site delay no customer. */
import { expect, it } from 'vitest';
import { eventually, type TestAccount } from '../../../setup/freehold.ts';
import { openStore } from './store.ts';

const { btcpay, freehold, opened } = await openStore();

const newAccounts = (count: number) => Promise.all(Array.from({ length: count }, () => freehold.newAccount()));
/** Gives an account a dollar, so that it has paid. */
async function newCustomer(): Promise<TestAccount> {
  const account = await freehold.newAccount();
  const { id } = account;
  const { errors } = await freehold.operator(
    `mutation { adjustBalance(accountId: "${id}", amountUsd: 1, reason: "A gift", key: "${id}") { balanceUsd } }`,
  );
  expect(errors).toBeUndefined();
  return account;
}
const openBy = ({ rest }: TestAccount) => rest('POST', '/v1/billing/topups', { amount_usd: 50, crypto: 'BTC' });

it('A top-up opens while 64 accounts wait for the silent processor of another network', async () => {
  btcpay.silent = 'BTC-CHAIN';
  const accounts = await Promise.all(Array.from({ length: 64 }, newCustomer));
  let answered = 0;
  const waiting = accounts.map(async (account) => {
    await openBy(account);
    answered++;
  });
  await eventually(async () => btcpay.unanswered.length >= 64);
  await opened('BTC-LN');
  expect(answered).toBe(0);
  btcpay.wake();
  await Promise.all(waiting);
});

it('A customer reaches the processor while free accounts of a site wait for each other', async () => {
  btcpay.silent = 'BTC-CHAIN';
  const free = (await newAccounts(16)).map(openBy);
  const { rest } = await newCustomer();
  await eventually(async () => btcpay.unanswered.length >= 4);
  const opening = rest('POST', '/v1/billing/topups', { amount_usd: 77, crypto: 'BTC' });
  // 77 USD at the rate of the store.
  await eventually(async () => btcpay.unanswered.some((body) => body.includes('0.00154')));
  expect(btcpay.unanswered.length).toBeLessThan(free.length);
  btcpay.wake();
  await Promise.all([opening, ...free]);
});
