/**
 * Settles top-ups: it credits confirmed payments, once each, and moves the state. A caller that has observed something new
 * calls it; called again, it changes nothing.
 */
import { type ChangedColumns, update } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { recordAll } from '../../../entities/history/record.ts';
import { transitionAll } from '../../../entities/history/transition.ts';
import { presentTiers } from '../../../entities/payments/bonus.ts';
import { lockAccount, postAll } from '../../../entities/payments/ledger.ts';
import { isInBalance, keepPayments, LOCK_DUE_PAYMENTS, type Payment } from '../../../entities/payments/payment.ts';
import {
  earnedMicros,
  FIND_TOP_UP_ACCOUNTS,
  LOCK_COIN_TOP_UPS,
  leastTerms,
  type PaidSums,
  TOP_UP_LIFECYCLE,
  TopUp,
  type TopUpStatus,
} from '../../../entities/payments/top-up.ts';
import { RESUME_TASK } from '../../servers/billing/renew.ts';
import { retrySuspended } from '../../servers/billing/resume.ts';
import { confirmationsOf, type ExchangeRates } from '../exchange-rates/exchange-rate.ts';
import { formatUnits, parseUnits } from './amount.ts';
import { bonusPosting, creditPayment, lateNews, type SettlementBatch, suspendPayment } from './credit.ts';

/** Payments of one transaction. More would hold its locks for long. */
const PAYMENTS_MAX = 500;

export interface Settled {
  topUps: TopUp[];
  /** Whether further payments wait for another settlement. */
  isPartial: boolean;
}

/**
 * Settles many top-ups in fewer statements than one by one.
 * @param exchangeRates the present rates of all coins. The payments of a top-up wait while its coin is not among them.
 */
export async function settleTopUps(
  tx: Transaction,
  orderNumbers: readonly string[],
  exchangeRates: ExchangeRates,
): Promise<Settled> {
  const { accountIds, now } = (await FIND_TOP_UP_ACCOUNTS.first(tx, [orderNumbers]))!;
  await lockAccount(tx, ...accountIds);
  const coins = [...exchangeRates.keys()];
  const rated = new Map([...exchangeRates].filter(([, { spotMicros }]) => spotMicros !== null));
  const payments = await LOCK_DUE_PAYMENTS.all(tx, [orderNumbers, coins, confirmationsOf(rated), PAYMENTS_MAX]);
  const found = await LOCK_COIN_TOP_UPS.all(tx, [orderNumbers]);
  const known = found.filter(({ crypto }) => exchangeRates.has(crypto));
  const statuses = new Map(payments.map(({ id, status }) => [id, status]));
  const paid = Map.groupBy(payments, ({ orderNumber }) => orderNumber);
  const all = known.map((row): Settling => {
    const { decimals } = exchangeRates.get(row.crypto)!;
    const [liveUnits, creditedUnits] = [BigInt(row.liveUnits), BigInt(row.creditedUnits)];
    const sums: Sums = { ...row, liveUnits, creditedUnits, quotedUnits: BigInt(row.quotedUnits) };
    return { topUp: row, due: paid.get(row.orderNumber) ?? [], sums, decimals };
  });
  await moveAll(tx, all.map(begin));
  const bonusTiers = await presentTiers(tx);
  const batch: SettlementBatch = { now, exchangeRates, bonusTiers, postings: [], news: [], late: [] };
  const conclusions = all.map((one) => conclude(one, batch, settlePayments(one, batch)));
  await moveAll(tx, conclusions);
  for (const { settling, to, set } of conclusions) if (!to) settling.topUp = await show(tx, settling.topUp, set);
  const settled = payments.filter(({ id, status }) => statuses.get(id) !== status);
  await keepPayments(tx, settled);
  await postAll(tx, batch.postings);
  await recordAll(tx, [...batch.news, ...lateNews(batch.late)]);
  const credited = batch.postings.filter(({ kind }) => kind === 'topup').map(({ accountId }) => accountId);
  await retrySuspended(tx, credited, RESUME_TASK);
  return { topUps: all.map(({ topUp }) => topUp), isPartial: payments.length === PAYMENTS_MAX && settled.length > 0 };
}

/** The sums of the payments of a top-up, with units as numbers. */
type Sums = Omit<PaidSums, UnitSum> & Record<UnitSum, bigint>;
type UnitSum = 'liveUnits' | 'creditedUnits' | 'quotedUnits';

