/** Whether an account ever had money: by a payment, or from the operator. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';

/** A smaller sum makes no payer, because everybody can send a millionth of a dollar. */
const PAID_MIN_MICROS = 1_000_000;

/** Whether an account, given as SQL, has a transfer of a dollar. Its first one always brings money. */
export const hasPaidSql = (account: string) =>
  `exists (select from transfer where transfer.account_id = ${account} and transfer.amount_micros >= ${PAID_MIN_MICROS})`;
/** Whether the account $1 has paid. */
export const HAS_PAID = statement({ paid: column.boolean() })`
  select ${hasPaidSql('$1')} as paid`;
/** Whether the account $1 has paid and is not suspended. */
export const IS_ACTIVE_PAYER = statement({ active: column.boolean() })`
  select suspended_at is null and ${hasPaidSql('$1')} as active from account where id = $1`;
