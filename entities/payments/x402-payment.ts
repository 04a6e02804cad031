/**
 * x402 payments: signed authorizations (EIP-3009) to move USDC. Network, payer and nonce identify one, on the chain as well.
 * The service writes the row before it asks the chain to move the money.
 */
import * as column from '../database/column.ts';
import { sealedColumn } from '../database/sealed.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, defaulting, entity, nullable, type RowOf } from '../database/table.ts';
import type { Transaction } from '../database/transaction.ts';
import type { Lifecycle } from '../history/lifecycle.ts';
import { expression, moveStatement, transition } from '../history/transition.ts';
import { startTaskSql } from '../tasks/start.ts';
import { available, gateway, post } from './ledger.ts';

/**
 * - SETTLING: the chain may yet move the money;
 * - SETTLED: the chain has moved the money, and the balance has it;
 * - FAILED: the chain will never move the money;
 * - UNMATCHED: the chain had moved the money before the service received the payment. Any reader of the chain could send it,
 *   so it is in suspense until the operator decides;
 * - REVERSED: the chain removed it after it was credited, and will not move it again. The rest of it in the balance is in
 *   suspense;
 * - WRITTEN_OFF: the operator has written off an unmatched or reversed payment.
 */
export const X402_STATUSES = ['SETTLING', 'SETTLED', 'FAILED', 'UNMATCHED', 'REVERSED', 'WRITTEN_OFF'] as const;
export type X402Status = (typeof X402_STATUSES)[number];

export const X402Payment = entity('x402_payment', {
  id: column.key(),
  accountId: column.text(),
  /** CAIP-2, such as eip155:84532. */
  network: column.text(),
  /** Lower-case, as the address of the asset and of the payee. */
  payer: column.text(),
  /** Lower-case hexadecimal, 32 bytes. */
  nonce: column.text(),
  asset: column.text(),
  payTo: column.text(),
  amountMicros: column.bigint(),
  /** When the chain begins to refuse it. */
  validBefore: column.timestamp(),
  /** SHA-256 of the signature. A repeated payment must have the same. */
  signatureDigest: column.bytes(),
  /** The start of its validity and the signature, sealed. Null once the outcome is final. */
  sealedPayment: nullable(column.bytes()),
  /** Sealed: the SHA-256 of the paid request. Null for requests of the first versions. */
  sealedRequest: nullable(column.bytes()),
  status: column.oneOf(...X402_STATUSES),
  txId: nullable(column.text()),
  /** The server or top-up that it paid for. */
  orderNumber: nullable(column.text()),
  /** The `Spender` of the ledger. */
  credentialId: nullable(column.text()),
  limitedBy: nullable(column.text()),
  /** The first answer, sealed for the signature, for repetitions within a day. */
  sealedAnswer: nullable(column.bytes()),
  /** The request that settles it, exclusively until the lease ends. */
  leasedBy: nullable(column.text()),
  leaseUntil: column.timestamp(),
  /** When its block became final. Null: it is not settled, or a reorganisation may still remove it. */
  finalAt: nullable(column.timestamp()),
  /** How much of it the service took out of the balance when the chain removed it. */
  reversedMicros: defaulting(column.bigint(), 0),
  createdAt: column.now(),
});
export type X402Payment = RowOf<typeof X402Payment>;

export const SEALED_PAYMENT = sealedColumn(X402Payment, 'sealedPayment', 'id');
export const SEALED_REQUEST = sealedColumn(X402Payment, 'sealedRequest', 'id');
export const SEALED_ANSWER = sealedColumn(X402Payment, 'sealedAnswer', 'id');

/** Moves of a payment. `provisioning/payments/x402/` posts its transfers. */
export const X402_LIFECYCLE: Lifecycle<X402Payment, X402Status> = {
  table: X402Payment,
  key: 'id',
  state: 'status',
  transitions: {
    SETTLING: ['SETTLED', 'FAILED', 'UNMATCHED'],
    SETTLED: ['REVERSED'],
    // The chain settled it after all.
    FAILED: ['SETTLED'],
    // To SETTLED: the operator assigned it to an account.
    UNMATCHED: ['SETTLED', 'WRITTEN_OFF'],
    REVERSED: ['WRITTEN_OFF'],
    WRITTEN_OFF: [],
  },
};

/** The payment of the network $1, the payer $2 and the nonce $3. */
export const FIND_SIGNED_PAYMENT = statement(X402Payment.columns, { name: 'x402 payment' })`
  select ${columnsOf(X402Payment)} from x402_payment where network = $1 and payer = $2 and nonce = $3`;

/**
 * Reserves a payment for a request for $16 seconds, and starts its task. It returns no row if the payment is known. $1 to $15
 * are the columns in the order of the statement; the times are seconds. `startTaskParameters` follow.
 */
export const RESERVE_PAYMENT = statement(X402Payment.columns, { name: 'x402 reserve' })`
  with reserved as (
      insert into x402_payment (id, network, payer, nonce, account_id, credential_id, limited_by, asset, pay_to, amount_micros,
        valid_before, signature_digest, sealed_request, leased_by, sealed_payment, status, lease_until)
      values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, to_timestamp($11), $12, $13, $14, $15, 'SETTLING',
        now() + make_interval(secs => $16))
      on conflict (network, payer, nonce) do nothing
      returning ${columnsOf(X402Payment)}, id as subject),
    ${startTaskSql('reserved', 17)}
  select ${columnsOf(X402Payment, 'reserved')} from reserved`;

