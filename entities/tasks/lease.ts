/**
 * The statements by which workers take tasks, keep them, and release them. Each write to a task names the
 * lease in $1 to $3: the task, the fence and the worker. A lease that has ended writes nothing.
 */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { columnsOf, nullable } from '../database/table.ts';
import { PRESENT_LANE } from './lane.ts';
import { Task } from './task.ts';

const HELD = 'id = $1 and fence = $2 and leased_by = $3';

const LEASED = { ...Task.columns, overdue: nullable(column.boolean()), leasedAt: column.timestamp() };
/** PostgreSQL rounds times to milliseconds, so a task that is due now may seem due in half a millisecond. A deadline, too. */
const SOON = `now() + interval '1 millisecond'`;
const DUE = `task.lane = $1 and task.state = 'READY' and task.run_at <= ${SOON} and task.id <> all($5::text[])`;
/** Returns those of the lanes $1 that have due tasks, and the time. */
export const DUE_LANES = statement({ lanes: column.textArray(), time: column.timestamp() })`
  select array(select lane from unnest($1::text[]) as given (lane)
    where exists (select from task where task.lane = given.lane and task.state = 'READY' and task.run_at <= ${SOON})) as lanes,
    clock_timestamp() as time`;
/**
 * Makes tasks due that would rest for more than $1 seconds. A step may always come early, as after a signal. Leases that would
 * last for more than $2 seconds end after that time. A living worker extends its leases.
 */
export const WAKE_SLEEPERS = statement({ id: column.text() })`
  with late as (
    select id from task where state = 'READY' and run_at > now() + case when leased_by is null then $1::float8 else $2 end * interval '1 second'
    order by subject for update skip locked)
  update task set run_at = now() + case when leased_by is null then 0 else $2::float8 end * interval '1 second'
  from late where task.id = late.id returning task.id`;

/** The party of a task, by which the tasks of a lane take turns. */
const PARTY = 'coalesce(task.party, task.account_id)';
/**
 * Tasks beyond those that a worker wants, because other workers may lock some of them at this moment. The limit keeps the join
 * small, also where PostgreSQL does not know yet how many tasks are due.
 */
const OTHERS = 64;
const leaseDue = `
  update task set run_at = now() + $3::float8 * interval '1 second', leased_by = $4, fence = fence + 1, attempts = attempts + 1,
    signalled = false
  from due where task.id = due.id
  returning ${columnsOf(Task)}, deadline_at <= ${SOON} as overdue, now() as leased_at`;

/** Leases up to $2 due tasks of the lane $1 to the worker $4 for $3 seconds. It skips the tasks $5. */
export const TAKE_LEASES = statement(LEASED)`
  with due as (select id from task where ${DUE} order by run_at limit $2 for update skip locked) ${leaseDue}`;

/**
 * Leases as `TAKE_LEASES` does, but the parties take turns: the party with the fewest tasks at this worker comes first. The
 * object $8 has the places of parties that were served lately. Parties without a place come first. The accounts of
 * a party take turns, too. Signalled tasks come first, then those of accounts with few due tasks. No party gets more than $6
 * tasks at once, and no account more than $7 of a party.
 */
export const TAKE_LEASES_IN_TURN = statement(LEASED)`
  with running as (
    select ${PARTY} as party, account_id, count(*) as tasks from task
    where lane = $1 and state = 'READY' and leased_by = $4 and run_at > now() group by 1, 2),
  own as (
    select id, run_at, ${PARTY} as party, signalled,
      count(*) over (partition by task.account_id, ${PARTY}) as own_due, coalesce(tasks, 0)
        + row_number() over (partition by task.account_id, ${PARTY} order by signalled desc, run_at, id) as own_turn
    from task left join running on running.party = ${PARTY} and running.account_id = task.account_id where ${DUE}),
  turns as (
    select id, run_at, ($8::jsonb ->> party)::int as place,
      coalesce((select sum(tasks) from running where running.party = own.party), 0)
        + row_number() over (partition by party order by own_turn, signalled desc, own_due, run_at, id) as turn
    from own where own_turn <= $7),
  chosen as materialized (
    select id, turn, place, run_at from turns where turn <= $6 order by turn, place nulls first, run_at limit $2 + ${OTHERS}),
  due as (
    select task.id from chosen join task on task.id = chosen.id where ${DUE}
    order by turn, place nulls first, chosen.run_at limit $2 for update of task skip locked)
  ${leaseDue}`;

/**
 * Extends leases by $4 seconds and returns the tasks that the worker $3 still holds. It skips rows that a transaction has
 * locked: if it waited for one, all other leases would end.
 */
export const EXTEND_LEASES = statement({ id: column.text() })`
  with held as (
    select task.id from task join unnest($1::text[], $2::bigint[]) as mine (id, fence) on task.id = mine.id and task.fence = mine.fence
    where leased_by = $3),
  free as (select id from task where id in (select id from held) and leased_by = $3 for update skip locked),
  extended as (update task set run_at = now() + $4::float8 * interval '1 second' from free where task.id = free.id)
  select id from held`;

/** Ends a task, unless a signal came after the $4th. */
export const END_TASK = statement({ id: column.text() })`delete from task where ${HELD} and signals = $4 returning id`;

export const IS_HELD = statement({ id: column.text() })`select id from task where ${HELD}`;

/** Writes the next step $5 with the data $6, due in $7 seconds. Null as the party $8 keeps the present one. It is due at once if a signal came after the $4th. */
export const RELEASE_TASK = statement({ id: column.text() })`
  update task set step = coalesce($5, step), data = data || $6::jsonb, attempts = 0, outages = 0, error = null, leased_by = null,
    party = coalesce($8, party), lane = ${PRESENT_LANE},
    run_at = case signals when $4 then least(now() + $7::float8 * interval '1 second', deadline_at) else now() end
  where ${HELD} returning id`;

/** Lets a failed task with the error $5 rest for $6 seconds. $7 is 1 after an outage, and 0 otherwise. It is due at once if a signal came after the $4th. */
export const RETRY_TASK = statement({ signals: column.int() })`
  update task set leased_by = null, error = $5, outages = outages + $7::int, run_at = case signals
    when $4 then least(now() + $6::float8 * interval '1 second', case when deadline_at > now() then deadline_at end)
    else now() end
  where ${HELD} returning signals`;

/** Continues an exhausted task with the step $2, without a deadline. */
export const CONTINUE_TASK = statement({})`
  update task set step = $2, attempts = 0, outages = 0, deadline_at = null, run_at = case step when $2 then run_at else now() end
  where id = $1`;

/** Ends the leases of the worker $1. The present attempt does not count. */
export const GIVE_BACK = statement({})`
  with held as (select id from task where leased_by = $1 order by subject for update)
  update task set leased_by = null, run_at = now(), attempts = greatest(attempts - 1, 0) from held where task.id = held.id`;

/** Ends all leases. */
export const END_LEASES = statement({ id: column.text() })`
  with held as (select id from task where leased_by is not null order by subject for update)
  update task set leased_by = null, run_at = now() from held where task.id = held.id returning task.id`;
