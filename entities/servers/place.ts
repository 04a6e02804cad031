/** Places: one row for each machine of a tier that the operator offers at a bastion. An order claims one. */
import { STOCK_LOW } from '../catalog.ts';
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { defaulting, entity, nullable, type RowOf } from '../database/table.ts';

export const Place = entity('place', {
  regionCode: column.key(),
  serviceCode: column.key(),
  number: { ...column.int(), primary: true },
  /** The order that holds it; null: it is free. During a resize an order holds one of each tier. */
  orderNumber: nullable(column.text()),
  /** Whether the operator offers fewer machines than customers have. The release of the place then removes it. */
  withdrawn: defaulting(column.boolean(), 'false'),
});
export type Place = RowOf<typeof Place>;

/** The most machines of one tier that the operator can offer at one bastion. */
export const PLACES_MAX = 100_000;

/** The number of free places of a row `stock`, counted up to `most`. */
export const freePlacesSql = (most = String(STOCK_LOW)): string => `(
  select count(*)::int from (
    select from place where place.region_code = stock.region_code and place.service_code = stock.service_code
      and place.order_number is null limit ${most}) free)`;

/** Picks the first free place of a tier at a bastion, and locks it. */
export const pickPlaceSql = (region: string, serviceCode: string, wait: '' | 'skip locked'): string => `
  select number from place where region_code = ${region} and service_code = ${serviceCode} and order_number is null
  order by number limit 1 for update ${wait}`;

/** Locks the first free place of a tier, and waits for other claims of it. $1 region, $2 service code. */
export const LOCK_FREE_PLACE = statement({ number: column.int() })`${pickPlaceSql('$1', '$2', '')}`;
/** Claims one place, and waits for other claims of it. $1 region, $2 service code, $3 order number. */
export const CLAIM_PLACE = statement({ number: column.int() })`
  with free as (${pickPlaceSql('$1', '$2', '')})
  update place set order_number = $3 from free
  where place.region_code = $1 and place.service_code = $2 and place.number = free.number returning place.number`;
/** Frees the places of an order, and removes withdrawn ones. $1 order number, $2 the tier, or null for all. */
export const RELEASE_PLACES = statement({})`
  with held as (
    select region_code, service_code, number, withdrawn from place
    where order_number = $1 and ($2::text is null or service_code = $2)
    order by region_code, service_code, number for update),
  removed as (
    delete from place using held where held.withdrawn
      and place.region_code = held.region_code and place.service_code = held.service_code and place.number = held.number)
  update place set order_number = null from held where not held.withdrawn
    and place.region_code = held.region_code and place.service_code = held.service_code and place.number = held.number`;
