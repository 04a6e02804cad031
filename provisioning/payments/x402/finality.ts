/**
 * Watches a credited payment by x402 until its block is final. A reorganisation before that may remove the payment. Then the
 * worker settles it again, which the same signature allows. It reverses the payment only when the chain can never move it.
 * Then the signature has expired, or the payer has used it otherwise.
 */
import type { Transaction } from '../../../entities/database/transaction.ts';
import {
  FINISH_PAYMENT,
  lockPayment,
  moveX402,
  type X402Payment,
  x402Key,
} from '../../../entities/payments/x402-payment.ts';
import { done, nap, type Outcome } from '../../tasks/tasks.ts';
import { reverse } from '../chains/reversal.ts';
import { tell } from '../top-ups/credit.ts';
import type { X402 } from './x402.ts';

/** Misses in a row before the worker acts, because one node may lag behind another. */
const MISSED_MAX = 3;

/** A step of the task of a SETTLED payment. @param missed how often in a row the chain did not have it */
export async function checkFinality(
  x402: X402,
  payment: X402Payment,
  { missed = 0 }: { missed?: number },
  seconds: number,
): Promise<Outcome> {
  const settlement = await x402.observe(payment);
  if (settlement.state === 'settled') {
    const { txId } = settlement;
    if (await x402.isFinal(txId)) return done({ commit: (tx) => FINISH_PAYMENT.all(tx, [payment.id, txId]) });
    return nap(seconds, { data: { missed: 0 } });
  }
  if (missed + 1 >= MISSED_MAX) {
    if (settlement.state === 'dead') return done({ commit: (tx) => reversePayment(tx, payment) });
    await x402.settleAgain(payment);
  }
  return nap(seconds, { data: { missed: missed + 1 } });
}

async function reversePayment(tx: Transaction, { id, accountId: payer }: X402Payment): Promise<void> {
  const payment = await lockPayment(tx, id, payer);
  if (payment.status !== 'SETTLED') return;
  const { accountId, orderNumber, amountMicros: creditedMicros, network, txId } = payment;
  const reversed = { accountId, orderNumber, creditedMicros, key: x402Key(payment) };
  const reversedMicros = await reverse(tx, reversed, 'Payment by x402');
  await moveX402(tx, payment, 'REVERSED', { reversedMicros });
  await tell(tx, { id, orderNumber, network, txId: txId! }, 'payment.reversed');
}