/** A locked top-up with payments to settle. */
interface Settling {
  topUp: TopUp;
  due: Payment[];
  sums: Sums;
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
function settlePayments({ topUp, due, sums }: Settling, batch: SettlementBatch): bigint {
  let { creditedMicros } = topUp;
  for (const payment of due) {
    if (!isDue(payment, topUp, batch.exchangeRates)) continue;
    if (payment.coin !== topUp.crypto) suspendPayment(batch, payment);
    else {
      creditedMicros += creditPayment(batch, topUp, payment, sums.quotedUnits);
      if (!isOpen(payment)) count(sums, payment);
    }
  }
  return creditedMicros;
}

const isOpen = ({ status }: Payment): boolean => status === 'OBSERVED' || status === 'CONFIRMING';
/** Another transaction may have taken the payment out of its block until it was locked. */
function isDue(payment: Payment, topUp: TopUp, exchangeRates: ExchangeRates): boolean {
  const { confirmationsRequired } = payment.coin === topUp.crypto ? topUp : exchangeRates.get(payment.coin)!;
  return isOpen(payment) && payment.confirmations >= Math.max(1, confirmationsRequired);
}

/** A payment that is credited so long after its quote gets the bonus of today, if that is less. */
const OLD_MS = 86_400_000;

/** Counts an open payment that is now in the balance or in suspense. */
function count(sums: Sums, payment: Payment): void {
  const { units, quotedUnits, creditedMicros, seenAt, txId } = payment;
  sums.openPayments--;
  sums.quotedUnits += BigInt(quotedUnits!);
  if (!isInBalance(payment)) {
    sums.goneMicros += creditedMicros;
    sums.liveUnits -= BigInt(units);
    sums.liveTxIds = sums.liveTxIds.filter((shown) => shown !== txId);
    return;
  }
  sums.creditedPayments++;
  sums.creditedUnits += BigInt(units);
  sums.paidMicros += creditedMicros;
  if (!sums.lastCreditedSeenAt || seenAt > sums.lastCreditedSeenAt) sums.lastCreditedSeenAt = seenAt;
}

/** The first payment reopens a top-up that was over. It is late, unless the service only noticed it late. */
function begin(settling: Settling): Conclusion {
  const { topUp, sums } = settling;
  if (!sums.firstSeenAt || topUp.status === 'CONFIRMING' || topUp.status === 'CONFIRMED')
    return { settling, to: undefined, set: {} };
  const late = topUp.status === 'CANCELLED' || sums.firstSeenAt > topUp.expiresAt!;
  return { settling, to: 'CONFIRMING', set: { ...seenOf(settling), ...(late && { paymentException: 'LATE' }) } };
}

function conclude(settling: Settling, batch: SettlementBatch, creditedMicros: bigint): Conclusion {
  const { topUp, sums, decimals } = settling;
  const dueUnits = parseUnits(topUp.amountCrypto, decimals);
  const isOver = topUp.expiresAt! <= batch.now || topUp.paymentException === 'LATE';
  const set = { ...seenOf(settling), creditedMicros };
  if (topUp.status === 'PENDING' && isOver) return { settling, to: 'EXPIRED', set: {} };
  const { openPayments, creditedPayments, creditedUnits } = sums;
  if (topUp.status === 'CONFIRMING' && isOver && !openPayments && !creditedPayments)
    return { settling, to: 'EXPIRED', set };
  const isComplete = creditedUnits >= dueUnits || (isOver && creditedPayments > 0 && !openPayments);
  const paymentException = exceptionOf(topUp, sums, dueUnits);
  if (topUp.status === 'CONFIRMING' && isComplete)
    return {
      settling,
      to: 'CONFIRMED',
      set: { ...set, paymentException, ...confirm(batch, settling, creditedMicros, paymentException === 'LATE') },
    };
  return { settling, to: undefined, set: topUp.status === 'CONFIRMED' ? { ...set, paymentException } : set };
}

function exceptionOf(
  { paymentException, expiresAt }: TopUp,
  { lastCreditedSeenAt, creditedUnits }: Sums,
  dueUnits: bigint,
) {
  if (paymentException === 'LATE' || (lastCreditedSeenAt && lastCreditedSeenAt > expiresAt!)) return 'LATE';
  if (creditedUnits > dueUnits) return 'OVERPAID';
  return creditedUnits < dueUnits ? 'UNDERPAID' : null;
}

/** The columns of a top-up that show its payments. */
function seenOf({ topUp, sums, decimals }: Settling): ChangedColumns<TopUp> {
  const { liveUnits, openPayments, creditedPayments, leastConfirmations, liveTxIds } = sums;
  const required = topUp.confirmationsRequired;
  return {
    receivedCrypto: formatUnits(liveUnits, decimals),
    // Payments that this settlement credits have no fewer confirmations than required.
    confirmations: openPayments || creditedPayments ? Math.min(required, leastConfirmations ?? required) : 0,
    txIds: [...new Set(liveTxIds)],
  };
}

/**
 * Posts the bonus for the payments in the balance. The chain may have removed others after their credit, others may be held, or a
 * payout took them. Their part of the bonus comes when they come back. Late payments earn no steps that have ended meanwhile.
 * Payments that the mempool lost, or that were held, earn none either once they are old.
 */
function confirm(
  { now, postings, bonusTiers: present }: SettlementBatch,
  { topUp, sums }: Settling,
  creditedMicros: bigint,
  isLate: boolean,
) {
  const { paidMicros, goneMicros } = sums;
  const allMicros = paidMicros + goneMicros;
  const isOld = topUp.expiresAt !== null && now.getTime() - topUp.expiresAt.getTime() > OLD_MS;
  const terms = isLate || isOld ? leastTerms(topUp, present, allMicros) : topUp;
  const bonus = earnedMicros(terms, paidMicros);
  const bonusMicros = earnedMicros(terms, allMicros);
  postings.push(bonusPosting(topUp, bonus));
  const reversedBonusMicros = bonusMicros - bonus;
  const { bonusTiers } = terms;
  return { bonusTiers, bonusMicros, reversedBonusMicros, creditedMicros: creditedMicros + bonus, confirmedAt: now };
}

/** Writes new columns of a top-up that keeps its state. */
async function show(tx: Transaction, topUp: TopUp, set: ChangedColumns<TopUp>): Promise<TopUp> {
  const changed = Object.entries(set).some(([name, value]) => String(topUp[name as keyof TopUp]) !== String(value));
  if (!changed) return topUp;
  await update(tx, TopUp, { id: topUp.id }, set);
  tx.changed({ kind: 'topUp', accountId: topUp.accountId, id: topUp.orderNumber });
  return { ...topUp, ...set };
}
