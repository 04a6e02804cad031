/**
 * Brings a top-up to where its payments are: it credits those that have confirmed, once each, and moves the state. Whoever
 * has seen something new calls it; called again, it changes nothing.
 */
import { SYSTEM } from '../../entities/audit.ts';
import type { Transaction } from '../../entities/database.ts';
import { columnsOf } from '../../entities/entity.ts';
import { available, BONUS, postAll } from '../../entities/ledger.ts';
import { keepPayments, lockPayments, type Payment } from '../../entities/payment.ts';
import { bonusMicros, TOP_UP_LIFECYCLE, TopUp, type TopUpStatus } from '../../entities/top-up.ts';
import { transition } from '../../entities/transition.ts';
import { RESUME_TASK } from '../servers/renew.ts';
import { retrySuspended, suspendedAmong } from '../servers/resume.ts';
import { formatUnits, parseUnits } from './amount.ts';
import { type AccountPosting, creditPayment, restorePayment, suspendPayment, type Till } from './credit.ts';
import type { Worths } from './rates.ts';

/** @param worths of all coins, as they are now; while the coin of the top-up is not among them, its payments wait */
export async function settleTopUp(tx: Transaction, orderNumber: string, worths: Worths): Promise<TopUp | undefined> {
  return (await settleTopUps(tx, [orderNumber], worths))[0];
}

/** The same for many, in fewer statements than one by one. */
export async function settleTopUps(tx: Transaction, orderNumbers: readonly string[], worths: Worths): Promise<TopUp[]> {
  const found = await tx.query<TopUp>(
    `select ${columnsOf(TopUp)} from top_up where order_number = any($1) and mode = 'CRYPTO' order by order_number for update`,
    [orderNumbers],
  );
  const known = found.filter(({ crypto }) => worths.has(crypto));
  const payments = await lockPayments(
    tx,
    known.map(({ orderNumber }) => orderNumber),
  );
  const before = new Map(payments.map(({ id, status }) => [id, status]));
  const own = Map.groupBy(payments, ({ orderNumber }) => orderNumber);
  const postings: AccountPosting[] = [];
  const settled: TopUp[] = [];
  const credited = new Set<string>();
  for (const topUp of known) {
    const after = await settle({ tx, worths, postings }, topUp, own.get(topUp.orderNumber) ?? []);
    if (after.creditedMicros > topUp.creditedMicros) credited.add(after.accountId);
    settled.push(after);
  }
  await keepPayments(
    tx,
    payments.filter(({ id, status }) => before.get(id) !== status),
  );
  await postAll(tx, postings);
  for (const accountId of await suspendedAmong(tx, credited)) await retrySuspended(tx, accountId, RESUME_TASK);
  return settled;
}

/** @param topUp and @param payments as they are, under their locks */
async function settle(till: Till, topUp: TopUp, payments: Payment[]): Promise<TopUp> {
  const { decimals } = till.worths.get(topUp.crypto)!;
  const own = payments.filter(({ coin }) => coin === topUp.crypto);
  const started = await begin(till.tx, topUp, own, decimals);
  let creditedMicros = started.creditedMicros;
  for (const payment of own.filter((one) => isDue(one, topUp)))
    creditedMicros += creditPayment(till, started, payment, own);
  for (const payment of own.filter(({ status, blockHash }) => status === 'REVERSED' && blockHash !== null))
    if (payment.confirmations >= topUp.confirmationsRequired) await restorePayment(till, payment);
  for (const payment of payments.filter(({ coin }) => coin !== topUp.crypto))
    if (isDue(payment, topUp)) await suspendPayment(till, payment);
  return conclude(till, started, own, decimals, creditedMicros);
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

async function conclude(
  till: Till,
  topUp: TopUp,
  payments: Payment[],
  decimals: number,
  creditedMicros: bigint,
): Promise<TopUp> {
  const { tx } = till;
  const live = payments.filter(isLive);
  const credited = live.filter(({ status }) => status === 'CREDITED');
  const creditedUnits = sumOf(credited);
  const dueUnits = parseUnits(topUp.amountCrypto, decimals);
  const isOver = topUp.expiresAt! <= new Date() || topUp.paymentException === 'LATE';
  const set = { ...seenOf(topUp, payments, decimals), creditedMicros };
  if (topUp.status === 'PENDING' && isOver) return move(tx, topUp, 'EXPIRED');
  if (topUp.status === 'CONFIRMING' && isOver && !live.length) return move(tx, topUp, 'EXPIRED', set);
  const isComplete = creditedUnits >= dueUnits || (isOver && credited.length > 0 && credited.length === live.length);
  const exception = exceptionOf(topUp, credited, creditedUnits, dueUnits);
  if (topUp.status === 'CONFIRMING' && isComplete) return confirm(till, topUp, { ...set, paymentException: exception });
  return update(tx, topUp, topUp.status === 'CONFIRMED' ? { ...set, paymentException: exception } : set);
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
async function confirm(
  { tx, postings }: Till,
  topUp: TopUp,
  { creditedMicros, ...set }: Partial<TopUp> & Pick<TopUp, 'creditedMicros'>,
): Promise<TopUp> {
  const { accountId, orderNumber, amountMicros } = topUp;
  const full = creditedMicros >= amountMicros;
  const bonus = full ? topUp.bonusMicros : least(topUp.bonusMicros, bonusMicros(creditedMicros));
  postings.push({
    accountId,
    kind: 'bonus',
    debit: BONUS,
    credit: available(accountId),
    amountMicros: bonus,
    externalKey: `bonus:${orderNumber}`,
    orderNumber,
    description: 'Bonus',
  });
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
