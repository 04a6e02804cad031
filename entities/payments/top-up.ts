/** Top-ups: the row, its lifecycle, and its statements. */
import { isLoginSql } from '../accounts/credential.ts';
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, defaulting, entity, nullable, type Row, type RowOf } from '../database/table.ts';
import type { ToldLifecycle } from '../history/lifecycle.ts';
import { microsFromUsd } from '../money.ts';
import { bonusMicros, type KeptBonusTier } from './bonus.ts';

export const TOP_UP_STATUSES = ['PENDING', 'CONFIRMING', 'CONFIRMED', 'EXPIRED', 'CANCELLED'] as const;
export type TopUpStatus = (typeof TOP_UP_STATUSES)[number];

/** Limits of one top-up. */
export const TOP_UP_MIN_USD = 30;
export const TOP_UP_MAX_USD = 10_000;
/** Seconds for which a quoted rate holds. */
export const QUOTE_SECONDS = 30 * 60;
/** Seconds between the end of a quote and the last block with the quoted rate. */
export const MINED_AFTER_QUOTE_SECONDS = 6 * 3600;
/** Seconds for which the worker asks a processor for the payments of a top-up. Until then no other top-up gets its address. */
export const DEPOSIT_ADDRESS_SECONDS = 31 * 24 * 3600;

export const TopUp = entity('top_up', {
  id: column.key(),
  accountId: column.text(),
  orderNumber: column.text(),
  status: column.oneOf(...TOP_UP_STATUSES),
  mode: column.oneOf('CRYPTO', 'X402'),
  amountMicros: column.bigint(),
  bonusMicros: column.bigint(),
  /** The tiers of the time of its quote, the lowest first. Payments of less earn a bonus by them. */
  bonusTiers: defaulting(column.json<KeptBonusTier[]>(), "'[]'"),
  /** The part of the bonus that the service took back, because a chain removed payments, or payouts took them. */
  reversedBonusMicros: defaulting(column.bigint(), 0),
  crypto: column.text(),
  network: column.text(),
  /** Decimal strings in the coin's own unit. */
  amountCrypto: column.text(),
  receivedCrypto: column.text(),
  /** Micro-USD for one coin, locked at creation. */
  rateMicros: column.bigint(),
  walletAddress: nullable(column.text()),
  paymentUri: nullable(column.text()),
  /** The payment processor's own id for it. */
  reference: nullable(column.text()),
  /** The number of its deposit address. Null: the driver needs none, or a later top-up of the account has the address. */
  deposit: nullable(column.int()),
  confirmations: column.int(),
  confirmationsRequired: column.int(),
  /** Of the first hundred payments. */
  txIds: column.textArray(),
  paymentException: nullable(column.oneOf('UNDERPAID', 'OVERPAID', 'LATE')),
  creditedMicros: column.bigint(),
  /** The API key or session that opened it. Null: it is older than the column. */
  credentialId: nullable(column.text()),
  createdAt: column.now(),
  expiresAt: nullable(column.timestamp()),
  confirmedAt: nullable(column.timestamp()),
});
export type TopUp = RowOf<typeof TopUp>;

/** The worker still credits late payments, so an expired or cancelled top-up can confirm. */
export const TOP_UP_LIFECYCLE: ToldLifecycle<TopUp, TopUpStatus> = {
  table: TopUp,
  key: 'orderNumber',
  state: 'status',
  transitions: {
    PENDING: ['CONFIRMING', 'EXPIRED', 'CANCELLED'],
    // A top-up by x402 whose payment never settles, or one whose late payments the chain removes.
    CONFIRMING: ['CONFIRMED', 'EXPIRED'],
    CONFIRMED: [],
    EXPIRED: ['CONFIRMING'],
    CANCELLED: ['CONFIRMING'],
  },
  told: {
    change: 'topUp',
    events: {
      PENDING: 'topup.created',
      CONFIRMING: 'topup.confirming',
      CONFIRMED: 'topup.confirmed',
      EXPIRED: 'topup.expired',
      CANCELLED: 'topup.cancelled',
    },
  },
};

/** The accounts of the top-ups $1, and the time of the transaction. */
export const FIND_TOP_UP_ACCOUNTS = statement({ accountIds: column.textArray(), now: column.now() })`
  select coalesce(array_agg(distinct account_id), '{}') as account_ids, now() from top_up where order_number = any($1)`;
