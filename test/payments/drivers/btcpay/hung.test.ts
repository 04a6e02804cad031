/** A silent payment processor delays no other coin. */
import { expect, it } from 'vitest';
import { eventually } from '../../../setup/freehold.ts';
import { openStore } from './store.ts';

const { btcpay, freehold, opened } = await openStore();

it('A top-up opens while 64 accounts wait for the silent processor of another network', async () => {
  btcpay.silent = 'BTC-CHAIN';
  const accounts = await Promise.all(Array.from({ length: 64 }, () => freehold.newAccount()));
  let answered = 0;
  const waiting = accounts.map(async ({ rest }) => {
    await rest('POST', '/v1/billing/topups', { amount_usd: 50, crypto: 'BTC' });
    answered++;
  });
  await eventually(async () => btcpay.waiting >= 64);
  await opened('BTC-LN');
  expect(answered).toBe(0);
  btcpay.wake();
  await Promise.all(waiting);
});
