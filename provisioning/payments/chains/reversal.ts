/** What becomes of money that was credited, and is gone from its chain. */

import { setSuspension } from '../../../entities/accounts/account.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { ADJUSTMENT, available, gateway, lockAvailable, post, SUSPENSE } from '../../../entities/payments/ledger.ts';

/** A payment that was credited, and is gone. */
export interface ReversedPayment {
  accountId: string;
  /** What it was for. */
  orderNumber: string | null;
  creditedMicros: bigint;
  /** By what the ledger knows that it is gone. */
  key: string;
}

/**
 * Takes into suspense what the balance still has of a payment that is gone, and suspends the account.
 * @returns how much that was
 */
export async function reverse(
  tx: Transaction,
  { accountId, orderNumber, creditedMicros, key }: ReversedPayment,
  description: string,
): Promise<bigint> {
  const leftMicros = await lockAvailable(tx, accountId);
  const amountMicros = leftMicros < creditedMicros ? leftMicros : creditedMicros;
  await post(tx, accountId, [
    {
      kind: 'adjustment',
      debit: available(accountId),
      credit: SUSPENSE,
      amountMicros,
      description,
      externalKey: `reverse:${key}`,
      ...(orderNumber !== null && { orderNumber }),
    },
  ]);
  await setSuspension(tx, accountId, 'A payment of yours has vanished from its chain.', SYSTEM);
  return amountMicros;
}

/**
 * Takes out of the books what has never come: what was taken back out of the balance, and what was spent of it, which is the
 * operator's loss.
 */
export const writeOff = (
  tx: Transaction,
  network: string,
  { accountId, orderNumber, creditedMicros, reversedMicros, key }: ReversedPayment & { reversedMicros: bigint },
): Promise<number> => {
  const posted = { kind: 'adjustment', credit: gateway(network), description: 'Written off' } as const;
  const named = orderNumber !== null && { orderNumber };
  return post(tx, accountId, [
    { ...posted, ...named, debit: SUSPENSE, amountMicros: reversedMicros, externalKey: `write-off:${key}` },
    {
      ...posted,
      ...named,
      debit: ADJUSTMENT,
      amountMicros: creditedMicros - reversedMicros,
      externalKey: `loss:${key}`,
    },
  ]);
};
