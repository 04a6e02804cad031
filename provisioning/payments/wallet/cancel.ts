/** Books payouts that the operator cancelled, and sent all the same. */
import { lock, update } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { refuse } from '../../../entities/errors.ts';
import { EXCHANGE, owed, PAYOUTS, post, SUSPENSE } from '../../../entities/payments/ledger.ts';
import { takeOut } from '../../../entities/payments/payable.ts';
import { isInBalance, movePayment, Payment } from '../../../entities/payments/payment.ts';
import { FIND_OTHER_PAYOUT, Payout } from '../../../entities/payments/payout.ts';
import { FINAL_BY_NOW } from '../suspense.ts';
import { keepBonuses, partsOf, posting } from './payouts.ts';

/**
 * Takes the money of a cancelled payout again, because its coins have left. An account that lacks the money owes it. The caller has
 * locked the account, the payout, its payments and their top-ups.
 * @throws ApiError validation_failed if no list to sign had the payout, or the operator has returned the payment by hand
 */
export async function bookCancelled(tx: Transaction, payout: Payout): Promise<void> {
  const { id, accountId, paymentId, amountMicros } = payout;
  if (payout.exportedAt === null)
    throw refuse('id', 'wrong_state', `No list to sign had the payout ${id}, and it is CANCELLED. Request a new one.`);
  const payment = paymentId === null ? undefined : (await lock(tx, Payment, { id: paymentId }))!;
  const origin = await originAgain(tx, payout, payment);
  const parts = origin === owed(accountId) ? await takeOut(tx, payout) : [];
  await update(tx, Payout, { id }, { takenFrom: partsOf(parts) });
  const bonuses = await keepBonuses(tx, parts, `payout-bonus-again:${id}`);
  await post(tx, accountId, posting(payout, [origin, PAYOUTS], amountMicros, 'payout-again'), ...bonuses);
}

/** @returns the ledger account that pays. The operator bears a payment that neither suspense nor this account has any more */
async function originAgain(
  tx: Transaction,
  { id, accountId, txId }: Payout,
  payment: Payment | undefined,
): Promise<string> {
  if (!payment) return owed(accountId);
  if (payment.status === 'UNMATCHED') {
    await movePayment(tx, payment, 'RETURNED', { returnTxId: txId, finalAt: FINAL_BY_NOW });
    return SUSPENSE;
  }
  if (payment.status === 'RETURNED' && !(await FIND_OTHER_PAYOUT.first(tx, [payment.id, id])))
    throw refuse(
      'id',
      'wrong_state',
      `You returned the payment of the payout ${id} by ${payment.returnTxId}. If you sent both, record the second one by recordMovement with the target fees.`,
    );
  return isInBalance(payment) && payment.accountId === accountId ? owed(accountId) : EXCHANGE;
}
