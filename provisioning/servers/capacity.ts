/**
 * Capacity: a machine's place and addresses are claimed before it is made, and freed when it is confirmed absent. A
 * server with an IPv4 address is one that holds a place.
 */
import type { Transaction } from '../../entities/database.ts';
import type { Server } from '../../entities/server.ts';
import { type Claimed, claimAddresses, freeAddresses } from './addresses.ts';
import { claimHost, freeHosts, type Machine } from './allocate.ts';

type Place = Pick<Server, 'region' | 'serviceCode'>;

/** Claims a place, a host and its addresses, or nothing: undefined where there is no room. */
export async function occupy(
  tx: Transaction,
  machine: Machine,
): Promise<(Claimed & { host: string | null }) | undefined> {
  const { orderNumber, region, serviceCode } = machine;
  if (!(await claimPlace(tx, { region, serviceCode }))) return undefined;
  const host = await claimHost(tx, machine);
  const claimed = host === undefined ? undefined : await claimAddresses(tx, region, orderNumber);
  if (host === undefined || !claimed) {
    if (host) await freeHosts(tx, orderNumber);
    await freePlace(tx, { region, serviceCode });
    return undefined;
  }
  return { ...claimed, host };
}

/** @returns whether there was one */
export async function claimPlace(tx: Transaction, { region, serviceCode }: Place): Promise<boolean> {
  const [place] = await tx.query(
    'update stock set claimed = claimed + 1 where region_code = $1 and service_code = $2 and claimed < total returning claimed',
    [region, serviceCode],
  );
  return place !== undefined;
}

export const freePlace = (tx: Transaction, { region, serviceCode }: Place) =>
  tx.query('update stock set claimed = claimed - 1 where region_code = $1 and service_code = $2', [
    region,
    serviceCode,
  ]);

/** Gives back what the server holds, the place that a resize claimed among it; nothing if it holds nothing. */
export async function vacate(tx: Transaction, orderNumber: string): Promise<void> {
  const [left] = await tx.query<Place & Pick<Server, 'change'>>(
    `with held as (select id, change from server where order_number = $1 and ipv4 is not null for update)
    update server set ipv4 = null, ipv6 = null, ipv6_prefix = null, reverse_dns = '[]', change = null, host = null
    from held where server.id = held.id returning region, service_code as "serviceCode", held.change`,
    [orderNumber],
  );
  if (!left) return;
  await freeAddresses(tx, orderNumber);
  await freePlace(tx, left);
  if (left.change?.operation === 'resize') await freePlace(tx, { ...left, serviceCode: left.change.serviceCode });
  await freeHosts(tx, orderNumber);
}
