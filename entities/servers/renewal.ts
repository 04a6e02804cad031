/**
 * Statements of renewal: servers that are due, suspended servers, and the accounts that can pay for them. Also servers that
 * are off with their account.
 */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, nullable, type Row } from '../database/table.ts';
import { expression } from '../history/transition.ts';
import { PAID_HOURS } from '../money.ts';
import { Server } from './server.ts';

/** Days that a server stays suspended before the worker deletes it. */
export const SUSPENDED_DAYS = 7;

/** The end of a month that begins now. */
export const PAID_UNTIL = expression(`now() + ${PAID_HOURS} * interval '1 hour'`);

const { orderNumber, accountId, kind, host, paidUntil } = Server.columns;
/** The price of a month of a server that begins at a time, given as an expression. */
export const priceAtSql = (time: string): string =>
  `case when next_price_from <= ${time} then next_price_micros else price_month_micros end`;
/**
 * The paid time of a machine has ended. A rebuild that its account cannot pay for ends first, since half a system cannot
 * resume. A resize ends first because its machine is off, and its price changes.
 */
const IS_DUE = `status in ('RUNNING', 'STOPPED', 'STARTING', 'STOPPING', 'REBOOTING', 'REBUILDING') and paid_until <= now()
  and (status <> 'REBUILDING' or (auto_renew and ${priceAtSql('paid_until')} <= (
    select available_micros from balance join account on account.id = balance.account_id
      where account.id = server.account_id and account.suspended_at is null)))`;
const IS_UNPAID = `status = 'SUSPENDED' and change is null and suspended_at <= now() - ${SUSPENDED_DAYS} * interval '1 day'`;

/** The first $1 servers whose paid time has ended. They come after the one with the paid time $2 and the order number $3. */
export const FIND_DUE_SERVERS = statement({ orderNumber, accountId, paidUntil }, { replans: true })`
  select order_number, account_id, paid_until from server
  where ${IS_DUE} and ($2::timestamptz is null or (paid_until, order_number) > ($2, $3))
  order by paid_until, order_number limit $1::int`;
/** A server with the price of its next month: the announced one, if the month begins late enough for it. */
const PRICED = { ...Server.columns, monthMicros: column.bigint() };
export type PricedServer = Row<typeof PRICED>;
/** Locks those that are still due, without the ones that other transactions have locked. $1 order numbers. */
export const LOCK_DUE_SERVERS = statement(PRICED)`
  select ${columnsOf(Server)}, ${priceAtSql('paid_until')} as month_micros from server where order_number = any($1) and ${IS_DUE}
  order by order_number for update skip locked`;
/** Starts the announced price of locked servers. $1 order numbers. */
export const START_PRICE = statement({})`
  update server set price_month_micros = next_price_micros, next_price_micros = null, next_price_from = null
  where order_number = any($1)`;

/** A condition: a server has the tier $1, or resizes to it. */
const IS_OF_TIER = `status not in ('FAILED', 'DELETING', 'DELETED')
  and (service_code = $1 or (status = 'RESIZING' and change ->> 'serviceCode' = $1))`;
/** The prices of a server of that tier. Those of a resize are in its change, because it may fail. */
const ofTier = (column: string, ofChange: string) => `case when service_code = $1 then ${column} else ${ofChange} end`;
const PRICE = ofTier('price_month_micros', "(change ->> 'priceMonthMicros')::bigint");
const NEXT = ofTier('next_price_micros', "(change ->> 'nextPriceMicros')::bigint");
const NEXT_FROM = ofTier('next_price_from', "(change ->> 'nextPriceFrom')::timestamptz");
/** Writes the next price where the tier of the server or its resize is. */
const setNext = (micros: string, from: string) => `
    next_price_micros = ${ofTier(micros, 'next_price_micros')},
    next_price_from = ${ofTier(from, 'next_price_from')},
    change = ${ofTier('change', `change || jsonb_build_object('nextPriceMicros', (${micros})::text, 'nextPriceFrom', ${from})`)}`;
