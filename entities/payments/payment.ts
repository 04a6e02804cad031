/**
 * Payments by chains, payment processors and x402. The external key identifies a payment, in the ledger
 * as well. So the ledger credits a payment once, however often it is reported.
 */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, defaulting, entity, nullable, type RowOf } from '../database/table.ts';
import type { Transaction } from '../database/transaction.ts';
import type { Lifecycle } from '../history/lifecycle.ts';
import { type Changes, transition, transitionAll } from '../history/transition.ts';
import { gateway } from './ledger.ts';

/** From each state, the states that may follow. `provisioning/payments/suspense.ts` posts the transfers of most moves. */
const TRANSITIONS = {
  /** Announced, and in no block; or an authorization that the chain may yet move. */
  OBSERVED: ['CONFIRMING', 'CREDITED', 'UNMATCHED', 'DROPPED'],
  /** In a block, with too few confirmations. */
  CONFIRMING: ['OBSERVED', 'CREDITED', 'UNMATCHED', 'DROPPED', 'WRITTEN_OFF'],
  /** In the balance of its account, and the chain may still remove it. */
  CREDITED: ['FINAL', 'REVERSED'],
  /** In the balance, and the chain cannot remove it any more. REVERSED: the operator writes it off, because a node lied. */
  FINAL: ['REVERSED'],
  /**
   * In suspense until the operator decides. It came in another coin than its top-up asked for, or exceeds the limit of its
   * gateway. Or the chain moved it before the service received it.
   */
  UNMATCHED: ['ASSIGNED', 'WRITTEN_OFF', 'RETURNED'],
  /** Credited by the operator to an account, and the chain may still remove it. */
  ASSIGNED: ['FINAL', 'REVERSED'],
  /** Never credited, and gone: the chain removed it, or could not move it. It may still show it, or move it after all. */
  DROPPED: ['OBSERVED', 'CONFIRMING', 'CREDITED'],
  /** The chain removed it after its credit, and it is in suspense. The account owes what it had spent. CREDITED: mined again. */
  REVERSED: ['CREDITED', 'WRITTEN_OFF'],
  /**
   * The operator does not expect the money any more. CREDITED, or UNMATCHED if it never was: mined again. Or it came in another
   * coin, and is too small for a decision.
   */
  WRITTEN_OFF: ['CREDITED', 'UNMATCHED'],
  /** The operator sent the coins back from suspense, or a payout will. UNMATCHED: the payout was cancelled. */
  RETURNED: ['UNMATCHED'],
} as const satisfies Record<string, readonly string[]>;
export type PaymentStatus = keyof typeof TRANSITIONS;
export const PAYMENT_STATUSES = Object.keys(TRANSITIONS) as PaymentStatus[];

export const Payment = entity('payment', {
  id: column.key(),
  /** CRYPTO: to the address of a top-up. X402: by an authorization, which has a row of its own. */
  mode: column.oneOf('CRYPTO', 'X402'),
  /** Such as `pay:<network>:<transaction>:<position>` or `x402:<network>:<payer>:<nonce>`. It never changes. */
  externalKey: column.text(),
  /** Such as base or bitcoin; with x402 in CAIP-2, such as eip155:84532. */
  network: column.text(),
  /** Null: no transaction has moved the authorization yet. */
  txId: nullable(column.text()),
  /**
   * The output, or the log within its own receipt; null for x402. Positions within a block would change when a transaction
   * is mined again.
   */
  position: nullable(column.int()),
  /** The code of the coin that came. */
  coin: column.text(),
  /** The deposit address, or the payee of x402. */
  address: column.text(),
  /** The owner of the address, the sender of the authorization, or the account that the operator chose. */
  accountId: column.text(),
  /** The top-up that owns the address, or the order that x402 paid for. */
  orderNumber: nullable(column.text()),
  /** In the smallest unit of the coin, as a decimal string. */
  units: column.text(),
  status: column.oneOf(...PAYMENT_STATUSES),
  /** The height of its block. */
  height: nullable(column.int()),
  blockHash: nullable(column.text()),
  confirmations: defaulting(column.int(), 0),
  /** When the service first saw it, or the time of its block if that is earlier. */
  seenAt: column.timestamp(),
  /** When it came into its present block: the time of the block, as far as the service believes it. Null: in no block. */
  minedAt: nullable(column.timestamp()),
  /** The units of it that were credited at the quoted rate. */
  quotedUnits: nullable(column.text()),
  /** The exchange rate of the other units: micro-USD for one coin. */
  rateMicros: nullable(column.bigint()),
  /** Its value when it was credited or put into suspense. */
  creditedMicros: defaulting(column.bigint(), 0),
  /** The part of it that payouts from the balance took. It earns no bonus. */
  paidOutMicros: defaulting(column.bigint(), 0),
  creditedAt: nullable(column.timestamp()),
  /** How often the chain has removed it after its credit. */
  reversals: defaulting(column.int(), 0),
  finalAt: nullable(column.timestamp()),
  /** When the gateway stopped reporting the credited payment, or the operator wrote off one that its chain had removed. */
  missingSince: nullable(column.timestamp()),
  /** The transaction that sent the coins back. Null: a payout will have it. */
  returnTxId: nullable(column.text()),
  createdAt: column.now(),
});
export type Payment = RowOf<typeof Payment>;

export const PAYMENT_LIFECYCLE: Lifecycle<Payment, PaymentStatus> = {
  table: Payment,
  key: 'id',
  state: 'status',
  transitions: TRANSITIONS,
};

