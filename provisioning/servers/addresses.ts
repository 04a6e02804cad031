/**
 * Addresses (IPAM): claimed in the database, and freed only when the machine that had them is confirmed absent. Where the
 * operator has given a region networks of its own, those of simulated machines are not used.
 */
import { freeAddressSql } from '../../entities/address.ts';
import type { Queryable, Transaction } from '../../entities/database.ts';

/** How long a freed address rests, so that nobody's old connections reach the next machine. */
const REST_SECONDS = 60;

export interface Claimed {
  ipv4: string;
  ipv6: string;
  ipv6Prefix: string;
}

/** Claims an IPv4 address and an IPv6 prefix for an order, those that it has already if it asks again. */
export async function claimAddresses(
  tx: Transaction,
  region: string,
  orderNumber: string,
): Promise<Claimed | undefined> {
  const ipv4 = await claim(tx, region, 'IPV4', orderNumber);
  const ipv6Prefix = await claim(tx, region, 'IPV6', orderNumber);
  if (!ipv4 || !ipv6Prefix) {
    // No machine has had it, so it need not rest.
    await tx.query('update address set held_by = null where held_by = $1', [orderNumber]);
    return undefined;
  }
  const [first] = await tx.query<{ ipv6: string }>(`select host($1::inet + 1) as ipv6`, [ipv6Prefix]);
  return { ipv4, ipv6: first!.ipv6, ipv6Prefix };
}

async function claim(
  tx: Transaction,
  region: string,
  family: 'IPV4' | 'IPV6',
  orderNumber: string,
): Promise<string | undefined> {
  const [mine] = await tx.query<{ address: string }>(
    `with mine as (select address from address where held_by = $3 and family = $2),
      free as (
        select address from address
        where ${freeAddressSql('$1', '$2')} and not exists (select from mine)
        order by address limit 1 for update skip locked),
      claimed as (update address set held_by = $3, free_at = null from free where address.address = free.address returning address.address)
    select address from mine union all select address from claimed`,
    [region, family, orderNumber],
  );
  return mine?.address;
}

/** Frees what an order holds; only for machines that are confirmed absent. */
export const freeAddresses = (tx: Transaction, orderNumber: string): Promise<unknown> =>
  tx.query(`update address set held_by = null, free_at = now() + $2 * interval '1 second' where held_by = $1`, [
    orderNumber,
    REST_SECONDS,
  ]);

/**
 * The addresses of simulated machines: the networks reserved for documentation (RFC 5737, RFC 3849), shared out
 * among the bastions.
 */
export async function seedDocumentationAddresses(db: Queryable): Promise<void> {
  await db.query(`
    with bastion as (
        select code, row_number() over (order by position) - 1 as n, count(*) over () as bastions
        from catalog_item where kind = 'bastion'),
      ipv4 as (
        select net::inet + host as address, 'IPV4' as family, (row_number() over (order by net::inet, host)) as n
        from unnest(array['192.0.2.0', '198.51.100.0', '203.0.113.0']) net cross join generate_series(1, 254) host),
      ipv6 as (
        select format('2001:db8:%s::/64', to_hex(n))::inet as address, 'IPV6' as family, n from generate_series(1, 1024) n)
    insert into address (address, family, region_code)
    select pool.address, pool.family, bastion.code
    from (select * from ipv4 union all select * from ipv6) pool join bastion on bastion.n = pool.n % bastion.bastions
    on conflict do nothing`);
}
