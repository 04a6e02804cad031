/**
 * Payments by x402, which their requests verify and settle. The service commits the row of a payment before it settles the
 * payment, in a transaction of its own. Afterwards it asks the chain for the outcome. A refusal by the settling party counts
 * only while the chain has not moved the money. From the row on, a task watches the payment, so no money is lost with a
 * process.
 */
import type { Database } from '../../../entities/database/database.ts';
import { LOCK_NAME } from '../../../entities/database/lock-name.ts';
import type { Queryable, Transaction } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import { newId } from '../../../entities/ids.ts';
import { lockAccount, type Spender } from '../../../entities/payments/ledger.ts';
import {
  FIND_SIGNED_PAYMENT,
  FORGET_ANSWERS,
  LEASE_PAYMENT,
  RELEASE_PAYMENT,
  RESERVE_PAYMENT,
  SEALED_PAYMENT,
  SEALED_REQUEST,
  type X402Payment,
} from '../../../entities/payments/x402-payment.ts';
import { digest, type Vault } from '../../../entities/secrets.ts';
import { startTask, startTaskParameters } from '../../../entities/tasks/start.ts';
import type { Coin } from '../drivers/driver.ts';
import type { Authorization, Exclusive, Settlement, Settling, X402Driver, X402Terms } from '../drivers/x402/driver.ts';
import {
  type Challenge,
  challengeOf,
  decodePayment,
  mismatchOf,
  type Offer,
  receiptOf,
  type SignedPayment,
} from './message.ts';
import { suspendX402 } from './suspense.ts';
import { x402Task } from './task.ts';

/** A request leases a payment for so long. Then a repeated request takes over. */
const LEASE_SECONDS = 60;
const SETTLE_TIMEOUT_MS = 20_000;
const VERIFY_TIMEOUT_MS = 20_000;
/** When the worker first asks the chain about a payment, because the request may have died. */
const WATCH_AFTER_SECONDS = 5;

/** The payer and the paid request. */
export interface Reservation extends Spender {
  accountId: string;
  amountMicros: bigint;
  /** SHA-256 in hex. */
  requestDigest: string;
}

/** Open: not known yet. Refused and unsent: the chain has moved nothing. */
type Outcome = Settlement | { state: 'refused'; reason: string } | { state: 'unsent' };

export class X402 {
  readonly #db: Database;
  readonly #driver: X402Driver;
  readonly #vault: Vault;
  /** The exclusive work of this process. */
  #queue: Promise<unknown> = Promise.resolve();

