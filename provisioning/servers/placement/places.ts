/** Places: an order claims one of its tier. It is freed when the machine is confirmed absent. */
import type { Transaction } from '../../../entities/database/transaction.ts';
import type { Server } from '../../../entities/servers/server.ts';

/** Picks the first free place of a tier at a bastion, and locks it. */
export const pickPlaceSql = (region: string, serviceCode: string, wait: '' | 'skip locked'): string => `
  select number from place where region_code = ${region} and service_code = ${serviceCode} and order_number is null
  order by number limit 1 for update ${wait}`;

/** Claims one more place for an order. It waits while others are claiming the first one. @returns whether there was one */
export async function claimPlace(
  tx: Transaction,
  { region, serviceCode, orderNumber }: Pick<Server, 'region' | 'serviceCode' | 'orderNumber'>,
): Promise<boolean> {
  const claimed = await tx.query(
    `with free as (${pickPlaceSql('$1', '$2', '')})
    update place set order_number = $3 from free
    where place.region_code = $1 and place.service_code = $2 and place.number = free.number returning place.number`,
    [region, serviceCode, orderNumber],
  );
  return claimed.length > 0;
}

/** Frees what an order holds: all its places, or the one of a tier. Freeing again changes nothing. */
export const freePlaces = (tx: Transaction, orderNumber: string, serviceCode: string | null = null): Promise<unknown> =>
  tx.query(
    `with held as (
      select region_code, service_code, number from place
      where order_number = $1 and ($2::text is null or service_code = $2)
      order by region_code, service_code, number for update)
    update place set order_number = null from held
    where place.region_code = held.region_code and place.service_code = held.service_code and place.number = held.number`,
    [orderNumber, serviceCode],
  );
