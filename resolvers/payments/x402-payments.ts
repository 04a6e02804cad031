/** Payments by x402 for the operator, and decisions about unmatched and reversed ones. */
import { Account } from '../../entities/accounts/account.ts';
import { exists, find } from '../../entities/database/table.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import type { EventType } from '../../entities/history/event.ts';
import { isId } from '../../entities/ids.ts';
import { lockPayment, X402Payment, type X402Status } from '../../entities/payments/x402-payment.ts';
import { assignX402, writeOffX402 } from '../../provisioning/index.ts';
import type { Context } from '../context.ts';
import { found } from '../errors.ts';
import { type Page, type PageRequest, pageOfAccount } from '../pages.ts';
import { recordByOperator } from '../record.ts';
import { refuseState } from './payments.ts';

export { X402_STATUSES } from '../../entities/payments/x402-payment.ts';

/** Lists the payments by x402 of all accounts, newest first. */
export const listX402Payments = (
  context: Context,
  request: PageRequest,
  status: X402Status | null | undefined,
): Promise<Page<X402Payment>> => pageOfAccount(context, X402Payment, request, { ...(status && { status }) });

/**
 * Assigns an unmatched payment to an account, if its chain still has it. Repeating it changes nothing.
 * @throws ApiError not_found, validation_failed if the payment is in another state or removed, unavailable without the chain
 */
export async function assignX402Payment(
  context: Context,
  id: string,
  { accountId, reason }: { accountId: string; reason: string },
): Promise<X402Payment> {
  const payment = await findPayment(context, id);
  found(isId('acct', accountId) && (await exists(context.db, Account, { id: accountId })));
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
 * Writes off a reversed or unmatched payment. The spent part is a loss. Repeating it changes nothing.
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

/** Decides about a locked payment, and records the decision. @param work returns whether it has changed anything */
async function decide(
  context: Context,
  id: string,
  { type, ...data }: { type: EventType & `payment.${string}`; accountId?: string; reason: string },
  work: (tx: Transaction, payment: X402Payment) => Promise<boolean>,
): Promise<X402Payment> {
  const { accountId: payer } = await findPayment(context, id);
  return context.db.transaction(async (tx) => {
    if (await work(tx, await lockPayment(tx, id, payer, data.accountId ?? payer)))
      await recordByOperator(tx, context, id, { type, data });
    return (await find(tx, X402Payment, { id }))!;
  });
}

async function findPayment({ db }: Context, id: string): Promise<X402Payment> {
  return found(isId('pay', id) && (await find(db, X402Payment, { id })));
}

async function requireOnChain({ provisioning }: Context, payment: X402Payment): Promise<void> {
  const { x402 } = provisioning.payments;
  if (!x402?.isOurs(payment))
    throw new ApiError('unavailable', `The operator has configured no node of ${payment.network}.`, { retryAfter: 5 });
  const settlement = await x402.observe(payment).catch(() => {
    throw new ApiError('unavailable', 'The chain does not answer at the moment.', { retryAfter: 5 });
  });
  if (settlement.state !== 'settled')
    throw new ApiError('validation_failed', 'The chain has removed the payment.', {
      errors: [{ field: 'id', code: 'wrong_state', message: 'The chain has removed it.' }],
    });
}