/** The payment $1, and the time. */
export const READ_PAYMENT = statement({ ...X402Payment.columns, readAt: column.now() })`
  select ${columnsOf(X402Payment)}, now() as read_at from x402_payment where id = $1`;
/** Leases the unanswered payment $1 to the request $2 for $3 seconds, unless another request has leased it. */
export const LEASE_PAYMENT = statement({ id: column.text() })`
  update x402_payment set leased_by = $2, lease_until = now() + make_interval(secs => $3)
    where id = $1 and order_number is null and (lease_until <= now() or leased_by = $2) returning id`;
/** Ends the lease of the payment $1 by the request $2. */
export const RELEASE_PAYMENT = statement({})`
  update x402_payment set lease_until = now() where id = $1 and leased_by = $2`;
/** Forgets answers after a day. */
export const FORGET_ANSWERS = statement({})`
  update x402_payment set sealed_answer = null where sealed_answer is not null and created_at < now() - interval '1 day'`;
/** The chain can no longer reverse the payment $1, which the transaction $2 settled. */
export const FINISH_PAYMENT = statement({})`
  update x402_payment set final_at = now(), tx_id = $2, sealed_payment = null where id = $1 and status = 'SETTLED'`;

/** Locks the payment $1, and the accounts $2 before it. The count makes PostgreSQL wait for the accounts first. */
const LOCK_PAYMENT = statement(X402Payment.columns, { name: 'x402 lock' })`
  with accounts as (select from balance where account_id = any($2) order by account_id for update)
  select ${columnsOf(X402Payment)} from x402_payment where id = $1 and (select count(*) from accounts) >= 0 for update`;
/** Locks the accounts of the payer and of others, then the payment. */
export const lockPayment = async (tx: Transaction, id: string, ...accountIds: string[]): Promise<X402Payment> =>
  (await LOCK_PAYMENT.first(tx, [id, accountIds]))!;

/** Moves a locked payment, and erases the signature unless the service may settle it again. @throws Error if the lifecycle does not allow that */
export async function moveX402(
  tx: Transaction,
  { id, status }: Pick<X402Payment, 'id' | 'status'>,
  to: X402Status,
  set: Partial<X402Payment> = {},
): Promise<void> {
  const erased = to === 'SETTLED' ? {} : { sealedPayment: null };
  if (!(await transition(tx, X402_LIFECYCLE, id, to, { set: { ...erased, ...set } }))) throw refuseMove(status, to);
}

const refuseMove = (from: X402Status, to: X402Status): Error =>
  new Error(`A payment that is ${from} cannot become ${to}.`);

/** Keeps the answer $3 of the payment $1, which paid for $2. $4 is the transaction that settled it; null keeps the known one. */
const ANSWER_PAYMENT = statement({})`
  update x402_payment set order_number = $2, sealed_answer = $3, tx_id = coalesce($4, tx_id), leased_by = null, lease_until = now()
    where id = $1`;
/** The same for a payment that the transaction $4 settles now. */
const SETTLE_PAYMENT = moveStatement(
  X402_LIFECYCLE,
  'SETTLED',
  'id = $1',
  {
    orderNumber: expression('$2'),
    sealedAnswer: expression('$3'),
    txId: expression('$4'),
    leasedBy: expression('null'),
    leaseUntil: expression('now()'),
  },
  { name: 'x402 settle' },
);

/**
 * Keeps the answer of a locked payment. With a transaction id the chain has settled it. Then the same statement moves the
 * payment, because the request waits for this.
 * @throws Error if the lifecycle does not allow that
 */
export async function answerPayment(
  tx: Transaction,
  { id, status }: Pick<X402Payment, 'id' | 'status'>,
  { orderNumber, sealedAnswer, txId }: { orderNumber: string; sealedAnswer: Buffer; txId: string | undefined },
): Promise<void> {
  const settles = txId !== undefined && status !== 'SETTLED';
  const parameters = [id, orderNumber, sealedAnswer, txId ?? null];
  if (!settles) await ANSWER_PAYMENT.all(tx, parameters);
  else if (!(await SETTLE_PAYMENT.first(tx, parameters))) throw refuseMove(status, 'SETTLED');
}

/** Identifies the payment in the ledger, as its chain does. */
export const x402Key = ({ network, payer, nonce }: Pick<X402Payment, 'network' | 'payer' | 'nonce'>): string =>
  `x402:${network}:${payer}:${nonce}`;

/**
 * Credits a payment that the chain has moved, once. The transfer has the identity of the payment on its chain. It debits the
 * network's account, which so equals the payee's income there.
 */
export async function creditX402(
  tx: Transaction,
  { accountId, network, payer, nonce, amountMicros }: X402Payment,
  orderNumber?: string,
): Promise<void> {
  await post(tx, accountId, {
    kind: 'topup',
    debit: gateway(`x402:${network}`),
    credit: available(accountId),
    amountMicros,
    externalKey: x402Key({ network, payer, nonce }),
    ...(orderNumber !== undefined && { orderNumber }),
    description: 'Payment by x402',
  });
}
