/**
 * The messages of x402 in its versions 1 and 2. One answer 402 carries both: version 2 in the header PAYMENT-REQUIRED, and
 * version 1 in the body. A payment is the same authorization in both, so later code ignores its version.
 */
import { ApiError } from '../../../entities/errors.ts';
import type { Coin } from '../drivers/driver.ts';
import { type Authorization, isSameHex, TIMEOUT_SECONDS, type X402Terms } from '../drivers/x402/driver.ts';

/**
 * The service refuses authorizations that end later, because it watches each one to its end. The rest above the time for
 * which clients sign allows for their clocks.
 */
const VALID_SECONDS_MAX = 2 * TIMEOUT_SECONDS;
/** The service refuses authorizations that end sooner: the settlement takes time. */
const MARGIN_SECONDS = 6;

/** The form of the headers of x402. */
const encoded = (message: object): string => Buffer.from(JSON.stringify(message)).toString('base64');

/** A received payment. Only its form has been checked. */
export interface SignedPayment {
  scheme: string;
  network: string;
  /** The terms that the client accepted. Version 1 does not send them. */
  accepted: { asset: string; payTo: string; amount: string } | undefined;
  authorization: Authorization;
  signature: `0x${string}`;
  /** The nonce of a later payment with the same idempotency key. The request sent that one, and goes on with this one. */
  insteadOf?: string;
}

/** The sale that a challenge names. */
export interface Offer {
  amountMicros: bigint;
  url: string;
  description: string;
}

export interface Challenge {
  /** The value of PAYMENT-REQUIRED. */
  header: string;
  /** `accepts` of version 1; none where the network has no name in it. */
  accepts: object[];
}

// The token contract and its clients know the prefix in lower case only.
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const NONCE = /^0x[0-9a-fA-F]{64}$/;
const UINT = /^\d{1,78}$/;
const SIGNATURE = /^0x([0-9a-fA-F]{2}){65,4096}$/;

/** Reads PAYMENT-SIGNATURE or X-PAYMENT. The first payment loads the library. @throws ApiError invalid_payment */
export async function decodePayment(header: string): Promise<SignedPayment> {
  const [{ decodePaymentSignatureHeader }, { PaymentPayloadSchema }] = await Promise.all([
    import('@x402/core/http'),
    import('@x402/core/schemas'),
  ]);
  let decoded: unknown;
  try {
    decoded = decodePaymentSignatureHeader(header);
  } catch {
    throw new ApiError('invalid_payment');
  }
  const { success, data } = PaymentPayloadSchema.safeParse(decoded);
  if (!success) throw new ApiError('invalid_payment');
  const { scheme, network } = data.x402Version === 1 ? data : data.accepted;
  const { signature, authorization } = data.payload as Record<string, unknown>;
  if (typeof signature !== 'string' || !SIGNATURE.test(signature)) throw new ApiError('invalid_payment');
  return {
    scheme,
    network,
    accepted: data.x402Version === 1 ? undefined : data.accepted,
    authorization: readAuthorization(authorization),
    signature: signature as `0x${string}`,
  };
}

function readAuthorization(given: unknown): Authorization {
  const read = <T extends string>(name: string, form: RegExp): T => {
    const value = (given as Record<string, unknown> | null | undefined)?.[name];
    if (typeof value !== 'string' || !form.test(value)) throw new ApiError('invalid_payment');
    return value as T;
  };
  const uint = (name: string) => BigInt(read(name, UINT));
  return {
    from: read('from', ADDRESS),
    to: read('to', ADDRESS),
    value: uint('value'),
    validAfter: uint('validAfter'),
    validBefore: uint('validBefore'),
    nonce: read('nonce', NONCE),
  };
}

const VALID_BEFORE = 'invalid_exact_evm_payload_authorization_valid_before';

/** How a payment differs from the terms, as a reason of x402; undefined: it fits. The driver checks the signature. */
export function mismatchOf(terms: X402Terms, payment: SignedPayment, amountMicros: bigint): string | undefined {
  const { scheme, network, accepted, authorization } = payment;
  const nowSeconds = BigInt(Math.floor(Date.now() / 1000));
  if (scheme !== 'exact') return 'unsupported_scheme';
  if (network !== (accepted ? terms.network : terms.networkV1)) return 'invalid_network';
  if (accepted && !isSameHex(accepted.asset, terms.asset)) return 'invalid_asset';
  if (!isSameHex(accepted?.payTo ?? terms.payTo, terms.payTo) || !isSameHex(authorization.to, terms.payTo))
    return 'invalid_exact_evm_recipient_mismatch';
  if (authorization.value !== amountMicros) return 'invalid_exact_evm_payload_authorization_value_mismatch';
  if (authorization.validAfter > nowSeconds) return 'invalid_exact_evm_payload_authorization_valid_after';
  const restSeconds = authorization.validBefore - nowSeconds;
  return restSeconds < MARGIN_SECONDS || restSeconds > VALID_SECONDS_MAX ? VALID_BEFORE : undefined;
}

/** The rule that a refused payment breaks, with its value, where the reason of x402 does not tell. */
export const ruleOf = (fault: string, { authorization: { validBefore } }: SignedPayment): string | undefined =>
  fault === VALID_BEFORE
    ? `validBefore is ${validBefore}. It must be between ${MARGIN_SECONDS} and ${VALID_SECONDS_MAX} seconds ahead. Nothing was taken.`
    : undefined;

/** @param error the reason of the answer; clients of version 1 require a string */
export function challengeOf(terms: X402Terms, { amountMicros, url, description }: Offer, error: string): Challenge {
  const { network, networkV1, asset, payTo, domain } = terms;
  const [amount, mimeType] = [String(amountMicros), 'application/json'];
  const common = { scheme: 'exact', asset, payTo, maxTimeoutSeconds: TIMEOUT_SECONDS, extra: { ...domain } };
  return {
    header: encoded({
      x402Version: 2,
      error,
      resource: { url, description, mimeType },
      accepts: [{ ...common, network, amount }],
    }),
    accepts: networkV1
      ? [{ ...common, network: networkV1, maxAmountRequired: amount, resource: url, description, mimeType }]
      : [],
  };
}

/**
 * The value of PAYMENT-RESPONSE, and of X-PAYMENT-RESPONSE.
 * @param unusedNonce the nonce of a payment of the same request that the service did not use
 */
export const receiptOf = (network: string, payer: string, transaction: string, unusedNonce?: string): string =>
  encoded({
    success: true,
    transaction,
    network,
    payer,
    ...(unusedNonce !== undefined && { extensions: { unusedNonce } }),
  });

/** The coin of x402 if no gateway has it. It pays for requests, but for no invoice. */
export const x402CoinOf = ({ coin: code, network, networkV1 = network }: X402Terms): Coin => ({
  code,
  name: `${code} by x402`,
  network: networkV1,
  decimals: 6,
  confirmationsRequired: 1,
  pegged: true,
});
