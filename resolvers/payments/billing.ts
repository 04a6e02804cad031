/** Top-ups. */
import { And, In, LessThan, MoreThanOrEqual } from 'typeorm';
import { find, insert } from '../../entities/database/table.ts';
import { isDatabaseAway, type Queryable, type Transaction } from '../../entities/database/transaction.ts';
import { ApiError, refuse } from '../../entities/errors.ts';
import { record } from '../../entities/history/record.ts';
import { transition } from '../../entities/history/transition.ts';
import { isOrderNumber, newId, newOrderNumber } from '../../entities/ids.ts';
import { MICROS_PER_USD } from '../../entities/money.ts';
import { bonusMicros, presentTiers } from '../../entities/payments/bonus.ts';
import { HAS_PAID } from '../../entities/payments/payer.ts';
import {
  COUNT_PENDING_TOP_UPS,
  QUOTE_SECONDS,
  TOP_UP_LIFECYCLE,
  TopUp,
  type TopUpStatus,
} from '../../entities/payments/top-up.ts';
import { confirmPaidTopUp, formatUnits, unitsOf } from '../../provisioning/index.ts';
import { lockOwnAccount } from '../accounts/account.ts';
import { keptForLogins } from '../accounts/auth/scope.ts';
import { accountOf, actorOf, type Context } from '../context.ts';
import { found, limitReached } from '../errors.ts';
import { type Made, type Page, type PageRequest, pageOfAccount, requireRange } from '../pages.ts';
import { type CoinView, findCoin } from './coins.ts';
import { type PaymentHeaders, type Sale, signedPayment } from './sale.ts';
import { demandPayment, pay } from './x402.ts';

export { TOP_UP_MAX_USD, TOP_UP_MIN_USD, TOP_UP_STATUSES } from '../../entities/payments/top-up.ts';

import { CustomerTurns } from '../../entities/turns.ts';

/**
 * Opens a top-up in a coin, or makes one that x402 pays at once.
 * @throws ApiError validation_failed, or an error of `openTopUp` or `pay`
 */
export function createTopUp(
  context: Context,
  { amountUsd: amountMicros, crypto }: { amountUsd: bigint; crypto?: string | null | undefined },
  payment: PaymentHeaders = {},
): Promise<TopUp> {
  const signed = signedPayment(payment);
  const byX402 = payment.mode != null || signed !== undefined;
  if (byX402 && crypto != null) throw refuse('crypto', 'not_allowed', 'Leave out crypto when x402 pays.');
  if (!byX402 && crypto == null) throw refuse('crypto', 'required', 'crypto is required.');
  if (!byX402) return openTopUp(context, amountMicros, crypto!);
  const sale = saleOf(context, amountMicros);
  return signed === undefined ? demandPayment(context, sale) : pay(context, signed, sale);
}

const saleOf = (context: Context, amountMicros: bigint): Sale<TopUp> => ({
  kind: 'TOP',
  path: '/v1/billing/topups',
  description: 'A top-up of the balance.',
  input: { amountMicros },
  check: async () => {
    refuseManyPending(context, await countPending(context, context.db));
    return amountMicros;
  },
  attempts: (attempt) =>
    attempt(async (tx, orderNumber, { txId, paidOutMicros, isOld }) => {
      const bonusTiers = isOld ? [] : await presentTiers(tx);
      const topUp = await insertPaidTopUp(tx, context, { orderNumber, amountMicros, bonusTiers });
      if (txId === undefined) return topUp;
      await context.provisioning.servers.retrySuspended(tx, topUp.accountId);
      return confirmPaidTopUp(tx, topUp, txId, paidOutMicros);
    }),
});

/** Writes a top-up whose signed payment is under way. */
async function insertPaidTopUp(
  tx: Transaction,
  context: Context,
  { orderNumber, amountMicros, bonusTiers }: Pick<TopUp, 'orderNumber' | 'amountMicros' | 'bonusTiers'>,
): Promise<TopUp> {
  const { coin, network, networkV1, payTo } = context.provisioning.payments.x402!.terms;
  return insertTopUp(tx, context, {
    ...{ orderNumber, amountMicros, bonusTiers },
    status: 'CONFIRMING',
    mode: 'X402',
    crypto: coin,
    network: networkV1 ?? network,
    amountCrypto: formatUnits(amountMicros, 6),
    rateMicros: MICROS_PER_USD,
    walletAddress: payTo,
    confirmationsRequired: 1,
  });
}

