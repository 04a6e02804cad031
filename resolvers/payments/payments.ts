/** Payments for the operator, and decisions about those in suspense. */
import { Account } from '../../entities/accounts/account.ts';
import { exists, find, lock } from '../../entities/database/table.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError, refuse } from '../../entities/errors.ts';
import type { EventType } from '../../entities/history/event.ts';
import { isId } from '../../entities/ids.ts';
import { isPosted, lockAccount, lockOperator } from '../../entities/payments/ledger.ts';
import { FIND_TRANSACTION, isInBalance, Payment, type PaymentStatus } from '../../entities/payments/payment.ts';
import { assignPayment, returnPayment, settleTopUps, writeOffPayment } from '../../provisioning/index.ts';
import type { Context } from '../context.ts';
import { found } from '../errors.ts';
import { type Page, type PageRequest, pageOfAccount } from '../pages.ts';
import { recordByOperator } from '../record.ts';
import { claimFor } from './lost-addresses.ts';
import { isGoneByX402, requireOnChain } from './on-chain.ts';
import { type Sum, withinLimit } from './operator-limit.ts';

export { PAYMENT_STATUSES } from '../../entities/payments/payment.ts';

/** Lists the payments of all accounts, newest first. */
export const listPayments = (
  context: Context,
  request: PageRequest,
  { status, orderNumber }: { status?: PaymentStatus | null | undefined; orderNumber?: string | null | undefined },
): Promise<Page<Payment>> =>
  pageOfAccount(context, Payment, request, { ...(status && { status }), ...(orderNumber && { orderNumber }) });

/** A decision by the operator. Without `status`, it counts in each state that allows it. */
export interface Decision {
  /** The state that the operator saw. */
  status?: PaymentStatus | null | undefined;
  reason: string;
}

/**
 * Assigns an unmatched payment to an account, if its chain still has it. Repeating it changes nothing.
 * @param to the account; by default the one that owns the address. A payment by x402 has no default
 * @throws ApiError not_found, validation_failed if the payment is in another state or removed, unavailable without the chain
 */
export async function assign(
  context: Context,
  id: string,
  { accountId: to, status, reason }: Decision & { accountId?: string | null | undefined },
): Promise<Payment> {
  if (to != null) found(isId('acct', to) && (await exists(context.db, Account, { id: to })));
  const present = await findPayment(context, id);
  // Everybody can read a signature on the chain, and send it.
  if (to == null && present.mode === 'X402')
    throw refuse('accountId', 'required', 'Name the accountId. The account that sent an authorization may not own it.');
  const accountId = to ?? present.accountId;
  const { work } = await prepared(context, present, 'assigned', { accountId, reason }, async (tx, payment) => {
    if (isInBalance(payment) && payment.accountId === accountId && (await isPosted(tx, `assign:${id}`))) return false;
    requireState(payment, 'assigned', status, 'UNMATCHED');
    await assignPayment(tx, payment, accountId);
    await context.provisioning.servers.retrySuspended(tx, accountId);
    return true;
  });
  const assigned = await context.db.transaction(work);
  // Afterwards, because the settlement locks all payments of the top-up. Repeating the mutation settles it, too.
  const { orderNumber } = assigned;
  const exchangeRates = await context.provisioning.payments.exchangeRates(context.db);
  if (orderNumber !== null) await context.db.transaction((tx) => settleTopUps(tx, [orderNumber], exchangeRates));
  return assigned;
}

/**
 * Writes off a payment that is reversed or unmatched. It also takes one out of the balance that its gateway reports no more, or
 * that the operator calls FINAL. The spent part is a loss. Repeating it changes nothing. If the chain mines a removed payment
 * again, the worker credits it, or puts it into suspense again.
 * @param status the state that the operator saw
 * @throws ApiError not_found, unavailable without the chain of x402, approval_needed above the limit of an operator. Or
 * validation_failed if the payment is in another state, or not final by x402
 */
export async function writeOff(
  context: Context,
  id: string,
  reason: string,
  status?: Decision['status'],
): Promise<Payment> {
  const { payment, work } = await preparedWriteOff(context, id, reason, status);
  return withinLimit(context, sumOf('WRITE_OFF', payment, { reason, paymentStatus: status ?? null }), work);
}

/** Checks a write-off, also with the chain of x402. @throws ApiError as `writeOff` does */
export async function preparedWriteOff(
  context: Context,
  id: string,
  reason: string,
  status?: Decision['status'],
): Promise<Decided> {
  const present = await findPayment(context, id);
  const isDue = (payment: Payment) => {
    if (payment.status === 'WRITTEN_OFF') return false;
    // The chain was asked about the state before.
    if (payment.status !== present.status) throw changed(payment.status);
    requireState(payment, 'written off', status, 'REVERSED', 'UNMATCHED', ...balanceStates(payment, status));
    return true;
  };
  isDue(present);
  const isGone = await isGoneByX402(context, present, status);
  return prepared(context, present, 'written_off', { reason }, async (tx, payment) => {
    if (!isDue(payment)) return false;
    await writeOffPayment(tx, payment, isGone);
    return true;
  });
}

/** The sum of a decision about a payment, for the limit of the operator. */
const sumOf = (
  kind: 'WRITE_OFF' | 'RETURN',
  { id, accountId, creditedMicros }: Payment,
  given: Pick<Sum, 'reason' | 'paymentStatus' | 'returnTxId'>,
): Sum => ({ kind, accountId, paymentId: id, amountMicros: -creditedMicros, ...given });

/** The states in the balance that the operator may write off. A node may have lied about a final one, so the operator names its state. */
const balanceStates = ({ missingSince }: Payment, seen: Decision['status']): PaymentStatus[] => [
  ...(missingSince === null ? [] : (['CREDITED', 'ASSIGNED'] as const)),
  ...(missingSince === null && seen !== 'FINAL' ? [] : (['FINAL'] as const)),
];

