/**
 * Payments in coins, as chains and payment processors show them: each is known by its network, its transaction, and its
 * position in that transaction (the output, or the log within its own receipt; positions within a block change when a
 * transaction is mined again). A payment is credited once, whatever is reported how often.
 */

import {
  bigint,
  columnsOf,
  defaulting,
  entity,
  int,
  key,
  now,
  nullable,
  oneOf,
  type RowOf,
  text,
  timestamp,
} from '../database/table.ts';
import type { Queryable } from '../database/transaction.ts';
import { exactJson } from '../json.ts';

/**
 * - SEEN: announced, and in no block;
 * - MINED: in a block, with too few blocks upon it;
 * - CREDITED: in the balance of its account;
 * - UNMATCHED: in another coin than its top-up asked for; its worth is in suspense, for the operator to decide;
 * - ORPHANED: it was taken back before it was credited;
 * - REVERSED: it was taken back after it was credited; what the balance still had is in suspense;
 * - WRITTEN_OFF: the operator believes that it will not come back.
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

/** From each state, the states it can go to. */
export const PAYMENT_TRANSITIONS: Readonly<Record<PaymentStatus, readonly PaymentStatus[]>> = {
  SEEN: ['MINED', 'CREDITED', 'UNMATCHED', 'ORPHANED'],
  MINED: ['SEEN', 'CREDITED', 'UNMATCHED', 'ORPHANED'],
  CREDITED: ['REVERSED'],
  // The operator has given it to the account.
  UNMATCHED: ['CREDITED'],
  ORPHANED: ['SEEN', 'MINED'],
  // It was mined again.
  REVERSED: ['CREDITED', 'WRITTEN_OFF'],
  // That, too, after all.
  WRITTEN_OFF: ['CREDITED'],
};

export const Payment = entity(
  'payment',
  {
    id: key(),
    /** Such as base or bitcoin. */
    network: text(),
    txId: text(),
    position: int(),
    /** The code of the coin that came. */
    coin: text(),
    address: text(),
    /** Of the top-up whose address it is. */
    accountId: text(),
    orderNumber: text(),
    /** In the smallest unit of the coin, as a decimal string. */
    units: text(),
    status: oneOf(...PAYMENT_STATUSES),
    /** Of the block that it is in. */
    height: nullable(int()),
    blockHash: nullable(text()),
    confirmations: defaulting(int(), 0),
    /** By the clock of its block, if that was earlier than ours. */
    seenAt: timestamp(),
    /** How much of it was worth what had been quoted, in units. */
    quotedUnits: nullable(text()),
    /** What the rest of it was worth: micro-USD for one coin. */
    rateMicros: nullable(bigint()),
    creditedMicros: defaulting(bigint(), 0),
    creditedAt: nullable(timestamp()),
    /** What was taken back out of the balance. */
    reversedMicros: defaulting(bigint(), 0),
    /** How often it was. */
    reversals: defaulting(int(), 0),
    /** Since when who was asked has not shown it any more, though it had been credited. */
    missingSince: nullable(timestamp()),
    createdAt: now(),
  },
  [
    { name: 'payment_key', columns: ['network', 'txId', 'position'], unique: true },
    { name: 'payment_top_up', columns: ['orderNumber', 'id'] },
    { name: 'payment_open', columns: ['network', 'orderNumber'], where: `status in ('SEEN', 'MINED')` },
    { name: 'payment_block', columns: ['network', 'height'] },
    {
      name: 'payment_gone',
      columns: ['network'],
      where: `status = 'CREDITED' and height is not null and block_hash is null`,
    },
    { name: 'payment_suspense', columns: ['id'], where: `status in ('UNMATCHED', 'REVERSED')` },
  ],
);
export type Payment = RowOf<typeof Payment>;

/** The payments of these top-ups, in the order in which they came, locked until the end of the transaction. */
export const lockPayments = (tx: Queryable, orderNumbers: readonly string[]): Promise<Payment[]> =>
  tx.query<Payment>(
    `with locked as (select * from payment where order_number = any($1) order by id for update)
      select ${columnsOf(Payment, 'payment')} from locked as payment order by seen_at, id`,
    [orderNumbers],
  );

/** Writes down what has become of these payments, whose rows are locked. */
export async function keepPayments(tx: Queryable, payments: readonly Payment[]): Promise<void> {
  if (!payments.length) return;
  await tx.query(
    `update payment set status = given.status, quoted_units = "quotedUnits", rate_micros = "rateMicros",
        credited_micros = "creditedMicros", credited_at = "creditedAt", reversed_micros = "reversedMicros", reversals = given.reversals
      from jsonb_to_recordset($1::jsonb) as given(id text, status text, "quotedUnits" text, "rateMicros" bigint,
        "creditedMicros" bigint, "creditedAt" timestamptz, "reversedMicros" bigint, reversals int)
      where payment.id = given.id`,
    [exactJson(payments)],
  );
}

/** The states from which a payment can come to that one. */
export const paymentStatesBefore = (to: PaymentStatus): PaymentStatus[] =>
  PAYMENT_STATUSES.filter((status) => PAYMENT_TRANSITIONS[status].includes(to));
