/** Claims capacity for a server that was ordered before, and releases the capacity of one whose machine is gone. */
import type { Transaction } from '../../../entities/database/transaction.ts';
import { CLAIM_CAPACITY, CLEAR_CAPACITY, type Room } from '../../../entities/servers/capacity.ts';
import { END_RESTS, LOCK_FREE_ADDRESS, RELEASE_ADDRESSES } from '../../../entities/servers/ip-address.ts';
import { LOCK_FREE_PLACE, RELEASE_PLACES } from '../../../entities/servers/place.ts';
import { RELEASE_HOSTS } from '../../../entities/servers/placement.ts';
import { lockHosts, type Machine } from './allocate.ts';

/** Seconds that an address rests after its machine ran, so that old connections do not reach the next machine. */
const REST_SECONDS = 900;

/** One account could make and delete machines until each address of a region rests. So only so many of its addresses rest. */
const RESTING_MAX = 25;

/** Claims capacity, and waits for other claims of the last of something. */
export async function reserveCapacity(tx: Transaction, machine: Machine): Promise<Room | undefined> {
  const { orderNumber, generation, region, serviceCode } = machine;
  if (!(await waitForRoom(tx, machine))) return undefined;
  return CLAIM_CAPACITY.first(tx, [region, serviceCode, orderNumber, generation]);
}

/**
 * Waits for other claims of the last of something, since they can fail. It takes locks in the order of a claim. So it must not
 * follow a failed claim in the same transaction, which keeps the locks that it took.
 * @returns whether there may be room then
 */
export async function waitForRoom(tx: Transaction, machine: Machine): Promise<boolean> {
  const { region, serviceCode } = machine;
  if (!(await LOCK_FREE_PLACE.first(tx, [region, serviceCode]))) return false;
  await lockHosts(tx, machine);
  for (const family of ['IPV4', 'IPV6'] as const)
    if (!(await LOCK_FREE_ADDRESS[family].first(tx, [region, serviceCode]))!.found) return false;
  return true;
}

/**
 * Releases the capacity of a server, with that of a resize, once its machines are confirmed absent. Addresses of a server
 * that never ran do not rest: refunded orders could otherwise keep them from all other customers.
 */
export async function releaseCapacity(tx: Transaction, orderNumber: string): Promise<void> {
  const { ran } = (await CLEAR_CAPACITY.first(tx, [orderNumber])) ?? { ran: true };
  await RELEASE_PLACES.all(tx, [orderNumber, null]);
  await RELEASE_HOSTS.all(tx, [orderNumber]);
  const released = await RELEASE_ADDRESSES.first(tx, [orderNumber, ran ? REST_SECONDS : 0]);
  if (ran && released) await END_RESTS.all(tx, [released.restsFor, RESTING_MAX]);
}
