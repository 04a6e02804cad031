/**
 * Payments by x402: the one thing that reaches outside within a request. The row of a payment is committed before anybody
 * is asked to move the money, in a transaction of its own; afterwards the chain is asked what happened, not whoever was to
 * do it. From the row on, a task looks after the money, so that none is lost with a process.
 */

import type { Database } from '../../../entities/database/database.ts';
import { columnsOf } from '../../../entities/database/table.ts';
import type { Queryable, Transaction } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import { newId } from '../../../entities/ids.ts';
import { lockAccount } from '../../../entities/payments/ledger.ts';
import { X402Payment } from '../../../entities/payments/x402-payment.ts';
import { digest, type Vault } from '../../../entities/secrets.ts';
import { startTaskParameters, startTaskSql } from '../../../entities/tasks/start.ts';
import { startTask } from '../../tasks/tasks.ts';
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

/** How long one request may be at a payment before another that repeats it takes over. */
const LEASE_SECONDS = 60;
const SETTLE_TIMEOUT_MS = 20_000;
const VERIFY_TIMEOUT_MS = 20_000;
/** When the chain is first asked about a payment whose request may have died. */
const WATCH_AFTER_SECONDS = 5;

/** Who pays, and for what. */
export interface Reservation {
  accountId: string;
  credentialId: string | null;
  amountMicros: bigint;
  requestMac: Buffer;
}

/** Open: nobody knows yet. Refused and unsent: nothing was moved. */
type Outcome = Settlement | { state: 'refused'; reason: string } | { state: 'unsent' };

export class X402 {
  readonly #db: Database;
  readonly #driver: X402Driver;
  readonly #vault: Vault;
  /** The exclusive work of this process. */
  #queue: Promise<unknown> = Promise.resolve();

  /** @param db not that of a request: what it commits is committed at once */
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

  /** Why a payment that is what was asked for could not be settled; undefined if it could. @throws if nobody can tell */
  async verify(payment: SignedPayment): Promise<string | undefined> {
    const { authorization, signature } = payment;
    const mismatch = mismatchOf(this.terms, payment, authorization.value);
    return mismatch ?? this.#driver.verify(authorization, signature, AbortSignal.timeout(VERIFY_TIMEOUT_MS));
  }

  /** Why a payment is not good, as x402 names it; undefined if it is. @throws if nobody can tell at the moment */
  async fault(payment: SignedPayment, amountMicros: bigint, verifying = this.verify(payment)) {
    return mismatchOf(this.terms, payment, amountMicros) ?? (await verifying);
  }

