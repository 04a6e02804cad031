/** The operator's networks, of which machines have their addresses. */
import { isIP } from 'node:net';
import type { Queryable, Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { OPERATOR_ACCOUNT } from '../../entities/history/audit.ts';
import { record } from '../../entities/history/record.ts';
import { isId, newId } from '../../entities/ids.ts';
import type { AddressPool } from '../../entities/servers/ip-address.ts';
import { actorOf, type Context } from '../context.ts';
import { invalid } from '../errors.ts';
import { requireRegion } from './hosts.ts';

/** A network, with how many of its addresses or /64s are free, held, or rest after they were freed. */
export interface AddressPoolView extends AddressPool {
  total: number;
  held: number;
  resting: number;
}

export interface NewAddressPool {
  region: string;
  /** Such as 192.0.2.0/24, or 2001:db8:1::/48 to cut /64s from. */
  cidr: string;
  /** Null: hosts route the addresses by themselves. */
  gateway?: string | null | undefined;
  /** The first and last usable address (IPv4 only). Default: all of the network but its own and its broadcast address. */
  first?: string | null | undefined;
  last?: string | null | undefined;
}

/** Shorter prefixes would be more rows than make sense. */
const BITS = { 4: [16, 32], 6: [48, 64] } as const;

export const listAddressPools = ({ db }: Context, region?: string | null): Promise<AddressPoolView[]> =>
  poolsOf(db, `$1::text is null or pool.region_code = $1`, region ?? null);

const poolsOf = (db: Queryable, where: string, value: string | null): Promise<AddressPoolView[]> =>
  db.query(
    `select pool.id, pool.region_code, pool.family, text(pool.cidr) as cidr, host(pool.gateway) as gateway,
        pool.created_at, count(address.address)::int as total, count(address.held_by)::int as held,
        (count(*) filter (where address.held_by is null and address.free_at > now()))::int as resting
      from address_pool pool left join address on address.pool_id = pool.id
      where ${where} group by pool.id order by pool.id`,
    [value],
  );

/** @throws ApiError unknown_region, or validation_failed for what is no such network, or overlaps another */
export async function addAddressPool(context: Context, given: NewAddressPool): Promise<AddressPoolView> {
  const [version, bits] = parse(given.cidr);
  const { region, cidr, gateway = null, first = null, last = null } = given;
  for (const [field, address] of Object.entries({ gateway, first, last }))
    if (address !== null && isIP(address) !== version) throw invalid(field, `It is no IPv${version} address.`);
  if (version === 6 && (first || last)) throw invalid('first', 'All /64s of an IPv6 prefix are used.');
  return context.db.transaction(async (tx) => {
    await requireRegion(tx, region);
    // Networks are compared with all others, so one is added at a time.
    await tx.query(`select pg_advisory_xact_lock(hashtext('address_pool'))`);
    await requireApart(tx, { cidr, gateway, first, last }, version);
    const id = newId('pool');
    await tx.query(
      `insert into address_pool (id, region_code, family, cidr, gateway) values ($1, $2, $3, network($4::inet), $5)`,
      [id, region, `IPV${version}`, cidr, gateway],
    );
    const parameters = version === 4 ? [id, bits, first, last] : [id, bits];
    const added = await tx.query(version === 4 ? ADD_IPV4 : ADD_IPV6, parameters);
    if (!added.length) throw invalid('cidr', 'It has no usable address.');
    await recordPool(tx, context, id, { added: cidr });
    return (await poolsOf(tx, 'pool.id = $1', id))[0]!;
  });
}

/** @throws ApiError validation_failed */
function parse(cidr: string): [version: 4 | 6, bits: number] {
  const [address = '', bits = ''] = cidr.split('/');
  const version = isIP(address);
  if (version !== 4 && version !== 6) throw invalid('cidr', 'It is no network in CIDR notation.');
  const [from, to] = BITS[version];
  if (!/^\d{1,3}$/.test(bits) || Number(bits) < from || Number(bits) > to)
    throw invalid('cidr', `An IPv${version} network has a prefix of ${from} to ${to} bits.`);
  return [version, Number(bits)];
}

type Bounds = { cidr: string; gateway: string | null; first: string | null; last: string | null };

/** @throws ApiError validation_failed for bounds outside of the network, or a network that overlaps another */
async function requireApart(tx: Transaction, { cidr, gateway, first, last }: Bounds, version: 4 | 6) {
  const [found] = await tx.query<{ outside: boolean; overlaps: boolean; taken: boolean }>(
    `select not coalesce($2::inet <<= network($1::inet) and $3::inet <<= network($1::inet), true)
        or ($2::inet is not null and not $2::inet <<= network($1::inet))
        or ($3::inet is not null and not $3::inet <<= network($1::inet))
        or ($5 and $4::inet is not null and not $4::inet <<= network($1::inet)) as outside,
      exists (select from address_pool where cidr && network($1::inet)) as overlaps,
      exists (select from address where address <<= network($1::inet) and pool_id is null and held_by is not null) as taken`,
    [cidr, first, last, gateway, version === 4],
  );
  if (found!.outside) throw invalid('cidr', 'Its gateway and bounds have to be in the network.');
  if (found!.overlaps) throw invalid('cidr', 'It overlaps another network.');
  if (found!.taken) throw invalid('cidr', 'An address of it is held by a simulated machine.');
}

/** Addresses of simulated machines, which nobody holds, become those of the network. */
const ADOPT = `
  on conflict (address) do update set region_code = excluded.region_code, prefix_length = excluded.prefix_length,
    gateway = excluded.gateway, pool_id = excluded.pool_id returning 1`;

/** A point-to-point network (RFC 3021) and a single address have no network or broadcast address. */
const ADD_IPV4 = `
  insert into address (address, family, region_code, prefix_length, gateway, pool_id)
  select one, 'IPV4', region_code, case when gateway is not null then $2::int end, gateway, id
  from address_pool, lateral (
    select host(cidr)::inet + n as one from generate_series(0, (1 << (32 - $2::int)) - 1) n) each
  where id = $1 and one <> coalesce(gateway, '::') and ($2::int > 30 or (one <> host(cidr)::inet and one <> host(broadcast(cidr))::inet))
    and one >= coalesce($3::inet, host(cidr)::inet) and one <= coalesce($4::inet, host(broadcast(cidr))::inet) ${ADOPT}`;

/** The fourth group of hexadecimal digits counts. */
const ADD_IPV6 = `
  insert into address (address, family, region_code, prefix_length, gateway, pool_id)
  select set_masklen(host(cidr)::inet | format('0:0:0:%s::', to_hex(n))::inet, 64), 'IPV6', region_code,
    case when gateway is not null then 64 end, gateway, id
  from address_pool, generate_series(0, (1 << (64 - $2::int)) - 1) n where id = $1 ${ADOPT}`;

/** @throws ApiError not_found, or validation_failed while a machine has an address of it */
export async function removeAddressPool(context: Context, id: string): Promise<AddressPoolView> {
  if (!isId('pool', id)) throw new ApiError('not_found');
  return context.db.transaction(async (tx) => {
    await tx.query('select 1 from address_pool where id = $1 for update', [id]);
    await tx.query('select 1 from address where pool_id = $1 order by address for update', [id]);
    const [pool] = await poolsOf(tx, 'pool.id = $1', id);
    if (!pool) throw new ApiError('not_found');
    if (pool.held) throw invalid('id', `Machines have ${pool.held} of its addresses.`);
    await tx.query('delete from address where pool_id = $1', [id]);
    await tx.query('delete from address_pool where id = $1', [id]);
    await recordPool(tx, context, id, { removed: pool.cidr });
    return pool;
  });
}

const recordPool = (tx: Transaction, context: Context, id: string, data: Record<string, unknown>) =>
  record(tx, OPERATOR_ACCOUNT, id, { type: 'address_pool.updated', actor: actorOf(context), data });
