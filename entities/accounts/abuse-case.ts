/** Cases of abuse: a complaint about an address, the server and the account that had it, and the result. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, defaulting, entity, nullable, type RowOf } from '../database/table.ts';
import type { Lifecycle } from '../history/lifecycle.ts';

export const CASE_STATES = ['OPEN', 'CLOSED'] as const;
export type CaseState = (typeof CASE_STATES)[number];

export const AbuseCase = entity('abuse_case', {
  id: column.key(),
  accountId: column.text(),
  orderNumber: column.text(),
  /** The author of the complaint, for the operator alone. */
  source: column.text(),
  /** The address as the complaint names it, and the time at which the server had it. */
  address: column.inet(),
  occurredAt: column.timestamp(),
  /** The complaint, which the customer can read. */
  body: column.text(),
  /** The customer should have solved it by then. */
  deadline: column.timestamp(),
  state: defaulting(column.oneOf(...CASE_STATES), "'OPEN'"),
  /** The end of the case, which the customer can read. */
  result: nullable(column.text()),
  /** Since then the network of its server is limited, until the case is closed. */
  limitedAt: nullable(column.timestamp()),
  createdAt: column.now(),
  closedAt: nullable(column.timestamp()),
});
export type AbuseCase = RowOf<typeof AbuseCase>;

export const CASE_LIFECYCLE: Lifecycle<AbuseCase, CaseState> = {
  table: AbuseCase,
  key: 'id',
  state: 'state',
  transitions: { OPEN: ['CLOSED'], CLOSED: [] },
};

/** Megabits a second of a machine whose network a case limits: enough for its owner to mend it. */
export const LIMITED_MBPS = 1;
/** Whether an open case limits the network of a row of `server`. */
export const IS_LIMITED_SQL = `exists (
  select from abuse_case where abuse_case.order_number = server.order_number and state = 'OPEN' and limited_at is not null)`;
/** The same for the server $1. */
export const FIND_LIMITED = statement({ isLimited: column.boolean() })`
  select ${IS_LIMITED_SQL} as is_limited from server where order_number = $1`;

/** Days until a worker deletes a closed case. */
export const CASE_DAYS = 365;

/**
 * Opens a case; no row if it exists. $1 id, $2 account, $3 order number, $4 source, $5 address, $6 time, $7 complaint,
 * $8 deadline.
 */
export const OPEN_CASE = statement(AbuseCase.columns)`
  insert into abuse_case (id, account_id, order_number, source, address, occurred_at, body, deadline)
  values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict (source, address, occurred_at) do nothing
  returning ${columnsOf(AbuseCase)}`;
/** The first $3 cases in the state $1 of the account $2; null for all. Open ones come first, by their deadline. */
export const LIST_CASES = statement(AbuseCase.columns, { replans: true })`
  select ${columnsOf(AbuseCase)} from abuse_case
  where ($1::text is null or state = $1) and ($2::text is null or account_id = $2)
  order by state <> 'OPEN', case state when 'OPEN' then deadline end, id desc limit $3::int`;
/** Of the cases $1, those whose server is on because its engine refused to turn it off. */
export const FIND_REFUSED_CASES = statement({ id: column.key() })`
  select abuse_case.id from abuse_case join server using (order_number)
  where abuse_case.id = any($1) and server.status = 'RUNNING' and server.failure_code = 'stop_failed'`;
/** Limits the network of the server of the case $1; no row if it is limited already. */
export const LIMIT_NETWORK = statement({ id: column.key() })`
  update abuse_case set limited_at = now() where id = $1 and limited_at is null returning id`;
/** The number of open cases of each of the accounts $1 that has one. */
export const COUNT_OPEN_CASES = statement({ accountId: AbuseCase.columns.accountId, cases: column.int() })`
  select account_id, count(*)::int as cases from abuse_case where account_id = any($1) and state = 'OPEN' group by 1`;
/** Deletes cases that closed more than `CASE_DAYS` ago, at most $1. */
export const DELETE_OLD_CASES = statement({ id: column.key() })`
  with old as (
    select id from abuse_case where closed_at < now() - ${CASE_DAYS} * interval '1 day'
    order by id limit $1::int for update skip locked)
  delete from abuse_case using old where abuse_case.id = old.id returning abuse_case.id`;
