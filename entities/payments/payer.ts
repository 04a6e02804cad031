/** Whether an account ever had money: by a payment, or from the operator. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';

/** Everybody can send a millionth of a dollar, so a smaller sum makes no payer. */
const PAID_MIN_MICROS = 1_000_000;
/** So many of the first and of the latest transfers count, in the order of their index. An account may have thousands of tiny ones. */
const COUNTED = 100;

const transfers = (account: string, order: string, limit: number) =>
  `(select id, amount_micros from transfer where transfer.account_id = ${account} order by created_at ${order}, id ${order} limit ${limit})`;

/** Whether an account, given as SQL, has moved a dollar. Its first transfer brings money, and mostly shows it. */
export const hasPaidSql = (account: string) => `(exists (
    select from ${transfers(account, 'asc', 1)} as first where amount_micros >= ${PAID_MIN_MICROS})
  or exists (
    select from (${transfers(account, 'asc', COUNTED)} union ${transfers(account, 'desc', COUNTED)}) as moved
      having sum(amount_micros) >= ${PAID_MIN_MICROS}))`;
/** Whether the account $1 has paid. */
export const HAS_PAID = statement({ paid: column.boolean() })`
  select ${hasPaidSql('$1')} as paid`;
/** Whether the account $1 has paid and is not suspended. */
export const IS_ACTIVE_PAYER = statement({ active: column.boolean() })`
  select suspended_at is null and ${hasPaidSql('$1')} as active from account where id = $1`;
