/** Reads the catalog. It counts stock as an order does. */
import { type CatalogItem, type CatalogKind, type StockLevel, stockLevel } from '../../entities/catalog.ts';
import { hourlyMicros } from '../../entities/money.ts';
import { FIND_OFFERS, LIST_OFFERS, type OfferRow } from '../../entities/servers/offers.ts';
import type { Context } from '../context.ts';
import { found } from '../errors.ts';

/** An item with its hourly rate, and its present stock at each bastion. */
export interface Offer {
  item: CatalogItem;
  hourMicros: bigint | null;
  regions: { code: string; stock: StockLevel }[];
}

/** The offered items of one kind, in their order. */
export const catalogGroup = async ({ db }: Context, kind: CatalogKind): Promise<Offer[]> =>
  (await LIST_OFFERS.all(db, [kind])).map(offer);

/** One offered item. @throws ApiError not_found */
export async function catalogItem(context: Context, code: string): Promise<Offer> {
  return found(/^[a-z0-9][a-z0-9.-]{0,31}$/.test(code) && (await catalogItems(context, [code]))[0]);
}

/** The offered items of some codes, in the order of the codes; null for a code without one. */
export async function catalogItems({ db }: Context, codes: readonly string[]): Promise<(Offer | null)[]> {
  const rows = await FIND_OFFERS.all(db, [codes]);
  const offers = new Map(rows.map((row) => [row.code, offer(row)]));
  return codes.map((code) => offers.get(code) ?? null);
}

const offer = ({ stock, ...item }: OfferRow): Offer => ({
  item,
  hourMicros: item.priceMonthMicros === null ? null : hourlyMicros(item.priceMonthMicros),
  regions: stock.map(({ code, free }) => ({ code, stock: stockLevel({ free }) })),
});
