/**
 * Payments by x402, which their requests verify and settle. The service commits the row of a payment before it settles the
 * payment, in a transaction of its own. Afterwards it asks the chain for the outcome. A refusal by the settling party counts
 * only while the chain has not moved the money. From the row on, a task watches the payment, so no money is lost with a
 * process.
 */
import type { Database } from '../../../entities/database/database.ts';
import type { Queryable } from '../../../entities/database/transaction.ts';
import { newId } from '../../../entities/ids.ts';
import { microsFromUsd } from '../../../entities/money.ts';
import { lockAccount, postAll } from '../../../entities/payments/ledger.ts';
import { isInBalance, movePayment } from '../../../entities/payments/payment.ts';
import {
  CONFIRM_ORDER,
  COUNT_WASTED_GAS,
  END_SEND,
  FORGET_ANSWERS,
  findSigned,
  LEASE_PAYMENT,
  lockX402,
  RELEASE_PAYMENT,
  REOPEN_PAYMENT,
  RESERVE_PAYMENT,
  SEALED_REQUEST,
  START_SEND,
  type X402Payment,
  x402Key,
} from '../../../entities/payments/x402-authorization.ts';
import type { Vault } from '../../../entities/secrets.ts';
import { startTask, startTaskParameters } from '../../../entities/tasks/start.ts';
import type { Customer } from '../../../entities/turns.ts';
import type { Exclusive, Settlement, SettleOptions, Settling, X402Driver } from '../drivers/x402/driver.ts';
import { suspensePosting, tell, UNMATCHED_MIN_USD } from '../suspense.ts';
import { x402Task } from '../task.ts';
import { type Buyer, type Found, findEarlier, requireSame, signatureDigest } from './earlier.ts';
import { exclusiveOf } from './exclusive.ts';
import { mismatchOf, type SignedPayment } from './message.ts';
import { refuseDust, refuseForNow, refuseUnusable, tooMuchGas } from './refusal.ts';
import { authorizationKeyOf, openPayment, sealPayment } from './sealed.ts';
import { Verification } from './verification.ts';

/** A request leases a payment for so long. Then a repeated request takes over. */
const LEASE_SECONDS = 60;
const SETTLE_TIMEOUT_MS = 20_000;
/** How often the service sends a payment. A second time may help if the first transaction was lost or reverted. */
const SENDS_MAX = 2;
/** The same for a payment that a reorganisation removed after its credit. */
const SENDS_MAX_CREDITED = 4;
/** When the worker first asks the chain about a payment, because the request may have died. */
const WATCH_AFTER_SECONDS = 5;

/** Open: not known yet. Refused and unsent: the chain has moved nothing. Crowded: too many payments are open. */
type Outcome = (Settlement | { state: 'refused'; reason: string } | { state: 'unsent' | 'crowded' }) & {
  /** Whether the signature has left the service, or gas was wasted. */
  isSent?: boolean;
  /** The sent transaction, unless it is the one that moved the money. Its own outcome may still be open. */
  sentTxId?: string | undefined;
};

const OPEN: Settlement = { state: 'open' };

export class X402 {
  readonly #db: Database;
  readonly #driver: X402Driver;
  readonly #vault: Vault;
  readonly #exclusive: Exclusive;
  /** Checks payments before the service writes their rows. */
  readonly verification: Verification;

  /** @param db not the database of a request, because the rows must be committed at once */
  constructor(db: Database, driver: X402Driver, vault: Vault) {
    this.#db = db;
    this.#driver = driver;
    this.#vault = vault;
    this.verification = new Verification(driver);
    this.#exclusive = exclusiveOf(db, `x402 ${driver.terms.network}`);
  }

  get terms() {
    return this.#driver.terms;
  }

  /** The reason of x402 why a payment is invalid; undefined: it is valid. @throws ApiError if the driver cannot tell */
  async fault(payment: SignedPayment, amountMicros: bigint, verifying?: Promise<string | undefined>) {
    return mismatchOf(this.terms, payment, amountMicros) ?? (await verifying);
  }

