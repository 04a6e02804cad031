/** A payment by x402 is for the price that its payer signed. The balance pays no rise of the price unasked. */
import { expect, it, onTestFinished } from 'vitest';
import { ApiError } from '../../../entities/errors.ts';
import { newId } from '../../../entities/ids.ts';
import { setPrice } from '../../../resolvers/catalog/tiers.ts';
import { accountOf } from '../../../resolvers/context.ts';
import { orderServer } from '../../../resolvers/servers/order.ts';
import { openTown } from './town.ts';
import { work } from './worker.ts';

it.each(['has settled', 'is still open'])('A request whose payment %s buys nothing at a higher price', async (how) => {
  const { shop, contexts, coins } = await openTown(onTestFinished);
  const context = contexts[0]!;
  const id = accountOf(context);
  await shop.fund(id, 100_000_000n);
  await setPrice(context, 'vps-1', { priceMonthMicros: 6_000_000n, setupFeeMicros: 0n });
  const order = { serviceCode: 'vps-1', region: 'ams', os: 'debian-13', autoRenew: true };
  const refusalOf = async (asked: Promise<unknown>) => {
    const refusal = await asked.catch((error) => error);
    expect(refusal).toBeInstanceOf(ApiError);
    return refusal as ApiError;
  };
  const signature = coins.sign(
    await refusalOf(orderServer(context, order, { mode: 'X402' })),
    `0x${'1'.padStart(40, '0')}`,
    300,
    false,
  );
  const request = () =>
    orderServer({ ...context, requestId: newId('req'), signal: AbortSignal.abort() }, order, { signature });
  coins.mood = 'dies after';
  await Promise.race([request(), coins.death()]);
  coins.mood = 'settles';
  if (how === 'has settled') await work(shop);
  const before = await shop.balance(id);
  await setPrice(context, 'vps-1', { priceMonthMicros: 60_000_000n, setupFeeMicros: 0n });
  await shop.db.query('update x402_authorization set lease_until = now()');
  const refusal = await refusalOf(request());
  expect(refusal.code).toBe('price_exceeds_max');
  expect(refusal.message).toContain('The price is 60 USD now, and the payment was signed for 6 USD.');
  await work(shop);
  expect(await shop.balance(id)).toBe(106_000_000n);
  expect(before).toBe(how === 'has settled' ? 106_000_000n : 100_000_000n);
});
