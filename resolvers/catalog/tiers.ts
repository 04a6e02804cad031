/** The tiers of the operator: their sizes, their prices, and whether customers can order them. */
import { type CatalogItem, type DedicatedDetails, LIST_ITEMS, type VpsDetails } from '../../entities/catalog.ts';
import { snake } from '../../entities/database/table.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { hourlyMicros, usdFromMicros } from '../../entities/money.ts';
import { SLOW_MBPS } from '../../entities/servers/metering/traffic.ts';
import { COUNT_SERVERS_OF_TIER, LOCK_PLACES_OF_TIER } from '../../entities/servers/offers.ts';
import type { Context } from '../context.ts';
import { invalid } from '../errors.ts';
import { addItem, changeItem, givenOf, type ItemChange, pricesOf } from './items.ts';

type Maybe<T> = T | null | undefined;

/** The most kinds of disks in a server. */
const DISKS_MAX = 16;
const KINDS = ['vps', 'dedicated'] as const;
export const VIRTUALIZATIONS = ['CONTAINER', 'KVM'] as const;

interface Price {
  priceMonthMicros: bigint;
  setupFeeMicros: bigint;
}
type NewTier = Pick<CatalogItem, 'code' | 'name'> & Price;
export type NewVpsTier = NewTier &
  Omit<VpsDetails, 'virtualization' | 'extraTbMicros' | 'slowMbps'> & {
    virtualization: (typeof VIRTUALIZATIONS)[number];
  } & ExtraTraffic;
export type NewDedicatedTier = NewTier &
  Omit<DedicatedDetails, 'trafficTb' | 'extraTbMicros' | 'slowMbps'> & { trafficTb?: Maybe<number> };
/** The consequence of more traffic than that of a VPS tier. */
interface ExtraTraffic {
  /** The price of each begun TB above. 0: the machine gets slow instead. */
  extraTrafficTbMicros?: Maybe<bigint>;
  slowMbps?: Maybe<number>;
}
/** The members that the operator can change. Omitted ones stay. */
export interface TierChange extends ExtraTraffic {
  name?: Maybe<string>;
  position?: Maybe<number>;
  trafficTb?: Maybe<number>;
  portMbps?: Maybe<number>;
  /** Dedicated servers only. */
  deliveryHours?: Maybe<number>;
}

/** All tiers in their order, including those that are not offered. */
export const listTiers = ({ db }: Context): Promise<CatalogItem[]> => LIST_ITEMS.all(db, [KINDS]);

/** Offers a new tier of VPS. @throws ApiError validation_failed */
export async function addVpsTier(context: Context, given: NewVpsTier): Promise<CatalogItem> {
  const { code, name, priceMonthMicros, setupFeeMicros, virtualization, extraTrafficTbMicros, slowMbps, ...size } =
    given;
  const details = {
    ...size,
    virtualization: virtualization.toLowerCase(),
    ...trafficOf({ extraTrafficTbMicros, slowMbps }),
  };
  requirePositive({ ...size });
  return addTier(context, { code, kind: 'vps', name, priceMonthMicros, setupFeeMicros, details });
}

/** Offers a new tier of dedicated servers. @throws ApiError validation_failed */
export async function addDedicatedTier(context: Context, given: NewDedicatedTier): Promise<CatalogItem> {
  const { code, name, priceMonthMicros, setupFeeMicros, disks, trafficTb, ...size } = given;
  if (!disks.length || disks.length > DISKS_MAX)
    throw invalid('disks', `A server has 1 to ${DISKS_MAX} kinds of disks.`);
  for (const { count, sizeGb } of disks) requirePositive({ count, sizeGb }, 'disks');
  requirePositive({ ...size, ...(trafficTb != null && { trafficTb }) });
  const details = { ...size, disks, trafficTb: trafficTb ?? null };
  return addTier(context, { code, kind: 'dedicated', name, priceMonthMicros, setupFeeMicros, details });
}

const addTier = (context: Context, tier: Parameters<typeof addItem>[1] & Price): Promise<CatalogItem> => {
  requirePrice(tier);
  return addItem(context, tier);
};

/**
 * Changes the given members. They count for the servers of the tier, too, so these get no less than they were sold with.
 * @throws ApiError unknown_service_code, validation_failed
 */
export async function updateTier(
  context: Context,
  code: string,
  { name, position, ...given }: TierChange,
  version?: Maybe<number>,
): Promise<CatalogItem> {
  const { trafficTb, portMbps, deliveryHours } = given;
  requirePositive(givenOf({ trafficTb, portMbps, deliveryHours }));
  const change = async (item: CatalogItem, tx: Transaction) => {
    if (item.kind === 'vps' && deliveryHours != null) throw invalid('delivery_hours', 'A VPS has no delivery hours.');
    if (item.kind === 'dedicated' && Object.keys(trafficOf(given)).length)
      throw invalid('slow_mbps', 'Nothing counts the traffic of dedicated servers, so none of it is extra.');
    const details = { ...item.details, ...givenOf({ trafficTb, portMbps, deliveryHours }), ...trafficOf(given) };
    await requireNoLoss(tx, item, details);
    const set = { ...givenOf({ name, position }), details };
    return { set, data: { updated: Object.keys(givenOf({ name, position, ...given })) } };
  };
  // Orders hold their place until they commit, so the count below misses none.
  return changeTier(context, code, version, change, (tx) => LOCK_PLACES_OF_TIER.all(tx, [code]));
}

