/**
 * Brings a top-up to where its payments are: it credits those that have confirmed, once each, and moves the state. Whoever
 * has seen something new calls it; called again, it changes nothing.
 */
import { SYSTEM } from '../../entities/audit.ts';
import type { Transaction } from '../../entities/database.ts';
import { columnsOf } from '../../entities/entity.ts';
import { available, BONUS, post } from '../../entities/ledger.ts';
import { lockPayments, type Payment } from '../../entities/payment.ts';
import { bonusMicros, TOP_UP_LIFECYCLE, TopUp, type TopUpStatus } from '../../entities/top-up.ts';
import { transition } from '../../entities/transition.ts';
import { RESUME_TASK } from '../servers/renew.ts';
import { retrySuspended } from '../servers/resume.ts';
import { formatUnits, parseUnits } from './amount.ts';
import { creditPayment, restorePayment, suspendPayment } from './credit.ts';
import type { Worths } from './rates/worth.ts';

/** @param worths of all coins, as they are now; while the coin of the top-up is not among them, its payments wait */
export async function settleTopUp(tx: Transaction, orderNumber: string, worths: Worths): Promise<TopUp | undefined> {
  const [found] = await tx.query<TopUp>(
    `select ${columnsOf(TopUp)} from top_up where order_number = $1 and mode = 'CRYPTO' for update`,
    [orderNumber],
  );
  const { decimals } = (found && worths.get(found.crypto)) ?? {};
  if (!found || decimals === undefined) return undefined;
  const payments = await lockPayments(tx, orderNumber);
  const own = payments.filter(({ coin }) => coin === found.crypto);
  const started = await begin(tx, found, own, decimals);
  let credited = 0;
  for (const payment of own.filter((one) => isDue(one, found)))
    credited += Number(await creditPayment(tx, started, payment, own, worths));
  for (const payment of own.filter(({ status, blockHash }) => status === 'REVERSED' && blockHash !== null))
    if (payment.confirmations >= found.confirmationsRequired) await restorePayment(tx, payment);
  for (const payment of payments.filter(({ coin }) => coin !== found.crypto))
    if (isDue(payment, found)) await suspendPayment(tx, payment, worths);
  const topUp = await conclude(tx, started, own, decimals);
  if (credited) await retrySuspended(tx, topUp.accountId, RESUME_TASK);
  return topUp;
}

const isOpen = ({ status }: Payment): boolean => status === 'SEEN' || status === 'MINED';
const isDue = (payment: Payment, { confirmationsRequired }: TopUp): boolean =>
  isOpen(payment) && payment.confirmations >= Math.max(1, confirmationsRequired);
const isLive = (payment: Payment): boolean => isOpen(payment) || payment.status === 'CREDITED';

/** The first payment opens a top-up again that was over: as a late one, unless it only was noticed late. */
async function begin(tx: Transaction, topUp: TopUp, payments: Payment[], decimals: number): Promise<TopUp> {
  const first = payments.find(isLive);
  if (!first || topUp.status === 'CONFIRMING' || topUp.status === 'CONFIRMED') return topUp;
  const late = topUp.status === 'CANCELLED' || first.seenAt > topUp.expiresAt!;
  return move(tx, topUp, 'CONFIRMING', {
    ...seenOf(topUp, payments, decimals),
    ...(late && { paymentException: 'LATE' }),
  });
}

async function conclude(tx: Transaction, topUp: TopUp, payments: Payment[], decimals: number): Promise<TopUp> {
  const live = payments.filter(isLive);
  const credited = live.filter(({ status }) => status === 'CREDITED');
  const creditedUnits = sumOf(credited);
  const dueUnits = parseUnits(topUp.amountCrypto, decimals);
  const isOver = topUp.expiresAt! <= new Date() || topUp.paymentException === 'LATE';
  const set = seenOf(topUp, payments, decimals);
  if (topUp.status === 'PENDING' && isOver) return move(tx, topUp, 'EXPIRED');
  if (topUp.status === 'CONFIRMING' && isOver && !live.length) return move(tx, topUp, 'EXPIRED', set);
  const isComplete = creditedUnits >= dueUnits || (isOver && credited.length > 0 && credited.length === live.length);
  const exception = exceptionOf(topUp, credited, creditedUnits, dueUnits);
  if (topUp.status === 'CONFIRMING' && isComplete) return confirm(tx, topUp, { ...set, paymentException: exception });
  if (topUp.status === 'CONFIRMED') set.paymentException = exception;
  return update(tx, topUp, set);
}

function exceptionOf(topUp: TopUp, credited: Payment[], creditedUnits: bigint, dueUnits: bigint) {
  if (topUp.paymentException === 'LATE' || credited.some(({ seenAt }) => seenAt > topUp.expiresAt!)) return 'LATE';
  if (creditedUnits > dueUnits) return 'OVERPAID';
  return creditedUnits < dueUnits ? 'UNDERPAID' : null;
}

/** What a top-up shows of its payments. */
function seenOf(topUp: TopUp, payments: Payment[], decimals: number): Partial<TopUp> {
  const live = payments.filter(isLive);
  const open = live.filter(isOpen).map(({ confirmations }) => confirmations);
  const lowest = live.length ? Math.min(topUp.confirmationsRequired, ...open) : 0;
  return {
    receivedCrypto: formatUnits(sumOf(live), decimals),
    confirmations: lowest,
    txIds: [...new Set(live.map(({ txId }) => txId))],
  };
}
const sumOf = (payments: Payment[]): bigint => payments.reduce((sum, { units }) => sum + BigInt(units), 0n);

/** The bonus is for what came, and never for more than was asked for. */
async function confirm(tx: Transaction, topUp: TopUp, set: Partial<TopUp>): Promise<TopUp> {
  const { accountId, orderNumber, amountMicros, creditedMicros } = topUp;
  const full = creditedMicros >= amountMicros;
  const bonus = full ? topUp.bonusMicros : least(topUp.bonusMicros, bonusMicros(creditedMicros));
  await post(tx, accountId, [
    {
      kind: 'bonus',
      debit: BONUS,
      credit: available(accountId),
      amountMicros: bonus,
      externalKey: `bonus:${orderNumber}`,
      orderNumber,
      description: 'Bonus',
    },
  ]);
  return move(tx, topUp, 'CONFIRMED', {
    ...set,
    bonusMicros: bonus,
    creditedMicros: creditedMicros + bonus,
    confirmedAt: new Date(),
  });
}
const least = (a: bigint, b: bigint): bigint => (a < b ? a : b);

async function move(tx: Transaction, topUp: TopUp, to: TopUpStatus, set: Partial<TopUp> = {}): Promise<TopUp> {
  const moved = await transition(tx, TOP_UP_LIFECYCLE, topUp.orderNumber, to, { actor: SYSTEM, set });
  if (!moved) throw new Error(`${topUp.orderNumber} could not become ${to}.`);
  return moved;
}

/** Shows what is new, where nothing of the state is. */
async function update(tx: Transaction, topUp: TopUp, set: Partial<TopUp>): Promise<TopUp> {
  const changed = Object.entries(set).some(([name, value]) => String(topUp[name as keyof TopUp]) !== String(value));
  if (!changed) return topUp;
  await tx.manager.update(TopUp, { id: topUp.id }, set);
  tx.changed({ kind: 'topUp', accountId: topUp.accountId, id: topUp.orderNumber });
  return { ...topUp, ...set };
}