/** Whether a server was promised a lower price that it does not pay yet. */
const IS_PROMISED = `coalesce(${NEXT} < ${PRICE}, false)`;
const ANNOUNCED = { orderNumber, accountId, nextPriceFrom: nullable(column.timestamp()) };
/**
 * Announces the price $2 to the servers of the tier $1, for months that begin in $3 days or later. It withdraws an announcement
 * where the price is that already. A promise of a lower price stays, unless this one is as low and as early. Returns whether the
 * price of each rises.
 */
export const ANNOUNCE_PRICE = statement({ ...ANNOUNCED, rises: column.boolean() })`
  with given as (select $2::bigint as micros, date_trunc('milliseconds', now()) + $3::int * interval '1 day' as from_time),
  locked as (
    select order_number, case when ${PRICE} <> micros then micros end as next, case when ${PRICE} <> micros then from_time end as next_from,
      ${PRICE} < micros as rises
    from server, given
    where ${IS_OF_TIER} and coalesce(${NEXT}, ${PRICE}) <> micros
      and not (${IS_PROMISED} and (micros > ${NEXT} or from_time > greatest(${NEXT_FROM}, now())))
    order by order_number for update of server)
  update server set ${setNext('next', 'next_from')}
  from locked where server.order_number = locked.order_number
  returning server.order_number, server.account_id, next_from as next_price_from, rises`;
/** Counts the servers of the tier $1 that keep the promise of another price than $2. */
export const COUNT_PROMISED = statement({ count: column.int() })`
  select count(*)::int as count from server where ${IS_OF_TIER} and ${IS_PROMISED} and ${NEXT} <> $2::bigint`;
/** Withdraws the higher prices that were announced to the servers of the tier $1. A promise of a lower price stays. */
export const WITHDRAW_PRICE = statement(ANNOUNCED)`
  with locked as (
    select order_number from server where ${IS_OF_TIER} and ${NEXT} > ${PRICE} order by order_number for update)
  update server set ${setNext('null', 'null::timestamptz')}
  from locked where server.order_number = locked.order_number
  returning server.order_number, server.account_id, null::timestamptz as next_price_from`;
/** The next price of a server whose resize ends: the one that was announced for its new tier, or none. */
export const RESIZED_PRICE = {
  nextPriceMicros: expression("(change ->> 'nextPriceMicros')::bigint"),
  nextPriceFrom: expression("(change ->> 'nextPriceFrom')::timestamptz"),
};

/** Extends the paid time of servers. $1 order numbers, $2 their new times. */
export const EXTEND_PAID_TIME = statement({})`
  update server set paid_until = given.paid_until, updated_at = now()
  from unnest($1::text[], $2::timestamptz[]) as given(order_number, paid_until)
  where server.order_number = given.order_number`;

/** Of these accounts, those with suspended servers, in the order of their ids. $1 account ids. */
export const FIND_ACCOUNTS_WITH_SUSPENDED = statement({ accountId })`
  select distinct account_id from server where account_id = any($1) and status = 'SUSPENDED' order by 1`;
/**
 * Accounts that can pay for a suspended server with automatic renewal, in the order of their ids. The list leaves out suspended
 * accounts, and accounts with a task for that. $1 how many, $2 the prefix of the subjects of those tasks.
 */
export const FIND_SOLVENT_ACCOUNTS = statement({ accountId })`
  select distinct account_id from server join balance using (account_id)
  where status = 'SUSPENDED' and change is null and auto_renew and ${priceAtSql('now()')} <= available_micros
    and not exists (select from task where subject = $2 || account_id)
    and not exists (select from account where account.id = account_id and suspended_at is not null)
  order by 1 limit $1::int`;
/** Of these accounts, the suspended ones. $1 account ids. */
export const FIND_SUSPENDED_ACCOUNTS = statement({ accountId })`
  select id as account_id from account where id = any($1) and suspended_at is not null`;
