/**
 * Settles top-ups: it credits confirmed payments, once each, and moves the state. A caller that has observed something new
 * calls it; called again, it changes nothing.
 */
import { type ChangedColumns, update } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { transitionAll } from '../../../entities/history/transition.ts';
import { lockAccount, postAll } from '../../../entities/payments/ledger.ts';
import { keepPayments, LOCK_PAYMENTS, type Payment } from '../../../entities/payments/payment.ts';
import {
  bonusMicros,
  FIND_TOP_UP_ACCOUNTS,
  LOCK_COIN_TOP_UPS,
  TOP_UP_LIFECYCLE,
  TopUp,
  type TopUpStatus,
} from '../../../entities/payments/top-up.ts';
import { RESUME_TASK } from '../../servers/billing/renew.ts';
import { retrySuspended } from '../../servers/steps/resume.ts';
import type { ExchangeRates } from '../exchange-rates/exchange-rate.ts';
import { formatUnits, parseUnits } from './amount.ts';
import { bonusPosting, creditPayment, restorePayment, type SettlementBatch, suspendPayment } from './credit.ts';

/** @param exchangeRates the present rates of all coins. The payments of a top-up wait while its coin is not among them. */
export async function settleTopUp(
  tx: Transaction,
  orderNumber: string,
  exchangeRates: ExchangeRates,
): Promise<TopUp | undefined> {
  return (await settleTopUps(tx, [orderNumber], exchangeRates))[0];
}

/** Settles many top-ups in fewer statements than one by one. */
export async function settleTopUps(
  tx: Transaction,
  orderNumbers: readonly string[],
  exchangeRates: ExchangeRates,
): Promise<TopUp[]> {
  const { accountIds, now } = (await FIND_TOP_UP_ACCOUNTS.first(tx, [orderNumbers]))!;
  await lockAccount(tx, ...accountIds);
  const found = await LOCK_COIN_TOP_UPS.all(tx, [orderNumbers]);
  const known = found.filter(({ crypto }) => exchangeRates.has(crypto));
  const payments = await LOCK_PAYMENTS.all(tx, [known.map(({ orderNumber }) => orderNumber)]);
  const statuses = new Map(payments.map(({ id, status }) => [id, status]));
  const paid = Map.groupBy(payments, ({ orderNumber }) => orderNumber);
  const all = known.map((row): Settling => {
    const { decimals } = exchangeRates.get(row.crypto)!;
    const [own, others] = [[] as Payment[], [] as Payment[]];
    for (const payment of paid.get(row.orderNumber) ?? []) (payment.coin === row.crypto ? own : others).push(payment);
    return { topUp: row, own, others, decimals };
  });
  await moveAll(tx, all.map(begin));
  const batch: SettlementBatch = { tx, now, exchangeRates, postings: [] };
  const conclusions: Conclusion[] = [];
  for (const one of all) conclusions.push(conclude(one, batch, await settlePayments(one, batch)));
  await moveAll(tx, conclusions);
  for (const { settling, to, set } of conclusions) if (!to) settling.topUp = await show(tx, settling.topUp, set);
  await keepPayments(
    tx,
    payments.filter(({ id, status }) => statuses.get(id) !== status),
  );
  await postAll(tx, batch.postings);
  const credited = batch.postings.filter(({ kind }) => kind === 'topup').map(({ accountId }) => accountId);
  await retrySuspended(tx, credited, RESUME_TASK);
  return all.map(({ topUp }) => topUp);
}

/** A locked top-up with its payments: those in its coin, and others. */
interface Settling {
  topUp: TopUp;
  own: Payment[];
  others: Payment[];
  decimals: number;
}

/** The next state of a top-up. Without one it keeps its state and shows its new columns. */
interface Conclusion {
  settling: Settling;
  to: TopUpStatus | undefined;
  set: ChangedColumns<TopUp>;
}

/** Moves the top-ups that have a next state. */
async function moveAll(tx: Transaction, conclusions: readonly Conclusion[]): Promise<void> {
  const going = conclusions.filter(({ to }) => to);
  const moves = going.map(({ settling, to, set }) => ({ row: settling.topUp, to: to!, set }));
  const moved = await transitionAll(tx, TOP_UP_LIFECYCLE, moves, SYSTEM);
  going.forEach(({ settling }, index) => {
    settling.topUp = moved[index]!;
  });
}

/** @returns micro-USD that are credited by now */
async function settlePayments({ topUp, own, others }: Settling, batch: SettlementBatch): Promise<bigint> {
  let { creditedMicros } = topUp;
  for (const payment of own.filter((one) => isDue(one, topUp)))
    creditedMicros += creditPayment(batch, topUp, payment, own);
  // The operator may have assigned payments in another coin before they were reversed.
  for (const payment of [...own, ...others].filter((one) => isReversed(one) && one.blockHash !== null))
    if (payment.confirmations >= topUp.confirmationsRequired) await restorePayment(batch, payment);
  for (const payment of others) if (isDue(payment, topUp)) await suspendPayment(batch, payment);
  return creditedMicros;
}

