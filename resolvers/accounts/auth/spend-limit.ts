/**
 * The spending limit of an API key in a calendar month (UTC). Orders and resizes count; refunds of failed ones reduce
 * the sum. Renewals do not count, because no key causes them.
 */
import type { Queryable } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import { usdFromMicros } from '../../../entities/money.ts';
import { spentByKeyThisMonth } from '../../../entities/payments/ledger.ts';
import type { Context } from '../../context.ts';

/** Returns the id of the caller's API key for a transfer, or null if the caller uses another credential. */
export const spendingKey = ({ viewer }: Context): string | null =>
  viewer?.kind === 'api_key' ? viewer.credentialId : null;

/**
 * Checks the limit in the transaction that spends. The caller holds the lock of the account, and names the key in its
 * transfer.
 * @throws ApiError spend_limit_exceeded
 */
export async function requireSpendable(tx: Queryable, { viewer }: Context, micros: bigint): Promise<void> {
  const limit = viewer?.spendLimitMicros ?? null;
  if (!viewer || limit === null || micros === 0n) return;
  const spent = await spentByKeyThisMonth(tx, viewer.credentialId);
  if (spent + micros <= limit) return;
  const [used, most, price] = [spent, limit, micros].map(usdFromMicros);
  throw new ApiError(
    'spend_limit_exceeded',
    `The API key has spent ${used} of ${most} USD this month (UTC). This request costs ${price} USD.`,
  );
}
