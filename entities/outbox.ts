/**
 * The outbox: a delivery for each enabled webhook that wants an event is written by the statement that writes the
 * event, and the task of that webhook is woken by it too. So a delivery exists if and only if the change does, and the
 * order in which transactions commit does not matter: there is no cursor that could pass one by.
 */
import type { Change } from './bus.ts';
import { DELIVER_STEP, WEBHOOK_LANE, WEBHOOK_PROCESS } from './webhook.ts';

/** What is told to the webhooks of all accounts; it belongs to none. */
const PUBLIC_EVENTS = ['status.changed', 'canary.updated'];
/** A test is told to the webhook that is tested, by whoever tests it. */
const DIRECT_EVENT = 'webhook.test';
/** Columns of rows that no delivery needs. */
const LEFT_OUT = [
  'secret',
  'digest',
  'rootPassword',
  'userData',
  'sshPublicKeys',
  'accessDigest',
  'refreshDigest',
  'passwordHash',
  // what `recordAll` carries along
  'happening',
];

const list = (values: string[]) => values.map((value) => `'${value}'`).join(', ');
/** 26 characters: the time of the event, and what only this event and this webhook have. */
const SUFFIX = `substr(event_id, 5, 10) || substr(md5(event_id || webhook_id), 1, 16)`;

/**
 * CTEs that write the deliveries of an event, or of many. `from` names the relation of the change, with account_id, subject, and
 * the columns of its row if it has them; `id` and `type` are the parameters of the event. A task that is leased runs
 * again after its step, since the signal is counted; webhooks come in the order of their ids, so that two
 * transactions wait for each other and not crosswise.
 */
export const outboxSql = (from: string, id: string, type: string): string => `
  wanted as (
    select webhook.id as webhook_id, webhook.account_id, ${id}::text as event_id, ${type}::text as event_type,
      to_jsonb(${from}) - array[${list(LEFT_OUT)}] as snapshot
    from ${from} join webhook on webhook.account_id = ${from}.account_id or ${type}::text in (${list(PUBLIC_EVENTS)})
    where webhook.status = 'ENABLED' and ${type}::text <> '${DIRECT_EVENT}'
      and webhook.event_filter && array['*', ${type}::text, split_part(${type}::text, '.', 1) || '.*']
    order by webhook.id),
  deliveries_written as (
    insert into webhook_delivery (id, account_id, webhook_id, event_id, event_type, snapshot, next_attempt_at)
    select 'dlv_' || ${SUFFIX}, account_id, webhook_id, event_id, event_type, snapshot, now() from wanted),
  webhooks_woken as (
    insert into task (id, lane, process, subject, account_id, step)
    select 'task_' || ${SUFFIX}, '${WEBHOOK_LANE}', '${WEBHOOK_PROCESS}', webhook_id, account_id, '${DELIVER_STEP}'
    from (select distinct on (webhook_id) * from wanted order by webhook_id) as each
    on conflict (subject) do update set signals = task.signals + 1, attempts = 0, state = 'READY',
      run_at = case when task.leased_by is null then least(task.run_at, excluded.run_at) else task.run_at end
    returning id)`;

/** A column that says whether `outboxSql` woke anybody: then `WEBHOOKS_WOKEN` saves them the wait for the poll. */
export const WOKEN_SQL = 'exists (select from webhooks_woken) as "webhooksWoken"';
export const WEBHOOKS_WOKEN: Change = { kind: 'task', accountId: '', id: WEBHOOK_LANE };