/**
 * Reads the top-up $1, and the time. `isUnread`: its quote has ended, and since then the worker has not read all of the chain.
 * So the chain may have a payment.
 */
export const READ_TOP_UP = statement({ ...TopUp.columns, readAt: column.now(), isUnread: column.boolean() })`
  select ${columnsOf(TopUp)}, now() as read_at, expires_at <= now() and exists (
      select from chain where chain.network = top_up.network and coalesce(reached_at, '-infinity') < expires_at) as is_unread
    from top_up where order_number = $1`;
/** The top-up $2 of the account $1, or its open ones with null, at most 1,000. Null as account: of all accounts. */
export const WATCH_TOP_UPS = statement(TopUp.columns, { replans: true })`
  select ${columnsOf(TopUp)} from top_up
  where ($1::text is null or account_id = $1)
    and case when $2::text is null then status in ('PENDING', 'CONFIRMING') else order_number = $2 end
  order by id limit 1000`;
const isLive = `status in ('OBSERVED', 'CONFIRMING', 'CREDITED', 'ASSIGNED', 'FINAL')`;
const isOpen = `status in ('OBSERVED', 'CONFIRMING')`;
const isCredited = `payment.status in ('CREDITED', 'ASSIGNED', 'FINAL')`;
const isRemoved = `(status = 'UNMATCHED' or status in ('REVERSED', 'WRITTEN_OFF') and reversals > 0)`;
/** The part of a payment that no payout took. */
export const STAYING = '(payment.credited_micros - paid_out_micros)';
/** Transactions that a top-up shows. */
const TX_IDS_MAX = 100;
/** The sums of the payments of a top-up in its coin. Live ones wait for confirmations, or are in the balance. */
const PAID = {
  openPayments: column.int(),
  creditedPayments: column.int(),
  /** In the smallest unit of the coin, as decimal strings. */
  liveUnits: column.text(),
  creditedUnits: column.text(),
  quotedUnits: column.text(),
  paidMicros: column.bigint(),
  /** Of payments that their chain removed after their credit, of held ones, and of the parts that payouts took. */
  goneMicros: column.bigint(),
  /** The least confirmations of an open one. */
  leastConfirmations: nullable(column.int()),
  firstSeenAt: nullable(column.timestamp()),
  lastCreditedSeenAt: nullable(column.timestamp()),
  liveTxIds: column.textArray(),
};
export type PaidSums = Row<typeof PAID>;
/** Locks those of the top-ups $1 that are paid in coins. Returns them with the sums of their payments. */
export const LOCK_COIN_TOP_UPS = statement({ ...TopUp.columns, ...PAID })`
  with locked as (select * from top_up where order_number = any($1) and mode = 'CRYPTO' order by order_number for update)
  select ${columnsOf(TopUp, 'locked')}, paid.* from locked cross join lateral (
      select count(*) filter (where ${isOpen})::int as open_payments,
        count(*) filter (where ${isCredited})::int as credited_payments,
        coalesce(sum(units::numeric) filter (where ${isLive}), 0)::text as live_units,
        coalesce(sum(units::numeric) filter (where ${isCredited}), 0)::text as credited_units,
        coalesce(sum(quoted_units::numeric), 0)::text as quoted_units,
        coalesce(sum(${STAYING}) filter (where ${isCredited}), 0)::bigint as paid_micros,
        coalesce(sum(case when ${isRemoved} then payment.credited_micros else paid_out_micros end), 0)::bigint as gone_micros,
        min(payment.confirmations) filter (where ${isOpen}) as least_confirmations,
        min(seen_at) filter (where ${isLive}) as first_seen_at,
        max(seen_at) filter (where ${isCredited}) as last_credited_seen_at,
        coalesce((array_agg(tx_id order by seen_at, id) filter (where ${isLive}))[:${TX_IDS_MAX}], '{}') as live_tx_ids
      from (select payment.* from payment where payment.order_number = locked.order_number and coin = crypto) as payment) as paid
  order by locked.order_number`;
/** The addresses of top-ups among the addresses $1, which are in lower case. */
export const FIND_DEPOSIT_ADDRESSES = statement({ walletAddress: column.text() })`
  select distinct wallet_address from top_up where mode = 'CRYPTO' and lower(wallet_address) = any($1)`;
