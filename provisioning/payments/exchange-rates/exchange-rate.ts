/** Exchange rates of coins: the sources agree on them, or the simulation fixes them. */
import type { Queryable } from '../../../entities/database/transaction.ts';
import { agreedRate, freshRates, peggedRate } from '../../../entities/payments/coin.ts';
import type { Coin } from '../drivers/driver.ts';

export interface ExchangeRate {
  decimals: number;
  /** For payments in another coin than that of their top-up. */
  confirmationsRequired: number;
  /** Micro-USD for one coin, for new top-ups; null: the service opens no top-up in it. */
  quoteMicros: bigint | null;
  /** For payments outside of a quote; null: unknown at the moment, so the payments wait. */
  spotMicros: bigint | null;
  /** Payments that are worth more wait for the operator. Absent: none waits. */
  holdAboveMicros?: bigint | undefined;
}

/** By the code of the coin. */
export type ExchangeRates = ReadonlyMap<string, ExchangeRate>;

export async function exchangeRatesOf(db: Queryable, coins: readonly Coin[]): Promise<ExchangeRates> {
  const fresh = coins.every(({ fixedRateMicros }) => fixedRateMicros) ? undefined : await freshRates(db);
  return new Map(
    coins.map(({ code, decimals, confirmationsRequired, pegged, fixedRateMicros, holdAboveMicros }) => {
      const agreed = fixedRateMicros ?? agreedRate(fresh?.get(code) ?? []);
      const pegRate = pegged ? peggedRate(agreed) : null;
      const [quoteMicros, spotMicros] = [pegged ? pegRate : agreed, pegRate ?? agreed];
      return [code, { decimals, confirmationsRequired, quoteMicros, spotMicros, holdAboveMicros }];
    }),
  );
}

/** The confirmations of each coin, as a JSON object for statements. */
export const confirmationsOf = (exchangeRates: ExchangeRates): string =>
  JSON.stringify(
    Object.fromEntries([...exchangeRates].map(([code, { confirmationsRequired }]) => [code, confirmationsRequired])),
  );
