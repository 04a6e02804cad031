/**
 * Watches a payment by x402 until its block is final. The ledger credits it once, by the request or by this task. A
 * PENDING server or CONFIRMING top-up that the request made before the outcome then goes on, or fails. If the request died
 * before that, the money stays in the balance. The repeated request then makes the server or top-up.
 *
 * The payer of a dropped payment can still submit it. So the task looks again when the authorization has ended, and credits a
 * moved one.
 *
 * A reorganisation may remove a credited payment. Then the worker settles it again, which the same signature allows. It
 * reverses the payment only when the chain can never move it. Then the signature has expired, or the payer has used it
 * otherwise.
 */
import type { Database } from '../../../entities/database/database.ts';
import { find } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { expression, transition } from '../../../entities/history/transition.ts';
import {
  available,
  FIND_SPENDING,
  held,
  IS_SPENDER_DELETED,
  lockAvailable,
  post,
  postAll,
  type Spender,
} from '../../../entities/payments/ledger.ts';
import { isInBalance, movePayment } from '../../../entities/payments/payment.ts';
import { earnedMicros, TOP_UP_LIFECYCLE, TopUp } from '../../../entities/payments/top-up.ts';
import { lockX402, READ_PAYMENT, type X402Payment } from '../../../entities/payments/x402-authorization.ts';
import { LOCK_PENDING_SERVER } from '../../../entities/servers/lock.ts';
import { FIND_SUSPENDED_ACCOUNTS } from '../../../entities/servers/renewal.ts';
import { SERVER_LIFECYCLE, type Server } from '../../../entities/servers/server.ts';
import { PAYMENT_LANE } from '../../../entities/tasks/lane.ts';
import { startTask } from '../../../entities/tasks/start.ts';
import { RESUME_TASK } from '../../servers/billing/renew.ts';
import { retrySuspended } from '../../servers/billing/resume.ts';
import { serverTask } from '../../servers/task.ts';
import { Conflict, done, hop, nap, type Outcome, type Process } from '../../tasks/tasks.ts';
import { creditPosting, reversePayment } from '../suspense.ts';
import { bonusPosting } from '../top-ups/credit.ts';
import type { X402 } from './x402.ts';

/** The worker polls credited payments so many times less often than open ones. */
const FINALITY_POLL_FACTOR = 4;
/** Misses in a row before the worker acts on a removed payment, because one node may lag behind another. */
const MISSED_MAX = 3;
/** The worker settles again only after this time, because the first settlement may take so long. */
const AGAIN_AFTER_MS = 10_000;

export const x402Process = (db: Database, x402: X402, pollSeconds: number): Process => ({
  lane: PAYMENT_LANE,
  attemptsMax: Number.MAX_SAFE_INTEGER,
  backoffSeconds: (attempt) => Math.min(300, pollSeconds * 2 ** attempt),
  steps: {
    watch: async ({ subject, data }) => {
      const payment = await READ_PAYMENT.first(db, [subject]);
      const isCredited = payment && isInBalance(payment);
      if (!payment || payment.status === 'FINAL' || !(isCredited || mayMove(payment))) return done();
      // No chain can tell any more, and the signature has ended.
      if (payment.status === 'DROPPED' && !x402.isOurs(payment) && payment.validBefore < payment.readAt) return done();
      if (!x402.isOurs(payment)) throw new Error(`The chain ${payment.network} of ${payment.asset} is not configured.`);
      await x402.countRevertedGas(payment);
      if (isCredited) {
        const seconds = Math.max(FINALITY_POLL_FACTOR * pollSeconds, restSeconds(payment, pollSeconds));
        return checkFinality(x402, payment, data, seconds);
      }
      const settlement = await x402.observe(payment);
      if (settlement.state === 'open') {
        // An order waits for the payment, and no request settles it any more: the settling party may have been away.
        if (payment.orderNumber && isDue(payment)) await x402.settleAgain(payment);
        return nap(restSeconds(payment, pollSeconds));
      }
      if (settlement.state === 'dead') return done({ commit: (tx) => failed(tx, payment) });
      return hop('watch', { commit: (tx) => settled(tx, payment, settlement.txId) });
    },
  },
});

