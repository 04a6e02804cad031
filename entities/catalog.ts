/** The catalog: tiers of servers, bastions and images. A code is unique in all four groups. */
import * as column from './database/column.ts';
import { statement } from './database/statement.ts';
import { columnsOf, defaulting, entity, nullable, type RowOf } from './database/table.ts';

/** The traffic of a tier in a month, and the consequence of more. */
interface TrafficDetails {
  /** Null: unmetered. */
  trafficTb: number | null;
  portMbps: number;
  /** The price in micro-USD of each begun TB above. Absent: the machine gets slow instead. */
  extraTbMicros?: number;
  /** The speed of a slow machine. Default: 10. */
  slowMbps?: number;
}
export interface VpsDetails extends TrafficDetails {
  vcpus: number;
  memoryMb: number;
  diskGb: number;
  diskType: string;
  trafficTb: number;
  virtualization: string;
  /** Whether containers can run in the machine. Absent: no. */
  nesting?: boolean;
}
export interface DedicatedDetails extends TrafficDetails {
  cpuModel: string;
  cores: number;
  threads: number;
  memoryMb: number;
  disks: { count: number; sizeGb: number; type: string }[];
  deliveryHours: number;
}
export interface BastionDetails {
  city: string;
  /** ISO 3166-1 alpha-2. */
  country: string;
  latitude: number | null;
  longitude: number | null;
  testIpv4: string | null;
  testIpv6: string | null;
  lookingGlassUrl: string | null;
  status: string;
}
export interface ImageDetails {
  family: string;
  version: string;
  architecture: string;
  minDiskGb: number;
  minMemoryMb: number;
  cloudInit: boolean;
  defaultUser: string;
  deprecatedAt: string | null;
}
export type CatalogKind = 'vps' | 'dedicated' | 'bastion' | 'image';

export const CatalogItem = entity('catalog_item', {
  code: column.key(),
  kind: column.oneOf<CatalogKind>('vps', 'dedicated', 'bastion', 'image'),
  name: column.text(),
  /** The position in lists of its kind. */
  position: column.int(),
  /** Tiers only. */
  priceMonthMicros: nullable(column.bigint()),
  setupFeeMicros: nullable(column.bigint()),
  details: column.json<VpsDetails | DedicatedDetails | BastionDetails | ImageDetails>(),
  offered: defaulting(column.boolean(), 'true'),
  /** Grows with each change by an operator, so that the later of two is told of the earlier change. */
  version: defaulting(column.int(), 1),
  /** Whether it belongs to the catalog that new installations with simulated machines begin with. */
  sample: defaulting(column.boolean(), 'false'),
});
export type CatalogItem = RowOf<typeof CatalogItem>;

/** The number of machines of a tier that the operator offers at a bastion. Each of them has a row in `place`. */
export const Stock = entity('stock', {
  regionCode: column.key(),
  serviceCode: column.key(),
  total: column.int(),
});
export type Stock = RowOf<typeof Stock>;

/** With fewer free machines, the stock is low. */
export const STOCK_LOW = 3;
export type StockLevel = 'AVAILABLE' | 'LOW' | 'NONE';
/** @param free the number of machines that can be ordered */
export const stockLevel = ({ free }: { free: number }): StockLevel =>
  free <= 0 ? 'NONE' : free < STOCK_LOW ? 'LOW' : 'AVAILABLE';

/** The columns of an item in a query that calls it `item`. */
export const columnsOfCatalog = columnsOf(CatalogItem, 'item');

/** The items of the kinds $1 in their order, including those that are not offered. */
export const LIST_ITEMS = statement(CatalogItem.columns)`
  select ${columnsOfCatalog} from catalog_item item where kind = any($1) order by position, code`;
/** Adds an item behind the others, unless its code is taken. $1 code, $2 kind, $3 name, $4 details, $5 price, $6 setup fee. */
export const INSERT_ITEM = statement(CatalogItem.columns)`
  insert into catalog_item as item (code, kind, name, position, details, price_month_micros, setup_fee_micros)
    select $1, $2, $3, coalesce(max(position), 0) + 1, $4::jsonb, $5::bigint, $6::bigint from catalog_item
    on conflict do nothing returning ${columnsOfCatalog}`;
/** Whether the catalog is still the sample: no operator has changed it, and neither servers nor hosts refer to it. */
const IS_SAMPLE = `exists (select from catalog_item where sample)
  and not exists (select from server) and not exists (select from host)
  and not exists (select from event where account_id = 'operator' and type = 'catalog.updated')`;
const removeAll = (table: string, key: string) => statement({})`
  delete from ${table} where (${key}) in (select ${key} from ${table} where ${IS_SAMPLE} order by ${key} for update)`;
/** Empty a catalog that is still the sample, in this order: the sample belongs to simulated machines. */
export const REMOVE_SAMPLE = [
  removeAll('stock', 'service_code, region_code'),
  removeAll('place', 'region_code, service_code, number'),
  removeAll('bonus_tier', 'min_micros'),
  removeAll('catalog_item', 'code'),
];
/** A tier of servers, even one that is not offered. $1 code. */
export const FIND_TIER = statement({
  kind: column.oneOf('vps', 'dedicated'),
  priceMonthMicros: column.bigint(),
  details: column.json<VpsDetails | DedicatedDetails>(),
  offered: column.boolean(),
  version: column.int(),
})`
  select kind, price_month_micros, details, offered, version from catalog_item
    where code = $1 and kind in ('vps', 'dedicated')`;
