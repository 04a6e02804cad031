/** Reads the catalog. The same stock decides here and when an order is taken. */

import {
  type CatalogItem,
  type CatalogKind,
  columnsOfCatalog,
  type StockLevel,
  stockLevel,
} from '../../entities/catalog.ts';
import { ApiError } from '../../entities/errors.ts';
import { hourlyMicros } from '../../entities/money.ts';
import { freeSql } from '../../entities/servers/host.ts';
import { addressRoomSql } from '../../entities/servers/ip-address.ts';
import type { Context } from '../context.ts';

/** An item with what depends on the moment: stock, and the hourly rate. */
export interface Offer {
  item: CatalogItem;
  hourMicros: bigint | null;
  regions: { code: string; stock: StockLevel }[];
}

/** The offered items of one kind, in their order. */
export async function catalogGroup({ db }: Context, kind: CatalogKind): Promise<Offer[]> {
  return (
    await db.query<OfferRow>(
      `${OFFERS} where item.kind = $1 and item.offered group by item.code order by item.position`,
      [kind],
    )
  ).map(offer);
}

/** One offered item. @throws ApiError not_found */
export async function catalogItem({ db }: Context, code: string): Promise<Offer> {
  if (!/^[a-z0-9][a-z0-9.-]{0,31}$/.test(code)) throw new ApiError('not_found');
  const [row] = await db.query<OfferRow>(`${OFFERS} where item.code = $1 and item.offered group by item.code`, [code]);
  if (!row) throw new ApiError('not_found');
  return offer(row);
}

/** The offered items of some codes, in the order of the codes. */
export async function catalogItems({ db }: Context, codes: readonly string[]): Promise<(Offer | null)[]> {
  const rows = await db.query<OfferRow>(`${OFFERS} where item.code = any($1) and item.offered group by item.code`, [
    codes,
  ]);
  const offers = new Map(rows.map((row) => [row.code, offer(row)]));
  return codes.map((code) => offers.get(code) ?? null);
}

type OfferRow = CatalogItem & { stock: { code: string; free: number }[] };
const OFFERS = `
  with ${addressRoomSql()}
  select ${columnsOfCatalog},
    coalesce(json_agg(json_build_object('code', bastion.code, 'free', least(${freeSql()}, room.free)) order by bastion.position)
      filter (where bastion.code is not null), '[]') as stock
  from catalog_item item
    left join stock on stock.service_code = item.code
    left join catalog_item tier on tier.code = stock.service_code
    left join catalog_item bastion on bastion.code = stock.region_code and bastion.offered
    left join room on room.region_code = stock.region_code`;

const offer = ({ stock, ...item }: OfferRow): Offer => ({
  item,
  hourMicros: item.priceMonthMicros === null ? null : hourlyMicros(item.priceMonthMicros),
  regions: stock.map(({ code, free }) => ({ code, stock: stockLevel({ free }) })),
});
