/**
 * The spending limits of API keys and OAuth clients in a calendar month (UTC). Orders and resizes count; refunds of failed
 * ones reduce the sum. Spending also counts for the credential with limits that created the spending one.
 */
import type { Queryable } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import { usdFromMicros } from '../../../entities/money.ts';
import { type Spender, SUM_SPENDING } from '../../../entities/payments/ledger.ts';
import type { Context } from '../../context.ts';

/** Returns the credential that a transfer of the caller names. A login has none. */
export const spenderOf = ({ viewer }: Context): Spender => ({
  credentialId: viewer?.holder ?? null,
  limitedBy: viewer?.limits?.limitedBy ?? null,
});

/**
 * Checks the limits in the transaction that spends. The caller holds the lock of the account, and names the spender in its
 * transfer.
 * @throws ApiError spend_limit_exceeded, or revoked_credential if another request ended the credential
 */
export async function requireSpendable(tx: Queryable, context: Context, micros: bigint): Promise<void> {
  if (!hasSpendLimit(context) || micros === 0n) return;
  const { credentialId, limitedBy } = spenderOf(context);
  const limits = await SUM_SPENDING.all(tx, [[credentialId, limitedBy]]);
  if (!limits.some(({ id }) => id === credentialId)) throw new ApiError('revoked_credential');
  const exceeded = limits.find(({ spentMicros, limitMicros }) => spentMicros + micros > limitMicros);
  if (!exceeded) return;
  const [used, most, price] = [exceeded.spentMicros, exceeded.limitMicros, micros].map(usdFromMicros);
  throw new ApiError(
    'spend_limit_exceeded',
    `The credential has spent ${used} of ${most} USD this month (UTC). This request costs ${price} USD.`,
  );
}

/**
 * Refuses to cause renewals with a spending limit: they happen later, without the credential, so its limit cannot count
 * them.
 * @throws ApiError spend_limit_exceeded
 */
export function refuseRenewals(context: Context): void {
  if (!hasSpendLimit(context)) return;
  const detail =
    'Renewals do not count into a spending limit, so a credential with one cannot turn auto_renew on. Use another credential.';
  throw new ApiError('spend_limit_exceeded', detail);
}

/** A credential of a creator with a spending limit has one of its own. */
const hasSpendLimit = ({ viewer }: Context): boolean => (viewer?.limits?.spendLimitMicros ?? null) !== null;
