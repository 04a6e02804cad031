/** Coins: whether the operator offers them, and the exchange rates that the sources report. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { entity, type RowOf } from '../database/table.ts';
import type { Queryable } from '../database/transaction.ts';
import { MICROS_PER_USD } from '../money.ts';

export const CoinRate = entity('coin_rate', {
  /** The code of the coin. */
  coin: { ...column.text(), primary: true },
  /** The name of the source that reports it. */
  source: { ...column.text(), primary: true },
  /** Micro-USD for one coin. */
  rateMicros: column.bigint(),
  /** When the source had it, by the clock of the source. */
  observedAt: column.timestamp(),
});
export type CoinRate = RowOf<typeof CoinRate>;

/** The service ignores older rates. */
export const RATE_STALE_SECONDS = 600;
/** A coin with rates of fewer sources has no rate. */
export const RATE_SOURCES_MIN = 2;
/** A coin has no rate if its highest rate exceeds its lowest by more. */
export const RATE_SPREAD_MAX_PERCENT = 3n;

const FIND_FRESH_RATES = statement({ coin: column.text(), rates: column.textArray() })`
  select coin, array_agg(rate_micros::text) as rates from coin_rate
    where observed_at > now() - interval '${RATE_STALE_SECONDS} seconds' group by coin`;

/** The fresh rates by coin. */
export async function freshRates(db: Queryable): Promise<Map<string, bigint[]>> {
  const rows = await FIND_FRESH_RATES.all(db);
  return new Map(rows.map(({ coin, rates }) => [coin, rates.map(BigInt)]));
}

/**
 * Keeps the rates $1: a JSON array of {coin, source, rate_micros, at}. The source says when it had the rate. A time in the
 * near future counts as now. The statement leaves out a rate of a later time. A rate without a time is of now.
 */
export const KEEP_RATES = statement({})`
  insert into coin_rate (coin, source, rate_micros, observed_at)
  select coin, source, rate_micros, least(at, now())
  from jsonb_to_recordset($1::jsonb) as given(coin text, source text, rate_micros bigint, at timestamptz)
  where at is null or at < now() + interval '${RATE_STALE_SECONDS} seconds'
  order by coin, source
  on conflict (coin, source) do update set rate_micros = excluded.rate_micros, observed_at = excluded.observed_at`;

/** The median of the rates, rounded down; null if there are too few, or if they are too far apart. */
export function agreedRate(rates: readonly bigint[]): bigint | null {
  if (rates.length < RATE_SOURCES_MIN) return null;
  const sorted = rates.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const [low, high] = [sorted[0]!, sorted.at(-1)!];
  if (low <= 0n || (high - low) * 100n > low * RATE_SPREAD_MAX_PERCENT) return null;
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2n;
}

/** Two cents. */
const PEG_MICROS = 20_000n;

/** The rate of a coin that stands for a dollar: one dollar while its rate is near that, else null. Rates are micro-USD. */
export const peggedRate = (rateMicros: bigint | null): bigint | null =>
  rateMicros !== null && rateMicros >= MICROS_PER_USD - PEG_MICROS && rateMicros <= MICROS_PER_USD + PEG_MICROS
    ? MICROS_PER_USD
    : null;

export const CoinSwitch = entity('coin_switch', {
  /** The code of a coin of the driver. */
  code: column.key(),
  available: column.boolean(),
  updatedAt: column.now(),
});
export type CoinSwitch = RowOf<typeof CoinSwitch>;

/** The coins that the operator has switched off. */
export const FIND_COINS_OFF = statement({ code: column.text() })`
  select code from coin_switch where not available`;
/** Switches the coin $1 on or off, as $2 says. A row means that something changed. */
export const SWITCH_COIN = statement({ code: column.text() })`
  insert into coin_switch as kept (code, available) values ($1, $2)
    on conflict (code) do update set available = excluded.available, updated_at = now()
    where kept.available <> excluded.available returning code`;
