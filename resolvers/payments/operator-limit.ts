/** The limit of the sums that one operator moves alone. Sums of a day count together, so that parts do not pass by. */
import { exists, find, insert } from '../../entities/database/table.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError, refuse } from '../../entities/errors.ts';
import { newId } from '../../entities/ids.ts';
import { usdFromMicros } from '../../entities/money.ts';
import { adjustmentKey, lockOperator, Transfer } from '../../entities/payments/ledger.ts';
import { Payment } from '../../entities/payments/payment.ts';
import { Payout } from '../../entities/payments/payout.ts';
import { Proposal, SUM_PASSED } from '../../entities/proposal.ts';
import { requireOpen } from '../accounts/account.ts';
import type { Context } from '../context.ts';
import { recordByOperator } from '../record.ts';

/** A sum that an operator wants to move. Without a key, it is a decision about a payment: one proposal for each waits. */
export type Sum = Pick<Proposal, 'kind' | 'accountId' | 'amountMicros' | 'reason'> &
  Partial<
    Pick<Proposal, 'key' | 'paymentId' | 'paymentStatus' | 'returnTxId' | 'coin' | 'address' | 'signature' | 'source'>
  >;

/** A proposal waits for so many hours. */
const PROPOSAL_HOURS = 72;

/**
 * Moves a sum by the work if the operator may do that alone. Otherwise keeps it as a proposal, and throws. The key holds: an
 * approved sum is done once, and sending it again gives the answer of the work.
 * @throws ApiError approval_needed for a kept proposal, idempotency_key_reused, or validation_failed for a refused one
 */
export async function withinLimit<T>(context: Context, sum: Sum, work: (tx: Transaction) => Promise<T>): Promise<T> {
  const { db, operatorLimitMicros: limit } = context;
  if (!limit) return db.transaction(work);
  const outcome = await db.transaction(async (tx) => {
    await lockOperator(tx, sum.accountId);
    await requireOpen(tx, context);
    const waiting = await countedIn(tx, context, sum, limit);
    return waiting ? { waiting } : { done: await work(tx) };
  });
  // The throw is outside the transaction, so that the proposal stays.
  if (outcome.waiting) throw approvalNeeded(outcome.waiting, limit);
  return outcome.done;
}

/** Counts the sum. @returns the proposal that waits; undefined: the sum may move */
async function countedIn(tx: Transaction, context: Context, sum: Sum, limit: bigint): Promise<Proposal | undefined> {
  const { kind, key, paymentId } = sum;
  const known = await find(
    tx,
    Proposal,
    key === undefined ? { kind, paymentId: paymentId!, state: 'OPEN' } : { kind, key },
  );
  if (known) return key === undefined ? known : knownIn(known, sum);
  if (await hasMoved(tx, sum)) return undefined;
  const { credentialId: proposerId, name } = context.viewer!;
  const { passedMicros } = (await SUM_PASSED.first(tx, [proposerId]))!;
  const magnitude = sum.amountMicros < 0n ? -sum.amountMicros : sum.amountMicros;
  const fits = passedMicros + magnitude <= limit;
  const id = newId('prop');
  await insert(tx, Proposal, {
    ...{ key: id, ...sum, id, state: fits ? 'WITHIN_LIMIT' : 'OPEN', proposerId, proposerName: name ?? proposerId },
    expiresAt: new Date(Date.now() + PROPOSAL_HOURS * 3_600_000),
  });
  if (fits) return undefined;
  await recordProposal(tx, context, { key: id, ...sum, id }, 'OPEN');
  return (await find(tx, Proposal, { id }))!;
}

/** Whether the sum moved already: before the company set a limit, or by an earlier decision. The work then answers as it did. */
function hasMoved(tx: Transaction, { kind, key, paymentId, returnTxId }: Sum): Promise<boolean> {
  if (key === undefined)
    return exists(tx, Payment, {
      id: paymentId!,
      ...(kind === 'WRITE_OFF' ? { status: 'WRITTEN_OFF' } : { status: 'RETURNED', returnTxId: returnTxId! }),
    });
  return kind === 'ADJUSTMENT'
    ? exists(tx, Transfer, { externalKey: adjustmentKey(key) })
    : exists(tx, Payout, { key });
}

function knownIn(known: Proposal, sum: Sum): Proposal | undefined {
  const isSame = (['accountId', 'amountMicros', 'paymentId', 'coin', 'address'] as const).every(
    (name) => known[name] === (sum[name] ?? null),
  );
  if (!isSame) throw new ApiError('idempotency_key_reused');
  if (known.state === 'OPEN') return known;
  if (known.state === 'REFUSED' || known.state === 'EXPIRED')
    throw refuse(
      'key',
      'wrong_state',
      `The proposal ${known.id} is ${known.state}. Use another key to propose it again.`,
    );
  return undefined;
}

const approvalNeeded = ({ id, expiresAt }: Proposal, limit: bigint): ApiError =>
  new ApiError(
    'approval_needed',
    `One operator, and all new operators together, move at most ${usdFromMicros(limit)} USD in 24 hours. The proposal ${id} waits for another operator, who calls approveProposal before ${expiresAt.toISOString()}.`,
  );

/** Records what became of a proposal. */
export const recordProposal = (
  tx: Transaction,
  context: Context,
  { id, kind, accountId, amountMicros, key }: Pick<Proposal, 'id' | 'kind' | 'accountId' | 'amountMicros' | 'key'>,
  state: Proposal['state'],
): Promise<string> =>
  recordByOperator(tx, context, id, {
    type: 'proposal.updated',
    data: { state, kind, accountId, amountUsd: usdFromMicros(amountMicros), key },
  });
