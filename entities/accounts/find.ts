/** Finds the accounts of customers. */
import { statement } from '../database/statement.ts';
import { columnsOf } from '../database/table.ts';
import { usedAtSql } from '../servers/ip-address.ts';
import { Account } from './account.ts';

/**
 * The accounts that $1 names, at most $3. It is their id or email, or it names a server, a top-up or a payment. The host name
 * of a server and the prefix of an API key serve, too. $2 is an address that one of their servers had at the time $4, or null.
 * After these come the accounts whose email begins with $1, or has the domain $1 with its @. Newer ones come first.
 */
export const FIND_ACCOUNTS = statement(Account.columns)`
  with exact as (
    select id from account where id = $1 or email = lower($1)
    union select account_id from server where order_number = upper($1) or hostname = lower($1)
    union select account_id from server join address_use used using (order_number)
      where ${usedAtSql('$2', 'coalesce($4::timestamptz, now())')}
    union select account_id from top_up where order_number = upper($1) or lower(wallet_address) = lower($1)
    union select account_id from payment where tx_id = $1 or address = $1
    union select account_id from api_key where prefix = left($1, 13))
  select ${columnsOf(Account)} from account where id in (
    select id from exact
    union (select id from account where email ^@ lower($1) and length($1) >= 3 order by id desc limit $3)
    union (select id from account where substr(email, strpos(email, '@')) = lower($1) order by id desc limit $3))
  order by id in (select id from exact) desc, id desc limit $3`;

/** The newest accounts, at most $1. */
export const LATEST_ACCOUNTS = statement(Account.columns)`
  select ${columnsOf(Account)} from account order by id desc limit $1`;