/** Whether the money is in the balance of the account. */
export const isInBalance = ({ status }: Pick<Payment, 'status'>): boolean =>
  status === 'CREDITED' || status === 'ASSIGNED' || status === 'FINAL';

/** The same for a row of `payment`. */
export const IS_IN_BALANCE_SQL = `payment.status in ('CREDITED', 'ASSIGNED', 'FINAL')`;
/** Whether a payment in the balance is there for good. Its gateway still reports it. */
export const IS_LASTING_SQL = `(payment.status = 'FINAL' and payment.missing_since is null)`;
/** Whether a payment in the balance may still go. Indexes have these payments. */
export const IS_UNFINAL_SQL = `(payment.status in ('CREDITED', 'ASSIGNED')
  or payment.status = 'FINAL' and payment.missing_since is not null)`;

/** The ledger account of the coins of a payment. With x402 it equals the income of the payee on that network. */
export const gatewayOf = ({ mode, network }: Pick<Payment, 'mode' | 'network'>): string =>
  gateway(mode === 'X402' ? `x402:${network}` : network);

/**
 * Whether a payment came to the address of a top-up. The operator may have given it to another account, and then it names no
 * top-up. A processor may give the address to a later top-up after a month, which has the later payments.
 * @param topUp the parameter with the order number
 */
export const cameToSql = (topUp: string): string =>
  `(order_number = ${topUp} or order_number is null
    and address = (select wallet_address from top_up where top_up.order_number = ${topUp})
    and created_at >= (select top_up.created_at from top_up where top_up.order_number = ${topUp}))`;

/** Whether a payment to the address of the top-up $1 is unconfirmed, or may still go. */
export const HAS_UNFINAL_PAYMENT = statement({ unfinal: column.boolean() })`
  select exists (select from payment where ${cameToSql('$1')}
    and (status in ('OBSERVED', 'CONFIRMING') or ${IS_UNFINAL_SQL}
      or status = 'UNMATCHED' and (final_at is null or missing_since is not null))) as unfinal`;
/** Locks the payments to the address of the top-up $1 in the order of their ids. */
export const LOCK_PAYMENTS = statement({})`
  with locked as (select id from payment where ${cameToSql('$1')} order by id for update)
  select where (select count(*) from locked) >= 0`;
/**
 * The confirmations that a payment needs. In the coin of its top-up they are those of the top-up, else those of its own coin.
 * @param coins the parameter with the confirmations of other coins, as a JSON object
 */
export const requiredSql = (coins: string): string =>
  `greatest(1, case when payment.coin = crypto then confirmations_required else (${coins}::jsonb ->> payment.coin)::int end)`;
/**
 * Locks confirmed payments of the top-ups $1 that are not credited yet. It takes the first ones of each top-up, at most $4 in
 * all. The coins $2 are known. Payments in another coin than that of their top-up need one of the coins $3. The object $3 has
 * the confirmations of each.
 */
export const LOCK_DUE_PAYMENTS = statement(Payment.columns)`
  with due as (
    select due.id from top_up cross join lateral (
      select id, row_number() over (order by coin <> crypto, seen_at, id) as place from payment
      where payment.order_number = top_up.order_number and status in ('OBSERVED', 'CONFIRMING')
        and (coin = crypto or $3::jsonb ? coin) and payment.confirmations >= ${requiredSql('$3')}
      order by place limit $4::int) as due
    where order_number = any($1) and mode = 'CRYPTO' and crypto = any($2::text[])
    order by place, due.id limit $4::int),
  locked as (
    select * from payment where id in (select id from due) and status in ('OBSERVED', 'CONFIRMING') order by id for update)
  select ${columnsOf(Payment, 'payment')} from locked as payment order by seen_at, id`;
/** The payments $2 of the network $1 by their transaction. */
export const FIND_TRANSACTION = statement(Payment.columns)`
  select ${columnsOf(Payment)} from payment where network = $1 and tx_id = $2 order by position`;

/** Writes the new states of locked payments, with the columns that change with a state. @throws Error if a move is not allowed */
export async function keepPayments(tx: Transaction, payments: readonly Payment[]): Promise<void> {
  const moves = payments.map((row) => {
    const { status, quotedUnits, rateMicros, creditedMicros, creditedAt } = row;
    return { row, to: status, set: { quotedUnits, rateMicros, creditedMicros, creditedAt } };
  });
  await transitionAll(tx, PAYMENT_LIFECYCLE, moves);
}

/** Erases the signature of the payment $1, because the service will not settle it again. */
const ERASE_SIGNATURE = statement({})`
  update x402_authorization set sealed_payment = null where payment_id = $1`;

/** Moves a locked payment. @throws Error if the lifecycle does not allow that */
export async function movePayment(
  tx: Transaction,
  { id, mode, status }: Pick<Payment, 'id' | 'mode' | 'status'>,
  to: PaymentStatus,
  set: Changes<Payment> = {},
): Promise<Payment> {
  const moved = await transition(tx, PAYMENT_LIFECYCLE, id, to, { set });
  if (!moved) throw refuseMove(status, to);
  if (mode === 'X402' && to !== 'CREDITED') await ERASE_SIGNATURE.all(tx, [id]);
  return moved;
}

export const refuseMove = (from: PaymentStatus, to: PaymentStatus): Error =>
  new Error(`A payment that is ${from} cannot become ${to}.`);
