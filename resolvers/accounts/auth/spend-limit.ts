/**
 * What an API key may spend in a calendar month (UTC): whatever it takes from the balance, by orders and by resizes,
 * without what was given back because they failed. Renewals are caused by no key, and count for none.
 */
import type { Queryable } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import { usdFromMicros } from '../../../entities/money.ts';
import { spentThisMonth } from '../../../entities/payments/ledger.ts';
import type { Context } from '../../context.ts';

/** The API key to name in a transfer, or null if another credential spends. */
export const spendingKey = ({ viewer }: Context): string | null =>
  viewer?.kind === 'api_key' ? viewer.credentialId : null;

/**
 * Asked under the lock of the account, in the transaction that spends; whoever spends names the key in its transfer.
 * @throws ApiError spend_limit_exceeded
 */
export async function requireSpendable(tx: Queryable, { viewer }: Context, micros: bigint): Promise<void> {
  const limit = viewer?.spendLimitMicros ?? null;
  if (!viewer || limit === null || micros === 0n) return;
  const spent = await spentThisMonth(tx, viewer.credentialId);
  if (spent + micros <= limit) return;
  const [used, of, more] = [spent, limit, micros].map(usdFromMicros);
  throw new ApiError(
    'spend_limit_exceeded',
    `The API key has spent ${used} of the ${of} USD that it may spend this month (UTC), and this costs ${more} USD.`,
  );
}
