/** Payouts, sweeps, fees and closed months, for the operator. */
import { Account } from '../../entities/accounts/account.ts';
import { exists, find, insert } from '../../entities/database/table.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError, refuse } from '../../entities/errors.ts';
import { isId } from '../../entities/ids.ts';
import { ClosedMonth, SUM_MONTH } from '../../entities/payments/closed-month.ts';
import { gateway, lockOperator } from '../../entities/payments/ledger.ts';
import { FIND_HOLDING, type Movement } from '../../entities/payments/movement.ts';
import { gatewayOf, Payment } from '../../entities/payments/payment.ts';
import { Payout, type PayoutStatus } from '../../entities/payments/payout.ts';
import { IS_GIVEN_ADDRESS } from '../../entities/payments/top-up.ts';
import {
  cancelPayout,
  faultOfAddress,
  finishPayout,
  type GivenMovement,
  type RequestedPayout,
  recordMovement,
  requestPayout,
} from '../../provisioning/index.ts';
import { actorOf, type Context } from '../context.ts';
import { found } from '../errors.ts';
import { type Page, type PageRequest, pageOfAccount } from '../pages.ts';
import { recordByOperator } from '../record.ts';
import { findCoin } from './coins.ts';
import { requireOnChain } from './on-chain.ts';
import { withinLimit } from './operator-limit.ts';

export { PAYOUT_STATUSES } from '../../entities/payments/payout.ts';

type Maybe<T> = T | null | undefined;
export interface PayoutRequest {
  key: string;
  address: string;
  signature?: Maybe<string>;
  source?: Maybe<string>;
  reason: string;
}

/** Lists the payouts of all accounts, newest first. */
export const findPayouts = (context: Context, page: PageRequest, status: Maybe<PayoutStatus>): Promise<Page<Payout>> =>
  pageOfAccount(context, Payout, page, status ? { status } : {});

type Refund = PayoutRequest & { accountId: string; coin: string; amountUsd: bigint };
type Return = PayoutRequest & { paymentId: string };

/** Requests a payout from the balance of an account. @throws ApiError as `preparedRefund` and `request` do */
export const refundInCoin = async (context: Context, given: Refund): Promise<Payout> =>
  request(context, 'PAYOUT', given, await preparedRefund(context, given));

/** Requests a payout that sends an unmatched payment back. @throws ApiError as `preparedReturn` and `request` do */
export const returnInCoin = async (context: Context, given: Return): Promise<Payout> =>
  request(context, 'RETURN', given, await preparedReturn(context, given));

/**
 * Checks a payout from the balance of an account, at the rate of the moment.
 * @throws ApiError not_found, unknown_coin, coin_unavailable, or as `prepared` does
 */
export async function preparedRefund(context: Context, given: Refund): Promise<RequestedPayout> {
  const { accountId, amountUsd: amountMicros } = given;
  found(isId('acct', accountId) && (await exists(context.db, Account, { id: accountId })));
  const coin = await findCoin(context, given.coin);
  if (coin.rateMicros === null) throw new ApiError('coin_unavailable');
  const units = (amountMicros * 10n ** BigInt(coin.decimals)) / coin.rateMicros;
  if (units <= 0n) throw refuse('amountUsd', 'too_small', 'amountUsd must be worth a unit of the coin.');
  const { code, decimals, network } = coin;
  return prepared(context, given, {
    ...{ accountId, paymentId: null, coin: code, decimals, network, units: String(units), amountMicros },
    source: gateway(network),
  });
}

/**
 * Checks a payout that sends an unmatched payment back.
 * @throws ApiError not_found, validation_failed if the payment is in another state, removed or not final, or as `prepared` does
 */
export async function preparedReturn(context: Context, given: Return): Promise<RequestedPayout> {
  const { paymentId } = given;
  const payment = found(isId('pay', paymentId) && (await find(context.db, Payment, { id: paymentId })));
  if (payment.status === 'UNMATCHED') await requireOnChain(context, payment, true);
  const { accountId, network, units, creditedMicros: amountMicros } = payment;
  const { code: coin, decimals } = await findCoin(context, payment.coin);
  return prepared(context, given, {
    ...{ accountId, paymentId, coin, decimals, network, units, amountMicros, source: gatewayOf(payment) },
  });
}

