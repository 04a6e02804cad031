/**
 * Payouts: coins that the operator sends to a customer, from the balance or from suspense. The ledger account `payouts` has
 * the money until the chain has the coins.
 */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, defaulting, entity, nullable, type RowOf } from '../database/table.ts';
import type { Lifecycle } from '../history/lifecycle.ts';

/** An address or a transaction as an operator writes it: characters of ASCII. A placeholder of the guide is none. */
export const CHAIN_TEXT = /^[ -~]+$/;

const TRANSITIONS = {
  /** Reserved in the ledger. */
  REQUESTED: ['EXPORTED', 'CANCELLED'],
  /** In a list that the operator signs. */
  EXPORTED: ['BROADCAST', 'CANCELLED'],
  /** The operator has sent its transaction. */
  BROADCAST: ['FINAL'],
  /** The chain cannot remove its transaction, and the ledger has the coins as spent. */
  FINAL: [],
  /** The money is back where it was. BROADCAST: the operator sent its transaction all the same. */
  CANCELLED: ['BROADCAST'],
} as const satisfies Record<string, readonly string[]>;
export type PayoutStatus = keyof typeof TRANSITIONS;
export const PAYOUT_STATUSES = Object.keys(TRANSITIONS) as PayoutStatus[];

/** A part of a payment, in micro-USD as a decimal string. */
export interface TakenPart {
  paymentId: string;
  micros: string;
}

export const Payout = entity('payout', {
  id: column.key(),
  /** The operator's own name for it. Requesting it again changes nothing. */
  key: column.text(),
  accountId: column.text(),
  /** The payment that it sends back. Null: the money is from the balance. */
  paymentId: nullable(column.text()),
  status: column.oneOf(...PAYOUT_STATUSES),
  /** The ledger account that holds its coins. */
  source: column.text(),
  network: column.text(),
  coin: column.text(),
  /** The decimals of the coin's own unit. */
  decimals: column.int(),
  address: column.text(),
  /** The signature of the address (EIP-191). Null: the operator entered the address. */
  signature: nullable(column.text()),
  /** In the smallest unit of the coin, as a decimal string. */
  units: column.text(),
  amountMicros: column.bigint(),
  /** The parts of payments that it takes from the balance. Sums that the operator added have none, and no earlier payout has any. */
  takenFrom: defaulting(column.json<TakenPart[]>(), "'[]'"),
  txId: nullable(column.text()),
  /** Earlier transactions that the operator named for it. They must not pay it as well. */
  replacedTxIds: column.textArray(),
  /** When it first was in a list to sign. */
  exportedAt: nullable(column.timestamp()),
  reason: column.text(),
  createdAt: column.now(),
});
export type Payout = RowOf<typeof Payout>;

export const PAYOUT_LIFECYCLE: Lifecycle<Payout, PayoutStatus> = {
  table: Payout,
  key: 'id',
  state: 'status',
  transitions: TRANSITIONS,
};

/** The payouts that wait for a transaction, in the order of their ids. */
export const LIST_UNSENT = statement(Payout.columns)`
  select ${columnsOf(Payout)} from payout where status in ('REQUESTED', 'EXPORTED') order by id`;
/**
 * The payouts whose transaction was sent. `unitsTogether` is the sum of all payouts that name the transaction and the
 * address. It includes final ones.
 */
export const LIST_BROADCAST = statement({ ...Payout.columns, unitsTogether: column.text() })`
  select ${columnsOf(Payout, 'sent')}, units_together from (
    select *, sum(units::numeric) over (partition by lower(tx_id), coin, lower(address))::text as units_together
      from payout where tx_id is not null) as sent
    where status = 'BROADCAST' order by id`;

/** The units of all payouts in the coin $2 to the address $3 that name the transaction $1. */
export const SUM_NAMING = statement({ units: column.text() })`
  select coalesce(sum(units::numeric), 0)::text as units from payout
    where lower(tx_id) = lower($1) and coin = $2 and lower(address) = lower($3)`;
/** The payouts with earlier transactions, one row for each. `unitsTogether` is the sum of the payouts that now name it. */
export const LIST_REPLACED = statement({
  ...Payout.columns,
  replacedTxId: column.text(),
  unitsTogether: column.text(),
})`
  select ${columnsOf(Payout, 'payout')}, replaced.tx_id as replaced_tx_id, coalesce((
      select sum(named.units::numeric) from payout as named where lower(named.tx_id) = lower(replaced.tx_id)
        and named.coin = payout.coin and lower(named.address) = lower(payout.address)), 0)::text as units_together
    from payout cross join lateral unnest(replaced_tx_ids) as replaced (tx_id)
    where replaced_tx_ids <> '{}' order by id, replaced.tx_id`;

/** A payout but $2 that sends the payment $1 back, or has done so. */
export const FIND_OTHER_PAYOUT = statement({ txId: Payout.columns.txId })`
  select tx_id from payout where payment_id = $1 and id <> $2 and status <> 'CANCELLED' order by id limit 1`;

const TOUCHED = `(id = any($1) or account_id = any($2) and status = 'FINAL')`;
/** Locks the payments $1 and the final payments of the accounts $2, and then their authorizations and their top-ups. */
export const LOCK_TOUCHED = [
  statement({})`
    with locked as (select id from payment where ${TOUCHED} order by id for update)
    select where (select count(*) from locked) >= 0`,
  statement({})`
    with locked as (
      select payment_id from x402_authorization where payment_id in (select id from payment where ${TOUCHED})
      order by payment_id for update)
    select where (select count(*) from locked) >= 0`,
  statement({})`
    with locked as (
      select id from top_up where order_number in (select order_number from payment where ${TOUCHED})
      order by order_number for update)
    select where (select count(*) from locked) >= 0`,
];

/** The sentence that the address signs to receive the coins of an account. */
export const payoutSentence = ({ accountId, address, network }: Pick<Payout, 'accountId' | 'address' | 'network'>) =>
  `Pay the coins of the account ${accountId} to the address ${address} on the network ${network}.`;
