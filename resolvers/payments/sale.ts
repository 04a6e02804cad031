/** A sale that one request pays for by x402. */
import type { Transaction } from '../../entities/database/transaction.ts';

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
  /** Runs an attempt with the function that makes the server or top-up. A sale may repeat an attempt that found no room. */
  attempts<R>(attempt: (fulfil: Fulfil<T>) => Promise<R>): Promise<R>;
}

/** The payment of a sale. */
interface Paid {
  /** With it, the money is in the balance. Without one, the outcome of the payment is open. */
  txId: string | undefined;
  /** The micro-USD that the payer signed. */
  signedMicros: bigint;
  /** The part of a known payment that payouts have taken. */
  paidOutMicros: bigint;
  /** Whether the balance had the money long before this request. */
  isOld: boolean;
}
/** Makes the server or top-up, under the lock of the account. */
export type Fulfil<T> = (tx: Transaction, orderNumber: string, paid: Paid) => Promise<T>;
