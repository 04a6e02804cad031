/** What an order depends on, and what it comes to: the same checks for an order, a quote and a demand for payment. */

import { STOCK_LOW, stockLevel } from '../../entities/catalog.ts';
import type { Queryable } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { usdFromMicros } from '../../entities/money.ts';
import { freeSql } from '../../entities/servers/host.ts';
import { addressRoomSql } from '../../entities/servers/ip-address.ts';

export interface ServerOrder {
  serviceCode: string;
  region?: string | null | undefined;
  os: string;
  hostname?: string | null | undefined;
  sshKeyIds?: string[] | null | undefined;
  rootPassword?: string | null | undefined;
  userData?: string | null | undefined;
  labels?: Record<string, string> | null | undefined;
  autoRenew: boolean;
  maxPriceUsd?: bigint | null | undefined;
}

export interface Facts {
  balanceMicros: bigint;
  servers: number;
  tier: { kind: 'vps' | 'dedicated'; priceMonthMicros: string; setupFeeMicros: string; minDiskGb: number } | null;
  regions: { code: string; free: number }[];
  bastions: string[];
  imageOffered: boolean;
  keys: { id: string; publicKey: string }[];
  /** Whether servers and room were counted. If not, the region that is asked for is taken to have room. */
  isCounted: boolean;
}

/**
 * Everything an order depends on, in one query. It counts what is free at all bastions only if the one that is asked for has
 * nothing, or none is asked for.
 * @param hopeful counts nothing where a region is asked for: the statement of an order finds out by itself
 */
export async function readFacts(
  tx: Queryable,
  accountId: string,
  { serviceCode, os, sshKeyIds, region }: ServerOrder,
  hopeful = false,
): Promise<Facts> {
  const read = async (code: string | null, isCounted: boolean): Promise<Facts> => {
    const parameters = [accountId, serviceCode, os, sshKeyIds ?? null, code, isCounted];
    const [facts] = await tx.query<Omit<Facts, 'isCounted'>>(FACTS, parameters, 'order facts');
    return { ...facts!, isCounted };
  };
  if (hopeful && region) return { ...(await read(region, false)), regions: [{ code: region, free: STOCK_LOW }] };
  const facts = await read(region ?? null, true);
  return !region || facts.regions.some(hasRoom) ? facts : read(null, true);
}
const hasRoom = (stock: Facts['regions'][number]): boolean => stockLevel(stock) !== 'NONE';

/** Counts the servers of the account $1. */
export const SERVERS_SQL = `select count(*)::int from server where account_id = $1 and status <> 'DELETED'`;

export const FACTS = `
  with ${addressRoomSql(undefined, '($5::text is null or bastion.code = $5)')}
  select
    coalesce((select available_micros from balance where account_id = $1), 0) as balance_micros,
    case when $6::boolean then (${SERVERS_SQL}) else 0 end as servers,
    (select json_build_object('kind', kind, 'priceMonthMicros', price_month_micros::text, 'setupFeeMicros', setup_fee_micros::text)
      from catalog_item where code = $2 and kind in ('vps', 'dedicated') and offered) as tier,
    case when $6::boolean then (select coalesce(json_agg(json_build_object('code', bastion.code, 'free', least(${freeSql()}, room.free)) order by bastion.position), '[]')
      from stock join catalog_item tier on tier.code = stock.service_code
        join catalog_item bastion on bastion.code = stock.region_code and bastion.offered
        left join room on room.region_code = stock.region_code
      where stock.service_code = $2 and ($5::text is null or stock.region_code = $5)) else '[]' end as regions,
    (select coalesce(array_agg(code), '{}') from catalog_item where kind = 'bastion' and offered) as bastions,
    exists (select from catalog_item where code = $3 and kind = 'image' and offered) as image_offered,
    (select coalesce(json_agg(json_build_object('id', id, 'publicKey', public_key) order by id), '[]')
      from ssh_key where account_id = $1 and ($4::text[] is null or id = any($4))) as keys`;

/** What the order comes to, or why it cannot be taken. */
export function check(order: ServerOrder, facts: Facts, serversMax: number, evenSo?: 'also without stock') {
  const { tier, keys } = facts;
  if (!tier) throw new ApiError('unknown_service_code');
  if (!facts.imageOffered) throw new ApiError('unknown_os');
  const known = new Set(keys.map(({ id }) => id));
  if (order.sshKeyIds?.some((id) => !known.has(id))) throw new ApiError('unknown_ssh_key');
  const region = chooseRegion(order, facts, evenSo);
  const price = BigInt(tier.priceMonthMicros) + BigInt(tier.setupFeeMicros);
  if (order.maxPriceUsd != null && price > order.maxPriceUsd) {
    throw new ApiError('price_exceeds_max', `The price is ${usdFromMicros(price)} USD.`, { requiredMicros: price });
  }
  if (facts.servers >= serversMax)
    throw new ApiError('server_limit_reached', `The account has ${facts.servers} servers, and may have ${serversMax}.`);
  return { tier, region, keys };
}

/** The region asked for, or the first with stock. */
function chooseRegion({ region }: ServerOrder, { regions, bastions }: Facts, evenSo?: 'also without stock'): string {
  if (region && !bastions.includes(region)) throw new ApiError('unknown_region');
  const availableRegions = regions.filter(hasRoom).map(({ code }) => code);
  const chosen = availableRegions.find((code) => !region || code === region);
  if (!chosen && evenSo && (region || regions[0])) return region ?? regions[0]!.code;
  if (!chosen) throw new ApiError('out_of_stock', undefined, { availableRegions });
  return chosen;
}
