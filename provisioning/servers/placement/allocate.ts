/** Claims and releases room on hosts, and places of tiers, in the transaction of the caller. */
import type { Transaction } from '../../../entities/database/transaction.ts';
import { FIND_CHANGED_ENGINE } from '../../../entities/servers/engine.ts';
import { CLAIM_PLACE } from '../../../entities/servers/place.ts';
import { CLAIM_NEXT_HOST, CLAIM_RESIZE, LOCK_HOSTS, RELEASE_GENERATIONS } from '../../../entities/servers/placement.ts';
import type { Server } from '../../../entities/servers/server.ts';
import { DriverError } from '../drivers/driver.ts';

export type Machine = Pick<Server, 'orderNumber' | 'generation' | 'region' | 'serviceCode'>;

/** Claims one more place for an order, and waits for other claims of the first one. @returns whether there was one */
export const claimPlace = async (tx: Transaction, { region, serviceCode, orderNumber }: Machine): Promise<boolean> =>
  (await CLAIM_PLACE.first(tx, [region, serviceCode, orderNumber])) !== undefined;

/** Locks all hosts that a machine can be on, and those of its order. */
export const lockHosts = (tx: Transaction, { orderNumber, region, serviceCode }: Machine): Promise<unknown> =>
  LOCK_HOSTS.all(tx, [region, serviceCode, orderNumber]);

/**
 * Claims room for the next machine of an order, under `lockHosts`. Hosts with a given-up machine of the order come last, and
 * `avoided` is the last of them.
 * @param isBound whether the machine has to be on the engine of the order
 * @returns the host and its engine, null where it needs none; undefined without room
 */
export async function claimHost(
  tx: Transaction,
  { orderNumber, generation, region, serviceCode }: Machine,
  avoided: string | null,
  isBound: boolean,
): Promise<Pick<Server, 'host' | 'engine'> | undefined> {
  const given = [region, serviceCode, orderNumber, generation, avoided, isBound];
  const { host, engine, needed } = (await CLAIM_NEXT_HOST.first(tx, given))!;
  return host === null && needed ? undefined : { host, engine };
}

/**
 * An order without room waits for an engine whose connection has changed: it had room before.
 * @throws DriverError unreachable
 */
export async function requireSeen(tx: Transaction, region: string): Promise<void> {
  const changed = await FIND_CHANGED_ENGINE.first(tx, [region]);
  if (changed) throw new DriverError('unreachable', `The order waits for a look at the engine ${changed.name}.`);
}

/** Claims the additional need of a larger tier on the host of the machine. @returns whether there was room */
export async function claimMore(tx: Transaction, machine: Machine): Promise<boolean> {
  const { orderNumber, generation, serviceCode } = machine;
  const { placed, claimed } = (await CLAIM_RESIZE.first(tx, [orderNumber, generation, serviceCode]))!;
  return claimed || !placed; // Without a placement, nothing is counted.
}

/** Gives back the claims of machines that are confirmed absent. */
export const freeGenerations = (
  tx: Transaction,
  gone: readonly { orderNumber: string; generation: number }[],
): Promise<unknown> =>
  RELEASE_GENERATIONS.all(tx, [gone.map(({ orderNumber }) => orderNumber), gone.map(({ generation }) => generation)]);