/** A step of the task of a credited payment. @param missed how often in a row the chain did not have it */
async function checkFinality(
  x402: X402,
  payment: X402Payment,
  { missed = 0 }: { missed?: number },
  seconds: number,
): Promise<Outcome> {
  const settlement = await x402.observe(payment);
  if (settlement.state === 'settled') {
    const { txId } = settlement;
    if (!(await x402.isFinal(txId))) return nap(seconds, { data: { missed: 0 } });
    const set = { txId, finalAt: expression('now()') };
    return done({ commit: async (tx) => void (await movePayment(tx, payment, 'FINAL', set)) });
  }
  if (missed + 1 >= MISSED_MAX) {
    if (settlement.state === 'dead') return done({ commit: (tx) => reversed(tx, payment) });
    await x402.settleAgain(payment);
  }
  return nap(seconds, { data: { missed: missed + 1 } });
}

type ReadPayment = X402Payment & { readAt: Date };

/** Whether the worker should settle the payment again: no request does, and the last settlement has had its time. */
const isDue = ({ leaseUntil, createdAt, readAt }: ReadPayment): boolean =>
  leaseUntil <= readAt && readAt.getTime() - createdAt.getTime() > AGAIN_AFTER_MS;

/** Whether the chain may yet credit it: it is open, or its payer can submit it. */
const mayMove = ({ status, orderNumber }: X402Payment): boolean =>
  status === 'OBSERVED' || (status === 'DROPPED' && orderNumber === null);

/**
 * The pause grows with the age of the payment, to a minute before its authorization ends. A dropped payment rests until that
 * end.
 */
function restSeconds({ status, createdAt, validBefore, readAt }: ReadPayment, pollSeconds: number): number {
  const secondsSince = (time: Date) => (readAt.getTime() - time.getTime()) / 1000;
  const rest = Math.max(pollSeconds, Math.min(300, secondsSince(createdAt) / 10));
  return status === 'DROPPED' ? Math.max(rest, -secondsSince(validBefore)) : rest;
}

async function settled(tx: Transaction, watched: X402Payment, txId: string): Promise<void> {
  const payment = await lockX402(tx, watched);
  if (!mayMove(payment)) return;
  const { accountId, orderNumber } = payment;
  await creditX402(tx, payment, txId);
  const server = orderNumber?.startsWith('SRV') ? await LOCK_PENDING_SERVER.first(tx, [orderNumber]) : undefined;
  const refusal = server && (await refusalOf(tx, server, payment));
  if (refusal) await failServer(tx, server.orderNumber, refusal);
  else if (server) await hold(tx, server, payment);
  if (orderNumber?.startsWith('TOP')) await confirmPaidTopUp(tx, (await find(tx, TopUp, { orderNumber }))!, txId);
  if (server && !refusal) await startTask(tx, serverTask(server));
  await retrySuspended(tx, [accountId], RESUME_TASK);
}

/** Credits a payment that the chain has moved. The statement of a paid request moves the payment itself. */
async function creditX402(tx: Transaction, payment: X402Payment, txId: string): Promise<void> {
  const micros = BigInt(payment.units);
  await movePayment(tx, payment, 'CREDITED', { txId, creditedMicros: micros, creditedAt: expression('now()') });
  await postAll(tx, [creditPosting(payment, micros)]);
}

async function reversed(tx: Transaction, watched: X402Payment): Promise<void> {
  const payment = await lockX402(tx, watched);
  if (isInBalance(payment)) await reversePayment(tx, payment);
}

