/** Payments in coins, as the operator sees them, and what he decides of those that are nobody's. */

import { columnsOf } from '../../entities/database/table.ts';
import type { Queryable, Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { OPERATOR_ACCOUNT } from '../../entities/history/audit.ts';
import { record } from '../../entities/history/record.ts';
import { isId } from '../../entities/ids.ts';
import { available, lockAccount, post, SUSPENSE } from '../../entities/payments/ledger.ts';
import { Payment, type PaymentStatus } from '../../entities/payments/payment.ts';
import { writeOffPayment } from '../../provisioning/index.ts';
import { actorOf, type Context } from '../context.ts';
import { type Page, type PageRequest, pageOfAccount } from '../pages.ts';

export { PAYMENT_STATUSES } from '../../entities/payments/payment.ts';

/** Of all accounts, newest first. */
export const listPayments = (
  context: Context,
  request: PageRequest,
  { status, orderNumber }: { status?: PaymentStatus | null | undefined; orderNumber?: string | null | undefined },
): Promise<Page<Payment>> =>
  pageOfAccount(context, Payment, request, { ...(status && { status }), ...(orderNumber && { orderNumber }) });

/**
 * Gives a payment that is in suspense, because it came in another coin than was asked for, to the account whose address it
 * came to. Again, it changes nothing.
 * @throws ApiError not_found, or validation_failed if the payment is in another state, or gone from its chain
 */
export async function assignPayment(context: Context, id: string, reason: string): Promise<Payment> {
  return context.db.transaction(async (tx) => {
    const payment = await lock(tx, id);
    const { accountId, orderNumber, coin, creditedMicros, status } = payment;
    const key = `assign:${id}`;
    if (status === 'CREDITED' && (await isPosted(tx, key))) return payment;
    if (status !== 'UNMATCHED') throw refuseState(status, 'assigned', 'unmatched');
    if (payment.height !== null && payment.blockHash === null)
      throw new ApiError('validation_failed', 'The payment has vanished from its chain.', {
        errors: [{ field: 'id', code: 'wrong_state', message: 'There is nothing left of it to be assigned.' }],
      });
    await tx.query(`update payment set status = 'CREDITED', credited_at = now() where id = $1`, [id]);
    await post(tx, accountId, [
      {
        kind: 'adjustment',
        debit: SUSPENSE,
        credit: available(accountId),
        externalKey: key,
        orderNumber,
        amountMicros: creditedMicros,
        description: `Payment in ${coin}`,
      },
    ]);
    await record(tx, OPERATOR_ACCOUNT, id, {
      type: 'payment.assigned',
      actor: actorOf(context),
      data: { accountId, orderNumber, reason },
    });
    await context.provisioning.servers.retrySuspended(tx, accountId);
    return { ...payment, status: 'CREDITED', creditedAt: new Date() };
  });
}

/**
 * Takes a payment out of the books that was taken back, and will not come again: what was spent of it is lost. Again, it
 * changes nothing. Should it be mined again, it is credited.
 * @throws ApiError not_found, or validation_failed if the payment is in another state
 */
export async function writeOff(context: Context, id: string, reason: string): Promise<Payment> {
  return context.db.transaction(async (tx) => {
    const payment = await lock(tx, id);
    const { status, accountId, orderNumber } = payment;
    if (status === 'WRITTEN_OFF') return payment;
    if (status !== 'REVERSED') throw refuseState(status, 'written off', 'reversed');
    await writeOffPayment(tx, payment);
    await record(tx, OPERATOR_ACCOUNT, id, {
      type: 'payment.written_off',
      actor: actorOf(context),
      data: { accountId, orderNumber, reason },
    });
    return payment;
  });
}

/** Why a payment in that state is not decided on. */
export const refuseState = (status: string, decided: string, wanted: string): ApiError =>
  new ApiError('validation_failed', `A payment that is ${status} cannot be ${decided}.`, {
    errors: [{ field: 'id', code: 'wrong_state', message: `Only one that is ${wanted} can be.` }],
  });

/** @throws ApiError not_found */
async function lock(tx: Transaction, id: string): Promise<Payment> {
  const [found] = isId('pay', id)
    ? await tx.query<{ accountId: string }>('select account_id from payment where id = $1', [id])
    : [];
  if (!found) throw new ApiError('not_found');
  await lockAccount(tx, found.accountId);
  const [payment] = await tx.query<Payment>(`select ${columnsOf(Payment)} from payment where id = $1 for update`, [id]);
  if (!payment) throw new ApiError('not_found');
  return payment;
}

const isPosted = async (tx: Queryable, key: string): Promise<boolean> =>
  (await tx.query('select 1 from transfer where external_key = $1', [key])).length > 0;
