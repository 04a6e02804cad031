/** Receipts and usage go by the clock of the database. The clock of a process may be wrong. */
import { afterEach, expect, it, vi } from 'vitest';
import { findUsage } from '../../resolvers/accounts/usage.ts';
import { findTopUp } from '../../resolvers/payments/billing.ts';
import { receiptOfMonth, receiptOfTopUp } from '../../resolvers/payments/receipts.ts';
import { HALF, openSyncedShop } from './chains/synced-shop.ts';

const { shop, chain, sync, open } = await openSyncedShop();
const YEAR_MS = 365 * 86_400_000;
afterEach(() => void vi.useRealTimers());

it.each([
  ['behind', -YEAR_MS],
  ['ahead', YEAR_MS],
])('Receipts and usage have the transfers of a worker whose clock is a year %s, in their order', async (_, offMs) => {
  const [{ month }] = (await shop.db.query<{ month: string }>(
    `select to_char(now() at time zone 'UTC', 'YYYY-MM') as month`,
  )) as [{ month: string }];
  const [context, { orderNumber, walletAddress, accountId }] = await open();
  await shop.fund(accountId, 1n);
  chain.pay(walletAddress!, HALF);
  chain.mine(2);
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + offMs });
  await sync();
  vi.useRealTimers();
  await shop.fund(accountId, 2n);
  const { creditedMicros } = await findTopUp(context, orderNumber);
  const amounts = [1n, 50_000_000n, 2n];
  const amountsOf = (lines: { amountMicros: bigint }[]) => lines.map(({ amountMicros }) => amountMicros);
  const receipt = await receiptOfTopUp(context, orderNumber);
  expect([receipt.totalMicros, amountsOf(receipt.lines)]).toEqual([creditedMicros, [50_000_000n]]);
  expect(amountsOf((await receiptOfMonth(context, month)).lines)).toEqual(amounts);
  const listed: bigint[] = [];
  let cursor: string | null | undefined;
  do {
    const { data, nextCursor } = await findUsage(context, { limit: 1, cursor }, {});
    listed.push(...amountsOf(data));
    cursor = nextCursor;
  } while (cursor);
  expect(listed).toEqual(amounts.toReversed());
});
