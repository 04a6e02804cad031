/**
 * Pays one request by x402. The service checks the payment, settles it, then credits and spends it in one transaction. The
 * same payment for the same request gets the same answer. Once the money is under way, no answer asks for payment again.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { deserialize, serialize } from 'node:v8';
import { databaseTime } from '../../entities/database/clock.ts';
import { beforeOutsideCall } from '../../entities/database/request-transaction.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError, type ErrorCode, type ErrorExtras } from '../../entities/errors.ts';
import { newOrderNumber } from '../../entities/ids.ts';
import { canonicalJson } from '../../entities/json.ts';
import { usdFromMicros } from '../../entities/money.ts';
import { postAll } from '../../entities/payments/ledger.ts';
import { isInBalance } from '../../entities/payments/payment.ts';
import {
  answerPayment,
  lockX402,
  SEALED_ANSWER,
  type X402Payment,
} from '../../entities/payments/x402-authorization.ts';
import { digest } from '../../entities/secrets.ts';
import type { Customer } from '../../entities/turns.ts';
import {
  type Buyer,
  challengeOf,
  creditPosting,
  decodePayment,
  receiptOf,
  refuseUnusable,
  ruleOf,
  type SignedPayment,
  tooManyOpen,
} from '../../provisioning/index.ts';
import { requireOpen } from '../accounts/account.ts';
import { spenderOf } from '../accounts/auth/spend-limit.ts';
import { accountOf, type Context, countedAs } from '../context.ts';
import { requireCoin } from './coins.ts';
import type { Fulfil, Sale } from './sale.ts';

/** The time that a request waits for another with the same payment. */
const WAIT_MS = 25_000;
const POLL_MS = 50;
/** A payment that is older, and in the balance, gets no bonus of today. A repeated request after a failure comes sooner. */
const OLD_MS = 3_600_000;

/** The error with a challenge for the price, which tells how to pay by x402. */
export function withChallenge(
  context: Context,
  { path, description }: Pick<Sale<unknown>, 'path' | 'description'>,
  amountMicros: bigint,
  { code, message, extras }: { code: ErrorCode; message?: string; extras?: ErrorExtras },
  reason: string = code,
): ApiError {
  const offer = { amountMicros, url: context.publicUrl + path, description };
  const { x402 } = context.provisioning.payments;
  if (!x402) return new ApiError(code, message, extras);
  const challenge = challengeOf(x402.terms, offer, reason);
  return new ApiError(code, message, {
    ...extras,
    requiredMicros: amountMicros,
    headers: { 'payment-required': challenge.header },
    x402: { error: reason, accepts: challenge.accepts },
  });
}

/** @throws ApiError payment_required, or a refusal of the sale */
export async function demandPayment(context: Context, sale: Sale<unknown>): Promise<never> {
  await requireCoin(context, available(context).terms.coin);
  throw withChallenge(context, sale, await sale.check(), { code: 'payment_required' });
}

/**
 * Sells for a signed payment.
 * @throws ApiError invalid_payment, payment_rejected (nothing was taken), payment_nonce_used, idempotency_in_progress,
 * rate_limited, or a refusal of the sale. After a settlement the money is in the balance.
 */
export async function pay<T>(context: Context, header: string, sale: Sale<T>): Promise<T> {
  const x402 = available(context);
  const payment = await decodePayment(header);
  const buyer = {
    accountId: accountOf(context),
    address: context.address,
    ...spenderOf(context),
    // The answer may have a password, and the chain shows the signature. So the caller is a part of the request.
    requestDigest: digest(canonicalJson([sale.path, sale.input, countedAs(context.viewer!)])).toString('hex'),
    keyDigest: context.keyDigest,
  };
  for (const deadline = Date.now() + WAIT_MS; ; ) {
    let { found, hasPaid } = await x402.find(payment, buyer);
    if (!found) {
      const reserved = await reserve(context, payment, { ...buyer, hasPaid }, sale);
      if (reserved) return settle(context, payment, reserved, sale, true);
      ({ found } = await x402.find(payment, buyer));
      if (!found) throw tooManyOpen(context.limits.openPayments);
    }
    if (found.row.orderNumber) {
      if (await x402.isConfirmed(found)) return answered(context, found.payment, found.row);
      continue;
    }
    const leased = await x402.lease(found, context.requestId);
    if (leased) return settle(context, found.payment, { ...found.row, ...leased }, sale, false);
    if (Date.now() > deadline || context.signal.aborted)
      throw new ApiError('idempotency_in_progress', 'Another request is settling the payment.', {
        retryAfter: 1,
      });
    await sleep(POLL_MS);
  }
}

