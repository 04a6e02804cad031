/** The bonuses of larger top-ups. New tiers count for new top-ups. */
import { LOCK_NAME } from '../../entities/database/lock-name.ts';
import { insert } from '../../entities/database/table.ts';
import { microsFromUsd, usdFromMicros } from '../../entities/money.ts';
import { BonusTier, LIST_BONUS_TIERS, REMOVE_BONUS_TIERS } from '../../entities/payments/bonus.ts';
import { TOP_UP_MAX_USD } from '../../entities/payments/top-up.ts';
import type { Context } from '../context.ts';
import { invalid } from '../errors.ts';
import { recordByOperator } from '../record.ts';
import { requireSeen } from '../seen.ts';

/** The most tiers. */
const TIERS_MAX = 20;

/** The tiers, the lowest first. */
export const listBonusTiers = ({ db }: Context): Promise<BonusTier[]> => LIST_BONUS_TIERS.all(db);

/**
 * Replaces all tiers.
 * @param seen the tiers that the operator saw; absent: any
 * @throws ApiError validation_failed, also if another operator has changed the tiers meanwhile
 */
export async function setBonusTiers(
  context: Context,
  given: readonly BonusTier[],
  seen?: readonly BonusTier[] | null,
): Promise<BonusTier[]> {
  const tiers = inOrder(given);
  requireRising(tiers);
  return context.db.transaction(async (tx) => {
    await LOCK_NAME.all(tx, ['bonus tiers']);
    const before = await LIST_BONUS_TIERS.all(tx);
    const compared = { present: inUsd(before), seen: seen && inUsd(inOrder(seen)) };
    await requireSeen(tx, { what: 'the list of bonuses', ...compared, type: 'catalog.updated', subject: 'bonus' });
    await REMOVE_BONUS_TIERS.all(tx);
    if (tiers.length) await insert(tx, BonusTier, tiers);
    const data = { tiers: inUsd(tiers), before: inUsd(before) };
    await recordByOperator(tx, context, 'bonus', { type: 'catalog.updated', resource: 'bonus', data });
    return tiers;
  });
}

const inOrder = (tiers: readonly BonusTier[]): BonusTier[] =>
  tiers.toSorted((a, b) => Number(a.minMicros - b.minMicros));
const inUsd = (tiers: readonly BonusTier[]) =>
  tiers.map(({ minMicros, bonusPercent }) => ({ minUsd: usdFromMicros(minMicros), bonusPercent }));

/** @throws ApiError validation_failed */
function requireRising(tiers: readonly BonusTier[]): void {
  if (tiers.length > TIERS_MAX) throw invalid('tiers', `There are at most ${TIERS_MAX} bonuses.`);
  const most = microsFromUsd(TOP_UP_MAX_USD);
  for (const [index, { minMicros, bonusPercent }] of tiers.entries()) {
    if (minMicros <= 0n || minMicros > most)
      throw invalid(
        'tiers',
        `A bonus begins above 0, and at the largest top-up of ${TOP_UP_MAX_USD} USD at the latest.`,
      );
    if (bonusPercent < 1 || bonusPercent > 100) throw invalid('tiers', 'A bonus is between 1 and 100 percent.');
    const lower = tiers[index - 1];
    if (lower && lower.minMicros === minMicros) throw invalid('tiers', 'Two bonuses begin at the same amount.');
    if (lower && lower.bonusPercent >= bonusPercent)
      throw invalid('tiers', 'A larger top-up has a larger bonus. Otherwise a customer would gain by paying less.');
  }
}
