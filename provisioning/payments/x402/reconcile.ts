/**
 * Looks after a payment by x402 until the chain has moved the money and cannot take it back, or never will. What its request
 * has credited already is credited once. What was made of it before anybody knew (a server that is PENDING, a top-up that is
 * CONFIRMING) goes on, or fails; a request that died before it made anything leaves the money in the balance, and makes it when it comes again.
 */

import type { Database } from '../../../entities/database/database.ts';
import { columnsOf } from '../../../entities/database/table.ts';
import type { Transaction } from '../../../entities/database/transaction.ts';
import { SYSTEM } from '../../../entities/history/audit.ts';
import { transition } from '../../../entities/history/transition.ts';
import { available, BONUS, held, lockAvailable, post } from '../../../entities/payments/ledger.ts';
import { TOP_UP_LIFECYCLE, TopUp } from '../../../entities/payments/top-up.ts';
import {
  creditPayment,
  findX402Payment,
  lockPayment,
  moveX402,
  type X402Payment,
} from '../../../entities/payments/x402-payment.ts';
import { lockServerSql, SERVER_LIFECYCLE, Server } from '../../../entities/servers/server.ts';
import { RESUME_TASK } from '../../servers/billing/renew.ts';
import { retrySuspended } from '../../servers/steps/resume.ts';
import { serverTask } from '../../servers/steps/task.ts';
import { Conflict, done, hop, nap, type Process, startTask } from '../../tasks/tasks.ts';
import { TOP_UP_LANE } from '../top-ups/await-payment.ts';
import { checkFinality } from './finality.ts';
import type { X402 } from './x402.ts';

/** How many looks at a payment that is under way are one at a payment that is credited. */
const RARER = 4;

export const x402Process = (db: Database, x402: X402, pollSeconds: number): Process => ({
  lane: TOP_UP_LANE,
  attemptsMax: Number.MAX_SAFE_INTEGER,
  backoffSeconds: (attempt) => Math.min(300, pollSeconds * 2 ** attempt),
  steps: {
    watch: async ({ subject, data }) => {
      const payment = await findX402Payment(db, subject);
      if (payment?.status !== 'SETTLING' && (payment?.status !== 'SETTLED' || payment.finalAt)) return done();
      if (!x402.isOurs(payment)) throw new Error(`The chain ${payment.network} of ${payment.asset} is not configured.`);
      if (payment.status === 'SETTLED') {
        const seconds = Math.max(RARER * pollSeconds, restSeconds(payment, pollSeconds));
        return checkFinality(x402, payment, data, seconds);
      }
      const settlement = await x402.observe(payment);
      if (settlement.state === 'open') {
        // Something was promised, and no request is at it any more: who should have settled it may have been away.
        if (payment.orderNumber && isDue(payment)) await x402.settleAgain(payment);
        return nap(restSeconds(payment, pollSeconds));
      }
      if (settlement.state === 'dead') return done({ commit: (tx) => failed(tx, payment) });
      return hop('watch', { commit: (tx) => settled(tx, payment, settlement.txId) });
    },
  },
});

const AGAIN_AFTER_MS = 10_000;

/** Not at each look: what was sent may take its time. */
const isDue = ({ leaseUntil, createdAt }: X402Payment): boolean =>
  leaseUntil.getTime() <= Date.now() && Date.now() - createdAt.getTime() > AGAIN_AFTER_MS;

/** Asked ever more seldom: some authorizations are good for years. */
const restSeconds = ({ createdAt }: X402Payment, pollSeconds: number): number =>
  Math.max(pollSeconds, Math.min(300, (Date.now() - createdAt.getTime()) / 10_000));

