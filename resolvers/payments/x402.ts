/**
 * Pays one request by x402. The service checks the payment, settles it, then credits and spends it in one transaction. The
 * same payment for the same request gets the same answer. Once the money is under way, no answer asks for payment again.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { deserialize, serialize } from 'node:v8';
import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError, type ErrorCode, type ErrorExtras } from '../../entities/errors.ts';
import { newOrderNumber } from '../../entities/ids.ts';
import { canonicalJson } from '../../entities/json.ts';
import { usdFromMicros } from '../../entities/money.ts';
import {
  answerPayment,
  creditX402,
  lockPayment,
  SEALED_ANSWER,
  type X402Payment,
} from '../../entities/payments/x402-payment.ts';
import { digest } from '../../entities/secrets.ts';
import type { SignedPayment } from '../../provisioning/index.ts';
import { requireOpen } from '../accounts/account.ts';
import { spenderOf } from '../accounts/auth/spend-limit.ts';
import { accountOf, type Context, countedAs } from '../context.ts';
import { requireCoin } from './coins.ts';

/** The time that a request waits for another with the same payment. */
const WAIT_MS = 25_000;
const POLL_MS = 50;

/** The payment headers of a request. */
export interface PaymentHeaders {
  /** X-Payment-Mode: asks to pay by x402, independent of the balance. */
  mode?: 'X402' | null | undefined;
  /** PAYMENT-SIGNATURE, of version 2. */
  signature?: string | null | undefined;
  /** X-PAYMENT, of version 1. */
  payment?: string | null | undefined;
}

export const signedPayment = ({ signature, payment }: PaymentHeaders): string | undefined =>
  signature ?? payment ?? undefined;

/** A sale that one request can pay for. */
export interface Sale<T> {
  kind: 'SRV' | 'TOP';
  /** The path of the endpoint, such as /v1/servers. */
  path: string;
  description: string;
  /** The input of the request. Another input is another sale. */
  input: unknown;
  /** Throws every refusal that is known before the payment. @returns the price in micro-USD */
  check(): Promise<bigint>;
  /**
   * Makes the server or top-up, under the lock of the account. With a transaction id the money is in the balance. Without
   * one the outcome of the payment is open.
   */
  fulfil(tx: Transaction, orderNumber: string, txId: string | undefined): Promise<T>;
}

