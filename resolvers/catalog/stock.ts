/** The stock: how many machines of each tier the operator offers at each bastion. Hosts and addresses can limit it further. */
import { FIND_TIER, Stock } from '../../entities/catalog.ts';
import { lock } from '../../entities/database/table.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import {
  ADD_PLACES,
  LIST_STOCK,
  LOCK_PLACES,
  REMOVE_PLACES,
  SET_STOCK,
  type StockView,
  WITHDRAW_PLACES,
} from '../../entities/servers/offers.ts';
import { PLACES_MAX } from '../../entities/servers/place.ts';
import type { Context } from '../context.ts';
import { invalid } from '../errors.ts';
import { recordByOperator } from '../record.ts';
import { requireSeen } from '../seen.ts';
import { requireRegion } from '../servers/hosts.ts';

export const listStock = ({ db }: Context, region?: string | null): Promise<StockView[]> =>
  LIST_STOCK.all(db, [region ?? null, null]);

/**
 * @param seen the total that the operator saw; absent: any
 * @throws ApiError unknown_region, unknown_service_code, or validation_failed for a total above the maximum, or another than the seen one
 */
export async function setStock(
  context: Context,
  region: string,
  serviceCode: string,
  total: number,
  seen?: number | null,
): Promise<StockView> {
  if (total > PLACES_MAX) throw invalid('total', `A bastion offers at most ${PLACES_MAX} machines of a tier.`);
  return context.db.transaction(async (tx) => {
    await requireRegion(tx, region);
    if (!(await FIND_TIER.first(tx, [serviceCode]))) throw new ApiError('unknown_service_code');
    const before = await lock(tx, Stock, { regionCode: region, serviceCode });
    const change = { type: 'catalog.updated', subject: `${region}/${serviceCode}` } as const;
    await requireSeen(tx, { what: 'the limit', present: before?.total ?? 0, seen, ...change });
    await SET_STOCK.all(tx, [region, serviceCode, total]);
    await setPlaces(tx, region, serviceCode, total);
    await recordByOperator(tx, context, change.subject, {
      type: 'catalog.updated',
      resource: 'stock',
      data: { total },
    });
    return (await LIST_STOCK.first(tx, [region, serviceCode]))!;
  });
}

/** Adds or removes free places up to the total. Orders keep those beyond it until they release them. */
async function setPlaces(tx: Transaction, region: string, serviceCode: string, total: number): Promise<void> {
  await LOCK_PLACES.all(tx, [region, serviceCode]);
  for (const change of [WITHDRAW_PLACES, REMOVE_PLACES, ADD_PLACES]) await change.all(tx, [region, serviceCode, total]);
}