const isOpen = ({ status }: Payment): boolean => status === 'SEEN' || status === 'MINED';
const isReversed = ({ status }: Payment): boolean => status === 'REVERSED' || status === 'WRITTEN_OFF';
const isDue = (payment: Payment, { confirmationsRequired }: TopUp): boolean =>
  isOpen(payment) && payment.confirmations >= Math.max(1, confirmationsRequired);
const isLive = (payment: Payment): boolean => isOpen(payment) || payment.status === 'CREDITED';

/** The first payment reopens a top-up that was over. It is late, unless the service only noticed it late. */
function begin(settling: Settling): Conclusion {
  const { topUp, own } = settling;
  const first = own.find(isLive);
  if (!first || topUp.status === 'CONFIRMING' || topUp.status === 'CONFIRMED')
    return { settling, to: undefined, set: {} };
  const late = topUp.status === 'CANCELLED' || first.seenAt > topUp.expiresAt!;
  return { settling, to: 'CONFIRMING', set: { ...seenOf(settling), ...(late && { paymentException: 'LATE' }) } };
}

function conclude(settling: Settling, batch: SettlementBatch, creditedMicros: bigint): Conclusion {
  const { topUp, own, decimals } = settling;
  const live = own.filter(isLive);
  const credited = live.filter(({ status }) => status === 'CREDITED');
  const creditedUnits = sumOf(credited);
  const dueUnits = parseUnits(topUp.amountCrypto, decimals);
  const isOver = topUp.expiresAt! <= batch.now || topUp.paymentException === 'LATE';
  const set = { ...seenOf(settling), creditedMicros };
  if (topUp.status === 'PENDING' && isOver) return { settling, to: 'EXPIRED', set: {} };
  if (topUp.status === 'CONFIRMING' && isOver && !live.length) return { settling, to: 'EXPIRED', set };
  const isComplete = creditedUnits >= dueUnits || (isOver && credited.length > 0 && credited.length === live.length);
  const paymentException = exceptionOf(topUp, credited, creditedUnits, dueUnits);
  if (topUp.status === 'CONFIRMING' && isComplete)
    return { settling, to: 'CONFIRMED', set: { ...set, paymentException, ...confirm(batch, topUp, creditedMicros) } };
  return { settling, to: undefined, set: topUp.status === 'CONFIRMED' ? { ...set, paymentException } : set };
}

function exceptionOf(topUp: TopUp, credited: Payment[], creditedUnits: bigint, dueUnits: bigint) {
  if (topUp.paymentException === 'LATE' || credited.some(({ seenAt }) => seenAt > topUp.expiresAt!)) return 'LATE';
  if (creditedUnits > dueUnits) return 'OVERPAID';
  return creditedUnits < dueUnits ? 'UNDERPAID' : null;
}

/** The columns of a top-up that show its payments. */
function seenOf({ topUp, own, decimals }: Settling): ChangedColumns<TopUp> {
  const live = own.filter(isLive);
  const open = live.filter(isOpen).map(({ confirmations }) => confirmations);
  const lowest = live.length ? Math.min(topUp.confirmationsRequired, ...open) : 0;
  return {
    receivedCrypto: formatUnits(sumOf(live), decimals),
    confirmations: lowest,
    txIds: [...new Set(live.map(({ txId }) => txId))],
  };
}
const sumOf = (payments: Payment[]): bigint => payments.reduce((sum, { units }) => sum + BigInt(units), 0n);

const least = (a: bigint, b: bigint): bigint => (a < b ? a : b);

/** Posts the bonus: for the credited amount, and at most for the requested one. */
function confirm({ now, postings }: SettlementBatch, topUp: TopUp, creditedMicros: bigint): ChangedColumns<TopUp> {
  const full = creditedMicros >= topUp.amountMicros;
  const bonus = full ? topUp.bonusMicros : least(topUp.bonusMicros, bonusMicros(creditedMicros));
  postings.push(bonusPosting(topUp, bonus));
  return { bonusMicros: bonus, creditedMicros: creditedMicros + bonus, confirmedAt: now };
}

/** Writes new columns of a top-up that keeps its state. */
async function show(tx: Transaction, topUp: TopUp, set: ChangedColumns<TopUp>): Promise<TopUp> {
  const changed = Object.entries(set).some(([name, value]) => String(topUp[name as keyof TopUp]) !== String(value));
  if (!changed) return topUp;
  await update(tx, TopUp, { id: topUp.id }, set);
  tx.changed({ kind: 'topUp', accountId: topUp.accountId, id: topUp.orderNumber });
  return { ...topUp, ...set };
}