/** Whether any top-up has the address $1, in any spelling. */
export const IS_GIVEN_ADDRESS = statement({ known: column.boolean() })`
  select exists (select from top_up where mode = 'CRYPTO' and lower(wallet_address) = lower($1)) as known`;
/** The top-up that a processor webhook names. $1 order number or null, $2 reference or null, $3 coins of the processor. */
export const FIND_NAMED_TOP_UP = statement({ orderNumber: column.text() })`
  select order_number from top_up where order_number = $1 and reference = $2 and crypto = any($3)`;
/** The problems of top-ups in the coins $1, as their tasks keep them, and the number of all. */
export const FIND_TOP_UP_PROBLEM = statement({ problem: column.text(), count: column.int() })`
  select data ->> 'problem' as problem, count(*) over ()::int as count from task join top_up on order_number = subject
    where crypto = any($1) and data ->> 'problem' is not null order by task.id limit 1`;
/** Less is no payment for the limits. Otherwise dust would buy an account any number of addresses. */
const PAID_MIN_USD = 1;
const isUnpaid = `mode = 'CRYPTO' and received_crypto::numeric * amount_micros < amount_crypto::numeric * ${microsFromUsd(PAID_MIN_USD)}`;
/** When the account may have another address: less than so many of a day are unpaid then. Null: now. */
const roomAtSql = (most: string, condition: string): string => `(array_agg(created_at order by created_at desc) filter (
      where ${isUnpaid} and created_at > now() - interval '1 day' and ${condition}))[${most}] + interval '1 day'`;
/**
 * How many top-ups of the account $1 wait for a payment, or for the outcome of x402, and the time. Dust at an old address makes
 * none of them wait again. `nextAt`: when it may have
 * another address. It has $2 a day that are unpaid, and $3 of them for other credentials than logins.
 */
export const COUNT_PENDING_TOP_UPS = statement({
  pending: column.int(),
  nextAt: nullable(column.timestamp()),
  nextForOthersAt: nullable(column.timestamp()),
  now: column.now(),
})`
  select count(*) filter (where status = 'PENDING' or status = 'CONFIRMING' and (mode = 'X402' or expires_at > now() and ${isUnpaid}))::int as pending,
    ${roomAtSql('$2', 'true')} as next_at,
    ${roomAtSql('$3', `not exists (select from session where session.id = credential_id and ${isLoginSql('session')})`)} as next_for_others_at,
    now()
  from top_up where account_id = $1`;

/** The bonus of a top-up for the payments that it keeps, less payouts: at most the requested one. */
export function earnedMicros({ amountMicros, bonusMicros: most, bonusTiers }: BonusTerms, paidMicros: bigint): bigint {
  const earned = bonusMicros(bonusTiers, paidMicros);
  return paidMicros >= amountMicros || earned > most ? most : earned;
}

/** The most that a top-up may earn. */
type BonusTerms = Pick<TopUp, 'amountMicros' | 'bonusMicros' | 'bonusTiers'>;

/** The terms of a quote that is over: those of the present steps, if they give less for the payments. */
export function leastTerms(quoted: BonusTerms, present: readonly KeptBonusTier[], paidMicros: bigint): BonusTerms {
  const most = bonusMicros(present, quoted.amountMicros);
  const terms = {
    ...quoted,
    bonusMicros: most < quoted.bonusMicros ? most : quoted.bonusMicros,
    bonusTiers: [...present],
  };
  return earnedMicros(terms, paidMicros) < earnedMicros(quoted, paidMicros) ? terms : quoted;
}

/**
 * Locks the top-up $1. Returns it, and the sum of its payments in the balance, less the parts that payouts took. Payments that
 * came after its confirmation earn nothing of its bonus.
 */
export const LOCK_PAID_TOP_UP = statement({ ...TopUp.columns, paidMicros: column.bigint() })`
  with locked as (select * from top_up where order_number = $1 for update)
  select ${columnsOf(TopUp, 'locked')}, (
      select coalesce(sum(${STAYING}), 0) from payment
      where payment.order_number = $1 and (coin = crypto or payment.mode = 'X402')
        and ${isCredited} and (locked.confirmed_at is null or payment.seen_at <= locked.confirmed_at))::bigint as paid_micros
    from locked`;
