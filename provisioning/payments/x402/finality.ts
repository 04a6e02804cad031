/**
 * What was credited of a payment by x402 is looked at until its block is safe. A reorganisation before that may take the money
 * back: then it is asked for again, which the same signature allows, and only when the chain never will move it any more (it
 * is too late, or the payer has used the signature otherwise) it is taken out of the balance.
 */
import type { Transaction } from '../../../entities/database/transaction.ts';
import {
  finishPayment,
  lockPayment,
  moveX402,
  type X402Payment,
  x402Key,
} from '../../../entities/payments/x402-payment.ts';
import { done, nap, type Outcome } from '../../tasks/tasks.ts';
import { reverse } from '../chains/reversal.ts';
import { tell } from '../top-ups/credit.ts';
import type { X402 } from './x402.ts';

/** How often in a row the money is not there before anything is done: a node may lag behind the one before. */
const MISSED_MAX = 3;

/** A step of the task of a payment that is SETTLED. @param missed how often in a row the chain has not had it */
export async function checkFinality(
  x402: X402,
  payment: X402Payment,
  { missed = 0 }: { missed?: number },
  seconds: number,
): Promise<Outcome> {
  const settlement = await x402.observe(payment);
  if (settlement.state === 'settled') {
    const { txId } = settlement;
    if (await x402.isFinal(txId)) return done({ commit: (tx) => finishPayment(tx, payment.id, txId) });
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
