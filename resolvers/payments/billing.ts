/** Bonus tiers and top-ups. */

import type { Queryable, Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import { record } from '../../entities/history/record.ts';
import { transition } from '../../entities/history/transition.ts';
import { isOrderNumber, newId, newOrderNumber } from '../../entities/ids.ts';
import { lockAccount } from '../../entities/payments/ledger.ts';
import {
  bonusMicros,
  QUOTE_SECONDS,
  TOP_UP_LIFECYCLE,
  TopUp,
  type TopUpStatus,
} from '../../entities/payments/top-up.ts';
import { confirmPaidTopUp, formatUnits, unitsOf } from '../../provisioning/index.ts';
import { accountOf, actorOf, type Context } from '../context.ts';
import { type Page, type PageRequest, pageOfAccount } from '../pages.ts';
import { findCoin } from './coins.ts';
import { demandPayment, type PaymentHeaders, pay, type Sale, signedPayment } from './x402.ts';

export { BONUS_TIERS, TOP_UP_MAX_USD, TOP_UP_MIN_USD, TOP_UP_STATUSES } from '../../entities/payments/top-up.ts';

/**
 * Opens a top-up in a coin, or makes one that is paid at once by x402.
 * @throws ApiError validation_failed, or what either of them throws
 */
export function createTopUp(
  context: Context,
  { amountUsd, crypto }: { amountUsd: bigint; crypto?: string | null | undefined },
  payment: PaymentHeaders = {},
): Promise<TopUp> {
  const signed = signedPayment(payment);
  const byX402 = payment.mode != null || signed !== undefined;
  if (byX402 && crypto != null) throw wrongCrypto('not_allowed', 'crypto is left out where x402 pays.');
  if (!byX402 && crypto == null) throw wrongCrypto('required', 'crypto is required.');
  if (!byX402) return openTopUp(context, { amountUsd, crypto: crypto! });
  const sale = saleOf(context, amountUsd);
  return signed === undefined ? demandPayment(context, sale) : pay(context, signed, sale);
}
const wrongCrypto = (code: string, message: string) =>
  new ApiError('validation_failed', message, { errors: [{ field: 'crypto', code, message }] });

const saleOf = (context: Context, amountMicros: bigint): Sale<TopUp> => ({
  kind: 'TOP',
  path: '/v1/billing/topups',
  description: 'A top-up of the balance.',
  input: { amountMicros },
  check: async () => amountMicros,
  fulfil: async (tx, orderNumber, txId) => {
    const topUp = await insertPaidTopUp(tx, context, orderNumber, amountMicros);
    if (txId === undefined) return topUp;
    await context.provisioning.servers.retrySuspended(tx, topUp.accountId);
    return confirmPaidTopUp(tx, topUp, txId);
  },
});

/** A top-up whose payment has been signed, and is under way. */
async function insertPaidTopUp(
  tx: Transaction,
  context: Context,
  orderNumber: string,
  amountMicros: bigint,
): Promise<TopUp> {
  const accountId = accountOf(context);
  const { coin, network, networkV1, payTo } = context.provisioning.payments.x402!.terms;
  const id = newId('top');
  await tx.manager.insert(TopUp, {
    id,
    accountId,
    orderNumber,
    status: 'CONFIRMING',
    mode: 'X402',
    amountMicros,
    bonusMicros: bonusMicros(amountMicros),
    crypto: coin,
    network: networkV1 ?? network,
    amountCrypto: formatUnits(amountMicros, 6),
    receivedCrypto: '0',
    rateMicros: USDC_RATE_MICROS,
    walletAddress: payTo,
    confirmations: 0,
    confirmationsRequired: 1,
    creditedMicros: 0n,
  });
  await record(tx, accountId, orderNumber, { type: 'topup.created', actor: actorOf(context) });
  tx.changed({ kind: 'topUp', accountId, id: orderNumber });
  return tx.manager.findOneByOrFail(TopUp, { id });
}
/** A dollar is a dollar: what x402 pays with is worth its face. */
const USDC_RATE_MICROS = 1_000_000n;

/**
 * A quote that holds for half an hour, and an address to pay to.
 * @throws ApiError unknown_coin, coin_unavailable or topup_limit_reached
 */
async function openTopUp(
  context: Context,
  { amountUsd, crypto }: { amountUsd: bigint; crypto: string },
): Promise<TopUp> {
  const accountId = accountOf(context);
  const coin = await findCoin(context, crypto);
  if (!coin.available || coin.rateMicros === null) throw new ApiError('coin_unavailable');
  await refuseTooMany(context, accountId);
  const orderNumber = newOrderNumber('TOP');
  const createdAt = new Date();
  const invoice = {
    orderNumber,
    coin: coin.code,
    amountMicros: amountUsd,
    amountCrypto: formatUnits(unitsOf(amountUsd, coin.rateMicros, coin.decimals), coin.decimals),
    createdAt,
    expiresAt: new Date(createdAt.getTime() + QUOTE_SECONDS * 1000),
  };
  const target = await context.provisioning.payments.openInvoice(context.db, invoice, context.signal).catch((fault) => {
    if (fault instanceof ApiError) throw fault;
    throw new ApiError('coin_unavailable', 'No address to pay to can be had at the moment.');
  });
  return context.db.transaction(async (tx) => {
    await lockAccount(tx, accountId);
    await refuseTooMany({ ...context, db: tx }, accountId);
    const id = newId('top');
    await tx.manager.insert(TopUp, {
      id,
      accountId,
      orderNumber,
      status: 'PENDING',
      mode: 'CRYPTO',
      amountMicros: amountUsd,
      bonusMicros: bonusMicros(amountUsd),
      crypto: coin.code,
      network: coin.network,
      amountCrypto: invoice.amountCrypto,
      receivedCrypto: '0',
      rateMicros: coin.rateMicros!,
      ...target,
      confirmations: 0,
      confirmationsRequired: coin.confirmationsRequired,
      creditedMicros: 0n,
      createdAt,
      expiresAt: invoice.expiresAt,
    });
    await record(tx, accountId, orderNumber, { type: 'topup.created', actor: actorOf(context) });
    await context.provisioning.payments.awaitPayment(tx, accountId, orderNumber);
    tx.changed({ kind: 'topUp', accountId, id: orderNumber });
    return tx.manager.findOneByOrFail(TopUp, { id });
  });
}

/** Asked before somebody is asked for an address, and again under the lock. @throws ApiError topup_limit_reached */
async function refuseTooMany({ db, limits }: { db: Queryable; limits: Context['limits'] }, accountId: string) {
  const [pending] = await db.query<{ count: number }>(
    `select count(*)::int as count from top_up where account_id = $1 and status = 'PENDING'`,
    [accountId],
  );
  if (pending!.count >= limits.pendingTopups) throw new ApiError('topup_limit_reached');
}

/** @throws ApiError not_found */
export async function findTopUp({ db, viewer }: Context, orderNumber: string): Promise<TopUp> {
  if (!isOrderNumber('TOP', orderNumber)) throw new ApiError('not_found');
  const topUp = await db.source.manager.findOneBy(TopUp, {
    orderNumber,
    ...(viewer!.accountId && { accountId: viewer!.accountId }),
  });
  if (!topUp) throw new ApiError('not_found');
  return topUp;
}

/**
 * Cancels a top-up that nothing was received for. It is watched on: money that comes later is credited, as late.
 * @throws ApiError not_found or topup_not_cancellable
 */
export async function cancelTopUp(context: Context, orderNumber: string): Promise<TopUp> {
  const { accountId } = await findTopUp(context, orderNumber);
  return context.db.transaction(async (tx) => {
    const [topUp] = await tx.query<{ unpaid: boolean }>(
      `select status = 'PENDING' and received_crypto = '0' as unpaid from top_up
        where order_number = $1 and account_id = $2 for update`,
      [orderNumber, accountId],
    );
    const cancelled =
      topUp?.unpaid && (await transition(tx, TOP_UP_LIFECYCLE, orderNumber, 'CANCELLED', { actor: actorOf(context) }));
    if (!cancelled) throw new ApiError('topup_not_cancellable');
    return cancelled;
  });
}

export function listTopUps(
  context: Context,
  request: PageRequest,
  status: TopUpStatus | null | undefined,
): Promise<Page<TopUp>> {
  return pageOfAccount(context, TopUp, request, status ? { status } : {});
}
