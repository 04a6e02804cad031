/** Statements by which customers read the catalog with its stock, and the operator reads the stock. */
import { CatalogItem, columnsOfCatalog, Stock } from '../catalog.ts';
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import type { Row } from '../database/table.ts';
import { IS_MADE_SQL, isOnEngineSql } from './engine.ts';
import { freeSql } from './host.ts';
import { addressRoomSql, JOIN_ROOM_SQL } from './ip-address.ts';

/** An item, with the number of machines of the tier that can be ordered at each bastion. */
const OFFER = { ...CatalogItem.columns, stock: column.json<{ code: string; free: number }[]>() };
export type OfferRow = Row<typeof OFFER>;

/** @param kinds the kinds of the items. Bastions and images have no stock, so the query counts no addresses for them. */
const offersSql = (which: string, kinds: string, order = ''): string => `
  with ${addressRoomSql({ where: `lower(server.kind) in (${kinds})` })}
  select ${columnsOfCatalog},
    coalesce(json_agg(json_build_object('code', bastion.code, 'free', least(${freeSql()}, room.free)) order by bastion.position)
      filter (where bastion.code is not null), '[]') as stock
  from catalog_item item
    left join stock on stock.service_code = item.code
    left join catalog_item tier on tier.code = stock.service_code
    left join catalog_item bastion on bastion.code = stock.region_code and bastion.offered
    ${JOIN_ROOM_SQL}
  where ${which} and item.offered and (item.kind <> 'image' or ${isOnEngineSql('item.code')}) group by item.code ${order}`;
/** The offered items of the kind $1, in their order. */
export const LIST_OFFERS = statement(OFFER)`
  ${offersSql('item.kind = $1', '$1', 'order by item.position')}`;
/** The offered items with the codes $1, in any order. */
export const FIND_OFFERS = statement(OFFER)`
  ${offersSql('item.code = any($1)', 'select kind from catalog_item where code = any($1)')}`;

const STOCK = {
  ...Stock.columns,
  /** The number of places that orders hold. */
  claimed: column.int(),
  /** The number of machines that can still be ordered. */
  free: column.int(),
  /** Whether the operator offers the tier and the region, and an engine makes its kind. */
  sold: column.boolean(),
};
export type StockView = Row<typeof STOCK>;
/** The stock of tiers at bastions. $1 region, $2 service code; null for all. */
export const LIST_STOCK = statement(STOCK)`
  with ${addressRoomSql({ most: 'all' })}
  select stock.region_code, stock.service_code, stock.total,
    (select count(*)::int from place where place.region_code = stock.region_code
      and place.service_code = stock.service_code and place.order_number is not null) as claimed,
    greatest(least(${freeSql({ most: 'all' })}, room.free), 0) as free,
    tier.offered and ${IS_MADE_SQL} and exists (
      select from catalog_item region where region.code = stock.region_code and region.offered) as sold
  from stock join catalog_item tier on tier.code = stock.service_code
    ${JOIN_ROOM_SQL}
  where ($1::text is null or stock.region_code = $1) and ($2::text is null or stock.service_code = $2)
  order by stock.region_code, tier.position`;

/** Sets how many machines of a tier the operator offers. $1 region, $2 service code, $3 total. */
export const SET_STOCK = statement({})`
  insert into stock (region_code, service_code, total) values ($1, $2, $3)
  on conflict (region_code, service_code) do update set total = excluded.total`;
const IS_OF_TIER = 'region_code = $1 and service_code = $2';
/** The places of a tier by their rank: the held ones first. $1 region, $2 service code. */
const RANKED = `(
  select number as ranked, row_number() over (order by order_number is null, number) as rank
  from place where ${IS_OF_TIER}) as ranks`;
/** Locks the places of a tier: earlier orders and releases end first, and later ones wait. $1 region, $2 service code. */
export const LOCK_PLACES = statement({})`
  select from place where ${IS_OF_TIER} order by number for update`;
/** Locks the places of a tier in all regions, as LOCK_PLACES does. $1 service code. */
export const LOCK_PLACES_OF_TIER = statement({})`
  select from place where service_code = $1 order by region_code, number for update`;
/** Counts the servers that have the tier $1, or that a resize gives it. */
export const COUNT_SERVERS_OF_TIER = statement({ servers: column.int() })`
  select count(*)::int as servers from server
  where (service_code = $1 or change ->> 'serviceCode' = $1) and status not in ('FAILED', 'DELETING', 'DELETED')`;
/** Withdraws the held places beyond $3, and no other held place. $1 region, $2 service code. */
export const WITHDRAW_PLACES = statement({})`
  update place set withdrawn = not withdrawn from ${RANKED}
  where ${IS_OF_TIER} and number = ranked and order_number is not null and withdrawn <> (rank > $3::int)`;
/** Removes free places until $3 places are left, or none is free. $1 region, $2 service code. */
export const REMOVE_PLACES = statement({})`
  delete from place using ${RANKED}
  where ${IS_OF_TIER} and number = ranked and order_number is null and rank > $3::int`;
/** Adds places until there are $3. $1 region, $2 service code. */
export const ADD_PLACES = statement({})`
  insert into place (region_code, service_code, number)
  select $1, $2, number from generate_series(1, $3::int) number
  where not exists (select from place where ${IS_OF_TIER} and place.number = number.number)
  order by number limit greatest($3::int - (select count(*) from place where ${IS_OF_TIER}), 0)`;