/**
 * Verifies a payment and writes its row.
 * @returns undefined if it has a row, another payment has the idempotency key, or too many are open
 * @throws ApiError payment_rejected, or an error of `pay`
 */
async function reserve(
  context: Context,
  payment: SignedPayment,
  buyer: Buyer & Customer,
  sale: Sale<unknown>,
): Promise<X402Payment | undefined> {
  const x402 = available(context);
  beforeOutsideCall();
  // Verifies and reads in the background, because refusals of the credential and of the sale come first.
  const refused = new AbortController();
  const verifying = x402.verification.verify(payment, buyer, refused.signal);
  verifying.catch(() => {});
  const amountMicros = await openPriceOf(context, sale).catch((error) => {
    refused.abort();
    throw error;
  });
  const fault = await x402.fault(payment, amountMicros, verifying);
  if (fault === undefined) return x402.reserve(payment, buyer, context.requestId, context.limits.openPayments);
  // A faster request with the same payment may be the reason why the payment counts as used.
  if ((await x402.find(payment, buyer)).found) return undefined;
  await x402.keepUnmatched(payment, buyer, context.requestId);
  const message = ruleOf(fault, payment);
  throw withChallenge(context, sale, amountMicros, { code: 'payment_rejected', ...(message && { message }) }, fault);
}

/** The price for a credential that is open. @throws ApiError as `requireOpen` does; coin_unavailable, or a refusal of the sale */
async function openPriceOf(context: Context, sale: Sale<unknown>): Promise<bigint> {
  const open = requireOpen(context.db, context);
  const priced = Promise.all([sale.check(), requireCoin(context, available(context).terms.coin)]);
  priced.catch(() => {});
  await open;
  const [amountMicros] = await priced;
  return amountMicros;
}

/**
 * Refuses a sale again before another send of its payment.
 * @throws ApiError payment_rejected if the price has changed, or an error of `pay`
 */
async function requireSale(context: Context, payment: SignedPayment, sale: Sale<unknown>): Promise<void> {
  const amountMicros = await openPriceOf(context, sale);
  const fault = await available(context).fault(payment, amountMicros);
  if (fault) throw withChallenge(context, sale, amountMicros, { code: 'payment_rejected' }, fault);
}

/** @throws ApiError coin_unavailable */
function available({ provisioning }: Context): NonNullable<Context['provisioning']['payments']['x402']> {
  const { x402 } = provisioning.payments;
  if (!x402) throw new ApiError('coin_unavailable', 'The service accepts no payment by x402 at the moment.');
  return x402;
}

async function settle<T>(
  context: Context,
  payment: SignedPayment,
  row: X402Payment,
  sale: Sale<T>,
  isFirst: boolean,
): Promise<T> {
  const x402 = available(context);
  const { openPayments } = context.limits;
  let sent: { isSent?: boolean; sentTxId?: string | undefined } = {};
  const checkAgain = async () => {
    sent = { isSent: false };
    await requireSale(context, payment, sale);
    sent = {};
  };
  let outcome: { txId: string | undefined } | undefined;
  beforeOutsideCall();
  try {
    const settlement = await x402.settle(row, payment, isFirst ? undefined : checkAgain, openPayments);
    sent = settlement;
    if (settlement.state === 'crowded') throw tooManyOpen(openPayments);
    if (settlement.state === 'unsent')
      throw new ApiError('unavailable', 'The service cannot settle the payment at the moment. Send it again.', {
        retryAfter: 5,
      });
    if (settlement.state === 'refused') throw rejected(context, sale, row, settlement.reason);
    if (settlement.state === 'dead') throw rejected(context, sale, row);
    const txId = settlement.state === 'settled' ? settlement.txId : undefined;
    outcome = { txId };
    return await sale.attempts((make) =>
      context.db.transaction((tx) => fulfil(tx, context, payment, row, sale, make, { txId, sentTxId: sent.sentTxId })),
    );
  } catch (error) {
    // Without await: a request with an idempotency key holds a connection, and would wait for a second one.
    void x402.release(row, context.requestId, sent).catch(() => {});
    const isSaleRefused =
      error instanceof ApiError && error.code !== 'payment_nonce_used' && error.code !== 'payment_rejected';
    if (!outcome || !isSaleRefused) throw error;
    receipt(context, payment, row, outcome.txId);
    throw refusedAfterPayment(error, row, outcome.txId !== undefined);
  }
}

