/** Postings for credited payments that their chain has removed. */
import { setSuspension } from '../../../entities/accounts/account.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { ADJUSTMENT, available, gateway, lockAvailable, post, SUSPENSE } from '../../../entities/payments/ledger.ts';

/** A credited payment that its chain has removed. */
export interface ReversedPayment {
  accountId: string;
  /** The order that it paid for. */
  orderNumber: string | null;
  creditedMicros: bigint;
  /** Identifies the reversal in the ledger. */
  key: string;
}

/**
 * Moves the rest of a reversed payment from the balance into suspense, and suspends the account. The balance never becomes
 * negative.
 * @returns micro-USD that were moved
 */
export async function reverse(
  tx: Transaction,
  { accountId, orderNumber, creditedMicros, key }: ReversedPayment,
  description: string,
): Promise<bigint> {
  const leftMicros = await lockAvailable(tx, accountId);
  const amountMicros = leftMicros < creditedMicros ? leftMicros : creditedMicros;
  await post(tx, accountId, {
    kind: 'adjustment',
    debit: available(accountId),
    credit: SUSPENSE,
    amountMicros,
    description,
    externalKey: `reverse:${key}`,
    ...(orderNumber !== null && { orderNumber }),
  });
  await setSuspension(tx, accountId, 'The chain has removed a payment of this account.', SYSTEM);
  return amountMicros;
}

/** Writes off a reversed payment: the part in suspense, and the spent part, which is the operator's loss. */
export const writeOff = (
  tx: Transaction,
  network: string,
  { accountId, orderNumber, creditedMicros, reversedMicros, key }: ReversedPayment & { reversedMicros: bigint },
): Promise<number> => {
  const posted = { kind: 'adjustment', credit: gateway(network), description: 'Written off' } as const;
  const named = orderNumber !== null && { orderNumber };
  return post(
    tx,
    accountId,
    { ...posted, ...named, debit: SUSPENSE, amountMicros: reversedMicros, externalKey: `write-off:${key}` },
    {
      ...posted,
      ...named,
      debit: ADJUSTMENT,
      amountMicros: creditedMicros - reversedMicros,
      externalKey: `loss:${key}`,
    },
  );
};
