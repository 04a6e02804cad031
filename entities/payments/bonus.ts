/** The bonuses of larger top-ups. A top-up keeps the tiers of the time of its quote. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, entity, type RowOf } from '../database/table.ts';
import type { Queryable } from '../database/transaction.ts';

export const BonusTier = entity('bonus_tier', {
  minMicros: { ...column.bigint(), primary: true },
  bonusPercent: column.int(),
});
/** The tier for the highest minimum reached applies to the whole amount. */
export type BonusTier = RowOf<typeof BonusTier>;
/** A tier as JSON, whose amounts are numbers. The largest top-up has 10¹⁰ micro-USD. */
export type KeptBonusTier = { minMicros: number; bonusPercent: number };

/** The tiers, the lowest first. */
export const LIST_BONUS_TIERS = statement(BonusTier.columns)`
  select ${columnsOf(BonusTier)} from bonus_tier order by min_micros`;
/** The tiers as a top-up keeps them. */
export const presentTiers = async (db: Queryable): Promise<KeptBonusTier[]> =>
  (await LIST_BONUS_TIERS.all(db)).map((tier) => ({ ...tier, minMicros: Number(tier.minMicros) }));
/** Removes all tiers. */
export const REMOVE_BONUS_TIERS = statement({})`delete from bonus_tier`;

/** The bonus of an amount by the tiers, which begin with the lowest. */
export function bonusMicros(tiers: readonly KeptBonusTier[], amountMicros: bigint): bigint {
  const tier = tiers.findLast(({ minMicros }) => amountMicros >= BigInt(minMicros));
  return tier ? (amountMicros * BigInt(tier.bonusPercent)) / 100n : 0n;
}

/** The percentage of the tier that a sum reaches, by the tiers of a row of `top_up`. @param sum an expression */
export const bonusPercentSql = (sum: string): string => `coalesce((
  select (tier->>'bonusPercent')::int from jsonb_array_elements(top_up.bonus_tiers) tier
  where (tier->>'minMicros')::bigint <= ${sum} order by (tier->>'minMicros')::bigint desc limit 1), 0)`;
