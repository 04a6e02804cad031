/** Accounts whose balance will not cover their next renewals. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import type { Row } from '../database/table.ts';
import { priceAtSql } from '../servers/renewal.ts';

const LOW_BALANCE = {
  accountId: column.text(),
  availableMicros: column.bigint(),
  /** The price of the next renewals. */
  requiredMicros: column.bigint(),
};
export type LowBalance = Row<typeof LOW_BALANCE>;
/**
 * Finds up to $1 accounts whose alert is due: none in 24 hours. Suspended servers do not count, because their owners have heard
 * of the suspension.
 */
export const FIND_LOW_BALANCES = statement(LOW_BALANCE)`
  select account.id as account_id, available_micros, sum(${priceAtSql('paid_until')})::bigint as required_micros
  from server join account on account.id = server.account_id join balance on balance.account_id = server.account_id
  where auto_renew and server.status not in ('SUSPENDED', 'FAILED', 'DELETING', 'DELETED')
    and paid_until <= now() + low_balance_alert_days * interval '1 day' and low_balance_alert_days > 0
    and (low_balance_alerted_at is null or low_balance_alerted_at <= now() - interval '24 hours')
  group by account.id, available_micros having sum(${priceAtSql('paid_until')}) > available_micros
  limit $1`;

/** Notes that the account $1 was alerted now. */
export const MARK_ALERTED = statement({})`update account set low_balance_alerted_at = now() where id = $1`;
