/** Top-ups: the row, the table of its states, and the bonus tiers. */
import {
  bigint,
  entity,
  int,
  key,
  now,
  nullable,
  oneOf,
  type RowOf,
  text,
  textArray,
  timestamp,
} from '../database/table.ts';
import type { Lifecycle } from '../history/lifecycle.ts';
import { microsFromUsd } from '../money.ts';

export const TOP_UP_STATUSES = ['PENDING', 'CONFIRMING', 'CONFIRMED', 'EXPIRED', 'CANCELLED'] as const;
export type TopUpStatus = (typeof TOP_UP_STATUSES)[number];

/** Limits of one top-up. */
export const TOP_UP_MIN_USD = 30;
export const TOP_UP_MAX_USD = 10_000;
/** How long a quoted rate holds. */
export const QUOTE_SECONDS = 30 * 60;

export const TopUp = entity(
  'top_up',
  {
    id: key(),
    accountId: text(),
    orderNumber: text(),
    status: oneOf(...TOP_UP_STATUSES),
    mode: oneOf('CRYPTO', 'X402'),
    amountMicros: bigint(),
    bonusMicros: bigint(),
    crypto: text(),
    network: text(),
    /** Decimal strings in the coin's own unit. */
    amountCrypto: text(),
    receivedCrypto: text(),
    /** Micro-USD for one coin, locked at creation. */
    rateMicros: bigint(),
    walletAddress: nullable(text()),
    paymentUri: nullable(text()),
    /** How a payment processor calls it. */
    reference: nullable(text()),
    confirmations: int(),
    confirmationsRequired: int(),
    txIds: textArray(),
    paymentException: nullable(oneOf('UNDERPAID', 'OVERPAID', 'LATE')),
    creditedMicros: bigint(),
    createdAt: now(),
    expiresAt: nullable(timestamp()),
    confirmedAt: nullable(timestamp()),
  },
  [
    { name: 'top_up_order_number', columns: ['orderNumber'], unique: true },
    { name: 'top_up_account', columns: ['accountId', 'id'] },
    { name: 'top_up_address', columns: ['network', 'walletAddress', 'createdAt'] },
  ],
);
export type TopUp = RowOf<typeof TopUp>;

/** Money that comes late is still credited, so an expired or cancelled top-up can confirm. */
export const TOP_UP_LIFECYCLE: Lifecycle<TopUp, TopUpStatus> = {
  table: TopUp,
  key: 'orderNumber',
  state: 'status',
  transitions: {
    PENDING: ['CONFIRMING', 'EXPIRED', 'CANCELLED'],
    // Only a payment by x402 that was never settled expires from there.
    CONFIRMING: ['CONFIRMED', 'EXPIRED'],
    CONFIRMED: [],
    EXPIRED: ['CONFIRMING'],
    CANCELLED: ['CONFIRMING'],
  },
  told: {
    resource: 'topup',
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

/** The highest step reached counts, for the whole amount. */
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
