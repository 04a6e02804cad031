/** Payments by x402, as the operator sees them, and what he decides of those that are nobody's or are gone. */

import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { OPERATOR_ACCOUNT } from '../../entities/history/audit.ts';
import type { EventType } from '../../entities/history/event.ts';
import { record } from '../../entities/history/record.ts';
import { isId } from '../../entities/ids.ts';
import { findX402Payment, lockPayment, X402Payment, type X402Status } from '../../entities/payments/x402-payment.ts';
import { assignX402, writeOffX402 } from '../../provisioning/index.ts';
import { actorOf, type Context } from '../context.ts';
import { type Page, type PageRequest, pageOfAccount } from '../pages.ts';
import { refuseState } from './payments.ts';

export { X402_STATUSES } from '../../entities/payments/x402-payment.ts';

/** Of all accounts, newest first. */
export const listX402Payments = (
  context: Context,
  request: PageRequest,
  status: X402Status | null | undefined,
): Promise<Page<X402Payment>> => pageOfAccount(context, X402Payment, request, { ...(status && { status }) });

/**
 * Gives an unmatched payment to an account, if its chain has it still. Again, it changes nothing.
 * @throws ApiError not_found, validation_failed if the payment is in another state or gone, unavailable if nobody can tell
 */
export async function assignX402Payment(
  context: Context,
  id: string,
  { accountId, reason }: { accountId: string; reason: string },
): Promise<X402Payment> {
  const payment = await find(context, id);
  const [account] = isId('acct', accountId)
    ? await context.db.query('select 1 from account where id = $1', [accountId])
    : [];
  if (!account) throw new ApiError('not_found');
  if (payment.status === 'UNMATCHED') await requireOnChain(context, payment);
  return decide(context, id, { type: 'payment.assigned', accountId, reason }, async (tx, locked) => {
    if (locked.status === 'SETTLED' && locked.accountId === accountId) return false;
    if (locked.status !== 'UNMATCHED') throw refuseState(locked.status, 'assigned', 'unmatched');
    await assignX402(tx, locked, accountId);
    await context.provisioning.servers.retrySuspended(tx, accountId);
    return true;
  });
}

/**
 * Takes a payment out of the books that was taken back, or that nobody can have: what was spent of it is lost. Again, it
 * changes nothing.
 * @throws ApiError not_found, or validation_failed if the payment is in another state
 */
export const writeOffX402Payment = (context: Context, id: string, reason: string): Promise<X402Payment> =>
  decide(context, id, { type: 'payment.written_off', reason }, async (tx, locked) => {
    if (locked.status === 'WRITTEN_OFF') return false;
    if (locked.status !== 'REVERSED' && locked.status !== 'UNMATCHED')
      throw refuseState(locked.status, 'written off', 'reversed or unmatched');
    await writeOffX402(tx, locked);
    return true;
  });

/** @param work returns whether it has changed anything */
async function decide(
  context: Context,
  id: string,
  { type, ...data }: { type: EventType & `payment.${string}`; accountId?: string; reason: string },
  work: (tx: Transaction, payment: X402Payment) => Promise<boolean>,
): Promise<X402Payment> {
  const { accountId: payer } = await find(context, id);
  return context.db.transaction(async (tx) => {
    if (await work(tx, await lockPayment(tx, id, payer, data.accountId ?? payer)))
      await record(tx, OPERATOR_ACCOUNT, id, { type, actor: actorOf(context), data });
    return (await findX402Payment(tx, id))!;
  });
}

async function find({ db }: Context, id: string): Promise<X402Payment> {
  const payment = isId('pay', id) ? await findX402Payment(db, id) : undefined;
  if (!payment) throw new ApiError('not_found');
  return payment;
}

async function requireOnChain(
  {
    provisioning: {
      payments: { x402 },
    },
  }: Context,
  payment: X402Payment,
): Promise<void> {
  if (!x402?.isOurs(payment))
    throw new ApiError('unavailable', `No node of ${payment.network} is configured.`, { retryAfter: 5 });
  const settlement = await x402.observe(payment).catch(() => {
    throw new ApiError('unavailable', 'The chain cannot be asked at the moment.', { retryAfter: 5 });
  });
  if (settlement.state !== 'settled')
    throw new ApiError('validation_failed', 'The payment has vanished from its chain.', {
      errors: [{ field: 'id', code: 'wrong_state', message: 'There is nothing left of it to be assigned.' }],
    });
}
