/**
 * What a resize costs and holds. From the request to its end the server has a place of either tier and the difference
 * is held; then one of the places is freed, and the money captured or released. Each of that happens once.
 */
import type { Transaction } from '../../entities/database.ts';
import { available, held, post, REVENUE } from '../../entities/ledger.ts';
import type { Server, ServerChange } from '../../entities/server.ts';
import { claimPlace, freePlace } from './capacity.ts';

export type Resize = Extract<ServerChange, { operation: 'resize' }>;

/**
 * Claims the place and holds the difference, in the transaction of the request.
 * @returns whether there was a place; if not, nothing was held
 * @throws ApiError insufficient_balance
 */
export async function beginResize(tx: Transaction, server: Server, resize: Resize): Promise<boolean> {
  const place = { region: server.region, serviceCode: resize.serviceCode };
  if (!(await claimPlace(tx, place))) return false;
  await transfer(tx, server, resize, 'hold');
  return true;
}

/** The server has the new tier: the difference is earned, and the place of the old one is free. */
export async function completeResize(tx: Transaction, server: Server, resize: Resize): Promise<void> {
  await transfer(tx, server, resize, 'capture');
  await freePlace(tx, server);
}

/** The server keeps the old tier. */
export async function undoResize(tx: Transaction, server: Server, resize: Resize): Promise<void> {
  await releaseResize(tx, server);
  await freePlace(tx, { region: server.region, serviceCode: resize.serviceCode });
}

/** Gives back what is held for a resize that will not come to an end. @returns micro-USD; 0 if none is under way */
export async function releaseResize(tx: Transaction, server: Server): Promise<bigint> {
  if (server.change?.operation !== 'resize') return 0n;
  await transfer(tx, server, server.change, 'release');
  return BigInt(server.change.heldMicros);
}

const SIDES = {
  hold: (accountId: string) => ({ debit: available(accountId), credit: held(accountId) }),
  capture: (accountId: string) => ({ debit: held(accountId), credit: REVENUE }),
  release: (accountId: string) => ({ debit: held(accountId), credit: available(accountId) }),
};

const transfer = (tx: Transaction, server: Server, resize: Resize, kind: keyof typeof SIDES) =>
  post(tx, server.accountId, [
    {
      kind,
      ...SIDES[kind](server.accountId),
      amountMicros: BigInt(resize.heldMicros),
      externalKey: `${kind}:${resize.id}`,
      orderNumber: server.orderNumber,
      serviceCode: resize.serviceCode,
      description: `Resize of ${server.serviceCode} to ${resize.serviceCode}`,
      ...(kind === 'capture' && server.paidUntil && { periodFrom: new Date(), periodTo: server.paidUntil }),
    },
  ]);
