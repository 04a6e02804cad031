/** After a random walk through a hosting company, every paid coin is where it belongs. */
import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import { proveBooks } from '../../entities/payments/books.ts';
import { gateway } from '../../entities/payments/ledger.ts';
import type { Context } from '../../resolvers/context.ts';
import { Chain, ChainDriver, COINS } from '../payments/chains/chain.ts';
import { say } from '../setup/say.ts';
import { contextOf, LIMITS, openShop } from '../setup/shop.ts';
import { CHAIN_COIN, CoinChain } from './coin-chain.ts';
import { crashing, STEP, take, work } from './money-walk.ts';

const STEPS = Number(process.env.MONEY_STEPS ?? 400);
const SEED = Number(process.env.MONEY_SEED ?? Date.now() % 1e9);

it(`${STEPS} random steps lose no coin, create none, and leave no balance negative`, async () => {
  say(`MONEY_STEPS=${STEPS} MONEY_SEED=${SEED} repeats this walk.`);
  const chain = new Chain();
  const coins = new CoinChain();
  const payments = new ChainDriver(chain, [...COINS, CHAIN_COIN]);
  const shop = await openShop(onTestFinished, { payments: [payments], x402: coins });
  const { driver } = shop;
  await shop.provisioning.prepare();
  await shop.provisioning.schedule();
  const contexts: Context[] = [];
  for (let i = 0; i < 3; i++)
    contexts.push({ ...contextOf(shop, await shop.account(0n)), limits: { ...LIMITS, servers: 6 } });
  const crashes = crashing(shop.db);
  const town = { shop, chain, coins, driver, contexts, crashes, purchases: contexts.map(() => []) };
  await work(shop);

  const taken: Record<string, number> = {};
  for (const step of fc.sample(STEP, { numRuns: STEPS, seed: SEED })) {
    await take(town, step);
    taken[step.kind] = (taken[step.kind] ?? 0) + 1;
    const [{ least }] = (await shop.db.query<{ least: bigint }>(
      'select least(min(available_micros), min(held_micros)) as least from balance',
    )) as [{ least: bigint }];
    expect(least).toBeGreaterThanOrEqual(0n);
  }

  crashes.calm();
  driver.refused = [];
  await shop.db.query(
    `update top_up set expires_at = now() - interval '1 minute' where status in ('PENDING', 'CONFIRMING')`,
  );
  chain.mine(5);
  coins.secure();
  coins.lapse();
  for (let i = 0; i < 6; i++) await work(shop);

  expect(await proveBooks(shop.db)).toMatchObject({ balanced: true, firstFault: null });
  const paid = chain.blocks.flatMap(({ payments }) => payments.map(({ txId }) => txId));
  // A payment in suspense stays there when its chain reverts it. No customer can get it then.
  const kept = await shop.db.query<{ txId: string }>(
    `select tx_id from payment where status = 'CREDITED' or (status = 'UNMATCHED' and block_hash is not null)`,
  );
  const credited = kept.map(({ txId }) => txId);
  expect(credited.toSorted()).toEqual([...new Set(paid)].toSorted());
  const open = await shop.db.query(`select order_number from top_up where status in ('PENDING', 'CONFIRMING')`);
  expect(open).toEqual([]);
  const [byX402] = await shop.db.query(
    `select (select coalesce(sum(amount_micros), 0)::bigint from transfer where debit = $1)
        - (select coalesce(sum(amount_micros), 0)::bigint from x402_payment where status = 'REVERSED') as received,
      (select count(*)::int from x402_payment where status = 'SETTLING' or (status = 'SETTLED' and final_at is null)) as open`,
    [gateway(`x402:${coins.terms.network}`)],
  );
  expect(byX402).toEqual({ received: coins.received, open: 0 });
  const [stats] = await shop.db.query<object>(
    `select (select count(*)::int from transfer) as transfers, (select count(*)::int from server) as servers,
      (select count(*)::int from payment) as payments, (select count(*)::int from x402_payment) as by_x402,
      (select count(*)::int from x402_payment where status = 'SETTLED') as settled,
      (select count(*)::int from x402_payment where status = 'REVERSED') as reversed, (select sum(reversals)::int from payment) as reversals`,
  );
  say(JSON.stringify({ ...taken, ...stats }));
}, 900_000);
