/** The limits of one account, which an operator sets in place of those of the configuration. */
import { Account } from '../../entities/accounts/account.ts';
import type { AccountLimits } from '../../entities/accounts/limits.ts';
import { find, update } from '../../entities/database/table.ts';
import { record } from '../../entities/history/record.ts';
import { actorOf, type Context } from '../context.ts';
import { found, invalid } from '../errors.ts';
import { requireSeen } from '../seen.ts';
import { lockedAccount } from './account.ts';

/** The limits that an operator sets. The configuration has those that are absent or null. */
export type GivenLimits = { [Name in keyof AccountLimits]?: number | null | undefined };

/**
 * Sets all limits of an account. The account keeps all that it has, also above a limit.
 * @param seen the own limits of the account that the operator saw; absent: any
 * @throws ApiError not_found, or validation_failed for a limit without a login
 */
export async function setAccountLimits(
  context: Context,
  id: string,
  given: GivenLimits,
  seen?: GivenLimits | null,
): Promise<Account> {
  if (given.sessions === 0) throw invalid('sessions', 'An account without sessions cannot log in. Suspend it instead.');
  for (const name of ['unpaidTopupsPerDay', 'agentChangesPerHour'] as const)
    if (given[name] === 0) throw invalid(name, 'The least is 1, because the limit tells when the next one may come.');
  const limits = known(given);
  return context.db.transaction(async (tx) => {
    const compared = { present: (await lockedAccount(tx, id)).limits, seen: seen && known(seen) };
    const change = { type: 'account.limits_changed', account: id, subject: id } as const;
    await requireSeen(tx, { what: 'the limits', ...compared, ...change });
    await update(tx, Account, { id }, { limits });
    await record(tx, id, id, { type: 'account.limits_changed', actor: actorOf(context), data: { ...limits } });
    // Processes have the limits with the cached credentials.
    tx.changed({ kind: 'credential', accountId: id, id: null });
    return found(await find(tx, Account, { id }));
  });
}

/** The limits without those of the configuration. */
const known = (given: GivenLimits): Partial<AccountLimits> =>
  Object.fromEntries(Object.entries(given).filter(([, limit]) => limit != null));