/** Locks the suspended servers of an account that wait for money. $1 account id. */
export const LOCK_SUSPENDED_SERVERS = statement(PRICED)`
  select ${columnsOf(Server)}, ${priceAtSql('now()')} as month_micros from server
  where account_id = $1 and status = 'SUSPENDED' and change is null and auto_renew
  order by order_number for update`;
/** The engine refused within the last hour to turn the server off for the suspension. */
const HAS_JUST_REFUSED = `server.kept_off and server.failure_code is not distinct from 'stop_failed'
  and server.updated_at > now() - interval '1 hour'`;
/** The server is on, but the suspension of its account turns servers off. The worker suspends one without paid time. */
const IS_STILL_ON = `server.status = 'RUNNING' and server.paid_until > now() and not (${HAS_JUST_REFUSED})`;
/** The suspension turned the server off, and has ended. It is stable, or another change has made it stable meanwhile. */
const IS_KEPT_OFF = `server.kept_off and (
  (server.status in ('RUNNING', 'STOPPED') and server.paid_until > now()) or (server.status = 'SUSPENDED' and server.change is null))`;
/** Locks the servers of the account $1 that its suspension still has to turn off. */
export const LOCK_STILL_ON = statement(Server.columns)`
  select ${columnsOf(Server)} from server where account_id = $1 and ${IS_STILL_ON} order by order_number for update`;
/** The stopped servers of the account $1. */
export const LIST_STOPPED = statement({ orderNumber, accountId, kind, host })`
  select order_number, account_id, kind, host from server where account_id = $1 and status = 'STOPPED'`;
/** Locks the servers of the account $1 that its suspension turned off. */
export const LOCK_KEPT_OFF = statement(Server.columns)`
  select ${columnsOf(Server)} from server where account_id = $1 and ${IS_KEPT_OFF} order by order_number for update`;
/** The first $1 accounts after $2 whose servers do not follow their suspension, or its end. */
export const FIND_ASTRAY = statement({ accountId })`
  select account.id as account_id from account where servers_off and id > $2 and exists (
    select from server where account_id = account.id and ${IS_STILL_ON})
  union select account_id from server join account on account.id = account_id
    where not servers_off and account_id > $2 and ${IS_KEPT_OFF}
  order by 1 limit $1::int`;
/** Locks the servers of an account that resume. $1 account id. */
export const LOCK_RESUMING = statement(Server.columns)`
  select ${columnsOf(Server)} from server
  where account_id = $1 and status = 'SUSPENDED' and change is not null
  order by order_number for update`;
/**
 * Ends the resumptions of suspended servers, and removes the failure $2 of those that had it. $1 order numbers. Their months
 * were paid in time, so the days before deletion begin again.
 */
export const END_RESUMES = statement({})`
  update server set change = null, suspended_at = now(), updated_at = now(), failure_code = nullif(failure_code, $2),
    failure_message = case when failure_code is distinct from $2 then failure_message end
  where order_number = any($1)`;
/** Begins a change of a server that keeps its status. $1 order number, $2 the change. */
export const BEGIN_CHANGE = statement({})`update server set change = $2::jsonb where order_number = $1`;
/** Notes that a server could not resume. $1 order number, $2 code, $3 message. */
export const NOTE_FAILURE = statement({})`
  update server set failure_code = $2, failure_message = $3, updated_at = now() where order_number = $1`;
/** The first $1 servers that stayed unpaid for too long. */
export const FIND_UNPAID_SERVERS = statement({ orderNumber })`
  select order_number from server where ${IS_UNPAID} order by suspended_at limit $1::int`;
/** Locks those that are still unpaid. $1 order numbers. */
export const LOCK_UNPAID_SERVERS = statement({ orderNumber, accountId, kind, host })`
  select order_number, account_id, kind, host from server where order_number = any($1) and ${IS_UNPAID}
  order by order_number for update`;
