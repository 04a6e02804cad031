/** Refusals of payments by x402 before the service sends them. */
import { ApiError } from '../../../entities/errors.ts';
import type { PaymentStatus } from '../../../entities/payments/payment.ts';
import { UNMATCHED_MIN_USD } from '../suspense.ts';

const GAS_RETRY_SECONDS = 3_600;
const OPEN_RETRY_SECONDS = 60;

export const tooManyOpen = (openMax: number): ApiError =>
  new ApiError(
    'rate_limited',
    `The outcome of ${openMax} payments of this payer or account is open. Wait for one of them. Nothing was taken.`,
    { retryAfter: OPEN_RETRY_SECONDS },
  );

export const tooMuchGas = (wastedGas: bigint): ApiError =>
  new ApiError(
    'rate_limited',
    `Failed transactions for this payer or account took ${wastedGas} gas within a day. Nothing was taken.`,
    { retryAfter: GAS_RETRY_SECONDS },
  );

/** Refuses a payment because of a fault of the driver. @throws the fault itself if it is an ApiError */
export function refuseForNow(fault: unknown): never {
  if (fault instanceof ApiError) throw fault;
  throw new ApiError('unavailable', 'The service cannot verify payments at the moment. Nothing was taken.', {
    retryAfter: 5,
  });
}

const MOVED_BEFORE = 'The chain moved this payment before it was sent.';
const UNUSABLE: Partial<Record<PaymentStatus, string>> = {
  UNMATCHED: `${MOVED_BEFORE} The operator decides who receives the money.`,
  RETURNED: `${MOVED_BEFORE} The operator returns the money to its sender.`,
  WRITTEN_OFF: 'The operator has written this payment off. The balance does not have its money.',
  REVERSED: 'The chain has removed this payment after its credit. The balance does not have its money.',
};

/** The refusal of a payment that is too small for suspense. */
export const refuseDust = (): ApiError =>
  new ApiError('payment_nonce_used', `${MOVED_BEFORE} It is less than ${UNMATCHED_MIN_USD} USD, so it has no record.`);

/** The refusal of a payment that can buy nothing, in suspense or out of it; undefined: it may buy. */
export function refuseUnusable(status: PaymentStatus): ApiError | undefined {
  const reason = UNUSABLE[status];
  return reason === undefined ? undefined : new ApiError('payment_nonce_used', reason);
}