/** The error with a challenge for the price, which tells how to pay by x402. */
export function withChallenge(
  context: Context,
  { path, description }: Pick<Sale<unknown>, 'path' | 'description'>,
  amountMicros: bigint,
  { code, message, extras }: { code: ErrorCode; message?: string; extras?: ErrorExtras },
  reason: string = code,
): ApiError {
  const offer = { amountMicros, url: context.publicUrl + path, description };
  const challenge = context.provisioning.payments.x402?.challenge(offer, reason);
  if (!challenge) return new ApiError(code, message, extras);
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
 * @throws ApiError invalid_payment, payment_rejected (nothing was taken), payment_nonce_used, idempotency_in_progress, or
 * a refusal of the sale. After a settlement the money is in the balance.
 */
export async function pay<T>(context: Context, header: string, sale: Sale<T>): Promise<T> {
  const x402 = available(context);
  const payment = x402.decode(header);
  const buyer = {
    accountId: accountOf(context),
    ...spenderOf(context),
    // The answer may have a password, and the chain shows the signature. So the caller is a part of the request.
    requestDigest: digest(canonicalJson([sale.path, sale.input, countedAs(context.viewer!)])).toString('hex'),
  };
  // Verifies in the background, because a refusal of the sale comes first.
  const verifying = x402.verify(payment);
  verifying.catch(() => {});
  let row = await x402.find(payment, buyer);
  if (!row) {
    await requireOpen(context.db, context);
    const [amountMicros] = await Promise.all([sale.check(), requireCoin(context, x402.terms.coin)]);
    const fault = await x402.fault(payment, amountMicros, verifying).catch(refuseForNow);
    // A faster request with the same payment may be the reason why the payment counts as used.
    row = fault === undefined ? undefined : await x402.find(payment, buyer);
    if (fault && !row) {
      await x402.keepUnmatched(payment, buyer, context.requestId).catch(refuseForNow);
      throw withChallenge(context, sale, amountMicros, { code: 'payment_rejected' }, fault);
    }
    const reserved = row ? undefined : await x402.reserve(payment, { ...buyer, amountMicros }, context.requestId);
    if (reserved) return settle(context, payment, reserved, sale, true);
    row ??= (await x402.find(payment, buyer))!;
  }
  for (const deadline = Date.now() + WAIT_MS; ; ) {
    if (row.orderNumber) return answered(context, payment, row);
    if (await x402.lease(row.id, context.requestId)) return settle(context, payment, row, sale, false);
    if (Date.now() > deadline || context.signal.aborted)
      throw new ApiError('idempotency_in_progress', 'Another request is settling the payment.', {
        retryAfter: 1,
      });
    await sleep(POLL_MS);
    row = (await x402.find(payment, buyer))!;
  }
}

function refuseForNow(error: unknown): never {
  if (error instanceof ApiError) throw error;
  throw new ApiError('unavailable', 'The service cannot verify payments at the moment. Nothing was taken.', {
    retryAfter: 5,
  });
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
  let txId: string | undefined;
  try {
    const settlement = await x402.settle(row, payment, isFirst);
    if (settlement.state === 'unsent')
      throw new ApiError('unavailable', 'The service cannot settle the payment at the moment. Send it again.', {
        retryAfter: 5,
      });
    if (settlement.state === 'refused') throw rejected(context, sale, row, settlement.reason);
    if (settlement.state === 'dead') throw rejected(context, sale, row);
    txId = settlement.state === 'settled' ? settlement.txId : undefined;
    return await context.db.transaction((tx) => fulfil(tx, context, payment, row, sale, txId));
  } catch (error) {
    // Without await: a request with an idempotency key holds a connection, and would wait for a second one.
    void x402.release(row, context.requestId).catch(() => {});
    if (txId === undefined || !(error instanceof ApiError)) throw error;
    receipt(context, row, txId);
    throw refusedAfterPayment(error, row);
  }
}

/** The refusal of a sale after the settlement. The task of the payment credits the balance. */
function refusedAfterPayment({ code, message, extras }: ApiError, { amountMicros }: X402Payment): ApiError {
  const paid = `The payment has settled: ${usdFromMicros(amountMicros)} USD go to the balance.`;
  if (code === 'insufficient_balance')
    return new ApiError('payment_nonce_used', `${paid} The balance does not cover the price any more.`);
  return new ApiError(code, `${message} ${paid} Do not sign another payment: order from the balance.`, extras);
}

const rejected = (
  context: Context,
  sale: Sale<unknown>,
  { amountMicros }: X402Payment,
  reason = 'invalid_exact_evm_payload_authorization_valid_before',
): ApiError => withChallenge(context, sale, amountMicros, { code: 'payment_rejected' }, reason);

/** Commits credit, debit, the server or top-up, and the answer together. */
async function fulfil<T>(
  tx: Transaction,
  context: Context,
  payment: SignedPayment,
  { id, accountId }: X402Payment,
  sale: Sale<T>,
  moved: string | undefined,
): Promise<T> {
  const row = await lockPayment(tx, id, accountId);
  if (row.orderNumber) return answered(context, payment, row);
  // The task of the payment may know the outcome meanwhile.
  const txId = moved ?? (row.status === 'SETTLED' ? row.txId! : undefined);
  const isReversed = row.status === 'REVERSED' || row.status === 'WRITTEN_OFF';
  if (isReversed || (txId === undefined && row.status === 'FAILED')) throw rejected(context, sale, row);
  const orderNumber = newOrderNumber(sale.kind);
  if (txId !== undefined) await creditX402(tx, row, orderNumber);
  const answer = await sale.fulfil(tx, orderNumber, txId);
  const text = serialize(answer).toString('base64');
  const sealedAnswer = SEALED_ANSWER.seal(context.vault, text, id, secretOf(payment));
  await answerPayment(tx, row, { orderNumber, sealedAnswer, txId });
  receipt(context, row, txId);
  return answer;
}

/** @throws ApiError payment_nonce_used if the service has forgotten the answer */
function answered<T>(context: Context, payment: SignedPayment, row: X402Payment): T {
  if (!row.sealedAnswer) throw new ApiError('payment_nonce_used', `The payment was for ${row.orderNumber}.`);
  receipt(context, row, row.txId ?? undefined);
  const text = SEALED_ANSWER.open(context.vault, row.sealedAnswer, row.id, secretOf(payment));
  return deserialize(Buffer.from(text, 'base64')) as T;
}

function receipt(context: Context, row: X402Payment, txId: string | undefined): void {
  if (txId === undefined) return;
  const value = available(context).receipt(row, txId);
  context.setHeader?.('payment-response', value);
  context.setHeader?.('x-payment-response', value);
}

/** Opens an answer. Until the payment settles, only the payer and the service know it. */
const secretOf = ({ signature }: SignedPayment): string => signature.toLowerCase();
