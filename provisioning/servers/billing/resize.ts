/**
 * The money and capacity of a resize. Until it ends, the server has a place of each tier, room for the larger one, and a
 * hold. Then one place is released, and the money is captured or released, each once.
 */
import type { Transaction } from '../../../entities/database/transaction.ts';
import type { Spender } from '../../../entities/payments/ledger.ts';
import { RELEASE_PLACES } from '../../../entities/servers/place.ts';
import { KEEP_RESIZE, RELEASE_RESIZE } from '../../../entities/servers/placement.ts';
import type { Server, ServerChange } from '../../../entities/servers/server.ts';
import { claimMore, claimPlace } from '../placement/allocate.ts';
import { refundCheaper, releaseChange, transferHeld } from './hold.ts';

export type Resize = Extract<ServerChange, { operation: 'resize' }>;

/**
 * Claims the place and holds the difference, in the transaction of the request.
 * @returns whether there was room; if not, the caller must roll the transaction back
 * @throws ApiError insufficient_balance
 */
export async function beginResize(tx: Transaction, server: Server, resize: Resize, spender: Spender): Promise<boolean> {
  const larger = { ...server, serviceCode: resize.serviceCode };
  if (!(await claimPlace(tx, larger)) || !(await claimMore(tx, larger))) return false;
  await transferHeld(tx, server, resize, 'hold', spender);
  return true;
}

/**
 * Captures or refunds the difference from a time on, and releases the place of the old tier. A resize that ends after the paid
 * time has no such time, so its hold is released.
 */
export async function completeResize(tx: Transaction, server: Server, resize: Resize, from: Date): Promise<void> {
  const { paidUntil } = server;
  if (paidUntil && paidUntil <= from) await transferHeld(tx, server, resize, 'release');
  else await transferHeld(tx, server, resize, 'capture', paidUntil ? { periodFrom: from, periodTo: paidUntil } : {});
  await refundCheaper(tx, server, resize, from);
  await RELEASE_PLACES.all(tx, [server.orderNumber, server.serviceCode]);
  await KEEP_RESIZE.all(tx, [server.orderNumber]);
}

/** Releases the difference and the capacity of the new tier. */
export async function undoResize(tx: Transaction, server: Server, resize: Resize): Promise<void> {
  await releaseChange(tx, server);
  await RELEASE_PLACES.all(tx, [server.orderNumber, resize.serviceCode]);
  await RELEASE_RESIZE.all(tx, [server.orderNumber]);
}