type Details = Pick<VpsDetails & DedicatedDetails, 'trafficTb' | 'portMbps' | 'extraTbMicros' | 'slowMbps'>;
/** The parts of a tier that count for its servers at once. A customer wants the highest `worth`. */
const SOLD: { field: string; worth: (details: Details) => number; words: (details: Details) => string }[] = [
  {
    field: 'traffic_tb',
    worth: ({ trafficTb }) => trafficTb ?? Number.POSITIVE_INFINITY,
    words: ({ trafficTb }) => (trafficTb == null ? 'unmetered traffic' : `${trafficTb} TB of traffic`),
  },
  {
    field: 'port_mbps',
    worth: ({ portMbps }) => portMbps,
    words: ({ portMbps }) => `a port of ${portMbps} Mbit/s`,
  },
  {
    field: 'extra_traffic_tb_usd',
    worth: ({ extraTbMicros = 0 }) => -extraTbMicros,
    words: ({ extraTbMicros = 0 }) => `extra traffic at ${usdFromMicros(BigInt(extraTbMicros))} USD a TB`,
  },
  {
    field: 'slow_mbps',
    worth: ({ slowMbps = SLOW_MBPS }) => slowMbps,
    words: ({ slowMbps = SLOW_MBPS }) => `${slowMbps} Mbit/s above their traffic`,
  },
];

/** @throws ApiError validation_failed, if the servers of a tier would get less than they were sold with */
async function requireNoLoss(tx: Transaction, { code, details }: CatalogItem, after: object): Promise<void> {
  const before = details as Details;
  const lost = SOLD.find(({ worth }) => worth(after as Details) < worth(before));
  if (!lost) return;
  const { servers } = (await COUNT_SERVERS_OF_TIER.first(tx, [code]))!;
  if (!servers) return;
  const sold = servers === 1 ? '1 server, which was' : `${servers} servers, which were`;
  throw invalid(lost.field, `The tier has ${sold} sold with ${lost.words(before)}. Add another tier, or give more.`);
}

/**
 * Sets the price of a tier for new orders and resizes. Servers keep their price.
 * @param price without a setup fee, that of the tier stays
 * @throws ApiError unknown_service_code, validation_failed
 */
export async function setPrice(
  context: Context,
  code: string,
  price: { priceMonthMicros: bigint; setupFeeMicros?: Maybe<bigint> },
  version?: Maybe<number>,
): Promise<CatalogItem> {
  return changeTier(context, code, version, (item) => {
    const { priceMonthMicros } = price;
    const setupFeeMicros = price.setupFeeMicros ?? item.setupFeeMicros ?? 0n;
    requirePrice({ priceMonthMicros, setupFeeMicros });
    const set = { priceMonthMicros, setupFeeMicros };
    return { set, data: { ...pricesOf(set), before: pricesOf(item) } };
  });
}

/** Offers a tier, or withdraws it. Servers keep a withdrawn tier. @throws ApiError unknown_service_code, validation_failed */
export const offerTier = (context: Context, code: string, offered: boolean, version?: Maybe<number>) =>
  changeTier(context, code, version, () => ({ set: { offered }, data: { offered } }));

const changeTier = (
  context: Context,
  code: string,
  version: Maybe<number>,
  change: (item: CatalogItem, tx: Transaction) => ItemChange | Promise<ItemChange>,
  first?: (tx: Transaction) => Promise<unknown>,
): Promise<CatalogItem> =>
  changeItem(
    context,
    { code, kinds: KINDS, version, ...(first && { first }) },
    () => new ApiError('unknown_service_code'),
    change,
  );

/** @throws ApiError validation_failed */
function requirePrice({ priceMonthMicros, setupFeeMicros }: Price): void {
  if (hourlyMicros(priceMonthMicros) < 1n)
    throw invalid(
      'price_month_usd',
      'The books count an hour in whole millionths of a dollar, so a month costs at least 0.00073 USD.',
    );
  if (setupFeeMicros < 0n) throw invalid('setup_fee_usd', 'A setup fee is 0 or more.');
}

/** @throws ApiError validation_failed, for a number that is not above 0 */
function requirePositive(members: Record<string, unknown>, field?: string): void {
  const wrong = Object.entries(members).find(([, value]) => typeof value === 'number' && value <= 0);
  if (wrong) throw invalid(field ?? snake(wrong[0]), 'It has to be above 0.');
}

/** The given consequence of more traffic, as the details of a tier have it. @throws ApiError validation_failed */
function trafficOf({ extraTrafficTbMicros, slowMbps }: ExtraTraffic): Pick<VpsDetails, 'extraTbMicros' | 'slowMbps'> {
  if (extraTrafficTbMicros != null && extraTrafficTbMicros < 0n)
    throw invalid('extra_traffic_tb_usd', 'The price of traffic is 0 or more.');
  requirePositive(givenOf({ slowMbps }));
  return {
    ...(extraTrafficTbMicros != null && { extraTbMicros: Number(extraTrafficTbMicros) }),
    ...(slowMbps != null && { slowMbps }),
  };
}
