/** How many machines of each tier the operator offers at each bastion. Hosts and addresses may do for fewer. */
import { addressRoomSql } from '../entities/address.ts';
import { OPERATOR_ACCOUNT } from '../entities/audit.ts';
import type { Stock } from '../entities/catalog.ts';
import type { Queryable } from '../entities/database.ts';
import { ApiError } from '../entities/errors.ts';
import { FREE_SQL } from '../entities/host.ts';
import { record } from '../entities/record.ts';
import { actorOf, type Context } from './context.ts';
import { requireRegion } from './hosts.ts';
import { invalid } from './invalid.ts';

export interface StockView extends Stock {
  /** How many can still be ordered. */
  free: number;
}

export const listStock = ({ db }: Context, region?: string | null): Promise<StockView[]> =>
  stockOf(db, '$1::text is null or stock.region_code = $1', [region ?? null]);

const stockOf = (db: Queryable, where: string, parameters: unknown[]): Promise<StockView[]> =>
  db.query(
    `with ${addressRoomSql('all')}
      select stock.region_code as "regionCode", stock.service_code as "serviceCode", stock.total, stock.claimed,
        greatest(least(${FREE_SQL}, room.free), 0) as free
      from stock join catalog_item tier on tier.code = stock.service_code
        left join room on room.region_code = stock.region_code
      where ${where} order by stock.region_code, tier.position`,
    parameters,
  );

/** @throws ApiError unknown_region, unknown_service_code, or validation_failed where more are sold already */
export async function setStock(context: Context, region: string, serviceCode: string, total: number) {
  return context.db.transaction(async (tx) => {
    await requireRegion(tx, region);
    const [tier] = await tx.query(`select 1 from catalog_item where code = $1 and kind in ('vps', 'dedicated')`, [
      serviceCode,
    ]);
    if (!tier) throw new ApiError('unknown_service_code');
    const set = await tx.query(
      `insert into stock as kept (region_code, service_code, total) values ($1, $2, $3)
        on conflict (region_code, service_code) do update set total = excluded.total where kept.claimed <= excluded.total
        returning total`,
      [region, serviceCode, total],
    );
    if (!set.length) throw invalid('total', 'More than that are sold already.');
    await record(tx, OPERATOR_ACCOUNT, `${region}/${serviceCode}`, {
      ...{ type: 'catalog.updated', resource: 'stock', actor: actorOf(context) },
      data: { total },
    });
    return (await stockOf(tx, 'stock.region_code = $1 and stock.service_code = $2', [region, serviceCode]))[0]!;
  });
}