async function insertTopUp(
  tx: Transaction,
  context: Context,
  topUp: Partial<TopUp> & Pick<TopUp, 'orderNumber' | 'amountMicros' | 'bonusTiers'>,
): Promise<TopUp> {
  const [accountId, id] = [accountOf(context), newId('top')];
  const { orderNumber, amountMicros, bonusTiers } = topUp;
  const nothing = { receivedCrypto: '0', confirmations: 0, creditedMicros: 0n };
  const bonus = bonusMicros(bonusTiers, amountMicros);
  const values = { ...nothing, ...topUp, bonusMicros: bonus };
  await insert(tx, TopUp, { id, accountId, credentialId: actorOf(context).id, ...values });
  await record(tx, accountId, orderNumber, { type: 'topup.created', actor: actorOf(context) });
  tx.changed({ kind: 'topUp', accountId, id: orderNumber });
  return (await find(tx, TopUp, { id }))!;
}

/**
 * The turns of each network, so a silent processor delays no other coin. An account opens one top-up of a network at a time. So
 * requests at once take no more addresses than the limit allows. Each process has turns of its own, so the row is checked again
 * under the lock.
 */
const openings = new Map<string, CustomerTurns>();
const newOpenings = () =>
  new CustomerTurns({
    places: 64,
    placesOfGroup: 1,
    placesOfSite: 4,
    waiting: 500,
    waitingOfGroup: 24,
    refusal:
      'The service opens other top-ups of the account, or of new accounts of your network. Wait for one of them.',
  });

/** Opens a top-up at the turn of the caller. */
async function atTurn<T>({ db, address }: Context, accountId: string, network: string, open: () => Promise<T>) {
  const turns = openings.get(network) ?? newOpenings();
  openings.set(network, turns);
  const { paid: hasPaid } = (await HAS_PAID.first(db, [accountId]))!;
  return turns.run({ accountId, address, hasPaid }, open);
}

/**
 * Opens a top-up with a quote for half an hour, and an address for its payment.
 * @throws ApiError unknown_coin, coin_unavailable or topup_limit_reached or rate_limited, or as `lockOwnAccount` does
 */
async function openTopUp(context: Context, amountMicros: bigint, crypto: string): Promise<TopUp> {
  const accountId = accountOf(context);
  const coin = await findCoin(context, crypto);
  const { rateMicros } = coin;
  if (!coin.available || rateMicros === null) throw new ApiError('coin_unavailable');
  return atTurn(context, accountId, coin.network, () => openInTurn(context, amountMicros, { ...coin, rateMicros }));
}

async function openInTurn(
  context: Context,
  amountMicros: bigint,
  coin: CoinView & { rateMicros: bigint },
): Promise<TopUp> {
  const accountId = accountOf(context);
  const createdAt = await refuseTooMany(context, context.db);
  const orderNumber = newOrderNumber('TOP');
  const invoice = {
    orderNumber,
    coin: coin.code,
    amountMicros,
    amountCrypto: formatUnits(unitsOf(amountMicros, coin.rateMicros, coin.decimals), coin.decimals),
    createdAt,
    expiresAt: new Date(createdAt.getTime() + QUOTE_SECONDS * 1000),
  };
  const target = await context.provisioning.payments.openInvoice(context.db, accountId, invoice).catch((fault) => {
    if (fault instanceof ApiError || isDatabaseAway(fault)) throw fault;
    throw new ApiError('coin_unavailable', 'The payment gateway has no address at the moment.');
  });
  return context.db.transaction(async (tx) => {
    await lockOwnAccount(tx, context);
    await refuseTooMany(context, tx);
    const topUp = await insertTopUp(tx, context, {
      ...{ orderNumber, amountMicros, bonusTiers: await presentTiers(tx) },
      status: 'PENDING',
      mode: 'CRYPTO',
      crypto: coin.code,
      network: coin.network,
      amountCrypto: invoice.amountCrypto,
      rateMicros: coin.rateMicros,
      ...target,
      confirmationsRequired: coin.confirmationsRequired,
      createdAt,
      expiresAt: invoice.expiresAt,
    });
    await context.provisioning.payments.awaitPayment(tx, accountId, orderNumber, coin.code);
    return topUp;
  });
}

