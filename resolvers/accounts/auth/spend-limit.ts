/**
 * The spending limits of API keys and OAuth clients in a calendar month (UTC). Orders and resizes count; refunds of failed
 * ones reduce the sum. Spending also counts for the credential with limits that created the spending one.
 */
import type { Queryable } from '../../../entities/database/transaction.ts';
import { ApiError } from '../../../entities/errors.ts';
import { usdFromMicros } from '../../../entities/money.ts';
import { FIND_SPENDING, type Spender } from '../../../entities/payments/ledger.ts';
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
  const limits = await FIND_SPENDING.all(tx, [[credentialId, limitedBy]]);
  if (!limits.some(({ id }) => id === credentialId)) throw new ApiError('revoked_credential');
  const exceeded = limits.find(({ spentMicros, limitMicros }) => spentMicros + micros > limitMicros);
  if (!exceeded) return;
  const [used, most, price] = [exceeded.spentMicros, exceeded.limitMicros, micros].map(usdFromMicros);
  throw new ApiError(
    'spend_limit_exceeded',
    `The credential has spent ${used} of ${most} USD this month (UTC). This request costs ${price} USD.`,
  );
}

const RENEWALS = {
  begin: ['turn auto_renew on', 'Leave auto_renew out'],
  rise: ['raise the price of a server with auto_renew', 'Send auto_renew: false, too'],
} as const;

/**
 * Refuses to cause renewals with a spending limit, or to make them dearer. They happen later, without the credential, so
 * its limit cannot count them.
 * @throws ApiError spend_limit_exceeded
 */
export function refuseRenewals(context: Context, how: keyof typeof RENEWALS): void {
  if (!hasSpendLimit(context)) return;
  const [act, next] = RENEWALS[how];
  const detail = `Renewals do not count into a spending limit, so a credential with one cannot ${act}. ${next}, or use a credential without a spending limit.`;
  throw new ApiError('spend_limit_exceeded', detail);
}

/** Whether an ordered server renews itself. By default it does, unless the credential has a spending limit. @throws as `refuseRenewals` */
export function renewalOf(context: Context, asked: boolean | null | undefined): boolean {
  if (asked) refuseRenewals(context, 'begin');
  return asked ?? !hasSpendLimit(context);
}

/** A credential of a creator with a spending limit has one of its own. */
const hasSpendLimit = ({ viewer }: Context): boolean => (viewer?.limits?.spendLimitMicros ?? null) !== null;
