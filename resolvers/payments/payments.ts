/** Payments in coins for the operator, and decisions about those in suspense. */
import { find, lock } from '../../entities/database/table.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { expression, transition } from '../../entities/history/transition.ts';
import { isId } from '../../entities/ids.ts';
import { available, isPosted, lockAccount, post, SUSPENSE } from '../../entities/payments/ledger.ts';
import { PAYMENT_LIFECYCLE, Payment, type PaymentStatus } from '../../entities/payments/payment.ts';
import { writeOffPayment } from '../../provisioning/index.ts';
import type { Context } from '../context.ts';
import { found } from '../errors.ts';
import { type Page, type PageRequest, pageOfAccount } from '../pages.ts';
import { recordByOperator } from '../record.ts';

export { PAYMENT_STATUSES } from '../../entities/payments/payment.ts';

/** Lists the payments of all accounts, newest first. */
export const listPayments = (
  context: Context,
  request: PageRequest,
  { status, orderNumber }: { status?: PaymentStatus | null | undefined; orderNumber?: string | null | undefined },
): Promise<Page<Payment>> =>
  pageOfAccount(context, Payment, request, { ...(status && { status }), ...(orderNumber && { orderNumber }) });

/**
 * Assigns an unmatched payment to the account that owns its address. Repeating it changes nothing.
 * @throws ApiError not_found, or validation_failed if the payment is in another state, or no longer on its chain
 */
export async function assignPayment(context: Context, id: string, reason: string): Promise<Payment> {
  return context.db.transaction(async (tx) => {
    const payment = await lockPayment(tx, id);
    const { accountId, orderNumber, coin, creditedMicros, status } = payment;
    const key = `assign:${id}`;
    if (status === 'CREDITED' && (await isPosted(tx, key))) return payment;
    if (status !== 'UNMATCHED') throw refuseState(status, 'assigned', 'unmatched');
    if (payment.height !== null && payment.blockHash === null)
      throw new ApiError('validation_failed', 'The chain has removed the payment.', {
        errors: [{ field: 'id', code: 'wrong_state', message: 'The chain has removed it.' }],
      });
    const credited = await transition(tx, PAYMENT_LIFECYCLE, id, 'CREDITED', {
      set: { creditedAt: expression('now()') },
    });
    await post(tx, accountId, {
      kind: 'adjustment',
      debit: SUSPENSE,
      credit: available(accountId),
      externalKey: key,
      orderNumber,
      amountMicros: creditedMicros,
      description: `Payment in ${coin}`,
    });
    await recordByOperator(tx, context, id, { type: 'payment.assigned', data: { accountId, orderNumber, reason } });
    await context.provisioning.servers.retrySuspended(tx, accountId);
    return credited!;
  });
}

/**
 * Writes off a reversed payment. The spent part is a loss. Repeating it changes nothing. If the chain mines the payment
 * again, the worker credits it.
 * @throws ApiError not_found, or validation_failed if the payment is in another state
 */
export async function writeOff(context: Context, id: string, reason: string): Promise<Payment> {
  return context.db.transaction(async (tx) => {
    const payment = await lockPayment(tx, id);
    const { status, accountId, orderNumber } = payment;
    if (status === 'WRITTEN_OFF') return payment;
    if (status !== 'REVERSED') throw refuseState(status, 'written off', 'reversed');
    await writeOffPayment(tx, payment);
    await recordByOperator(tx, context, id, { type: 'payment.written_off', data: { accountId, orderNumber, reason } });
    return payment;
  });
}

/** The error for a decision that the state of a payment does not allow. */
export const refuseState = (status: string, decided: string, wanted: string): ApiError =>
  new ApiError('validation_failed', `A payment that is ${status} cannot be ${decided}.`, {
    errors: [{ field: 'id', code: 'wrong_state', message: `Only a payment that is ${wanted} can be ${decided}.` }],
  });

/** @throws ApiError not_found */
async function lockPayment(tx: Transaction, id: string): Promise<Payment> {
  const { accountId } = found(isId('pay', id) && (await find(tx, Payment, { id })));
  await lockAccount(tx, accountId);
  return (await lock(tx, Payment, { id }))!;
}
