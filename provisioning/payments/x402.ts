/**
 * Payments by x402: the one thing that reaches outside within a request. The row of a payment is committed before anybody
 * is asked to move the money, in a transaction of its own; afterwards the chain is asked what happened, not whoever was to
 * do it. From the row on, a task looks after the money, so that none is lost with a process.
 */

import type { Database } from '../../entities/database.ts';
import { columnsOf } from '../../entities/entity.ts';
import { ApiError } from '../../entities/errors.ts';
import { newId } from '../../entities/ids.ts';
import { digest } from '../../entities/secrets.ts';
import { X402Payment } from '../../entities/x402-payment.ts';
import { startTask } from '../tasks.ts';
import type { Settlement, X402Driver } from './drivers/x402.ts';
import {
  type Challenge,
  challengeOf,
  decodePayment,
  mismatchOf,
  type Offer,
  receiptOf,
  type SignedPayment,
} from './x402-message.ts';
import { watchTask } from './x402-watch.ts';

/** How long one request may be at a payment before another that repeats it takes over. */
const LEASE_SECONDS = 60;
const SETTLE_TIMEOUT_MS = 20_000;
/** When the chain is first asked about a payment whose request may have died. */
const WATCH_AFTER_SECONDS = 5;

/** Who pays, and for what. */
export interface Reservation {
  accountId: string;
  credentialId: string | null;
  amountMicros: bigint;
  requestMac: Buffer;
}

export class X402 {
  readonly #db: Database;
  readonly #driver: X402Driver;

  /** @param db not that of a request: what it commits is committed at once */
  constructor(db: Database, driver: X402Driver) {
    this.#db = db;
    this.#driver = driver;
  }

  get terms() {
    return this.#driver.terms;
  }

  challenge(offer: Offer, error: string): Challenge {
    return challengeOf(this.terms, offer, error);
  }

  /** @throws ApiError invalid_payment */
  decode(header: string): SignedPayment {
    return decodePayment(header);
  }

  receipt({ network, payer }: X402Payment, txId: string): string {
    return receiptOf(network, payer, txId);
  }

  /** Why a payment is not good, as x402 names it; undefined if it is. */
  async fault(payment: SignedPayment, amountMicros: bigint): Promise<string | undefined> {
    const mismatch = mismatchOf(this.terms, payment, amountMicros);
    if (mismatch) return mismatch;
    const signed = await this.#driver.isSigned(payment.authorization, payment.signature);
    return signed ? undefined : 'invalid_exact_evm_signature';
  }

  /** The row of a payment that was sent before. @throws ApiError payment_nonce_used if it was for something else */
  async find(
    payment: SignedPayment,
    { accountId, requestMac }: Reservation | Omit<Reservation, 'amountMicros'>,
  ): Promise<X402Payment | undefined> {
    const [row] = await this.#db.query<X402Payment>(
      `select ${columnsOf(X402Payment)} from x402_payment where network = $1 and payer = $2 and nonce = $3`,
      this.#key(payment),
    );
    const same =
      !row ||
      (row.accountId === accountId &&
        row.requestMac.equals(requestMac) &&
        row.signatureDigest.equals(signatureDigest(payment)));
    if (!same) throw new ApiError('payment_nonce_used');
    return row;
  }

  /** Writes the row of a payment, unless it is there, and has it looked after. */
  async reserve(payment: SignedPayment, reservation: Reservation): Promise<void> {
    const { accountId, credentialId, amountMicros, requestMac } = reservation;
    const id = newId('pay');
    await this.#db.transaction(async (tx) => {
      const reserved = await tx.query(
        `insert into x402_payment (id, network, payer, nonce, account_id, credential_id, asset, pay_to, amount_micros, valid_before,
          signature_digest, request_mac, status, lease_until)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9, to_timestamp($10), $11, $12, 'SETTLING', now())
        on conflict (network, payer, nonce) do nothing returning true`,
        [
          id,
          ...this.#key(payment),
          accountId,
          credentialId,
          this.terms.asset.toLowerCase(),
          this.terms.payTo.toLowerCase(),
          amountMicros,
          Number(payment.authorization.validBefore),
          signatureDigest(payment),
          requestMac,
        ],
      );
      if (reserved.length) await startTask(tx, { ...watchTask({ id, accountId }), afterSeconds: WATCH_AFTER_SECONDS });
    });
  }

  /** Takes the row for a request, unless another is at it or has answered. */
  async take(id: string, requestId: string): Promise<boolean> {
    const taken = await this.#db.query(
      `update x402_payment set leased_by = $2, lease_until = now() + make_interval(secs => ${LEASE_SECONDS})
      where id = $1 and order_number is null and (lease_until <= now() or leased_by = $2) returning true`,
      [id, requestId],
    );
    return taken.length > 0;
  }

  /** Forgets answers after a day: one may have a password in it. The payment stays used. */
  async sweep(): Promise<void> {
    await this.#db.query(
      `update x402_payment set sealed_answer = null where sealed_answer is not null and created_at < now() - interval '1 day'`,
    );
  }

  /** Lets others take it, and has the chain asked now. */
  async giveUp({ id, accountId }: X402Payment, requestId: string): Promise<void> {
    await this.#db.transaction(async (tx) => {
      await tx.query('update x402_payment set lease_until = now() where id = $1 and leased_by = $2', [id, requestId]);
      await startTask(tx, watchTask({ id, accountId }));
    });
  }

  /** Has the money moved, unless it was. Open: nobody knows yet. */
  async settle(row: X402Payment, payment: SignedPayment): Promise<Settlement | { state: 'refused'; reason: string }> {
    const before = await this.#driver.observe(row);
    if (before.state !== 'open') return before;
    const signal = AbortSignal.timeout(SETTLE_TIMEOUT_MS);
    const { refused } = await this.#driver
      .settle(payment.authorization, payment.signature, signal)
      .catch((): { refused?: string } => ({}));
    const after = await this.#driver.observe(row).catch((): Settlement => ({ state: 'open' }));
    return refused !== undefined && after.state === 'open' ? { state: 'refused', reason: refused } : after;
  }

  #key({ authorization: { from, nonce } }: SignedPayment): string[] {
    return [this.terms.network, from.toLowerCase(), nonce.toLowerCase()];
  }
}

const signatureDigest = ({ signature }: SignedPayment): Buffer => digest(signature.toLowerCase());