async function settled(tx: Transaction, { id, accountId }: X402Payment, txId: string): Promise<void> {
  const payment = await lockPayment(tx, id, accountId);
  if (payment.status !== 'SETTLING') return;
  const { orderNumber } = payment;
  const server = orderNumber?.startsWith('SRV') ? await lockPending(tx, orderNumber) : undefined;
  await moveX402(tx, payment, 'SETTLED', { txId });
  await creditPayment(tx, payment, orderNumber ?? undefined);
  const isCovered = server && (await covers(tx, server));
  if (isCovered) await hold(tx, server, payment.credentialId);
  else if (server)
    await failServer(tx, server.orderNumber, 'The payment does not cover the price any more. It is in the balance.');
  if (orderNumber?.startsWith('TOP')) await confirmPaidTopUp(tx, await readTopUp(tx, orderNumber), txId);
  if (isCovered) await startTask(tx, serverTask(server));
  await retrySuspended(tx, accountId, RESUME_TASK);
}

async function failed(tx: Transaction, { id, accountId }: X402Payment): Promise<void> {
  const payment = await lockPayment(tx, id, accountId);
  const { status, orderNumber } = payment;
  if (status !== 'SETTLING') return;
  await moveX402(tx, payment, 'FAILED');
  if (orderNumber?.startsWith('TOP')) await transition(tx, TOP_UP_LIFECYCLE, orderNumber, 'EXPIRED', { actor: SYSTEM });
  if (orderNumber?.startsWith('SRV'))
    await failServer(tx, orderNumber, 'The payment was never settled. Nothing was taken.');
}

const failServer = (tx: Transaction, orderNumber: string, failureMessage: string) =>
  transition(tx, SERVER_LIFECYCLE, orderNumber, 'FAILED', {
    actor: SYSTEM,
    set: { failureCode: 'payment_failed', failureMessage, rootPassword: null },
  });

/** A server that waits for its payment; undefined if it was deleted meanwhile. */
async function lockPending(tx: Transaction, orderNumber: string): Promise<Server | undefined> {
  const [server] = await tx.query<Server>(lockServerSql(columnsOf(Server), `status = 'PENDING'`), [orderNumber]);
  return server;
}

/** Whether the balance has the price, which may have been raised before the order. */
async function covers(tx: Transaction, { accountId, priceMonthMicros, setupFeeMicros }: Server): Promise<boolean> {
  return (await lockAvailable(tx, accountId)) >= priceMonthMicros + setupFeeMicros;
}

/** What the statement of an order that is paid at once does itself. */
const hold = (tx: Transaction, server: Server, credentialId: string | null): Promise<number> =>
  post(tx, server.accountId, [
    {
      kind: 'hold',
      debit: available(server.accountId),
      credit: held(server.accountId),
      amountMicros: server.priceMonthMicros + server.setupFeeMicros,
      externalKey: `hold:${server.orderNumber}`,
      orderNumber: server.orderNumber,
      serviceCode: server.serviceCode,
      description: `Order of ${server.serviceCode}`,
      ...(credentialId !== null && { credentialId }),
    },
  ]);

/** Confirms a top-up whose payment was credited, and adds its bonus. */
export async function confirmPaidTopUp(tx: Transaction, topUp: TopUp, txId: string): Promise<TopUp> {
  const { accountId, orderNumber, amountMicros, bonusMicros, amountCrypto, confirmationsRequired } = topUp;
  await post(tx, accountId, [
    {
      kind: 'bonus',
      debit: BONUS,
      credit: available(accountId),
      amountMicros: bonusMicros,
      externalKey: `bonus:${orderNumber}`,
      orderNumber,
      description: 'Bonus',
    },
  ]);
  const set = {
    receivedCrypto: amountCrypto,
    confirmations: confirmationsRequired,
    txIds: [txId],
    creditedMicros: amountMicros + bonusMicros,
    confirmedAt: new Date(),
  };
  const confirmed = await transition(tx, TOP_UP_LIFECYCLE, orderNumber, 'CONFIRMED', { actor: SYSTEM, set });
  if (!confirmed) throw new Conflict(`${orderNumber} could not become CONFIRMED.`);
  return confirmed;
}

const readTopUp = async (tx: Transaction, orderNumber: string): Promise<TopUp> =>
  (await tx.query<TopUp>(`select ${columnsOf(TopUp)} from top_up where order_number = $1`, [orderNumber]))[0]!;
