/**
 * Authorizations (EIP-3009) of payments by x402: the parts that other payments lack. The service writes both rows before it
 * asks the chain to move the money.
 */
import * as column from '../database/column.ts';
import { sealedColumn } from '../database/sealed.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, defaulting, entity, nullable, type RowOf } from '../database/table.ts';
import type { Queryable, Transaction } from '../database/transaction.ts';
import { expression, moveStatement } from '../history/transition.ts';
import { startTaskSql } from '../tasks/start.ts';
import { hasPaidSql } from './payer.ts';
import { isInBalance, PAYMENT_LIFECYCLE, Payment, refuseMove } from './payment.ts';

export const X402Authorization = entity('x402_authorization', {
  paymentId: column.key(),
  /** Lower-case, as the contract of the asset and the payee. */
  payer: column.text(),
  /** Lower-case hexadecimal, 32 bytes. */
  nonce: column.text(),
  asset: column.text(),
  /** When the chain begins to refuse it. */
  validBefore: column.timestamp(),
  /** SHA-256 of the signature. A repeated payment must have the same. */
  signatureDigest: column.bytes(),
  /** The start of its validity and the signature, sealed. Null once the service will not settle it again. */
  sealedPayment: nullable(column.bytes()),
  /** Sealed: the SHA-256 of the paid request and of its credential. Null for requests of the first versions. */
  sealedRequest: nullable(column.bytes()),
  /** The first answer, sealed for the signature, for repetitions within a day. */
  sealedAnswer: nullable(column.bytes()),
  /** The digest of the idempotency key. Null: the request had none. */
  keyDigest: nullable(column.bytes()),
  /** The `Spender` of the ledger. */
  credentialId: nullable(column.text()),
  limitedBy: nullable(column.text()),
  /** The request that settles it, exclusively until the lease ends. */
  leasedBy: nullable(column.text()),
  leaseUntil: column.timestamp(),
  /** How often the service has sent it, or may have. */
  sends: column.int(),
  /** The last sent transaction. Null once its gas counts as wasted. */
  sentTxId: nullable(column.text()),
  /** The gas of its reverted transactions, and of deployments of the payer's wallet that did not lead to a payment. */
  revertedGas: defaulting(column.bigint(), 0),
});
export type X402Authorization = RowOf<typeof X402Authorization>;
/** A payment with its authorization. */
export type X402Payment = Payment & X402Authorization;

// Sealed under the name of the first table.
export const SEALED_PAYMENT = sealedColumn(X402Authorization, 'sealedPayment', 'payment_id', 'x402_payment');
export const SEALED_REQUEST = sealedColumn(X402Authorization, 'sealedRequest', 'payment_id', 'x402_payment');
export const SEALED_ANSWER = sealedColumn(X402Authorization, 'sealedAnswer', 'payment_id', 'x402_payment');

/** The external key of a payment by x402. */
export const x402Key = (network: string, payer: string, nonce: string): string =>
  `x402:${network}:${payer}:${nonce}`.toLowerCase();

const COLUMNS = { ...Payment.columns, ...X402Authorization.columns };
const BOTH = `${columnsOf(Payment)}, ${columnsOf(X402Authorization)}`;
const JOINED = 'payment join x402_authorization on payment_id = payment.id';

/**
 * The payment with the external key $1; all its columns are null if there is none. The payer $2 or the account $3 has wasted
 * the gas within a day. The statement returns the larger sum.
 */
const FIND_SIGNED_PAYMENT = statement({ ...COLUMNS, wastedGas: column.bigint(), hasPaid: column.boolean() })`
  select ${BOTH}, wasted_gas, ${hasPaidSql('$3')} as has_paid from (
    select greatest(sum(reverted_gas) filter (where payer = $2), sum(reverted_gas) filter (where account_id = $3), 0)::bigint
      as wasted_gas from ${JOINED} where reverted_gas > 0 and valid_before > now() - interval '1 day') as wasted
    left join (${JOINED}) on external_key = $1`;
