/** Payments and backups among the open matters of the operator. Other lists of the operator have the other matters. */
import * as column from './database/column.ts';
import { statement } from './database/statement.ts';
import { OPERATOR_ACCOUNT } from './history/audit.ts';

/** The oldest $1 payments that wait for a decision. `held`: above the limit of their gateway. */
export const LIST_UNDECIDED_PAYMENTS = statement({
  id: column.key(),
  since: column.timestamp(),
  held: column.boolean(),
})`
  select id, created_at as since, exists (
    select from event where account_id = '${OPERATOR_ACCOUNT}' and subject = payment.id and type = 'payment.held') as held
  from payment where status = 'UNMATCHED' order by id limit $1::int`;
/** The last backup. Without one, the first event, so that a new service has time for a backup. No row in an empty service. */
export const LAST_BACKUP = statement({ at: column.timestamp(), isNoted: column.boolean() })`
  select created_at as at, is_noted from (
    (select created_at, true as is_noted from event
      where account_id = '${OPERATOR_ACCOUNT}' and type = 'backup.noted' order by id desc limit 1)
    union all (select created_at, false from event order by id limit 1)) as known
  order by is_noted desc limit 1`;
