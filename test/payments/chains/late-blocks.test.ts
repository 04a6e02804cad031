/** Payments that come in time, and wait long for their block. A quote is no option that the mempool keeps open. */
import { describe, expect, it } from 'vitest';
import { HALF, openSyncedShop } from './synced-shop.ts';

const { shop, chain, driver, sync, open } = await openSyncedShop();

const HOUR_MS = 3_600_000;
const hoursAgo = (hours: number) => new Date(Date.now() - hours * HOUR_MS);

/** Announces a payment for 50 USD in time. Its quote then ended so many hours ago, and the coin has another rate. */
const announced = async (hours: number, rateMicros: bigint) => {
  const [, { orderNumber, accountId, walletAddress }] = await open();
  chain.pay(walletAddress!, HALF);
  await sync();
  await shop.db.query(`update top_up set created_at = $2, expires_at = $3 where order_number = $1`, [
    ...[orderNumber, hoursAgo(hours + 0.5), hoursAgo(hours)],
  ]);
  await shop.db.query(`update payment set seen_at = $2 where order_number = $1`, [orderNumber, hoursAgo(hours + 0.1)]);
  driver.coinList[0]!.fixedRateMicros = rateMicros;
  return accountId;
};

describe('A payment that was announced in time', () => {
  it.each([
    { hours: 5.9, rateUsd: 50, worthUsd: 50 },
    { hours: 6.1, rateUsd: 50, worthUsd: 25 },
    { hours: 13 * 24, rateUsd: 50, worthUsd: 25 },
    { hours: 13 * 24, rateUsd: 200, worthUsd: 50 },
  ])('and mined $hours hours after its quote at a rate of $rateUsd USD is worth $worthUsd USD', async (one) => {
    const accountId = await announced(one.hours, BigInt(one.rateUsd) * 1_000_000n);
    chain.mine(2);
    await sync();
    expect(await shop.balance(accountId)).toBe(BigInt(one.worthUsd) * 1_000_000n);
  });

  it('keeps the quote after an outage of the service, because its block has the time', async () => {
    const accountId = await announced(24, 50_000_000n);
    await shop.db.query(`update chain set reached_at = now() - interval '1 day'`);
    chain.mine(1, hoursAgo(20));
    chain.mine(1);
    await sync();
    expect(await shop.balance(accountId)).toBe(50_000_000n);
  });

  it('loses the quote in a block that its miner dated back, because the service had read the chain without it', async () => {
    const accountId = await announced(9, 50_000_000n);
    chain.mine(1, hoursAgo(8));
    chain.mine(1);
    await sync();
    expect(await shop.balance(accountId)).toBe(25_000_000n);
  });

  it('loses the quote if a reorganisation removes its block, and a much later one contains it', async () => {
    const accountId = await announced(9, 50_000_000n);
    await shop.db.query(`update chain set reached_at = now() - interval '1 day'`);
    chain.mine(1, hoursAgo(8));
    await sync();
    chain.reorganise(1);
    chain.mine(2);
    await sync();
    expect(await shop.balance(accountId)).toBe(25_000_000n);
  });
});
