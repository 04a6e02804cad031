/** Unmatched and reversed payments by x402, and the operator's decisions about them. */
import type { Transaction } from '../../../entities/database/transaction.ts';
import { available, gateway, post, SUSPENSE } from '../../../entities/payments/ledger.ts';
import { moveX402, type X402Payment, x402Key } from '../../../entities/payments/x402-payment.ts';
import { startTask } from '../../../entities/tasks/start.ts';
import { writeOff } from '../chains/reversal.ts';
import { tell } from '../top-ups/credit.ts';
import { x402Task } from './task.ts';

const gatewayOf = ({ network }: X402Payment) => `x402:${network}`;

/** Puts a payment into suspense that the chain had moved before the service received it. Any reader of the chain could send it. */
export async function suspendX402(tx: Transaction, payment: X402Payment, txId: string): Promise<void> {
  const { id, accountId, network, amountMicros } = payment;
  await moveX402(tx, payment, 'UNMATCHED', { txId });
  await post(tx, accountId, {
    kind: 'topup',
    debit: gateway(gatewayOf(payment)),
    credit: SUSPENSE,
    amountMicros,
    externalKey: x402Key(payment),
    description: 'Payment by x402',
  });
  await tell(tx, { id, orderNumber: null, network, txId }, 'payment.unmatched');
}

/** Assigns an unmatched payment to an account. The worker watches it further. */
export async function assignX402(tx: Transaction, payment: X402Payment, accountId: string): Promise<void> {
  const { id, amountMicros } = payment;
  await moveX402(tx, payment, 'SETTLED', { accountId });
  await post(tx, accountId, {
    kind: 'adjustment',
    debit: SUSPENSE,
    credit: available(accountId),
    amountMicros,
    externalKey: `assign:${id}`,
    description: 'Payment by x402',
  });
  await startTask(tx, x402Task({ id, accountId }));
}

/** Writes off a reversed or unmatched payment. */
export async function writeOffX402(tx: Transaction, payment: X402Payment): Promise<void> {
  const { status, amountMicros: creditedMicros } = payment;
  const reversedMicros = status === 'UNMATCHED' ? creditedMicros : payment.reversedMicros;
  await moveX402(tx, payment, 'WRITTEN_OFF');
  await writeOff(tx, gatewayOf(payment), { ...payment, creditedMicros, reversedMicros, key: x402Key(payment) });
}
