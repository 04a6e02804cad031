/**
 * Payments in coins, as chains and payment processors report them. Network, transaction and position identify a payment.
 * The position is that of the output, or of the log within its own receipt. Positions within a block would change when
 * a transaction is mined again. The ledger credits a payment once, however often it is reported.
 */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, defaulting, entity, nullable, type RowOf } from '../database/table.ts';
import type { Transaction } from '../database/transaction.ts';
import type { Lifecycle } from '../history/lifecycle.ts';
import { transitionAll } from '../history/transition.ts';

/**
 * - SEEN: announced, and in no block;
 * - MINED: in a block, with too few confirmations;
 * - CREDITED: in the balance of its account;
 * - UNMATCHED: in another coin than its top-up asked for; it is in suspense until the operator decides;
 * - ORPHANED: the chain removed it before it was credited;
 * - REVERSED: the chain removed it after it was credited; the rest of it in the balance is in suspense;
 * - WRITTEN_OFF: the operator does not expect a reversed payment to come back.
 */
export const PAYMENT_STATUSES = [
  'SEEN',
  'MINED',
  'CREDITED',
  'UNMATCHED',
  'ORPHANED',
  'REVERSED',
  'WRITTEN_OFF',
] as const;
export type PaymentStatus = (typeof PAYMENT_STATUSES)[number];

export const Payment = entity('payment', {
  id: column.key(),
  /** Such as base or bitcoin. */
  network: column.text(),
  txId: column.text(),
  position: column.int(),
  /** The code of the coin that came. */
  coin: column.text(),
  address: column.text(),
  /** The account of the top-up that owns the address. */
  accountId: column.text(),
  orderNumber: column.text(),
  /** In the smallest unit of the coin, as a decimal string. */
  units: column.text(),
  status: column.oneOf(...PAYMENT_STATUSES),
  /** The height of its block. */
  height: nullable(column.int()),
  blockHash: nullable(column.text()),
  confirmations: defaulting(column.int(), 0),
  /** When the service first saw it, or the time of its block if that is earlier. */
  seenAt: column.timestamp(),
  /** The units of it that were credited at the quoted rate. */
  quotedUnits: nullable(column.text()),
  /** The exchange rate of the other units: micro-USD for one coin. */
  rateMicros: nullable(column.bigint()),
  creditedMicros: defaulting(column.bigint(), 0),
  creditedAt: nullable(column.timestamp()),
  /** How much of it the service took out of the balance when the chain removed it. */
  reversedMicros: defaulting(column.bigint(), 0),
  /** How often the chain has removed it. */
  reversals: defaulting(column.int(), 0),
  /** When the gateway stopped reporting the credited payment. */
  missingSince: nullable(column.timestamp()),
  createdAt: column.now(),
});
export type Payment = RowOf<typeof Payment>;

/** Moves of a payment. `provisioning/payments/top-ups/credit.ts` posts its transfers. */
export const PAYMENT_LIFECYCLE: Lifecycle<Payment, PaymentStatus> = {
  table: Payment,
  key: 'id',
  state: 'status',
  transitions: {
    SEEN: ['MINED', 'CREDITED', 'UNMATCHED', 'ORPHANED'],
    MINED: ['SEEN', 'CREDITED', 'UNMATCHED', 'ORPHANED'],
    CREDITED: ['REVERSED'],
    // The operator assigned it to the account.
    UNMATCHED: ['CREDITED'],
    ORPHANED: ['SEEN', 'MINED'],
    // To CREDITED: the chain mined it again.
    REVERSED: ['CREDITED', 'WRITTEN_OFF'],
    WRITTEN_OFF: ['CREDITED'],
  },
};

/** Whether a payment of the top-up $1 is unconfirmed. */
export const HAS_OPEN_PAYMENT = statement({ open: column.boolean() })`
  select exists (select from payment where order_number = $1 and status in ('SEEN', 'MINED')) as open`;
/** Locks the payments of the top-ups $1 in the order of their ids. Returns them in the order of their arrival. */
export const LOCK_PAYMENTS = statement(Payment.columns)`
  with locked as (select * from payment where order_number = any($1) order by id for update)
    select ${columnsOf(Payment, 'payment')} from locked as payment order by seen_at, id`;

/** Writes the new states of locked payments, with the columns that change with a state. @throws Error if a move is not allowed */
export async function keepPayments(tx: Transaction, payments: readonly Payment[]): Promise<void> {
  const moves = payments.map((row) => {
    const { status, quotedUnits, rateMicros, creditedMicros, creditedAt, reversedMicros, reversals } = row;
    const set = { quotedUnits, rateMicros, creditedMicros, creditedAt, reversedMicros, reversals };
    return { row, to: status, set };
  });
  await transitionAll(tx, PAYMENT_LIFECYCLE, moves);
}
