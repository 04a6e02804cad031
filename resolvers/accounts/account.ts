/** The account and its balance. */

import { Account, setSuspension } from '../../entities/accounts/account.ts';
import { ApiError } from '../../entities/errors.ts';
import { isId } from '../../entities/ids.ts';
import { hourlyMicros } from '../../entities/money.ts';
import { lockAccount } from '../../entities/payments/ledger.ts';
import { accountOf, actorOf, type Context } from '../context.ts';

export async function findAccount(context: Context): Promise<Account> {
  const account = await context.db.source.manager.findOneBy(Account, { id: accountOf(context) });
  if (!account) throw new ApiError('not_found');
  return account;
}

/** All amounts are micro-USD. */
export interface BalanceView {
  availableMicros: bigint;
  /** Top-ups that were seen and are not yet confirmed. */
  pendingMicros: bigint;
  /** What the servers that renew themselves cost in a month. */
  monthlyCostMicros: bigint;
  updatedAt: Date;
}

export async function findBalance(context: Context): Promise<BalanceView> {
  const [balance] = await context.db.query<BalanceView>(
    `select available_micros, updated_at,
      coalesce((select sum(greatest(amount_micros - credited_micros, 0)) from top_up where account_id = $1 and status = 'CONFIRMING'), 0)::bigint as pending_micros,
      coalesce((select sum(price_month_micros) from server where account_id = $1 and auto_renew
        and status not in ('FAILED', 'DELETING', 'DELETED')), 0)::bigint as monthly_cost_micros
    from balance where account_id = $1`,
    [accountOf(context)],
    'balance',
  );
  if (!balance) throw new ApiError('not_found');
  return balance;
}

/** Until when the balance pays for what renews itself; null if nothing does. */
export function fundedUntil({ availableMicros, monthlyCostMicros }: BalanceView): Date | null {
  const hourly = hourlyMicros(monthlyCostMicros);
  if (hourly === 0n) return null;
  const hours = Number(availableMicros / hourly);
  return new Date(Date.now() + Math.min(hours, 100 * 365 * 24) * 3_600_000);
}

/**
 * Suspends an account: from now on it may read, and end what it has. Its servers run on, and renew themselves; what it is
 * watching is closed, and may be opened again. One that is suspended already stays so, for the reason of the first time.
 * @throws ApiError not_found
 */
export const suspendAccount = (context: Context, id: string, reason: string): Promise<Account> =>
  changeSuspension(context, id, reason);

/** Ends a suspension. @throws ApiError not_found */
export const resumeAccount = (context: Context, id: string): Promise<Account> => changeSuspension(context, id, null);

async function changeSuspension(context: Context, id: string, reason: string | null): Promise<Account> {
  if (!isId('acct', id)) throw new ApiError('not_found');
  return context.db.transaction(async (tx) => {
    // No credential can be made, and none be rotated, that would not hear of it.
    await lockAccount(tx, id);
    await setSuspension(tx, id, reason, actorOf(context));
    const account = await tx.manager.findOneBy(Account, { id });
    if (!account) throw new ApiError('not_found');
    return account;
  });
}