async function failed(tx: Transaction, watched: X402Payment): Promise<void> {
  const payment = await lockX402(tx, watched);
  const { status, orderNumber } = payment;
  if (status !== 'OBSERVED') return;
  await movePayment(tx, payment, 'DROPPED');
  if (orderNumber?.startsWith('TOP')) await transition(tx, TOP_UP_LIFECYCLE, orderNumber, 'EXPIRED', { actor: SYSTEM });
  if (orderNumber?.startsWith('SRV'))
    await failServer(tx, orderNumber, 'The payment was never settled. Nothing was taken.');
}

const failServer = (tx: Transaction, orderNumber: string, failureMessage: string) =>
  transition(tx, SERVER_LIFECYCLE, orderNumber, 'FAILED', {
    actor: SYSTEM,
    set: { failureCode: 'payment_failed', failureMessage, rootPassword: null },
  });

/**
 * Why an order cannot go on. The operator raised its price, or suspended its account, or its OAuth client was deleted. Or other
 * orders used up the spending limit: an order counts into it only with its hold.
 */
async function refusalOf(
  tx: Transaction,
  server: Server,
  { credentialId, limitedBy }: Spender,
): Promise<string | undefined> {
  const price = priceMicros(server);
  if ((await lockAvailable(tx, server.accountId)) < price)
    return 'The payment does not cover the price any more. It is in the balance.';
  if ((await FIND_SUSPENDED_ACCOUNTS.all(tx, [[server.accountId]])).length)
    return 'The account was suspended before the payment came. The payment is in the balance.';
  const spenders = [credentialId, limitedBy].filter((id) => id !== null);
  if ((await IS_SPENDER_DELETED.first(tx, [spenders]))!.deleted)
    return 'The credential of the order was deleted before its payment came. The payment is in the balance.';
  const limits = await FIND_SPENDING.all(tx, [spenders]);
  if (limits.every(({ spentMicros, limitMicros }) => spentMicros + price <= limitMicros)) return undefined;
  return 'The spending limit of the credential does not cover the order any more. The payment is in the balance.';
}

const priceMicros = ({ priceMonthMicros, setupFeeMicros }: Server): bigint => priceMonthMicros + setupFeeMicros;

/** Holds the price. The statement of an order that is paid at once does this itself. */
const hold = (tx: Transaction, server: Server, { credentialId, limitedBy }: Spender): Promise<number> =>
  post(tx, server.accountId, {
    kind: 'hold',
    debit: available(server.accountId),
    credit: held(server.accountId),
    amountMicros: priceMicros(server),
    externalKey: `hold:${server.orderNumber}`,
    orderNumber: server.orderNumber,
    serviceCode: server.serviceCode,
    description: `Order of ${server.serviceCode}`,
    credentialId,
    limitedBy,
  });

/**
 * Confirms a top-up by x402 whose payment was credited, and posts its bonus.
 * @param paidOutMicros the part of the payment that payouts took before its request made the top-up
 */
export async function confirmPaidTopUp(
  tx: Transaction,
  topUp: TopUp,
  txId: string,
  paidOutMicros = 0n,
): Promise<TopUp> {
  const { accountId, orderNumber, amountMicros, bonusMicros, amountCrypto, confirmationsRequired } = topUp;
  const earned = earnedMicros(topUp, amountMicros - paidOutMicros);
  await post(tx, accountId, bonusPosting(topUp, earned));
  const set = {
    receivedCrypto: amountCrypto,
    confirmations: confirmationsRequired,
    txIds: [txId],
    creditedMicros: amountMicros + earned,
    reversedBonusMicros: bonusMicros - earned,
    confirmedAt: expression('now()'),
  };
  const confirmed = await transition(tx, TOP_UP_LIFECYCLE, orderNumber, 'CONFIRMED', { actor: SYSTEM, set });
  if (!confirmed) throw new Conflict(`${orderNumber} could not become CONFIRMED.`);
  return confirmed;
}
