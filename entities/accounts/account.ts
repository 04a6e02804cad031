/** Accounts, their balance, and their suspension. A suspended account may read, and may end its own things. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { defaulting, entity, nullable, type Row, type RowOf } from '../database/table.ts';
import type { Transaction } from '../database/transaction.ts';
import type { Actor } from '../history/audit.ts';
import { record } from '../history/record.ts';
import { PAID_HOURS } from '../money.ts';
import { KEPT_REFUND_SQL } from '../payments/withheld.ts';
import { priceAtSql } from '../servers/renewal.ts';
import { KEEPS_HOLD_SQL, KEPT_HOLD_SQL } from '../servers/server.ts';
import type { AccountLimits } from './limits.ts';

export const Account = entity('account', {
  id: column.key(),
  kind: column.oneOf('PERSON', 'AGENT'),
  email: nullable(column.text()),
  /** argon2id in PHC form; null for agents. */
  passwordHash: nullable(column.text()),
  totpEnabled: defaulting(column.boolean(), 'false'),
  pgpFingerprint: nullable(column.text()),
  /** Armored. */
  pgpPublicKey: nullable(column.text()),
  lowBalanceAlertDays: defaulting(column.int(), 7),
  /** When balance.low was last sent. */
  lowBalanceAlertedAt: nullable(column.timestamp()),
  createdAt: column.now(),
  suspendedAt: nullable(column.timestamp()),
  /** The reason, which the customer can read. */
  suspendedFor: nullable(column.text()),
  /** Whether its servers are off until the suspension ends. */
  serversOff: defaulting(column.boolean(), 'false'),
  /** The limits that an operator has set. The configuration has the others. */
  limits: defaulting(column.json<Partial<AccountLimits>>(), "'{}'"),
});
export type Account = RowOf<typeof Account>;

/** The own limits of the account $1. */
export const READ_LIMITS = statement({ limits: Account.columns.limits })`select limits from account where id = $1`;

const BALANCE = {
  availableMicros: column.bigint(),
  /** Debts of reversed payments. */
  owedMicros: column.bigint(),
  /**
   * Payments of top-ups that wait for confirmations, at the rate of their quote. It includes refunds that wait for payments to
   * become final. It also includes the money that deleted dedicated servers keep until their hosts are free. A top-up by x402 counts whole.
   * Payments in suspense count nothing.
   */
  pendingMicros: column.bigint(),
  /** The price of the next renewals of the servers that renew automatically. */
  monthlyCostMicros: column.bigint(),
  /** When the balance first does not cover a renewal; null without renewals. */
  fundedUntil: nullable(column.timestamp()),
  updatedAt: column.now(),
};
/** The balance of an account, in micro-USD. */
export type BalanceView = Row<typeof BALANCE>;

const MONTH = `${PAID_HOURS} * interval '1 hour'`;
/** Balances last for a century at most. */
const MONTHS_MAX = 1200;

/**
 * The balance of the account $1. It pays all servers of each whole month that it covers. The rest pays the next renewals in
 * turn, as far as it goes.
 */
export const FIND_BALANCE = statement(BALANCE)`
  with renewal as (
    select price_micros, renews_at, sum(price_micros) over (order by renews_at, id) as due_micros
    from server cross join lateral (select greatest(coalesce(paid_until, now() + ${MONTH}), now()) as renews_at) as next
      cross join lateral (select ${priceAtSql('renews_at')} as price_micros) as price
    where account_id = $1 and auto_renew and status not in ('FAILED', 'DELETING', 'DELETED')),
  monthly as (select coalesce(sum(price_micros), 0)::bigint as cost_micros from renewal)
  select available_micros, owed_micros, updated_at,
      withheld_micros + coalesce((select sum(greatest(0, case mode when 'X402' then amount_micros
          else floor(received_crypto::numeric * amount_micros / nullif(amount_crypto::numeric, 0)) end - credited_micros))
        from top_up where account_id = $1 and status = 'CONFIRMING'), 0)::bigint
        + coalesce((select sum(case when ${KEEPS_HOLD_SQL} then ${KEPT_HOLD_SQL} else ${KEPT_REFUND_SQL} end)
            from server where account_id = $1 and kind = 'DEDICATED' and status in ('FAILED', 'DELETING')), 0)::bigint as pending_micros,
      cost_micros as monthly_cost_micros,
      case when cost_micros > 0 then
        (select min(renews_at) from renewal where due_micros > available_micros % cost_micros)
          + least(available_micros / cost_micros, ${MONTHS_MAX}) * ${MONTH} end as funded_until
    from balance cross join monthly where account_id = $1`;

/**
 * Suspends the account $1 for the reason $2, or resumes it with null. $3 whether its servers go off, too: this can begin later,
 * and ends with the suspension. No row: nothing has changed.
 */
const SET_SUSPENSION = statement({ reason: nullable(column.text()) })`
  update account set suspended_for = case when $2::text is not null then coalesce(suspended_for, $2) end,
      suspended_at = case when $2::text is not null then coalesce(suspended_at, now()) end,
      servers_off = $2::text is not null and (servers_off or $3::boolean)
    where id = $1 and ((suspended_at is null) = ($2::text is not null) or ($2::text is not null and $3 and not servers_off))
    returning suspended_for as reason`;

/**
 * Suspends an account for a reason, or resumes it with null. A suspended account keeps its first reason. The caller holds
 * the lock of the account, so no credential misses the change.
 * @param serversOff whether its servers go off, too. The caller lets them follow
 */
export async function setSuspension(
  tx: Transaction,
  accountId: string,
  { reason, serversOff = false }: { reason: string | null; serversOff?: boolean },
  actor: Actor,
): Promise<void> {
  const changed = await SET_SUSPENSION.first(tx, [accountId, reason, serversOff]);
  if (!changed) return;
  const type = reason === null ? 'account.resumed' : 'account.suspended';
  const data = reason === null ? {} : { reason: changed.reason, ...(serversOff && { servers: 'off' }) };
  await record(tx, accountId, accountId, { type, actor, data });
  tx.changed({ kind: 'credential', accountId, id: null });
}
