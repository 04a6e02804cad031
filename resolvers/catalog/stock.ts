/** How many machines of each tier the operator offers at each bastion. Hosts and addresses may do for fewer. */

import type { Stock } from '../../entities/catalog.ts';
import type { Queryable, Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { OPERATOR_ACCOUNT } from '../../entities/history/audit.ts';
import { record } from '../../entities/history/record.ts';
import { freeSql } from '../../entities/servers/host.ts';
import { addressRoomSql } from '../../entities/servers/ip-address.ts';
import { PLACES_MAX } from '../../entities/servers/place.ts';
import { actorOf, type Context } from '../context.ts';
import { invalid } from '../errors.ts';
import { requireRegion } from '../servers/hosts.ts';

export interface StockView extends Stock {
  /** How many places orders hold. */
  claimed: number;
  /** How many can still be ordered. */
  free: number;
}

export const listStock = ({ db }: Context, region?: string | null): Promise<StockView[]> =>
  stockOf(db, '$1::text is null or stock.region_code = $1', [region ?? null]);

const stockOf = (db: Queryable, where: string, parameters: unknown[]): Promise<StockView[]> =>
  db.query(
    `with ${addressRoomSql('all')}
      select stock.region_code, stock.service_code, stock.total,
        (select count(*)::int from place where place.region_code = stock.region_code
          and place.service_code = stock.service_code and place.order_number is not null) as claimed,
        greatest(least(${freeSql('all')}, room.free), 0) as free
      from stock join catalog_item tier on tier.code = stock.service_code
        left join room on room.region_code = stock.region_code
      where ${where} order by stock.region_code, tier.position`,
    parameters,
  );

/** @throws ApiError unknown_region, unknown_service_code, or validation_failed for too many, or fewer than are sold */
export async function setStock(context: Context, region: string, serviceCode: string, total: number) {
  if (total > PLACES_MAX) throw invalid('total', `At most ${PLACES_MAX} machines of a tier can be offered there.`);
  return context.db.transaction(async (tx) => {
    await requireRegion(tx, region);
    const [tier] = await tx.query(`select 1 from catalog_item where code = $1 and kind in ('vps', 'dedicated')`, [
      serviceCode,
    ]);
    if (!tier) throw new ApiError('unknown_service_code');
    await tx.query(
      `insert into stock (region_code, service_code, total) values ($1, $2, $3)
        on conflict (region_code, service_code) do update set total = excluded.total`,
      [region, serviceCode, total],
    );
    await setPlaces(tx, region, serviceCode, total);
    await record(tx, OPERATOR_ACCOUNT, `${region}/${serviceCode}`, {
      type: 'catalog.updated',
      resource: 'stock',
      actor: actorOf(context),
      data: { total },
    });
    return (await stockOf(tx, 'stock.region_code = $1 and stock.service_code = $2', [region, serviceCode]))[0]!;
  });
}

/** Adds or removes free places until there are so many. @throws ApiError validation_failed where more are sold */
async function setPlaces(tx: Transaction, region: string, serviceCode: string, total: number): Promise<void> {
  const tier = 'region_code = $1 and service_code = $2';
  // It waits for orders that are claiming one of these, and later ones wait for it.
  await tx.query(`select from place where ${tier} and order_number is null order by number for update`, [
    region,
    serviceCode,
  ]);
  await tx.query(
    `delete from place where ${tier} and number in (
      select number from place where ${tier} and order_number is null order by number desc
      limit greatest((select count(*) from place where ${tier}) - $3, 0))`,
    [region, serviceCode, total],
  );
  await tx.query(
    `insert into place (region_code, service_code, number)
      select $1, $2, number from generate_series(1, $3::int) number
      where not exists (select from place where ${tier} and place.number = number.number)
      order by number limit greatest($3 - (select count(*) from place where ${tier}), 0)`,
    [region, serviceCode, total],
  );
  const [{ count } = { count: 0 }] = await tx.query<{ count: number }>(
    `select count(*)::int from place where ${tier}`,
    [region, serviceCode],
  );
  if (count > total) throw invalid('total', 'More than that are sold already.');
}
