/**
 * Holds of changes: the difference of a resize, or the month of a server that resumes. They last until the change ends. The
 * external key of each transfer names the change, so it happens once.
 */
import type { Transaction } from '../../../entities/database/transaction.ts';
import { lostRefundMicros } from '../../../entities/money.ts';
import { available, held, post, REVENUE, type Spender, type Transfer } from '../../../entities/payments/ledger.ts';
import { refund } from '../../../entities/payments/withheld.ts';
import type { Server, ServerChange } from '../../../entities/servers/server.ts';

/** A change that costs money. */
export type PaidChange = Extract<ServerChange, { heldMicros: string }>;

const SIDES = {
  hold: (accountId: string) => ({ debit: available(accountId), credit: held(accountId) }),
  renewal: (accountId: string) => ({ debit: available(accountId), credit: held(accountId) }),
  capture: (accountId: string) => ({ debit: held(accountId), credit: REVENUE }),
  release: (accountId: string) => ({ debit: held(accountId), credit: available(accountId) }),
};

/** Posts one transfer of the held money. @throws ApiError insufficient_balance */
export const transferHeld = (
  tx: Transaction,
  server: Server,
  change: PaidChange,
  kind: keyof typeof SIDES,
  more: Partial<Pick<Transfer, 'periodFrom' | 'periodTo' | keyof Spender>> = {},
): Promise<number> =>
  post(tx, server.accountId, {
    kind,
    ...SIDES[kind](server.accountId),
    amountMicros: BigInt(change.heldMicros),
    externalKey: `${kind}:${change.id}`,
    orderNumber: server.orderNumber,
    serviceCode: change.operation === 'resize' ? change.serviceCode : server.serviceCode,
    description:
      change.operation === 'resize'
        ? `Resize of ${server.serviceCode} to ${change.serviceCode}`
        : `Renewal of ${server.serviceCode}`,
    ...(Object.fromEntries(Object.entries(more).filter(([, value]) => value)) as object),
  });

/** Releases the money held for a change that will not end. @returns micro-USD; 0 if none is held */
export async function releaseChange(tx: Transaction, server: Server): Promise<bigint> {
  if (!server.change || !('heldMicros' in server.change)) return 0n;
  await transferHeld(tx, server, server.change, 'release');
  return BigInt(server.change.heldMicros);
}

/**
 * Refunds the unused whole hours of a server that a resize has made cheaper at a time, because the catalog changed. Later refunds
 * go by the new price. The caller has locked the account.
 */
export async function refundCheaper(
  tx: Transaction,
  { accountId, orderNumber, serviceCode, priceMonthMicros, paidUntil }: Server,
  resize: Extract<PaidChange, { operation: 'resize' }>,
  from: Date,
): Promise<void> {
  const nextMicros = BigInt(resize.priceMonthMicros);
  const amountMicros = paidUntil ? lostRefundMicros(priceMonthMicros, nextMicros, paidUntil, from) : 0n;
  if (amountMicros === 0n) return;
  await refund(tx, accountId, {
    amountMicros,
    externalKey: `refund:${resize.id}`,
    ...{ orderNumber, serviceCode },
    description: `Resize of ${serviceCode} to ${resize.serviceCode}`,
    periodFrom: from,
    periodTo: paidUntil!,
  });
}