/** @throws ApiError approval_needed above the limit of an operator, or an error of `requestPayout` */
function request(
  context: Context,
  kind: 'PAYOUT' | 'RETURN',
  { source, signature }: PayoutRequest,
  requested: RequestedPayout,
): Promise<Payout> {
  const { key, accountId, amountMicros, reason, paymentId, coin, address } = requested;
  const sum = { ...{ kind, key, accountId, reason, paymentId, coin, address }, amountMicros: -amountMicros };
  const asGiven = { signature: signature ?? null, source: source ?? null };
  return withinLimit(context, { ...sum, ...asGiven }, (tx) => payOut(tx, context, requested));
}

/** Reserves the money of a payout. @throws ApiError as `requestPayout` does */
export const payOut = (tx: Transaction, context: Context, requested: RequestedPayout): Promise<Payout> =>
  requestPayout(tx, requested, actorOf(context));

/** @throws ApiError validation_failed for a wrong address or signature */
async function prepared(
  context: Context,
  { key, address: entered, signature, source, reason }: PayoutRequest,
  rest: Omit<RequestedPayout, 'key' | 'address' | 'signature' | 'reason'>,
): Promise<RequestedPayout> {
  const { db, provisioning } = context;
  const address = await provisioning.payments.spell(rest.network, entered);
  if (address === undefined) throw refuse('address', 'wrong_value', `address is no address of ${rest.network}.`);
  const given = { ...rest, key, address, reason, signature: signature ?? null, source: source ?? rest.source };
  if (!/^(gateway|wallet):\S+$/.test(given.source))
    throw refuse('source', 'wrong_value', 'source is a gateway or a wallet, such as wallet:bitcoin.');
  const fault = await faultOfAddress(given, provisioning.payments.isEvm(given.network));
  if (fault) throw refuse(fault.field, 'wrong_value', fault.message);
  const isOwn = (await IS_GIVEN_ADDRESS.first(db, [address]))!.known || provisioning.payments.isPayee(address);
  if (isOwn) throw refuse('address', 'own_address', 'The address belongs to this service.');
  return given;
}

export const cancel = (context: Context, id: string, reason: string): Promise<Payout> =>
  context.db.transaction((tx) => cancelPayout(tx, id, reason, actorOf(context)));

/** Takes the operator's word that the transaction of a payout is final. */
export const finish = (context: Context, id: string): Promise<Payout> =>
  context.db.transaction((tx) => finishPayout(tx, id, actorOf(context)));

/**
 * Records coins that the operator has moved.
 * @throws ApiError validation_failed if no gateway is the target, or as `recordMovement` does
 */
export async function move(context: Context, given: GivenMovement): Promise<Movement> {
  const { target, coin } = given;
  const isUnknown =
    target.startsWith('gateway:') &&
    !isGateway(context, target, coin) &&
    !(await FIND_HOLDING.first(context.db, [target, coin]));
  if (isUnknown) throw refuse('target', 'wrong_value', `There is no ledger account ${target} for ${coin}.`);
  return context.db.transaction((tx) => recordMovement(tx, given, actorOf(context)));
}

/** Whether a configured gateway, or x402, has the coin in the ledger account. */
function isGateway({ provisioning: { payments } }: Context, name: string, coin: string): boolean {
  const terms = payments.x402?.terms;
  if (terms?.coin === coin && name === gateway(`x402:${terms.network}`)) return true;
  return payments.coins().some(({ code, network }) => code === coin && name === gateway(network));
}

/**
 * Closes a month that is over, and keeps its totals. Closing it again changes nothing.
 * @throws ApiError validation_failed if it is not over since an hour
 */
export const closeMonth = (context: Context, month: string): Promise<ClosedMonth> =>
  context.db.transaction((tx) => close(tx, context, month));

async function close(tx: Transaction, context: Context, month: string): Promise<ClosedMonth> {
  if (!/^[1-9][0-9]{3}-(0[1-9]|1[0-2])$/.test(month))
    throw refuse('month', 'wrong_format', 'month is a year and a month, such as 2026-10.');
  await lockOperator(tx);
  const known = await find(tx, ClosedMonth, { month });
  if (known) return known;
  const { transfers, totals, isOver } = (await SUM_MONTH.first(tx, [month]))!;
  if (!isOver) throw refuse('month', 'too_early', 'The operator can close a month an hour after its end (UTC).');
  await insert(tx, ClosedMonth, { month, transfers, totals });
  await recordByOperator(tx, context, month, { type: 'month.closed', data: { transfers } });
  return (await find(tx, ClosedMonth, { month }))!;
}