/** Counts the open top-ups of the caller's account, and those of a day that got no dollar. */
async function countPending({ viewer, limits }: Context, db: Queryable) {
  const most = limits.unpaidTopupsPerDay;
  const counted = await COUNT_PENDING_TOP_UPS.first(db, [viewer!.accountId, most, most - keptForLogins(most)]);
  return counted!;
}

/** @throws ApiError topup_limit_reached */
function refuseManyPending({ limits }: Context, { pending }: { pending: number }): void {
  if (pending >= limits.pendingTopups) throw limitReached('topup_limit_reached', limits.pendingTopups);
}

/**
 * Runs before the gateway is asked for an address, and again under the lock. Payments by x402 take no address.
 * @returns the time of the database
 * @throws ApiError topup_limit_reached
 */
async function refuseTooMany(context: Context, db: Queryable): Promise<Date> {
  const counted = await countPending(context, db);
  refuseManyPending(context, counted);
  const { nextAt, nextForOthersAt, now } = counted;
  const most = context.limits.unpaidTopupsPerDay;
  const roomAt = context.viewer!.isLogin ? nextAt : (nextAt ?? nextForOthersAt);
  if (roomAt && roomAt > now) throw tooManyUnpaid(most, roomAt, now);
  return now;
}

/** Cancelling makes no room, because the service watches the address of a cancelled top-up, too. */
const tooManyUnpaid = (most: number, nextAt: Date, now: Date): ApiError =>
  new ApiError(
    'topup_limit_reached',
    `An account opens ${most} top-ups in 24 hours that get less than 1 USD. Only its logins open the last ${keptForLogins(most)} of these. Cancelling one makes no room. Pay one of them, or wait until ${nextAt.toISOString()}.`,
    { retryAfter: Math.max(1, Math.ceil((nextAt.getTime() - now.getTime()) / 1000)) },
  );

/** @throws ApiError not_found */
export async function findTopUp({ db, viewer }: Context, orderNumber: string): Promise<TopUp> {
  if (!isOrderNumber('TOP', orderNumber)) throw new ApiError('not_found');
  const { accountId } = viewer!;
  return found(await find(db, TopUp, { orderNumber, ...(accountId && { accountId }) }));
}

/**
 * Cancels an unpaid top-up. The worker watches it further, and credits late payments.
 * @throws ApiError not_found or topup_not_cancellable
 */
export async function cancelTopUp(context: Context, orderNumber: string): Promise<TopUp> {
  const { accountId } = await findTopUp(context, orderNumber);
  return context.db.transaction(async (tx) => {
    const unpaid = { actor: actorOf(context), where: { accountId, receivedCrypto: '0' } };
    const cancelled = await transition(tx, TOP_UP_LIFECYCLE, orderNumber, 'CANCELLED', unpaid);
    if (!cancelled) throw new ApiError('topup_not_cancellable');
    return cancelled;
  });
}

export function listTopUps(
  context: Context,
  request: PageRequest,
  filter: Made & { status?: readonly TopUpStatus[] | null | undefined },
): Promise<Page<TopUp>> {
  requireRange(filter);
  const { status, createdSince, createdUntil, sort } = filter;
  const times = [
    ...(createdSince ? [MoreThanOrEqual(createdSince)] : []),
    ...(createdUntil ? [LessThan(createdUntil)] : []),
  ];
  return pageOfAccount(
    context,
    TopUp,
    { ...request, ascending: sort === 'created_at' },
    {
      ...(status?.length && { status: status.length > 1 ? In([...new Set(status)]) : status[0]! }),
      ...(times.length && { createdAt: And(...times) }),
    },
  );
}
