/** How transactions start tasks and signal them. A task exists if and only if the transaction commits. */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import type { Transaction } from '../database/transaction.ts';
import { expression, moveStatement } from '../history/transition.ts';
import { newId } from '../ids.ts';
import { tracedData } from '../monitoring/traces.ts';
import { laneSql, PRESENT_LANE } from './lane.ts';
import { TASK_LIFECYCLE } from './task.ts';

export interface NewTask {
  lane: string;
  process: string;
  subject: string;
  accountId: string;
  /** The engine, host or gateway that the task calls. Default: its account. */
  party?: string | undefined;
  /** Default: `start`. */
  step?: string;
  data?: object;
  afterSeconds?: number;
  /** After this time the worker gives the task up at any step. */
  deadlineSeconds?: number;
}

/** The columns that a new task overwrites in a dead one. */
const REPLACED = ['process', 'account_id', 'step', 'data', 'error', 'created_at'];

/**
 * A CTE that starts a task, for statements that write its subject themselves. The caller announces it by `taskChange`.
 * @param from a relation of at most one row with the columns account_id and subject
 * @param first the number of the first of `startTaskParameters`
 * @param party an expression of the relation that comes before the party of the parameters, unless it is null
 */
export const startTaskSql = (from: string, first: number, party = 'null'): string => `
  task_started as (
    insert into task (id, lane, process, subject, account_id, step, data, run_at, deadline_at, party)
    select $${first}, ${laneSql(`$${first + 1}::text`, `${from}.account_id`)}, $${first + 2}, subject, account_id, $${first + 3}, $${first + 4}::jsonb,
      now() + $${first + 5}::float8 * interval '1 second', now() + $${first + 6}::float8 * interval '1 second',
      coalesce(${party}, $${first + 7}::text) from ${from}
    on conflict (subject) do update set signals = task.signals + 1, attempts = 0, outages = 0, state = 'READY',
      lane = case task.state when 'DEAD' then excluded.lane else ${PRESENT_LANE} end, party = excluded.party,
      ${REPLACED.map((column) => `${column} = case task.state when 'DEAD' then excluded.${column} else task.${column} end`).join(', ')},
      deadline_at = case task.state when 'DEAD' then excluded.deadline_at else coalesce(excluded.deadline_at, task.deadline_at) end,
      run_at = case
        when task.state = 'DEAD' then excluded.run_at
        when task.leased_by is null then least(task.run_at, excluded.run_at)
        else task.run_at end
    returning lane)`;

/** How many parameters `startTaskSql` takes. */
export const START_TASK_PARAMETERS = 8;

export const startTaskParameters = ({
  lane,
  process,
  step = 'start',
  data = {},
  afterSeconds = 0,
  deadlineSeconds,
  party,
}: NewTask): unknown[] => [
  newId('task'),
  lane,
  process,
  step,
  JSON.stringify(tracedData(data)),
  afterSeconds,
  deadlineSeconds ?? null,
  party ?? null,
];

/** Tells the workers that a lane has a due task. */
export const taskChange = (lane: string) => ({ kind: 'task', accountId: '', id: lane }) as const;

const START_TASK = statement({ lane: column.text() })`
  with given as (select $1::text as account_id, $2::text as subject), ${startTaskSql('given', 3)}
    select lane from task_started`;

/** Starts a task. If the subject has a task, it gets a signal at the time of the new one. A new task replaces a dead one. */
export async function startTask(tx: Transaction, task: NewTask): Promise<void> {
  const started = await START_TASK.first(tx, [task.accountId, task.subject, ...startTaskParameters(task)]);
  if (!task.afterSeconds) tx.changed(taskChange(started!.lane));
}

const SIGNAL_TASK = moveStatement(TASK_LIFECYCLE, 'READY', 'subject = $1', {
  lane: expression(PRESENT_LANE),
  signals: expression('signals + 1'),
  signalled: expression('true'),
  attempts: expression('0'),
  outages: expression('0'),
  deadlineAt: expression(`case before.state when 'DEAD' then null else deadline_at end`),
  runAt: expression('case when leased_by is null then least(run_at, now()) else run_at end'),
});
/**
 * Wakes the task of a subject. It runs now, or once more directly after the present step, with fresh attempts. A dead task
 * continues with the step at which it died, without its deadline. Without a task, nothing happens.
 */
export async function signalTask(tx: Transaction, subject: string): Promise<void> {
  const woken = await SIGNAL_TASK.all(tx, [subject]);
  tx.changedAll(woken.map(({ lane }) => taskChange(lane)));
}

/** Sends the task of the subject $1 to the step $2 at once. A worker that runs the task loses its lease. */
export const REDIRECT_TASK = moveStatement(TASK_LIFECYCLE, 'READY', 'subject = $1', {
  step: expression('$2'),
  fence: expression('fence + 1'),
  leasedBy: expression('null'),
  attempts: expression('0'),
  outages: expression('0'),
  error: expression('null'),
  deadlineAt: expression('null'),
  runAt: expression('now()'),
});

/** Starts the periodic processes $2 in the lane $3, with the task ids $1. Processes that have a task keep it. */
export const START_PERIODIC = statement({})`
  insert into task (id, lane, process, subject, account_id, step)
  select id, $3, process, 'cron:' || process, '', 'start' from unnest($1::text[], $2::text[]) as given(id, process)
  on conflict (subject) do nothing`;
