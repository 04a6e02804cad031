/** The operator's view of the money: adjustments by hand, the totals of each day, and the proof of the books. */

import { ApiError } from '../../entities/errors.ts';
import { record } from '../../entities/history/record.ts';
import { isId } from '../../entities/ids.ts';
import { usdFromMicros } from '../../entities/money.ts';
import { type Proof, proveBooks } from '../../entities/payments/books.ts';
import { ADJUSTMENT, available, lockAccount, post, type TransferKind } from '../../entities/payments/ledger.ts';
import { actorOf, type Context } from '../context.ts';

export interface Adjustment {
  accountId: string;
  /** Micro-USD; negative: taken. */
  amountMicros: bigint;
  /** The customer sees it in the usage. */
  reason: string;
  /** The operator's own name for it: whoever sends it again changes nothing. */
  key: string;
}

export interface Adjusted extends Adjustment {
  /** What the balance is now. */
  balanceMicros: bigint;
}

/**
 * Adds to a balance, or takes from it what it has.
 * @throws ApiError not_found, insufficient_balance, or idempotency_key_reused if the key was for something else
 */
export async function adjustBalance(context: Context, adjustment: Adjustment): Promise<Adjusted> {
  const { accountId, amountMicros, reason, key } = adjustment;
  if (!isId('acct', accountId)) throw new ApiError('not_found');
  if (amountMicros === 0n)
    throw new ApiError('validation_failed', 'amountUsd must not be 0.', {
      errors: [{ field: 'amountUsd', code: 'zero', message: 'must not be 0' }],
    });
  return context.db.transaction(async (tx) => {
    await lockAccount(tx, accountId);
    const own = available(accountId);
    const [debit, credit] = amountMicros > 0n ? [ADJUSTMENT, own] : [own, ADJUSTMENT];
    const magnitude = amountMicros < 0n ? -amountMicros : amountMicros;
    const externalKey = `adjustment:${key}`;
    const [known] = await tx.query<{ same: boolean }>(
      `select account_id = $2 and debit = $3 and amount_micros = $4 as same from transfer where external_key = $1`,
      [externalKey, accountId, debit, magnitude],
    );
    if (known && !known.same) throw new ApiError('idempotency_key_reused');
    const [account] = await tx.query('select 1 from account where id = $1', [accountId]);
    if (!account) throw new ApiError('not_found');
    const posted = await post(tx, accountId, [
      { kind: 'adjustment', debit, credit, amountMicros: magnitude, externalKey, description: reason },
    ]);
    if (posted) {
      await record(tx, accountId, accountId, {
        type: 'balance.adjusted',
        resource: 'account',
        actor: actorOf(context),
        data: { amountUsd: usdFromMicros(amountMicros), reason, key },
      });
      await context.provisioning.servers.retrySuspended(tx, accountId);
    }
    const [balance] = await tx.query<{ micros: bigint }>(
      'select available_micros as micros from balance where account_id = $1',
      [accountId],
    );
    return { ...adjustment, balanceMicros: balance!.micros };
  });
}

/** What the transfers of a kind sum up to on a day (UTC). */
export interface DailyTotal {
  /** Its first moment. */
  day: Date;
  kind: TransferKind;
  transfers: number;
  micros: bigint;
}

/** The latest days first. @param days how many of them, with this one */
export const findDailyTotals = ({ db }: Context, days: number): Promise<DailyTotal[]> =>
  db.query(
    `select date_trunc('day', created_at, 'UTC') as day, kind, count(*)::int as transfers, sum(amount_micros)::bigint as micros
      from transfer where created_at >= date_trunc('day', now(), 'UTC') - make_interval(days => $1 - 1)
      group by 1, 2 order by 1 desc, 2`,
    [days],
  );

export type { Proof };
export const findBooks = ({ db }: Context): Promise<Proof> => proveBooks(db);