/**
 * Keeps that the operator sent an unmatched payment back. Repeating it changes nothing.
 * @param sent the transaction that sent the coins
 * @throws ApiError not_found, unavailable without the chain, approval_needed above the limit of an operator. Or validation_failed
 * if the payment is in another state, removed or not final
 */
export async function giveBack(context: Context, id: string, { status, ...sent }: Sent): Promise<Payment> {
  const { payment, work } = await preparedGiveBack(context, id, { status, ...sent });
  return withinLimit(context, sumOf('RETURN', payment, { ...sent, paymentStatus: status ?? null }), work);
}

type Sent = Decision & { returnTxId: string };

/** Checks a return that the operator has sent. @throws ApiError as `giveBack` does */
export async function preparedGiveBack(context: Context, id: string, { status, ...sent }: Sent): Promise<Decided> {
  const isDue = (payment: Payment) => {
    if (payment.status === 'RETURNED' && payment.returnTxId === sent.returnTxId) return false;
    requireState(payment, 'returned', status, 'UNMATCHED');
    return true;
  };
  const present = await findPayment(context, id);
  isDue(present);
  return prepared(context, present, 'returned', sent, async (tx, payment) => {
    if (!isDue(payment)) return false;
    await returnPayment(tx, payment, sent.returnTxId);
    return true;
  });
}

/**
 * Reads a transaction from its chain, and writes its payments to addresses of top-ups. The worker settles them as any other.
 * @param given `accountId` the account of addresses that a lost time gave out
 * @returns the payments of the transaction
 * @throws ApiError not_found, or unavailable without the chain. Or validation_failed if no driver can look it up, it pays no
 * address, or one without an account
 */
export async function creditTransaction(
  context: Context,
  { network, reason, accountId, ...given }: LookedUp,
): Promise<Payment[]> {
  const txId = given.txId.toLowerCase();
  const { db, provisioning, signal } = context;
  if (accountId != null) found(isId('acct', accountId) && (await exists(db, Account, { id: accountId })));
  let unclaimed: string | undefined;
  const claim =
    accountId != null
      ? claimFor(context, accountId)
      : async (_: Transaction, { address }: { address: string }) => {
          unclaimed = address;
        };
  const isRead = await provisioning.payments
    .observeTransaction(db, network, txId, claim, signal)
    .catch((fault: Error) => {
      throw fault instanceof ApiError ? fault : new ApiError('unavailable', fault.message, { retryAfter: 5 });
    });
  if (!isRead) throw refuse('network', 'unsupported', `No driver can look up transactions of ${network}.`);
  if (unclaimed)
    throw refuse(
      'accountId',
      'required',
      `The lost time before a restore may have given out the address ${unclaimed}. Name its accountId.`,
    );
  const payments = await FIND_TRANSACTION.all(db, [network, txId]);
  const [first] = payments;
  if (!first) throw refuse('txId', 'not_found', 'No block of the node has a payment of this transaction to a top-up.');
  const data = { network, txId, reason };
  await db.transaction((tx) => recordByOperator(tx, context, first.id, { type: 'payment.looked_up', data }));
  return payments;
}

interface LookedUp {
  network: string;
  txId: string;
  accountId?: string | null | undefined;
  reason: string;
}

/** @throws ApiError validation_failed in another state than the operator saw, or in one that does not allow the decision */
function requireState(
  { status }: Payment,
  decided: string,
  seen: Decision['status'],
  ...allowed: PaymentStatus[]
): void {
  if (seen != null && seen !== status) throw changed(status);
  if (!allowed.includes(status))
    throw refuse(
      'id',
      'wrong_state',
      `A payment that is ${status} cannot be ${decided}, only one that is ${allowed.join(' or ')}.`,
    );
}

const changed = (status: PaymentStatus): ApiError =>
  refuse('id', 'wrong_state', `The payment is ${status} meanwhile. Look at it again.`);

/** A checked decision about a payment, and the work that carries it out. */
interface Decided {
  payment: Payment;
  work: (tx: Transaction) => Promise<Payment>;
}

/**
 * Checks the chain, and returns the work that decides about the locked payment and records it.
 * @param act returns whether it has changed anything
 */
async function prepared(
  context: Context,
  present: Payment,
  decision: 'assigned' | 'written_off' | 'returned',
  data: { accountId?: string; returnTxId?: string; reason: string },
  act: (tx: Transaction, payment: Payment) => Promise<boolean>,
): Promise<Decided> {
  const { id, accountId, orderNumber, status } = present;
  if (decision !== 'written_off' && status === 'UNMATCHED')
    await requireOnChain(context, present, decision === 'returned');
  const work = async (tx: Transaction) => {
    const accountIds = [...new Set([accountId, data.accountId ?? accountId])];
    // Also the operator, so that a sweep does not take the coins of a returned payment meanwhile.
    await (decision === 'returned' ? lockOperator(tx, ...accountIds) : lockAccount(tx, ...accountIds));
    const type: EventType = `payment.${decision}`;
    const payment = (await lock(tx, Payment, { id }))!;
    // Another operator has just assigned it. Its new account comes before it in the order of locks.
    if (!accountIds.includes(payment.accountId)) throw changed(payment.status);
    if (await act(tx, payment))
      await recordByOperator(tx, context, id, { type, data: { accountId, orderNumber, ...data } });
    return (await find(tx, Payment, { id }))!;
  };
  return { payment: present, work };
}

/** @throws ApiError not_found */
async function findPayment({ db }: Context, id: string): Promise<Payment> {
  return found(isId('pay', id) && (await find(db, Payment, { id })));
}
