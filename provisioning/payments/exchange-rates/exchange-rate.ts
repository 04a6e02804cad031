/** Exchange rates of coins: the sources agree on them, or the simulation fixes them. */
import type { Queryable } from '../../../entities/database/transaction.ts';
import { agreedRate, freshRates, peggedRate } from '../../../entities/payments/coin.ts';
import type { Coin } from '../drivers/driver.ts';

export interface ExchangeRate {
  decimals: number;
  /** Micro-USD for one coin, for new top-ups; null: the service opens no top-up in it. */
  quoteMicros: bigint | null;
  /** For payments outside of a quote; null: unknown at the moment, so the payments wait. */
  spotMicros: bigint | null;
}

/** By the code of the coin. */
export type ExchangeRates = ReadonlyMap<string, ExchangeRate>;

export async function exchangeRatesOf(db: Queryable, coins: readonly Coin[]): Promise<ExchangeRates> {
  const fresh = coins.every(({ fixedRateMicros }) => fixedRateMicros) ? undefined : await freshRates(db);
  return new Map(
    coins.map(({ code, decimals, pegged, fixedRateMicros }) => {
      const agreed = fixedRateMicros ?? agreedRate(fresh?.get(code) ?? []);
      const pegRate = pegged ? peggedRate(agreed) : null;
      return [code, { decimals, quoteMicros: pegged ? pegRate : agreed, spotMicros: pegRate ?? agreed }];
    }),
  );
}
