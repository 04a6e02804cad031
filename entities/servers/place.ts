/** Places: one row for each machine of a tier that the operator offers at a bastion. An order claims one. */
import { STOCK_LOW } from '../catalog.ts';
import { entity, int, key, nullable, type RowOf, text } from '../database/table.ts';

export const Place = entity(
  'place',
  {
    regionCode: key(),
    serviceCode: key(),
    number: { ...int(), primary: true },
    /** The order that holds it; null: it is free. During a resize an order holds one of either tier. */
    orderNumber: nullable(text()),
  },
  [
    { name: 'place_free', columns: ['regionCode', 'serviceCode', 'number'], where: 'order_number is null' },
    { name: 'place_held', columns: ['orderNumber'], where: 'order_number is not null' },
  ],
);
export type Place = RowOf<typeof Place>;

/** The operator offers at most so many machines of one tier at one bastion. */
export const PLACES_MAX = 100_000;

/** How many places of a row `stock` are free, counted no further than `most`. */
export const freePlacesSql = (most = String(STOCK_LOW)): string => `(
  select count(*)::int from (
    select from place where place.region_code = stock.region_code and place.service_code = stock.service_code
      and place.order_number is null limit ${most}) free)`;