/** The refusal of a sale after the payment was sent. The task of the payment credits the balance. */
function refusedAfterPayment(
  { code, message, extras }: ApiError,
  { units }: X402Payment,
  isSettled: boolean,
): ApiError {
  const amount = `${usdFromMicros(BigInt(units))} USD go to the balance.`;
  const paid = isSettled ? `The payment has settled: ${amount}` : `The payment may yet settle. Then ${amount}`;
  if (code === 'insufficient_balance')
    return new ApiError('payment_nonce_used', `${paid} The balance does not cover the price any more.`);
  return new ApiError(code, `${message} ${paid} Do not sign another payment: order from the balance.`, extras);
}

const rejected = (
  context: Context,
  sale: Sale<unknown>,
  { units }: X402Payment,
  reason = 'invalid_exact_evm_payload_authorization_valid_before',
): ApiError => withChallenge(context, sale, BigInt(units), { code: 'payment_rejected' }, reason);

/** Commits credit, debit, the server or top-up, and the answer together. */
async function fulfil<T>(
  tx: Transaction,
  context: Context,
  payment: SignedPayment,
  reserved: X402Payment,
  sale: Sale<T>,
  make: Fulfil<T>,
  { txId: moved, sentTxId }: { txId: string | undefined; sentTxId: string | undefined },
): Promise<T> {
  const row = await lockX402(tx, reserved);
  if (row.orderNumber) return answered(context, payment, row);
  // The task of the payment may know the outcome meanwhile.
  const txId = moved ?? (isInBalance(row) ? row.txId! : undefined);
  if (row.status === 'DROPPED' && txId !== undefined)
    throw new ApiError('idempotency_in_progress', 'Another payment with this idempotency key may count.');
  if (row.status !== 'OBSERVED' && !isInBalance(row)) throw refuseUnusable(row.status) ?? rejected(context, sale, row);
  const orderNumber = newOrderNumber(sale.kind);
  const signedMicros = BigInt(row.units);
  if (txId !== undefined) await postAll(tx, [creditPosting({ ...row, orderNumber }, signedMicros)]);
  const isOld = isInBalance(row) && (await databaseTime(tx)).getTime() - row.seenAt.getTime() > OLD_MS;
  const answer = await make(tx, orderNumber, { txId, signedMicros, paidOutMicros: row.paidOutMicros, isOld });
  const text = serialize(answer).toString('base64');
  const sealedAnswer = SEALED_ANSWER.seal(context.vault, text, row.id, secretOf(payment));
  await answerPayment(tx, row, { orderNumber, sealedAnswer, txId, sentTxId });
  receipt(context, payment, row, txId);
  return answer;
}

/** @throws ApiError payment_nonce_used if the service has forgotten the answer */
function answered<T>(context: Context, payment: SignedPayment, row: X402Payment): T {
  if (!row.sealedAnswer) throw new ApiError('payment_nonce_used', `The payment was for ${row.orderNumber}.`);
  receipt(context, payment, row, row.txId ?? undefined);
  const text = SEALED_ANSWER.open(context.vault, row.sealedAnswer, row.id, secretOf(payment));
  return deserialize(Buffer.from(text, 'base64')) as T;
}

function receipt(context: Context, { insteadOf }: SignedPayment, row: X402Payment, txId: string | undefined): void {
  if (txId === undefined) return;
  const value = receiptOf(row.network, row.payer, txId, insteadOf);
  context.setHeader?.('payment-response', value);
  context.setHeader?.('x-payment-response', value);
}

/** Opens an answer. Until the payment settles, only the payer and the service know it. */
const secretOf = ({ signature }: SignedPayment): string => signature.toLowerCase();
