/** Finds the accounts of customers. */
import { statement } from '../database/statement.ts';
import { columnsOf } from '../database/table.ts';
import { Account } from './account.ts';

/**
 * The accounts that $1 names, newest first, at most $3. It is their id or email, or it names a server, a top-up or a payment.
 * The prefix of an API key serves, too. $2 is an address of one of their servers, or null.
 */
export const FIND_ACCOUNTS = statement(Account.columns)`
  select ${columnsOf(Account)} from account where id in (
    select id from account where id = $1 or lower(email) = lower($1)
    union select account_id from server where order_number = upper($1)
    union select account_id from server where status <> 'DELETED'
      and (ipv4 = $2::inet or ipv6 = $2::inet or $2::inet <<= ipv6_prefix::inet)
    union select account_id from top_up where order_number = upper($1) or wallet_address = $1
    union select account_id from payment where tx_id = $1 or address = $1
    union select account_id from api_key where prefix = left($1, 13))
  order by id desc limit $3`;
