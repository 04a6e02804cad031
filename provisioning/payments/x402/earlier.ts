/** Payments of earlier requests: the same one again, and another one with the same idempotency key. */
import type { Queryable } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import type { Spender } from '../../../entities/payments/ledger.ts';
import { FIND_KEYED_PAYMENT, SEALED_REQUEST, type X402Payment } from '../../../entities/payments/x402-authorization.ts';
import { digest, type Vault } from '../../../entities/secrets.ts';
import { isSameHex } from '../drivers/x402/driver.ts';
import type { SignedPayment } from './message.ts';
import { refuseUnusable } from './refusal.ts';
import { openPayment } from './sealed.ts';

/** The payer and the paid request. */
export interface Buyer extends Spender {
  accountId: string;
  /** The IP address of the caller. */
  address: string | null;
  /** SHA-256 in hex. */
  requestDigest: string;
  keyDigest: Buffer | undefined;
}

/** A payment and its row. */
export interface Found {
  row: X402Payment;
  payment: SignedPayment;
}

/** SHA-256 of the signature of a payment. */
export const signatureDigest = ({ signature }: SignedPayment): Buffer => digest(signature.toLowerCase());

/** @throws ApiError payment_nonce_used if a payment was for another request, or can buy nothing */
export function requireSame(
  vault: Vault,
  row: X402Payment,
  payment: SignedPayment,
  { accountId, requestDigest }: Buyer,
): void {
  const { to, value, validBefore } = payment.authorization;
  const isSame =
    row.accountId === accountId &&
    row.sealedRequest !== null &&
    SEALED_REQUEST.open(vault, row.sealedRequest, row.id) === requestDigest &&
    row.signatureDigest.equals(signatureDigest(payment)) &&
    // The signature of a contract wallet may be the same for all authorizations.
    isSameHex(row.address, to) &&
    row.units === String(value) &&
    BigInt(row.validBefore.getTime()) === validBefore * 1000n;
  if (!isSame) throw new ApiError('payment_nonce_used');
  const refusal = row.orderNumber === null ? refuseUnusable(row.status) : undefined;
  if (refusal) throw refusal;
}

/**
 * The payment of an earlier request with the same idempotency key, which may still count.
 * @throws ApiError idempotency_key_reused if that request was another one, or of another credential. payment_nonce_used if the
 * service has deleted the signature
 */
export async function findEarlier(
  db: Queryable,
  vault: Vault,
  { authorization }: SignedPayment,
  { requestDigest, keyDigest }: Buyer,
): Promise<Found | undefined> {
  const row = keyDigest && (await FIND_KEYED_PAYMENT.first(db, [keyDigest]));
  if (!row) return undefined;
  if (SEALED_REQUEST.open(vault, row.sealedRequest!, row.id) !== requestDigest)
    throw new ApiError('idempotency_key_reused');
  if (!row.sealedPayment) throw isFinal(row);
  const { network, asset, address: payTo, units: amount } = row;
  const accepted = { asset, payTo, amount };
  const signed = { scheme: 'exact', network, accepted, ...openPayment(vault, row) };
  return { row, payment: { ...signed, insteadOf: authorization.nonce } };
}

const isFinal = ({ orderNumber }: X402Payment): ApiError =>
  new ApiError(
    'payment_nonce_used',
    `An earlier payment with this idempotency key ${orderNumber ? `was for ${orderNumber}` : 'is in the balance'}. This one was not used.`,
  );