  /** @param db not the database of a request, because the rows must be committed at once */
  constructor(db: Database, driver: X402Driver, vault: Vault) {
    this.#db = db;
    this.#driver = driver;
    this.#vault = vault;
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

  /** The reason why a payment cannot be settled; undefined: it can. @throws if the driver cannot tell at the moment */
  async verify(payment: SignedPayment): Promise<string | undefined> {
    const { authorization, signature } = payment;
    const mismatch = mismatchOf(this.terms, payment, authorization.value);
    return mismatch ?? this.#driver.verify(authorization, signature, AbortSignal.timeout(VERIFY_TIMEOUT_MS));
  }

  /** The reason of x402 why a payment is invalid; undefined: it is valid. @throws if the driver cannot tell at the moment */
  async fault(payment: SignedPayment, amountMicros: bigint, verifying = this.verify(payment)) {
    return mismatchOf(this.terms, payment, amountMicros) ?? (await verifying);
  }

  /**
   * The row of a repeated payment.
   * @throws ApiError payment_nonce_used if it paid for another request, or is in suspense
   */
  async find(
    payment: SignedPayment,
    { accountId, requestDigest }: Reservation | Omit<Reservation, 'amountMicros'>,
  ): Promise<X402Payment | undefined> {
    const row = await FIND_SIGNED_PAYMENT.first(this.#db, this.#key(payment));
    const same =
      !row ||
      (row.accountId === accountId &&
        row.sealedRequest !== null &&
        SEALED_REQUEST.open(this.#vault, row.sealedRequest, row.id) === requestDigest &&
        row.signatureDigest.equals(signatureDigest(payment)));
    if (!same) throw new ApiError('payment_nonce_used');
    if (row?.status === 'UNMATCHED') throw inSuspense();
    return row;
  }

  /** Writes the row of a payment, leased to a request, and starts its task. @returns undefined if the row exists */
  async reserve(
    payment: SignedPayment,
    reservation: Reservation,
    requestId: string,
    db: Queryable = this.#db,
  ): Promise<X402Payment | undefined> {
    const { accountId, credentialId, limitedBy, amountMicros, requestDigest } = reservation;
    const id = newId('pay');
    return RESERVE_PAYMENT.first(db, [
      ...[id, ...this.#key(payment), accountId, credentialId, limitedBy],
      ...[this.terms.asset.toLowerCase(), this.terms.payTo.toLowerCase(), amountMicros],
      ...[Number(payment.authorization.validBefore), signatureDigest(payment)],
      ...[SEALED_REQUEST.seal(this.#vault, requestDigest, id), requestId],
      SEALED_PAYMENT.seal(this.#vault, `${payment.authorization.validAfter} ${payment.signature}`, id),
      LEASE_SECONDS,
      ...startTaskParameters({ ...x402Task({ id, accountId }), afterSeconds: WATCH_AFTER_SECONDS }),
    ]);
  }

  /**
   * Puts a payment into suspense that the chain had moved before the service received it. Any reader of the chain could have
   * sent it.
   * @throws ApiError payment_nonce_used if the chain had moved it; another error if the driver cannot tell
   */
  async keepUnmatched(payment: SignedPayment, buyer: Omit<Reservation, 'amountMicros'>, requestId: string) {
    const { from, nonce, to, value: amountMicros, validBefore } = payment.authorization;
    if (mismatchOf(this.terms, payment, amountMicros) !== undefined) return;
    const times = { validBefore: new Date(Number(validBefore) * 1000), createdAt: new Date() };
    const settlement = await this.#driver.observe({ payer: from, nonce, payTo: to, amountMicros, ...times });
    if (settlement.state !== 'settled') return;
    await this.#db.transaction(async (tx) => {
      await lockAccount(tx, buyer.accountId);
      const row = await this.reserve(payment, { ...buyer, amountMicros }, requestId, tx);
      if (row) await suspendX402(tx, row, settlement.txId);
    });
    throw inSuspense();
  }

  /** Leases the payment to a request. @returns false if another request has leased or answered it */
  async lease(id: string, requestId: string): Promise<boolean> {
    return (await LEASE_PAYMENT.first(this.#db, [id, requestId, LEASE_SECONDS])) !== undefined;
  }

  /** Forgets answers after a day, because they may contain passwords. The payment stays used. */
  async sweep(): Promise<void> {
    await FORGET_ANSWERS.all(this.#db);
  }

  /** Ends the lease of a request, and lets the worker ask the chain now. */
  async release({ id, accountId }: X402Payment, requestId: string): Promise<void> {
    await this.#db.transaction(async (tx) => {
      await RELEASE_PAYMENT.all(tx, [id, requestId]);
      await startTask(tx, x402Task({ id, accountId }));
    });
  }

  /**
   * Settles a payment, unless it is settled.
   * @param isFirst whether no request has tried before
   */
  async settle(row: X402Payment, { authorization, signature }: SignedPayment, isFirst: boolean): Promise<Outcome> {
    // The balance has the money, even if a reorganisation removes the payment.
    if (row.status === 'SETTLED') return { state: 'settled', txId: row.txId! };
    const before: Settlement = isFirst ? { state: 'open' } : await this.#driver.observe(row);
    if (before.state !== 'open') return before;
    const options = { signal: AbortSignal.timeout(SETTLE_TIMEOUT_MS), exclusive: this.#exclusive };
    // Ignores errors and asks the chain.
    const { refused, unsent, txId } = await this.#driver
      .settle(authorization, signature, options)
      .catch((): Settling => ({}));
    const after = await this.#driver.observe(row, txId).catch((): Settlement => ({ state: 'open' }));
    if (after.state !== 'open') return after;
    if (unsent) return { state: 'unsent' };
    return refused === undefined ? after : { state: 'refused', reason: refused };
  }

  /** Asks the chain for the outcome. */
  observe(row: X402Payment): Promise<Settlement> {
    return this.#driver.observe(row, row.txId ?? undefined);
  }

  /** Whether the configured chain and asset are those of the payment. */
  isOurs({ network, asset }: X402Payment): boolean {
    return network === this.terms.network && asset === this.terms.asset.toLowerCase();
  }

  /** Whether the chain can no longer remove the transaction. */
  isFinal(txId: string): Promise<boolean> {
    return this.#driver.isFinal(txId);
  }

  /** Settles a payment again that an order depends on. It ignores errors, because the task asks the chain later. */
  async settleAgain({ id, payer, payTo, amountMicros, validBefore, nonce, sealedPayment }: X402Payment): Promise<void> {
    if (!sealedPayment) return;
    const opened = SEALED_PAYMENT.open(this.#vault, sealedPayment, id);
    const [validAfter, signature] = opened.split(' ') as [string, `0x${string}`];
    const authorization = {
      from: payer,
      to: payTo,
      nonce,
      value: amountMicros,
      validAfter: BigInt(validAfter),
      validBefore: BigInt(validBefore.getTime()) / 1000n,
    } as Authorization;
    const options = { signal: AbortSignal.timeout(SETTLE_TIMEOUT_MS), exclusive: this.#exclusive, again: true };
    await this.#driver.settle(authorization, signature, options).catch(() => {});
  }

  /** Runs one work at a time in this process, then in all processes. Waiting in the process takes no connection. */
  readonly #exclusive: Exclusive = (work) =>
    new Promise((resolve, reject) => {
      let done: ReturnType<typeof work> | undefined;
      const locked = async (tx: Transaction) => {
        await LOCK_NAME.all(tx, [`x402 ${this.terms.network}`]);
        // The database may repeat the transaction, but the work runs once.
        done ??= work();
        // The caller need not wait for the end of the transaction, which commits nothing.
        await done.then(resolve);
      };
      this.#queue = this.#queue.then(() => this.#db.transaction(locked)).catch(reject);
    });

  #key({ authorization: { from, nonce } }: SignedPayment): string[] {
    return [this.terms.network, from.toLowerCase(), nonce.toLowerCase()];
  }
}

/** The coin of x402 if no gateway has it. It pays for requests, but for no invoice. */
export const x402CoinOf = ({ coin: code, network, networkV1 = network }: X402Terms): Coin => ({
  code,
  name: `${code} by x402`,
  network: networkV1,
  decimals: 6,
  confirmationsRequired: 1,
  pegged: true,
});

const inSuspense = () =>
  new ApiError(
    'payment_nonce_used',
    'The chain moved this payment before it was sent. The operator decides who receives the money.',
  );
const signatureDigest = ({ signature }: SignedPayment): Buffer => digest(signature.toLowerCase());