/** Finds a payment by its external key. Also counts the wasted gas of its payer and account. `hasPaid`: the account ever had money. */
export async function findSigned(
  db: Queryable,
  key: string,
  payer: string,
  accountId: string,
): Promise<{ row: X402Payment | undefined; wastedGas: bigint; hasPaid: boolean }> {
  const { wastedGas, hasPaid, ...row } = (await FIND_SIGNED_PAYMENT.first(db, [key, payer, accountId]))!;
  return { row: row.id === null ? undefined : row, wastedGas, hasPaid };
}
/**
 * The payment that an earlier request with the idempotency key $1 made. It is in the balance, or may come into it, so the key
 * allows no other one. A payer may submit a dropped payment as well. The one with an order comes first.
 */
export const FIND_KEYED_PAYMENT = statement(COLUMNS)`
  select ${BOTH} from ${JOINED} where key_digest = $1 and status in ('OBSERVED', 'CREDITED', 'FINAL')
      and created_at > now() - interval '1 day'
    order by order_number is null, created_at limit 1`;
/** The payment $1, and the time. */
export const READ_PAYMENT = statement({ ...COLUMNS, readAt: column.now() })`
  select ${BOTH}, now() as read_at from ${JOINED} where payment.id = $1`;

/**
 * Reserves a payment for a request for $17 seconds, and starts its task. It returns no row if the payment is known, or another
 * one has the idempotency key $20. Payer and account have at most $19 open payments; null means any number. $1 to $16 are the columns in the order of the statement;
 * the times are seconds. `startTaskParameters` follow.
 */
export const RESERVE_PAYMENT = statement(COLUMNS)`
  with reserved as (
      insert into payment (id, external_key, network, account_id, coin, address, units, mode, status, seen_at)
      select $1, $2, $3, $4, $5, $6, $7, 'X402', 'OBSERVED', now()
        where case when $19::int is null then true else may_open_x402($8, $4, $19, $20) end
      on conflict (external_key) do nothing
      returning ${columnsOf(Payment)}, id as subject),
    authorized as (
      insert into x402_authorization (payment_id, payer, nonce, asset, valid_before, signature_digest, sealed_request,
        sealed_payment, credential_id, limited_by, leased_by, lease_until, sends, key_digest)
      select id, $8, $9, $10, to_timestamp($11), $12::bytea, $13::bytea, $14::bytea, $15, $16, $18,
        now() + make_interval(secs => $17), 1, $20::bytea from reserved
      returning ${columnsOf(X402Authorization)}),
    ${startTaskSql('reserved', 21)}
  select ${columnsOf(Payment, 'reserved')}, ${columnsOf(X402Authorization, 'authorized')} from reserved, authorized`;

const { status, txId } = Payment.columns;
const { sends, sentTxId } = X402Authorization.columns;
/**
 * Leases the unanswered payment $1 to the request $2 for $3 seconds, unless another request has leased it. It may send it. With
 * $4 it leases no dropped payment.
 */
export const LEASE_PAYMENT = statement({ sends, sentTxId, status, txId })`
  with unanswered as (select id, status, tx_id from payment where id = $1 and order_number is null for update)
  update x402_authorization set leased_by = $2, lease_until = now() + make_interval(secs => $3),
      sends = sends + case when status in ('OBSERVED', 'DROPPED') then 1 else 0 end
    from unanswered where payment_id = id and (lease_until <= now() or leased_by = $2) and not ($4 and status = 'DROPPED')
    returning sends, sent_tx_id, status, tx_id`;
/**
 * Finds the payment $1 with its order $2. It changes nothing, but its commit waits until the synchronous standbys of PostgreSQL have
 * every earlier commit.
 */
export const CONFIRM_ORDER = statement({ id: column.text() })`
  update x402_authorization set payer = payer from payment
    where payment_id = payment.id and payment_id = $1 and order_number = $2 returning payment_id as id`;
/** Ends the lease of the payment $1 by the request $2. $3 is the number of its sends that sent nothing, $4 a sent transaction. */
export const RELEASE_PAYMENT = statement({ sends: column.int() })`
  update x402_authorization set lease_until = now(), sends = sends - $3, sent_tx_id = coalesce($4, sent_tx_id)
    where payment_id = $1 and leased_by = $2 returning sends`;
/**
 * Lets the service send the payment $1 once more, if it has sent it less than $2 times. The balance has its money, or a top-up
 * waits for it, or a server of an account without a debt.
 */
