/** Top-ups: the row, its lifecycle, its statements, and the bonus tiers. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, entity, nullable, type RowOf } from '../database/table.ts';
import type { ToldLifecycle } from '../history/lifecycle.ts';
import { microsFromUsd } from '../money.ts';

export const TOP_UP_STATUSES = ['PENDING', 'CONFIRMING', 'CONFIRMED', 'EXPIRED', 'CANCELLED'] as const;
export type TopUpStatus = (typeof TOP_UP_STATUSES)[number];

/** Limits of one top-up. */
export const TOP_UP_MIN_USD = 30;
export const TOP_UP_MAX_USD = 10_000;
/** Seconds for which a quoted rate holds. */
export const QUOTE_SECONDS = 30 * 60;
/** Seconds for which the worker watches a deposit address. */
export const DEPOSIT_ADDRESS_SECONDS = 31 * 24 * 3600;

export const TopUp = entity('top_up', {
  id: column.key(),
  accountId: column.text(),
  orderNumber: column.text(),
  status: column.oneOf(...TOP_UP_STATUSES),
  mode: column.oneOf('CRYPTO', 'X402'),
  amountMicros: column.bigint(),
  bonusMicros: column.bigint(),
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
  confirmations: column.int(),
  confirmationsRequired: column.int(),
  txIds: column.textArray(),
  paymentException: nullable(column.oneOf('UNDERPAID', 'OVERPAID', 'LATE')),
  creditedMicros: column.bigint(),
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
/** Reads the top-up $1, and the time. */
export const READ_TOP_UP = statement({ ...TopUp.columns, readAt: column.now() })`
  select ${columnsOf(TopUp)}, now() as read_at from top_up where order_number = $1`;
/** The top-up $2 of the account $1, or its open ones with null, at most 1,000. Null as account: of all accounts. */
export const WATCH_TOP_UPS = statement(TopUp.columns)`
  select ${columnsOf(TopUp)} from top_up
  where ($1::text is null or account_id = $1)
    and case when $2::text is null then status in ('PENDING', 'CONFIRMING') else order_number = $2 end
  order by id limit 1000`;
/** Locks those of the top-ups $1 that are paid in coins. */
export const LOCK_COIN_TOP_UPS = statement(TopUp.columns)`
  select ${columnsOf(TopUp)} from top_up where order_number = any($1) and mode = 'CRYPTO' order by order_number for update`;
/** The addresses of the network $1 that the worker watches. */
export const FIND_DEPOSIT_ADDRESSES = statement({ walletAddress: column.text() })`
  select wallet_address from top_up where network = $1 and mode = 'CRYPTO' and wallet_address is not null
    and created_at > now() - interval '${DEPOSIT_ADDRESS_SECONDS} seconds'`;
/** Whether a top-up of the network $1 has the address $2. */
export const IS_KNOWN_ADDRESS = statement({ known: column.boolean() })`
  select exists (select from top_up where network = $1 and wallet_address = $2) as known`;
/** The top-up that a processor webhook names. $1 order number or null, $2 reference or null, $3 coins of the processor. */
export const FIND_NAMED_TOP_UP = statement({ orderNumber: column.text() })`
  select order_number from top_up where order_number = $1 and reference = $2 and crypto = any($3)`;
/** How many top-ups of the account $1 wait for a payment, and the time. */
export const COUNT_PENDING_TOP_UPS = statement({ pending: column.int(), now: column.now() })`
  select count(*)::int as pending, now() from top_up where account_id = $1 and status = 'PENDING'`;

/** The tier for the highest minimum reached applies to the whole amount. */
export const BONUS_TIERS = [
  { minMicros: microsFromUsd(100), bonusPercent: 2 },
  { minMicros: microsFromUsd(500), bonusPercent: 4 },
  { minMicros: microsFromUsd(1_000), bonusPercent: 6 },
  { minMicros: microsFromUsd(5_000), bonusPercent: 8 },
] as const;

export function bonusMicros(amountMicros: bigint): bigint {
  const tier = BONUS_TIERS.findLast(({ minMicros }) => amountMicros >= minMicros);
  return tier ? (amountMicros * BigInt(tier.bonusPercent)) / 100n : 0n;
}