  /**
   * A repeated payment, or the one of an earlier request with the same idempotency key. A key never takes two payments.
   * `hasPaid`: the account ever had money.
   * @throws ApiError payment_nonce_used if it paid for another request, or can buy nothing. idempotency_key_reused if the key
   * was used otherwise. rate_limited if it is new, and payer or account wasted too much gas
   */
  async find(payment: SignedPayment, buyer: Buyer): Promise<{ found: Found | undefined; hasPaid: boolean }> {
    const payer = payment.authorization.from.toLowerCase();
    const { row, wastedGas, hasPaid } = await findSigned(this.#db, this.#key(payment), payer, buyer.accountId);
    if (!row && wastedGas >= (this.#driver.revertedGasMax ?? Number.POSITIVE_INFINITY)) throw tooMuchGas(wastedGas);
    if (row) requireSame(this.#vault, row, payment, buyer);
    const earlier =
      !row || row.status === 'DROPPED' ? await findEarlier(this.#db, this.#vault, payment, buyer) : undefined;
    return { found: earlier ?? (row && { row, payment }), hasPaid };
  }

  /**
   * Writes the row of a payment, leased to a request, and starts its task.
   * @param openMax the limit of open payments of payer and account; null: any number
   * @returns undefined if the row exists, another one has the idempotency key, or the limit is reached
   */
  async reserve(
    payment: SignedPayment,
    buyer: Buyer,
    requestId: string,
    openMax: number | null,
    db: Queryable = this.#db,
  ): Promise<X402Payment | undefined> {
    const { from, nonce, value, validBefore } = payment.authorization;
    const { accountId, credentialId, limitedBy, requestDigest, keyDigest } = buyer;
    const { network, coin, asset, payTo } = this.terms;
    const id = newId('pay');
    return RESERVE_PAYMENT.first(db, [
      ...[id, this.#key(payment), network, accountId, coin, payTo.toLowerCase(), value],
      ...[from.toLowerCase(), nonce.toLowerCase(), asset.toLowerCase(), Number(validBefore), signatureDigest(payment)],
      SEALED_REQUEST.seal(this.#vault, requestDigest, id),
      sealPayment(this.#vault, payment, id),
      ...[credentialId, limitedBy, LEASE_SECONDS, requestId, openMax, keyDigest ?? null],
      ...startTaskParameters({ ...x402Task({ id, accountId }), afterSeconds: WATCH_AFTER_SECONDS }),
    ]);
  }

  /**
   * Puts a payment into suspense that the chain had moved before the service received it. Any reader of the chain could have
   * sent it. With an invalid signature the payment gets no row: the sender has not even seen it. Neither does dust.
   * @throws ApiError payment_nonce_used if the chain had moved it; unavailable if the driver cannot tell
   */
  async keepUnmatched(payment: SignedPayment, buyer: Buyer & Customer, requestId: string) {
    const { from, nonce, to, value: amountMicros, validBefore } = payment.authorization;
    if (mismatchOf(this.terms, payment, amountMicros) !== undefined) return;
    const times = { validBefore: new Date(Number(validBefore) * 1000), createdAt: new Date() };
    const key = { payer: from, nonce, payTo: to, amountMicros, ...times };
    const driver = this.#driver;
    if (!(await this.verification.isSigned(payment, buyer))) return;
    const settlement = await (driver.observeSubmitted?.(key) ?? driver.observe(key)).catch(refuseForNow);
    if (settlement.state !== 'settled') return;
    if (amountMicros < microsFromUsd(UNMATCHED_MIN_USD)) throw refuseDust();
    await this.#db.transaction(async (tx) => {
      await lockAccount(tx, buyer.accountId);
      const row = await this.reserve(payment, buyer, requestId, null, tx);
      if (!row) return;
      const set = { txId: settlement.txId, creditedMicros: amountMicros };
      const unmatched = await movePayment(tx, row, 'UNMATCHED', set);
      await postAll(tx, [suspensePosting(unmatched, amountMicros)]);
      await tell(tx, unmatched, 'payment.unmatched');
      await RELEASE_PAYMENT.first(tx, [row.id, requestId, 1, null]);
    });
    throw refuseUnusable('UNMATCHED');
  }

  /**
   * Leases the payment to a request. A dropped one of an earlier request gives way to that of the request itself.
   * @returns its state, with this send; undefined: another request has it
   */
  lease({ row: { id }, payment: { insteadOf } }: Found, requestId: string) {
    return LEASE_PAYMENT.first(this.#db, [id, requestId, LEASE_SECONDS, insteadOf !== undefined]);
  }

  /** Whether the order of a found payment survives the end of the primary, as `KeptRequest.find` tells of kept answers. */
  async isConfirmed({ row: { id, orderNumber } }: Found): Promise<boolean> {
    return (await CONFIRM_ORDER.first(this.#db, [id, orderNumber])) !== undefined;
  }

  /** Forgets answers after a day, because they may contain passwords. The payment stays used. */
  async sweep(): Promise<void> {
    await FORGET_ANSWERS.all(this.#db);
  }

  /**
   * Ends the lease of a request. The worker asks the chain now. If the signature has never left the service, the payment is
   * dropped instead. A repeated request opens it again. The task watches on, because its payer can submit it.
   */
  async release(
    row: X402Payment,
    requestId: string,
    { isSent = true, sentTxId }: Pick<Outcome, 'isSent' | 'sentTxId'>,
  ): Promise<void> {
    await this.#db.transaction(async (tx) => {
      const locked = await lockX402(tx, row);
      const released = await RELEASE_PAYMENT.first(tx, [row.id, requestId, isSent ? 0 : 1, sentTxId ?? null]);
      const isUnsent = released?.sends === 0 && locked.status === 'OBSERVED' && locked.orderNumber === null;
      if (isUnsent) await movePayment(tx, locked, 'DROPPED');
      else await startTask(tx, x402Task(row));
    });
  }

  /**
   * Settles a payment, unless it is settled.
   * @param check refuses the sale again before a repeated send. Undefined: no request has tried before
   * @param openMax the limit of open payments of payer and account, for a dropped payment
   */
  async settle(
    row: X402Payment,
    payment: SignedPayment,
    check: (() => Promise<void>) | undefined,
    openMax: number,
  ): Promise<Outcome> {
    // The balance has the money, even if a reorganisation removes the payment.
    if (isInBalance(row)) return { state: 'settled', txId: row.txId! };
    const key = authorizationKeyOf(row);
    const before = check ? await this.#driver.observe(key).catch(() => undefined) : OPEN;
    if (!before) return { state: 'unsent', isSent: false };
    // The payer has submitted it. The limit counts payments with an open outcome.
    if (before.state === 'settled' && row.status === 'DROPPED') await this.#reopen(row, payment, null);
    if (before.state !== 'open' || row.sends > SENDS_MAX) return before;
    await check?.();
    // The next transaction replaces the sent one.
    await this.countRevertedGas(row).catch(() => {});
    if (row.status === 'DROPPED' && !(await this.#reopen(row, payment, openMax)))
      return { state: 'crowded', isSent: false };
    const { refused, unsent, txId, wastedGas } = await this.#send(row, payment);
    const after = await this.#driver.observe(key, txId).catch(() => OPEN);
    const isSent = !unsent || wastedGas !== undefined;
    const sentTxId = after.state === 'settled' && after.txId === txId ? undefined : txId;
    if (after.state !== 'open') return { ...after, isSent, sentTxId };
    if (refused !== undefined) return { state: 'refused', reason: refused, isSent };
    return unsent ? { state: 'unsent', isSent } : { ...after, isSent, sentTxId };
  }

  /** Lets the driver settle, and counts wasted gas. It ignores errors: the caller asks the chain. */
  async #send(
    { id }: X402Payment,
    { authorization, signature }: Pick<SignedPayment, 'authorization' | 'signature'>,
    again?: SettleOptions['again'],
  ): Promise<Settling> {
    const options = { signal: AbortSignal.timeout(SETTLE_TIMEOUT_MS), exclusive: this.#exclusive, again };
    const settling = await this.#driver.settle(authorization, signature, options).catch((): Settling => ({}));
    if (settling.wastedGas !== undefined) await COUNT_WASTED_GAS.all(this.#db, [id, null, settling.wastedGas]);
    return settling;
  }

  /**
   * Opens a dropped payment.
   * @returns false if payer or account have too many open ones, or another payment has the idempotency key
   */
  #reopen(row: X402Payment, payment: SignedPayment, openMax: number | null): Promise<boolean> {
    return this.#db.transaction(async (tx) => {
      const reopened = await REOPEN_PAYMENT.first(tx, [row.id, sealPayment(this.#vault, payment, row.id), openMax]);
      if (reopened) await startTask(tx, { ...x402Task(row), afterSeconds: WATCH_AFTER_SECONDS });
      return reopened !== undefined;
    });
  }

  /** Asks the chain for the outcome. */
  observe(row: X402Payment): Promise<Settlement> {
    return this.#driver.observe(authorizationKeyOf(row), row.txId ?? row.sentTxId ?? undefined);
  }

  /** Counts the gas of the sent transaction if it has reverted. The payer may have submitted the payment before it. */
  async countRevertedGas({ id, txId, sentTxId }: X402Payment): Promise<void> {
    if (sentTxId === null || sentTxId === txId) return;
    const gas = await this.#driver.revertedGas?.(sentTxId);
    if (gas !== undefined) await COUNT_WASTED_GAS.all(this.#db, [id, sentTxId, gas]);
  }

  /** Whether the configured chain and asset are those of the payment. */
  isOurs({ network, asset }: X402Payment): boolean {
    return network === this.terms.network && asset === this.terms.asset.toLowerCase();
  }

  /** Whether the chain can no longer remove the transaction. */
  isFinal(txId: string): Promise<boolean> {
    return this.#driver.isFinal(txId);
  }

  /**
   * Settles a payment again that an order depends on, unless it was sent often enough. An order that no longer stands, or
   * whose account is in debt, no longer depends on it. The task asks the chain later.
   */
  async settleAgain(row: X402Payment): Promise<void> {
    const sendsMax = isInBalance(row) ? SENDS_MAX_CREDITED : SENDS_MAX;
    if (!row.sealedPayment || !(await START_SEND.first(this.#db, [row.id, sendsMax]))) return;
    const again = { txId: row.sentTxId ?? row.txId ?? undefined };
    const { unsent, txId, wastedGas } = await this.#send(row, openPayment(this.#vault, row), again);
    await END_SEND.all(this.#db, [row.id, unsent && wastedGas === undefined ? 1 : 0, txId ?? null]);
  }

  #key({ authorization: { from, nonce } }: SignedPayment): string {
    return x402Key(this.terms.network, from, nonce);
  }
}
