/** A shop that follows a chain of the test. */
import { beforeEach } from 'vitest';
import { verifyBooks } from '../../../entities/payments/books.ts';
import type { TopUp } from '../../../entities/payments/top-up.ts';
import { chainSyncName } from '../../../provisioning/payments/chains/sync.ts';
import type { ChainReader } from '../../../provisioning/payments/drivers/driver.ts';
import type { Context } from '../../../resolvers/context.ts';
import { createTopUp } from '../../../resolvers/payments/billing.ts';
import { atEnd } from '../../setup/end.ts';
import { contextOf, openShop } from '../../setup/shop.ts';
import { Chain, ChainDriver } from './chain.ts';

/** The amount for 50 USD at 100 USD a coin, in base units. */
export const HALF = 50_000_000n;

/** Opens the shop for one test file. @param readerOf makes the reader of the chain. Default: the chain is its only node */
export async function openSyncedShop(readerOf: (chain: Chain) => ChainReader = (chain) => chain) {
  const chain = new Chain();
  const driver = new ChainDriver(readerOf(chain));
  const shop = await openShop(atEnd, { payments: [driver] });
  /** Looks at the chain twice, as it takes to believe that blocks were removed, and runs all work that follows. */
  const sync = async (worker = shop.provisioning.newWorker()) => {
    await shop.provisioning.schedule();
    await shop.db.query(`update task set run_at = now() + interval '1 day' where lane = 'periodic'`);
    for (let looks = 0; looks < 2; looks++) {
      await shop.db.query(`update task set run_at = now(), leased_by = null where subject = $1`, [
        `cron:${chainSyncName('testnet')}`,
      ]);
      await worker.drain('periodic');
    }
  };
  beforeEach(async () => {
    driver.coinList[0]!.fixedRateMicros = 100_000_000n;
    await sync();
  });
  /** Opens a top-up for a new account, or for the given one. */
  const open = async (amountUsd = 50_000_000n, accountId?: string): Promise<[Context, TopUp]> => {
    const context = contextOf(shop, accountId ?? (await shop.account(0n)));
    return [context, await createTopUp(context, { amountUsd, crypto: 'TST' })];
  };
  const total = async (account: string): Promise<bigint> =>
    (await verifyBooks(shop.db)).totals.find(({ name }) => name === account)?.micros ?? 0n;
  return { shop, chain, driver, sync, open, total, suspense: () => total('suspense') };
}
