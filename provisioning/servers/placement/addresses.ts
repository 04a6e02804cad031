/**
 * Addresses (IPAM): claimed by an order (`capacity.ts`), and freed only when the machine that had them is confirmed absent.
 * Where the operator has given a region networks of its own, those of simulated machines are not used.
 */

import type { Queryable, Transaction } from '../../../entities/database/transaction.ts';
import { freeAddressSql } from '../../../entities/servers/ip-address.ts';

/** How long an address rests after its machine ran, so that old connections do not reach the next machine. */
const REST_SECONDS = 60;

/** Picks the first free address of a family at a bastion, and locks it. */
export const pickAddressSql = (region: string, family: 'IPV4' | 'IPV6', wait: '' | 'skip locked'): string => `
  select address from address where ${freeAddressSql(region, `'${family}'`)} order by address limit 1 for update ${wait}`;

/**
 * Frees what an order holds; only for machines that are confirmed absent. The addresses of one that never ran do not rest:
 * orders that are deleted at once, and paid back in full, could keep them from all other customers.
 */
export const freeAddresses = (tx: Transaction, orderNumber: string, { ran }: { ran: boolean }): Promise<unknown> =>
  tx.query(
    `with held as (select address from address where held_by = $1 order by address for update)
    update address set held_by = null, free_at = now() + $2 * interval '1 second' from held
    where address.address = held.address`,
    [orderNumber, ran ? REST_SECONDS : 0],
  );

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
