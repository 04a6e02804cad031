/** The operator's networks, which machines get their addresses from. */
import { isIP } from 'node:net';
import { lock, remove } from '../../entities/database/table.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { isId, newId } from '../../entities/ids.ts';
import {
  ADD_ADDRESS_POOL,
  ADD_IPV4_ADDRESSES,
  ADD_IPV6_ADDRESSES,
  type AddressPoolView,
  FIND_POOL_CONFLICTS,
  LIST_ADDRESS_POOLS,
  LOCK_POOL_ADDRESSES,
  lockAddressPools,
} from '../../entities/servers/address-pool.ts';
import { AddressPool, type AddressUseView, IpAddress, LIST_ADDRESS_USES } from '../../entities/servers/ip-address.ts';
import type { Context } from '../context.ts';
import { found, invalid } from '../errors.ts';
import { recordByOperator } from '../record.ts';
import { requireRegion } from './hosts.ts';

export interface NewAddressPool {
  region: string;
  /** Default: VPS. */
  kind?: AddressPool['kind'] | null | undefined;
  /** IPv6: whether each /64 is routed to its machine. Default: false, customers see only the address. */
  routed?: boolean | null | undefined;
  /** Such as 192.0.2.0/24, or 2001:db8:1::/48 for /64s. */
  cidr: string;
  /** Null: hosts route the addresses. */
  gateway?: string | null | undefined;
  /** The first and last usable address (IPv4 only). Default: all but the network's own and its broadcast address. */
  first?: string | null | undefined;
  last?: string | null | undefined;
}

/** The shortest and longest prefix by version. A shorter one would mean too many rows. */
const BITS = { 4: [16, 32], 6: [48, 64] } as const;

export const listAddressPools = ({ db }: Context, region?: string | null): Promise<AddressPoolView[]> =>
  LIST_ADDRESS_POOLS.all(db, [region ?? null, null]);

/** @throws ApiError unknown_region, or validation_failed for an invalid network, or one that overlaps another */
export async function addAddressPool(context: Context, given: NewAddressPool): Promise<AddressPoolView> {
  const [version, bits] = parse(given.cidr);
  const { region, cidr, gateway = null, first = null, last = null } = given;
  for (const [field, address] of Object.entries({ gateway, first, last }))
    if (address !== null && isIP(address) !== version) throw invalid(field, `It is not an IPv${version} address.`);
  if (version === 6 && (first || last))
    throw invalid('first', 'An IPv6 prefix has no bounds: machines get all its /64s.');
  if (version === 4 && given.routed) throw invalid('routed', 'Only the /64s of an IPv6 prefix are routed.');
  const kind = given.kind ?? 'VPS';
  if (version === 6 && kind === 'DEDICATED' && !gateway)
    throw invalid('gateway', 'A dedicated server sets up IPv6 only with its gateway.');
  return context.db.transaction(async (tx) => {
    await requireRegion(tx, region);
    await lockAddressPools(tx);
    await requireApart(tx, { cidr, gateway, first, last }, version);
    const id = newId('pool');
    await ADD_ADDRESS_POOL.all(tx, [id, region, `IPV${version}`, cidr, gateway, kind, given.routed ?? false]);
    const added =
      version === 4
        ? await ADD_IPV4_ADDRESSES.all(tx, [id, bits, first, last])
        : await ADD_IPV6_ADDRESSES.all(tx, [id, bits]);
    if (!added.length) throw invalid('cidr', 'The network has no usable address.');
    await recordPool(tx, context, id, { added: cidr });
    return (await LIST_ADDRESS_POOLS.first(tx, [null, id]))!;
  });
}

/** @throws ApiError validation_failed */
function parse(cidr: string): [version: 4 | 6, bits: number] {
  const [address = '', bits = ''] = cidr.split('/');
  const version = isIP(address);
  if (version !== 4 && version !== 6) throw invalid('cidr', 'It is not a network in CIDR notation.');
  const [from, to] = BITS[version];
  if (!/^\d{1,3}$/.test(bits) || Number(bits) < from || Number(bits) > to)
    throw invalid('cidr', `An IPv${version} network has a prefix of ${from} to ${to} bits.`);
  return [version, Number(bits)];
}

type Bounds = { cidr: string; gateway: string | null; first: string | null; last: string | null };

/** @throws ApiError validation_failed for bounds outside the network, or a network that overlaps another */
async function requireApart(tx: Transaction, { cidr, gateway, first, last }: Bounds, version: 4 | 6) {
  const found = await FIND_POOL_CONFLICTS.first(tx, [cidr, first, last, gateway, version === 4]);
  if (found!.outside) throw invalid('cidr', 'The network must contain its gateway and its bounds.');
  if (found!.overlaps) throw invalid('cidr', 'The network overlaps another network.');
  if (found!.taken) throw invalid('cidr', 'A simulated machine has an address of the network.');
}

/** @throws ApiError not_found, or validation_failed while a machine has an address of it */
export async function removeAddressPool(context: Context, id: string): Promise<AddressPoolView> {
  if (!isId('pool', id)) throw new ApiError('not_found');
  return context.db.transaction(async (tx) => {
    await lock(tx, AddressPool, { id });
    await LOCK_POOL_ADDRESSES.all(tx, [id]);
    const pool = found(await LIST_ADDRESS_POOLS.first(tx, [null, id]));
    if (pool.held) throw invalid('id', `Machines have ${pool.held} addresses of the network.`);
    await remove(tx, IpAddress, { poolId: id });
    await remove(tx, AddressPool, { id });
    await recordPool(tx, context, id, { removed: pool.cidr });
    return pool;
  });
}

const recordPool = (tx: Transaction, context: Context, id: string, data: Record<string, unknown>) =>
  recordByOperator(tx, context, id, { type: 'address_pool.updated', data });

/** The servers that had an address, the latest first. @param at only the one that had it at this time */
export const listAddressUses = (
  { db }: Context,
  address: string,
  at: Date | null | undefined,
  limit: number,
): Promise<AddressUseView[]> => LIST_ADDRESS_USES.all(db, [address, at, limit]);