  /**
   * The row of a payment that was sent before.
   * @throws ApiError payment_nonce_used if it was for something else, or is in suspense
   */
  async find(
    payment: SignedPayment,
    { accountId, requestMac }: Reservation | Omit<Reservation, 'amountMicros'>,
  ): Promise<X402Payment | undefined> {
    const [row] = await this.#db.query<X402Payment>(
      `select ${columnsOf(X402Payment)} from x402_payment where network = $1 and payer = $2 and nonce = $3`,
      this.#key(payment),
      'x402 payment',
    );
    const same =
      !row ||
      (row.accountId === accountId &&
        row.requestMac.equals(requestMac) &&
        row.signatureDigest.equals(signatureDigest(payment)));
    if (!same) throw new ApiError('payment_nonce_used');
    if (row?.status === 'UNMATCHED') throw inSuspense();
    return row;
  }

  /** Writes the row of a payment, taken for a request, and has it looked after. Undefined: it was there. */
  async reserve(
    payment: SignedPayment,
    reservation: Reservation,
    requestId: string,
    db: Queryable = this.#db,
  ): Promise<X402Payment | undefined> {
    const { accountId, credentialId, amountMicros, requestMac } = reservation;
    const id = newId('pay');
    const parameters = [
      ...[id, ...this.#key(payment), accountId, credentialId],
      ...[this.terms.asset.toLowerCase(), this.terms.payTo.toLowerCase(), amountMicros],
      ...[Number(payment.authorization.validBefore), signatureDigest(payment), requestMac, requestId],
      this.#vault.seal(`${payment.authorization.validAfter} ${payment.signature}`, sealOf(id)),
      ...startTaskParameters({ ...x402Task({ id, accountId }), afterSeconds: WATCH_AFTER_SECONDS }),
    ];
    const [row] = await db.query<X402Payment>(RESERVE, parameters, 'x402 reserve');
    return row;
  }

  /**
   * Keeps in suspense what a payment, which cannot be settled, had moved to us before it was sent: whoever can read the
   * chain could have sent it.
   * @throws ApiError payment_nonce_used if it had; another if nobody can tell
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
  async release({ id, accountId }: X402Payment, requestId: string): Promise<void> {
    await this.#db.transaction(async (tx) => {
      await tx.query('update x402_payment set lease_until = now() where id = $1 and leased_by = $2', [id, requestId]);
      await startTask(tx, x402Task({ id, accountId }));
    });
  }

  /**
   * Has the money moved, unless it was.
   * @param isFirst nobody has tried to before
   */
  async settle(row: X402Payment, { authorization, signature }: SignedPayment, isFirst: boolean): Promise<Outcome> {
    // Whatever the chain does since then, the money is in the balance.
    if (row.status === 'SETTLED') return { state: 'settled', txId: row.txId! };
    const before: Settlement = isFirst ? { state: 'open' } : await this.#driver.observe(row);
    if (before.state !== 'open') return before;
    const options = { signal: AbortSignal.timeout(SETTLE_TIMEOUT_MS), exclusive: this.#exclusive };
    // What it throws is hearsay: the chain is asked.
    const { refused, unsent, txId } = await this.#driver
      .settle(authorization, signature, options)
      .catch((): Settling => ({}));
    const after = await this.#driver.observe(row, txId).catch((): Settlement => ({ state: 'open' }));
    if (after.state !== 'open') return after;
    if (unsent) return { state: 'unsent' };
    return refused === undefined ? after : { state: 'refused', reason: refused };
  }

  /** What the chain says. */
  observe(row: X402Payment): Promise<Settlement> {
    return this.#driver.observe(row, row.txId ?? undefined);
  }

  /** Whether the chain that is asked is that of a payment; another has been configured, if not. */
  isOurs({ network, asset }: X402Payment): boolean {
    return network === this.terms.network && asset === this.terms.asset.toLowerCase();
  }

  /** Whether the chain will not take back what it has moved by that transaction. */
  isFinal(txId: string): Promise<boolean> {
    return this.#driver.isFinal(txId);
  }

  /**
   * Asks once more for the money of a payment to be moved that something was promised for. The chain decides whatever comes
   * of it; what it throws is hearsay.
   */
  async settleAgain({ id, payer, payTo, amountMicros, validBefore, nonce, sealedPayment }: X402Payment): Promise<void> {
    if (!sealedPayment) return;
    const [validAfter, signature] = this.#vault.open(sealedPayment, sealOf(id)).split(' ') as [string, `0x${string}`];
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

  /** One in this process, and then one of all processes: whoever waits here keeps no connection. */
  readonly #exclusive: Exclusive = (work) =>
    new Promise((resolve, reject) => {
      let done: ReturnType<typeof work> | undefined;
      const locked = async (tx: Transaction) => {
        await tx.query('select pg_advisory_xact_lock($1)', [lockOf(this.terms.network)]);
        // A transaction may be tried again; what is sent is not.
        done ??= work();
        // Whoever asked need not wait for the lock to be given back, which commits nothing.
        await done.then(resolve);
      };
      this.#queue = this.#queue.then(() => this.#db.transaction(locked)).catch(reject);
    });

  #key({ authorization: { from, nonce } }: SignedPayment): string[] {
    return [this.terms.network, from.toLowerCase(), nonce.toLowerCase()];
  }
}

const RESERVE = `
  with reserved as (
      insert into x402_payment (id, network, payer, nonce, account_id, credential_id, asset, pay_to, amount_micros, valid_before,
        signature_digest, request_mac, leased_by, sealed_payment, status, lease_until)
      values ($1, $2, $3, $4, $5, $6, $7, $8, $9, to_timestamp($10), $11, $12, $13, $14, 'SETTLING',
        now() + make_interval(secs => ${LEASE_SECONDS}))
      on conflict (network, payer, nonce) do nothing
      returning ${columnsOf(X402Payment)}, id as subject),
    ${startTaskSql('reserved', 15)}
  select * from reserved`;

/** The coin of x402, where no gateway has it: then it pays requests, and no invoices. */
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
    'The payment had been made before it was sent. It is kept, and the operator decides whose it is.',
  );
const sealOf = (id: string): string => `x402 payment ${id}`;
const lockOf = (network: string): bigint => digest(`x402 ${network}`).readBigInt64BE();
const signatureDigest = ({ signature }: SignedPayment): Buffer => digest(signature.toLowerCase());
