/**
 * What a resize costs and holds. From the request to its end the server has a place of either tier, its host has room for
 * the larger one, and the difference is held; then one of the places is freed, and the money captured or released. Each of
 * that happens once.
 */
import type { Transaction } from '../../../entities/database/transaction.ts';
import type { Server, ServerChange } from '../../../entities/servers/server.ts';
import { releaseChange, transferHeld } from '../billing/hold.ts';
import { claimMore, freeMore, keepMore } from '../placement/allocate.ts';
import { claimPlace, freePlaces } from '../placement/places.ts';

export type Resize = Extract<ServerChange, { operation: 'resize' }>;

/**
 * Claims the place and holds the difference, in the transaction of the request; `credentialId` is the API key that
 * spends it.
 * @returns whether there was room; if not, the transaction is to be rolled back
 * @throws ApiError insufficient_balance
 */
export async function beginResize(
  tx: Transaction,
  server: Server,
  resize: Resize,
  credentialId: string | null,
): Promise<boolean> {
  const larger = { ...server, serviceCode: resize.serviceCode };
  if (!(await claimPlace(tx, larger)) || !(await claimMore(tx, larger))) return false;
  await transferHeld(tx, server, resize, 'hold', { credentialId });
  return true;
}

/** The server has the new tier: the difference is earned, and the place of the old one is free. */
export async function completeResize(tx: Transaction, server: Server, resize: Resize): Promise<void> {
  const period = server.paidUntil && { periodFrom: new Date(), periodTo: server.paidUntil };
  await transferHeld(tx, server, resize, 'capture', period ?? {});
  await freePlaces(tx, server.orderNumber, server.serviceCode);
  await keepMore(tx, server.orderNumber);
}

/** The server keeps the old tier. */
export async function undoResize(tx: Transaction, server: Server, resize: Resize): Promise<void> {
  await releaseChange(tx, server);
  await freePlaces(tx, server.orderNumber, resize.serviceCode);
  await freeMore(tx, server.orderNumber);
}
