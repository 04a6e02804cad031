/**
 * The proof of solvency, beside the proof of the books. No account has or spent more than its payments, bonuses and
 * adjustments brought. Coins leave only as far as no chain can take back the coins that came. The proof reads the payments,
 * payouts and top-ups, and not their transfers.
 */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { BONUS } from './ledger.ts';
import { payableSql, unfinalSql } from './payable.ts';
import { IS_IN_BALANCE_SQL } from './payment.ts';

/**
 * The accounts whose used money differs from the given money. The rest of the balance and the spending, less the debt, are
 * used. Payments, bonuses and adjustments are given.
 */
export const FIND_INSOLVENT = statement({
  accountId: column.text(),
  usedMicros: column.bigint(),
  givenMicros: column.bigint(),
})`
  with used as (
      select account_id, available_micros + held_micros + withheld_micros - owed_micros as micros from balance
      union all
      select account_id, case when credit = 'revenue' then amount_micros else -amount_micros end
      from transfer where 'revenue' in (debit, credit)
      union all
      select account_id, case when credit = 'payouts' then amount_micros else -amount_micros end
      from transfer where 'payouts' in (debit, credit) and ('available:' || account_id in (debit, credit) or 'owed:' || account_id in (debit, credit))),
    given as (
      select account_id, credited_micros as micros from payment where ${IS_IN_BALANCE_SQL}
      union all
      select account_id, bonus_micros - reversed_bonus_micros from top_up where status = 'CONFIRMED'
      union all
      select account_id, case when debit = 'adjustment' then amount_micros else -amount_micros end
      from transfer where 'adjustment' in (debit, credit)),
    sums as (
      select account_id, sum(used)::bigint as used_micros, sum(given)::bigint as given_micros
      from (select account_id, micros as used, 0 as given from used union all select account_id, 0, micros from given) as all_sides
      group by 1)
  select account_id, used_micros, given_micros from sums where used_micros <> given_micros order by 1`;

/** The accounts of `FIND_INSOLVENT`. */
export const INSOLVENT_SQL = `select account_id as row from (${FIND_INSOLVENT.text}) as insolvent`;

/** The bonuses of each account, less those taken back. And the debts that it ever had, but for such bonuses. */
const BONUSES_AND_DEBTS = `
  select account_id, coalesce(sum(case '${BONUS}' when debit then amount_micros when credit then -amount_micros end), 0) as bonuses,
    coalesce(sum(amount_micros) filter (where debit = 'owed:' || account_id and credit <> '${BONUS}'), 0) as debts
  from transfer where '${BONUS}' in (debit, credit) or debit like 'owed:%' group by 1`;
/** The most that payouts leave. It counts all bonuses as unspent. */
const UNFINAL = unfinalSql('coalesce(bonuses, 0)');
/**
 * The accounts whose payouts and payable money exceed what is theirs for good. Final payments and the additions by the
 * operator are. Bonuses are not, because no coins came for them. Debts cover what a payout took before its payment went. They
 * do so also when bonuses, or payments that are not final, have paid them. The proof counts spent bonuses as unspent. So it
 * reads no histories, and sees less payable money than a payout. It finds each payout that took too much.
 */
export const OVERDRAWN_ACCOUNTS_SQL = `
  select account_id as row
  from (
    select account_id, ${payableSql(UNFINAL)} - greatest(owed_micros, least(owed_micros + ${UNFINAL}, coalesce(debts, 0))) as micros
      from balance left join (${BONUSES_AND_DEBTS}) as own using (account_id)
    -- A return takes parts of payments only from a balance.
    union all select account_id, amount_micros from payout
      where (payment_id is null or taken_from <> '[]') and status <> 'CANCELLED'
    union all select account_id, -credited_micros from payment where status = 'FINAL'
    union all select account_id, -amount_micros from transfer where debit = 'adjustment') as legs
  group by account_id having sum(micros) > 0`;
