/** Money for the operator: adjustments, the totals of each day, and the proof of the books. */
import { Account } from '../../entities/accounts/account.ts';
import { exists, find } from '../../entities/database/table.ts';
import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError, refuse } from '../../entities/errors.ts';
import { record } from '../../entities/history/record.ts';
import { isId } from '../../entities/ids.ts';
import { usdFromMicros } from '../../entities/money.ts';
import { type Proof, proveBooks } from '../../entities/payments/books.ts';
import {
  ADJUSTMENT,
  adjustmentKey,
  available,
  Balance,
  type DailyTotal,
  lockAccount,
  post,
  SUM_DAYS,
  Transfer,
} from '../../entities/payments/ledger.ts';
import { actorOf, type Context } from '../context.ts';
import { withinLimit } from './operator-limit.ts';

export interface Adjustment {
  accountId: string;
  /** Negative: taken from the balance. */
  amountMicros: bigint;
  /** Shown to the customer in the usage. */
  reason: string;
  /** The operator's own name for the adjustment. Sending it again changes nothing. */
  key: string;
}

export interface Adjusted extends Adjustment {
  /** The new balance. */
  balanceMicros: bigint;
}

/**
 * Adds to a balance, or takes from it.
 * @throws ApiError not_found, insufficient_balance, idempotency_key_reused if the key names another adjustment, or
 * approval_needed above the limit of an operator
 */
export async function adjustBalance(context: Context, adjustment: Adjustment): Promise<Adjusted> {
  const { accountId, amountMicros, reason, key } = adjustment;
  if (!isId('acct', accountId)) throw new ApiError('not_found');
  if (amountMicros === 0n) throw refuse('amountUsd', 'zero', 'amountUsd must not be 0.');
  if (!(await exists(context.db, Account, { id: accountId }))) throw new ApiError('not_found');
  const sum = { kind: 'ADJUSTMENT', key, accountId, amountMicros, reason } as const;
  return withinLimit(context, sum, (tx) => adjust(tx, context, adjustment));
}

/** Changes the balance. @throws ApiError insufficient_balance or idempotency_key_reused */
export async function adjust(tx: Transaction, context: Context, adjustment: Adjustment): Promise<Adjusted> {
  const { accountId, amountMicros, reason, key } = adjustment;
  await lockAccount(tx, accountId);
  const own = available(accountId);
  const [debit, credit] = amountMicros > 0n ? [ADJUSTMENT, own] : [own, ADJUSTMENT];
  const magnitude = amountMicros < 0n ? -amountMicros : amountMicros;
  const externalKey = adjustmentKey(key);
  const known = await find(tx, Transfer, { externalKey });
  if (known && !(known.accountId === accountId && known.debit === debit && known.amountMicros === magnitude))
    throw new ApiError('idempotency_key_reused');
  const { availableMicros } = (await find(tx, Balance, { accountId }))!;
  if (!known && availableMicros + amountMicros < 0n)
    throw new ApiError('insufficient_balance', 'The balance is smaller than the amount.');
  const posted = await post(tx, accountId, {
    kind: 'adjustment',
    debit,
    credit,
    amountMicros: magnitude,
    externalKey,
    description: reason,
  });
  if (posted) {
    await record(tx, accountId, accountId, {
      type: 'balance.adjusted',
      resource: 'account',
      actor: actorOf(context),
      data: { amountUsd: usdFromMicros(amountMicros), reason, key },
    });
    await context.provisioning.servers.retrySuspended(tx, accountId);
  }
  const balance = await find(tx, Balance, { accountId });
  return { ...adjustment, balanceMicros: balance!.availableMicros };
}

/** The latest day first. @param days their number, including today */
export const findDailyTotals = ({ db }: Context, days: number): Promise<DailyTotal[]> => SUM_DAYS.all(db, [days]);

export type { DailyTotal, Proof };
export const findBooks = ({ db }: Context): Promise<Proof> => proveBooks(db);
