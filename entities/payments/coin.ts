/** Coins: whether the operator offers them, and the exchange rates that the sources report. */
import { bigint, boolean, entity, key, now, type RowOf, text, timestamp } from '../database/table.ts';
import type { Queryable } from '../database/transaction.ts';

export const CoinRate = entity('coin_rate', {
  /** The code of the coin. */
  coin: { ...text(), primary: true },
  /** Who says so. */
  source: { ...text(), primary: true },
  /** Micro-USD for one coin. */
  rateMicros: bigint(),
  observedAt: timestamp(),
});
export type CoinRate = RowOf<typeof CoinRate>;

/** Older ones say nothing. */
export const RATE_STALE_SECONDS = 600;
/** Fewer sources than these say nothing, either. */
export const RATE_SOURCES_MIN = 2;
/** Where the highest is further from the lowest than this, nobody knows what is right. */
export const RATE_SPREAD_MAX_PERCENT = 3n;

/** The rates that are fresh, by coin. */
export async function freshRates(db: Queryable): Promise<Map<string, bigint[]>> {
  const rows = await db.query<{ coin: string; rates: string[] }>(
    `select coin, array_agg(rate_micros::text) as rates from coin_rate
      where observed_at > now() - interval '${RATE_STALE_SECONDS} seconds' group by coin`,
  );
  return new Map(rows.map(({ coin, rates }) => [coin, rates.map(BigInt)]));
}

/** What they agree on: their median, rounded down; null if they are too few, or too far from one another. */
export function agreedRate(rates: readonly bigint[]): bigint | null {
  if (rates.length < RATE_SOURCES_MIN) return null;
  const sorted = rates.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const [low, high] = [sorted[0]!, sorted.at(-1)!];
  if (low <= 0n || (high - low) * 100n > low * RATE_SPREAD_MAX_PERCENT) return null;
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2n;
}

const DOLLAR = 1_000_000n;
/** Two cents. */
const PEG_MICROS = 20_000n;

/** A coin that stands for a dollar is worth one, as long as it is worth about one. Rates are micro-USD. */
export const peggedRate = (rateMicros: bigint | null): bigint | null =>
  rateMicros !== null && rateMicros >= DOLLAR - PEG_MICROS && rateMicros <= DOLLAR + PEG_MICROS ? DOLLAR : null;

export const CoinSwitch = entity('coin_switch', {
  /** The code of a coin of the driver. */
  code: key(),
  available: boolean(),
  updatedAt: now(),
});
export type CoinSwitch = RowOf<typeof CoinSwitch>;
