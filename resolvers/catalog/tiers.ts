/** The tiers of the operator: their sizes, their prices, and whether customers can order them. */
import { type CatalogItem, type DedicatedDetails, LIST_ITEMS, type VpsDetails } from '../../entities/catalog.ts';
import { snake } from '../../entities/database/table.ts';
import { ApiError } from '../../entities/errors.ts';
import { hourlyMicros } from '../../entities/money.ts';
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

/** Changes the given members. They count for the servers of the tier, too. @throws ApiError unknown_service_code, validation_failed */
export async function updateTier(
  context: Context,
  code: string,
  { name, position, ...given }: TierChange,
  version?: Maybe<number>,
): Promise<CatalogItem> {
  const { trafficTb, portMbps, deliveryHours } = given;
  requirePositive(givenOf({ trafficTb, portMbps, deliveryHours }));
  return changeTier(context, code, version, (item) => {
    if (item.kind === 'vps' && deliveryHours != null) throw invalid('delivery_hours', 'A VPS has no delivery hours.');
    if (item.kind === 'dedicated' && Object.keys(trafficOf(given)).length)
      throw invalid('slow_mbps', 'Nothing counts the traffic of dedicated servers, so none of it is extra.');
    const details = { ...item.details, ...givenOf({ trafficTb, portMbps, deliveryHours }), ...trafficOf(given) };
    const set = { ...givenOf({ name, position }), details };
    return { set, data: { updated: Object.keys(givenOf({ name, position, ...given })) } };
  });
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
  change: (item: CatalogItem) => ItemChange,
): Promise<CatalogItem> =>
  changeItem(context, { code, kinds: KINDS, version }, () => new ApiError('unknown_service_code'), change);

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
