/** Coins, bonus tiers and top-ups. */
import { OPERATOR_ACCOUNT } from '../entities/audit.ts';
import { CoinSwitch } from '../entities/coin-switch.ts';
import { ApiError } from '../entities/errors.ts';
import { isOrderNumber, newId, newOrderNumber } from '../entities/ids.ts';
import { record } from '../entities/record.ts';
import { bonusMicros, QUOTE_SECONDS, TOP_UP_LIFECYCLE, TopUp, type TopUpStatus } from '../entities/top-up.ts';
import { transition } from '../entities/transition.ts';
import type { Coin } from '../provisioning/index.ts';
import { accountOf, actorOf, type Context } from './context.ts';
import { lockAccount } from './limits.ts';
import { type Page, type PageRequest, pageOfAccount } from './pages.ts';

export { BONUS_TIERS, TOP_UP_MAX_USD, TOP_UP_MIN_USD, TOP_UP_STATUSES } from '../entities/top-up.ts';

/** A coin of the driver, and whether it can be used at the moment: it has a rate, and the operator has not switched it off. */
export type CoinView = Coin & { available: boolean };

export async function listCoins({ db, provisioning }: Context): Promise<CoinView[]> {
  const switches = await db.source.manager.findBy(CoinSwitch, { available: false });
  const off = new Set(switches.map(({ code }) => code));
  return provisioning.coins().map((coin) => ({ ...coin, available: coin.rateMicros !== null && !off.has(coin.code) }));
}

/** @throws ApiError unknown_coin */
async function findCoin(context: Context, wanted: string): Promise<CoinView> {
  const coin = (await listCoins(context)).find(({ code }) => code === wanted);
  if (!coin) throw new ApiError('unknown_coin');
  return coin;
}

/**
 * Switches a coin off or on, for new top-ups: those that there are go on, for money may be on its way to them.
 * @throws ApiError unknown_coin
 */
export async function updateCoin(context: Context, code: string, available: boolean): Promise<CoinView> {
  await findCoin(context, code);
  await context.db.transaction(async (tx) => {
    const changed = await tx.query(
      `insert into coin_switch as kept (code, available) values ($1, $2)
      on conflict (code) do update set available = excluded.available, updated_at = now() where kept.available <> excluded.available
      returning code`,
      [code, available],
    );
    if (changed.length)
      await record(tx, OPERATOR_ACCOUNT, code, {
        type: 'coin.updated',
        resource: 'coin',
        actor: actorOf(context),
        data: { available },
      });
  });
  return findCoin(context, code);
}

/**
 * Opens a top-up: a quote that holds for half an hour, and an address to pay to.
 * @throws ApiError unknown_coin, coin_unavailable or topup_limit_reached
 */
export async function createTopUp(
  context: Context,
  { amountUsd, crypto }: { amountUsd: bigint; crypto: string },
): Promise<TopUp> {
  const accountId = accountOf(context);
  const coin = await findCoin(context, crypto);
  if (!coin.available || coin.rateMicros === null) throw new ApiError('coin_unavailable');
  const orderNumber = newOrderNumber('TOP');
  const amountCrypto = coinAmount(amountUsd, coin.rateMicros, coin.decimals);
  const address = context.provisioning.paymentAddress({ orderNumber, coin: coin.code, amountCrypto });
  return context.db.transaction(async (tx) => {
    await lockAccount(tx, accountId);
    const pending = await tx.manager.countBy(TopUp, { accountId, status: 'PENDING' });
    if (pending >= context.limits.pendingTopups) throw new ApiError('topup_limit_reached');
    const id = newId('top');
    const createdAt = new Date();
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
      amountCrypto,
      receivedCrypto: '0',
      rateMicros: coin.rateMicros!,
      ...address,
      confirmations: 0,
      confirmationsRequired: coin.confirmationsRequired,
      creditedMicros: 0n,
      createdAt,
      expiresAt: new Date(createdAt.getTime() + QUOTE_SECONDS * 1000),
    });
    await record(tx, accountId, orderNumber, { type: 'topup.created', resource: 'topup', actor: actorOf(context) });
    await context.provisioning.watchTopUp(tx, accountId, orderNumber);
    tx.changed({ kind: 'topUp', accountId, id: orderNumber });
    return tx.manager.findOneByOrFail(TopUp, { id });
  });
}

/** What an amount is in a coin, rounded up to its smallest unit, as a decimal string. */
export function coinAmount(micros: bigint, rateMicros: bigint, decimals: number): string {
  const unit = 10n ** BigInt(decimals);
  const units = (micros * unit + rateMicros - 1n) / rateMicros;
  const fraction = (units % unit).toString().padStart(decimals, '0').replace(/0+$/, '');
  return fraction ? `${units / unit}.${fraction}` : String(units / unit);
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
