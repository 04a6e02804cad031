/** The facts that an order depends on, and the checks that orders, quotes and demands for payment share. */
import { STOCK_LOW, stockLevel } from '../../entities/catalog.ts';
import type { Queryable } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { usdFromMicros } from '../../entities/money.ts';
import { type OrderFacts, READ_ORDER_FACTS } from '../../entities/servers/order.ts';
import { accountOf, type Context } from '../context.ts';
import { unknownItem, unknownSshKey } from '../unknown.ts';

export interface ServerOrder {
  serviceCode: string;
  region?: string | null | undefined;
  os: string;
  hostname?: string | null | undefined;
  sshKeyIds?: string[] | null | undefined;
  rootPassword?: string | null | undefined;
  userData?: string | null | undefined;
  labels?: Record<string, string> | null | undefined;
  /** Default: true, unless the credential has a spending limit. */
  autoRenew?: boolean | null | undefined;
  maxPriceMicros?: bigint | null | undefined;
}

export interface Facts extends OrderFacts {
  /** Whether servers and room were counted. If not, the requested region is assumed to have room. */
  isCounted: boolean;
}

/**
 * Reads all that an order depends on, in one query. It counts free capacity of all bastions only if the order names none, or
 * the named one has none.
 * @param hopeful counts nothing for an order that names a region: the statement of the order checks it
 */
export async function readFacts(
  tx: Queryable,
  accountId: string,
  { serviceCode, os, sshKeyIds, region }: ServerOrder,
  hopeful = false,
): Promise<Facts> {
  const read = async (code: string | null, isCounted: boolean): Promise<Facts> => {
    const parameters = [accountId, serviceCode, os, sshKeyIds ?? null, code, isCounted];
    return { ...(await READ_ORDER_FACTS.first(tx, parameters))!, isCounted };
  };
  if (hopeful && region) return { ...(await read(region, false)), regions: [{ code: region, free: STOCK_LOW }] };
  const facts = await read(region ?? null, true);
  return !region || facts.regions.some(hasRoom) ? facts : read(null, true);
}
const hasRoom = (stock: Facts['regions'][number]): boolean => stockLevel(stock) !== 'NONE';

/** The first month and the setup fee, in micro-USD. */
export const priceOf = ({ priceMonthMicros, setupFeeMicros }: NonNullable<Facts['tier']>): bigint =>
  BigInt(priceMonthMicros) + BigInt(setupFeeMicros);

/** The tier, the region and the SSH keys of an order. @throws ApiError the reason of a refusal */
export async function check(
  db: Queryable,
  context: Context,
  order: ServerOrder,
  facts: Facts,
  evenSo?: 'also without stock',
) {
  const { tier, keys } = facts;
  const { serviceCode, os, sshKeyIds, region: wanted } = order;
  if (!tier) throw await unknownItem(db, 'unknown_service_code', serviceCode);
  if (!facts.imageOffered) throw await unknownItem(db, 'unknown_os', os);
  const known = new Set(keys.map(({ id }) => id));
  if (sshKeyIds?.some((id) => !known.has(id))) throw await unknownSshKey(db, accountOf(context), sshKeyIds);
  if (wanted && !facts.bastions.includes(wanted)) throw await unknownItem(db, 'unknown_region', wanted);
  const region = chooseRegion(order, facts, evenSo);
  const priceMicros = priceOf(tier);
  if (order.maxPriceMicros != null && priceMicros > order.maxPriceMicros) {
    const [price, most] = [priceMicros, order.maxPriceMicros].map(usdFromMicros);
    const sentence = `The price is ${price} USD, and max_price_usd ${most}.`;
    throw new ApiError('price_exceeds_max', sentence, { requiredMicros: priceMicros });
  }
  if (facts.servers >= context.limits.servers)
    throw new ApiError(
      'server_limit_reached',
      `The account has ${facts.servers} of ${context.limits.servers} servers. Delete one first by {DeleteServer}.`,
    );
  return { tier, region, keys };
}

/** The region of the order, or else the first with stock. */
function chooseRegion({ region }: ServerOrder, { regions }: Facts, evenSo?: 'also without stock'): string {
  const availableRegions = regions.filter(hasRoom).map(({ code }) => code);
  const chosen = availableRegions.find((code) => !region || code === region);
  if (!chosen && evenSo && (region || regions[0])) return region ?? regions[0]!.code;
  if (!chosen) throw new ApiError('out_of_stock', undefined, { availableRegions });
  return chosen;
}
