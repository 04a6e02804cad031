/**
 * The figures of the whole service, read from the database at a scrape. Each part has an index for the few rows that it looks
 * for. So a scrape costs the same with few customers and with many.
 */
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import { nullable } from '../database/table.ts';
import { OPERATOR_ACCOUNT } from '../history/audit.ts';
import { BOOKS_COMPONENT } from '../transparency/health.ts';

/** No count goes further. */
export const COUNT_MAX = 10_000;
/** Seconds after which a measured health is too old to show. */
const STALE_SECONDS = 600;

const age = (time: string) => `extract(epoch from now() - ${time})::float8`;
const capped = (rows: string) => `(select count(*) from (select ${rows} limit ${COUNT_MAX}) as few)::float8`;

/** The states in which a payment waits: for confirmations, for its final block, or for the operator. */
const WAITING_PAYMENTS = ['OBSERVED', 'CONFIRMING', 'CREDITED', 'ASSIGNED', 'UNMATCHED'];
const payments = WAITING_PAYMENTS.map(
  (state) => `select 'payments', '${state}', ${capped(`from payment where status = '${state}'`)}`,
);

/** Returns the figures by name, each with the value of its label. $1 the lanes of tasks, $2 the networks of chains. */
export const READ_FIGURES = statement({ name: column.text(), label: nullable(column.text()), value: column.real() })`
  with due as (
    select lane, run_at from unnest($1::text[]) as lanes(lane) left join lateral (
      select run_at from task where task.lane = lanes.lane and state = 'READY' and run_at <= now() order by run_at
      limit ${COUNT_MAX}) as waiting on true),
    latest as (select issued_at, expires_at from canary order by id desc limit 1)
  select 'tasks_due' as name, lane as label, count(run_at)::float8 as value from due group by lane
  union all select 'tasks_due_age_seconds', lane, coalesce(${age('min(run_at)')}, 0) from due group by lane
  union all select 'tasks_stuck', 'DEAD', ${capped(`from task where state = 'DEAD'`)}
  union all select 'tasks_stuck', 'FAILING', ${capped(`from task where state = 'READY' and error is not null`)}
  union all ${payments.join('\n  union all ')}
  union all select 'chain_lag_seconds', network, ${age('reached_at')} from chain
    where network = any($2) and reached_at is not null
  union all select 'chain_lag_blocks', network, greatest(head - height, 0)::float8 from chain
    where network = any($2) and height is not null
  union all select 'webhook_lag_seconds', null,
    coalesce(${age(`(select min(created_at) from webhook_delivery where status = 'PENDING')`)}, 0)
  union all select 'health', component, case status when 'operational' then 1 when 'partial_outage' then 0.5 else 0 end
    from health where component <> '${BOOKS_COMPONENT}' and checked_at > now() - interval '${STALE_SECONDS} seconds'
  union all select 'books_balanced', null, (status = 'operational')::int::float8 from health where component = '${BOOKS_COMPONENT}'
  union all select 'books_proof_age_seconds', null, ${age('checked_at')} from health where component = '${BOOKS_COMPONENT}'
  union all select 'findings', kind, count(*)::float8 from finding where resolved_at is null group by kind
  union all select 'circuit_breakers', driver, 1 from brake
  union all select 'canary_age_seconds', null, ${age('issued_at')} from latest
  union all select 'canary_left_seconds', null, -${age('expires_at')} from latest
  union all (select 'backup_age_seconds', null, ${age('created_at')} from event
    where account_id = '${OPERATOR_ACCOUNT}' and type = 'backup.noted' order by id desc limit 1)`;

/** The label of each figure, and its meaning. */
export const FIGURES: Readonly<Record<string, readonly [help: string, label?: string]>> = {
  tasks_due: [`Tasks that wait for a worker, up to ${COUNT_MAX}.`, 'lane'],
  tasks_due_age_seconds: ['How long the first of them waits.', 'lane'],
  tasks_stuck: ['Tasks that were given up (DEAD), or that failed and will be tried again (FAILING).', 'state'],
  payments: [`Payments that wait in a state, up to ${COUNT_MAX}.`, 'state'],
  chain_lag_seconds: ['Time since the worker had read a whole chain.', 'network'],
  chain_lag_blocks: ['Blocks of the node that the worker has not read.', 'network'],
  webhook_lag_seconds: ['The age of the oldest delivery without an attempt.'],
  health: ['1 for a part that answers, 0.5 for one that partly answers, 0 for one that does not.', 'component'],
  books_balanced: ['Whether the last proof of the books found no fault.'],
  books_proof_age_seconds: ['Time since the last proof of the books.'],
  findings: ['Open findings.', 'kind'],
  circuit_breakers: ['Open circuit breakers.', 'engine'],
  canary_age_seconds: ['Time since the last canary was issued.'],
  canary_left_seconds: ['Time until the canary expires. It is negative afterwards.'],
  backup_age_seconds: ['Time since the last noted backup.'],
};
