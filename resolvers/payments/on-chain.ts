/** Questions to the chain of a payment, before an operator decides about it. */
import { ApiError, refuse } from '../../entities/errors.ts';
import { FIND_TIP } from '../../entities/payments/chain.ts';
import type { Payment, PaymentStatus } from '../../entities/payments/payment.ts';
import { READ_PAYMENT } from '../../entities/payments/x402-authorization.ts';
import type { Context } from '../context.ts';

/** Whether the chain has removed a payment by x402 for good. No task watches it, so it must not change any more. */
export async function isGoneByX402(
  { db, provisioning }: Context,
  { id, mode, status }: Payment,
  seen: PaymentStatus | null | undefined,
): Promise<boolean> {
  const isFinal = status === 'FINAL' && seen === 'FINAL';
  if (mode !== 'X402' || (status !== 'UNMATCHED' && !isFinal)) return false;
  const signed = (await READ_PAYMENT.first(db, [id]))!;
  const { x402 } = provisioning.payments;
  // Without its chain the operator alone can tell.
  if (!x402?.isOurs(signed)) return false;
  const settlement = await x402.observe(signed).catch(silent);
  if (settlement.state === 'dead') return true;
  if (settlement.state === 'settled' && (await x402.isFinal(settlement.txId).catch(silent))) {
    if (isFinal) throw refuse('id', 'wrong_state', 'The chain has the payment.');
    return false;
  }
  throw refuse('id', 'not_final', 'The chain can still remove the payment. Write it off when its block is final.');
}

/**
 * @param mustBeFinal whether the chain must not be able to remove it any more, because its coins go back
 * @throws ApiError validation_failed if the chain has removed the payment, or can; or if it lacks confirmations. unavailable if
 * the chain does not tell
 */
export async function requireOnChain(
  { db, provisioning }: Context,
  { id, network, height, ...payment }: Payment,
  mustBeFinal: boolean,
): Promise<void> {
  const removed = refuse('id', 'wrong_state', 'The chain has removed the payment.');
  if (height !== null) {
    if (payment.blockHash === null) throw removed;
    // Without blocks the operator has begun the chain anew, and nothing counts confirmations.
    const tip = await FIND_TIP.first(db, [network]);
    const confirmations = tip && tip.height - height + 1;
    const coin = provisioning.payments.coins().find(({ code }) => code === payment.coin);
    if (coin && confirmations !== undefined && confirmations < coin.confirmationsRequired)
      throw refuse(
        'id',
        'not_final',
        `The payment has ${confirmations} of ${coin.confirmationsRequired} confirmations.`,
      );
  }
  const signed = await READ_PAYMENT.first(db, [id]);
  let isFinal = payment.finalAt !== null;
  if (signed) {
    const { x402 } = provisioning.payments;
    if (!x402?.isOurs(signed))
      throw new ApiError('unavailable', `The operator has configured no node of ${network}.`, { retryAfter: 5 });
    const settlement = await x402.observe(signed).catch(silent);
    if (settlement.state !== 'settled') throw removed;
    if (mustBeFinal) isFinal = await x402.isFinal(settlement.txId).catch(silent);
  }
  if (mustBeFinal && !isFinal)
    throw refuse('id', 'not_final', 'The chain can still remove the payment. Send it back when its block is final.');
}

const silent = () => {
  throw new ApiError('unavailable', 'The chain does not answer at the moment.', { retryAfter: 5 });
};