export const START_SEND = statement({ sends: column.int() })`
  update x402_authorization set sends = sends + 1 from payment where payment_id = payment.id and payment_id = $1 and sends < $2
    and (payment.status <> 'OBSERVED'
      or exists (select from top_up where order_number = payment.order_number and top_up.status = 'CONFIRMING')
      or exists (select from server join balance using (account_id)
        where order_number = payment.order_number and server.status = 'PENDING' and owed_micros = 0))
    returning sends`;
/** Keeps the transaction $3 of a send of the payment $1. $2 is 1 if the service sent nothing, else 0. */
export const END_SEND = statement({})`
  update x402_authorization set sends = sends - $2, sent_tx_id = coalesce($3, sent_tx_id) where payment_id = $1`;
/** Counts the gas $3 of the reverted transaction $2 of the payment $1, once. With null for $2 it counts other wasted gas. */
export const COUNT_WASTED_GAS = statement({})`
  update x402_authorization set reverted_gas = reverted_gas + $3, sent_tx_id = nullif(sent_tx_id, $2)
    where payment_id = $1 and ($2::text is null or sent_tx_id = $2)`;
/**
 * Observes the dropped payment $1 again with the sealed signature $2, unless payer or account have $3 open payments. Null means
 * any number. It does nothing if another payment has the idempotency key.
 */
export const REOPEN_PAYMENT = moveStatement(
  PAYMENT_LIFECYCLE,
  'OBSERVED',
  `id = $1 and (select may_open_x402(payer, account_id, coalesce($3, 2147483647), key_digest) from x402_authorization where payment_id = id)`,
  {},
  { also: `sealed as (update x402_authorization set sealed_payment = $2 from moved where payment_id = id)` },
);
/** Forgets answers after a day. */
export const FORGET_ANSWERS = statement({})`
  update x402_authorization set sealed_answer = null from payment
    where payment_id = payment.id and sealed_answer is not null and created_at < now() - interval '1 day'`;

/** Locks the payment $1, and the accounts $2 before it. The count makes PostgreSQL wait for the accounts first. */
const LOCK_PAYMENT = statement(COLUMNS)`
  with accounts as (select from balance where account_id = any($2) order by account_id for update)
  select ${BOTH} from ${JOINED} where payment.id = $1 and (select count(*) from accounts) >= 0
    for update`;
/** Locks the account of the payer, then the payment. */
export const lockX402 = async (tx: Transaction, { id, accountId }: Payment): Promise<X402Payment> =>
  (await LOCK_PAYMENT.first(tx, [id, [accountId]]))!;

/** Keeps the answer $3 in the rows that the relation names. */
const answered = (from: string) => `
  update x402_authorization set sealed_answer = $3, leased_by = null, lease_until = now(),
    sent_tx_id = coalesce($5, sent_tx_id) from ${from} where payment_id = id`;
/**
 * Keeps the answer $3 of the payment $1, which paid for $2. $4 is the transaction that moved it; null keeps the known one. $5
 * is a sent transaction that did not move it.
 */
const ANSWER_PAYMENT = statement({})`
  with paid as (update payment set order_number = $2, tx_id = coalesce($4, tx_id) where id = $1 returning id)
  ${answered('paid')}`;
/** The same for a payment that the transaction $4 credits now. */
const CREDIT_PAYMENT = moveStatement(
  PAYMENT_LIFECYCLE,
  'CREDITED',
  'id = $1',
  {
    orderNumber: expression('$2'),
    txId: expression('$4'),
    creditedMicros: expression('units::bigint'),
    creditedAt: expression('now()'),
  },
  { also: `answered as (${answered('moved')})` },
);

/**
 * Keeps the answer of a locked payment. With a transaction id the balance has the money. Then the same statement moves the
 * payment, because the request waits for this.
 * @throws Error if the lifecycle does not allow that
 */
export async function answerPayment(
  tx: Transaction,
  { id, status }: Pick<Payment, 'id' | 'status'>,
  {
    orderNumber,
    sealedAnswer,
    txId,
    sentTxId,
  }: { orderNumber: string; sealedAnswer: Buffer; txId: string | undefined; sentTxId: string | undefined },
): Promise<void> {
  const credits = txId !== undefined && !isInBalance({ status });
  const parameters = [id, orderNumber, sealedAnswer, txId ?? null, sentTxId ?? null];
  if (!credits) await ANSWER_PAYMENT.all(tx, parameters);
  else if (!(await CREDIT_PAYMENT.first(tx, parameters))) throw refuseMove(status, 'CREDITED');
}
