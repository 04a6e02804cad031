/**
 * The outbox: the statement that writes an event also inserts a delivery for each enabled webhook whose filter matches. So a
 * delivery exists if and only if the change does, in any order of commits.
 *
 * The transaction only inserts. It locks no row of a webhook, so an account with webhooks orders as fast as one without.
 * The process wakes the webhooks after its commit. If it dies before that, a worker finds the deliveries
 * (provisioning/webhooks/sweep.ts).
 */
import type { EntitySchema } from 'typeorm';
import { forAllCallers } from '../caller.ts';
import type { Bus, Change } from '../database/bus.ts';
import * as column from '../database/column.ts';
import { statement } from '../database/statement.ts';
import type { Queryable } from '../database/transaction.ts';
import { OPERATOR_ACCOUNT } from '../history/audit.ts';
import { newId } from '../ids.ts';
import { hasPaidSql } from '../payments/payer.ts';
import { laneSql, WEBHOOK_LANE } from '../tasks/lane.ts';
import { DELIVER_STEP, WEBHOOK_PROCESS } from './webhook.ts';

/** Events that go to the webhooks of all accounts. A worker writes those deliveries in batches. */
const PUBLIC_EVENTS = ['status.changed', 'canary.updated'];
/** The test event. The test itself sends it to the tested webhook. */
const DIRECT_EVENT = 'webhook.test';
/** Columns that deliveries leave out besides bytes. The second is one of `recordAll`. */
const LEFT_OUT = ['ssh_public_keys', 'happening'];
/** The bytes that deliveries show: the key of an agent. All others are secrets or digests. */
const SHOWN_BYTES: readonly string[] = ['public_key'];

const leftOut = ({ options }: EntitySchema): string[] => {
  const bytes = Object.values(options.columns).filter((column) => column?.type === 'bytea');
  const names = bytes.map((column) => column!.name!);
  return [...LEFT_OUT, ...names.filter((name) => !SHOWN_BYTES.includes(name))];
};
const list = (values: string[]) => values.map((value) => `'${value}'`).join(', ');
/** Whether an enabled webhook waits for events of a type, which is an expression. */
const listensTo = (type: string): string => `webhook.status = 'ENABLED'
      and (webhook.expires_at is null or webhook.expires_at > now())
      and webhook.event_filter && array['*', ${type}::text, split_part(${type}::text, '.', 1) || '.*']`;
/** 26 characters: the time of the event, and a hash of the event and the webhook. */
const SUFFIX = `substr(event_id, 5, 10) || substr(md5(event_id || webhook_id), 1, 16)`;

/**
 * Returns CTEs that insert the deliveries of one event or of many, and the changed row once for each event.
 * @param from the relation of the change, with account_id, subject, and the columns of the row if it has one
 * @param id the expression for the id of the event; `type` gives its type
 * @param table the table of the row; undefined if it has none
 */
export const outboxSql = (from: string, id: string, type: string, table: EntitySchema | undefined): string => `
  wanted as (
    select webhook.id as webhook_id, webhook.account_id, ${id}::text as event_id, ${type}::text as event_type
    from ${from} join webhook on webhook.account_id = ${from}.account_id
    where ${listensTo(type)} and ${type}::text <> '${DIRECT_EVENT}'),
  snapshots_written as (
    insert into webhook_snapshot (event_id, snapshot)
    select ${id}::text, (to_jsonb(${from}) - array[${list(table ? leftOut(table) : LEFT_OUT)}]) #- '{change,sshPublicKeys}' from ${from}
    where ${type}::text in (${list(PUBLIC_EVENTS)}) or ${id}::text in (select event_id from wanted)),
  deliveries_written as (
    insert into webhook_delivery (id, account_id, webhook_id, event_id, event_type, next_attempt_at)
    select 'dlv_' || ${SUFFIX}, account_id, webhook_id, event_id, event_type, now() from wanted
    returning webhook_id)`;

/**
 * The next $4 webhooks after the webhook $2 that listen to the public event $6 of the type $1. With $3 those of accounts that have
 * paid, and otherwise those without a delivery of it. They are older than the time $5. Suspended accounts get none, and the
 * operator got its deliveries with the event.
 */
export const NEXT_LISTENERS = statement({ id: column.key() })`
  select id from webhook
  where id > $2 and created_at <= $5 and ${listensTo('$1')} and account_id <> '${OPERATOR_ACCOUNT}'
    and case when $3::boolean then ${hasPaidSql('webhook.account_id')}
      else not exists (select from webhook_delivery where webhook_id = webhook.id and event_id = $6) end
    and not exists (select from account where account.id = webhook.account_id and suspended_at is not null)
  order by id limit $4::int`;
/** Inserts deliveries of the event $1 with the type $2 to the webhooks $3, as far as they still exist. */
export const INSERT_DELIVERIES = statement({})`
  insert into webhook_delivery (id, account_id, webhook_id, event_id, event_type, next_attempt_at)
  select 'dlv_' || ${SUFFIX}, account_id, webhook_id, event_id, $2::text, now()
  from (select id as webhook_id, account_id, $1::text as event_id from webhook where id = any($3::text[])) as wanted`;

/** A column with the webhooks for which `outboxSql` inserts deliveries. Pass it to `deliveriesFor`. */
export const WEBHOOK_IDS_SQL = 'array(select distinct webhook_id from deliveries_written) as webhook_ids';

/** Returns the changes by which the database wakes these webhooks after the commit. */
export const deliveriesFor = (webhookIds: readonly string[] = []): Change[] =>
  webhookIds.map((id) => ({ kind: 'webhook', accountId: '', id }));

/**
 * Starts the tasks of the webhooks $1 with the task ids $2, or signals them. A leased task runs again after its step. The
 * statement locks the tasks in the order of their subjects.
 */
const WAKE = statement({ lane: column.text() })`
  insert into task (id, lane, process, subject, account_id, step)
  select task_id, ${laneSql(`'${WEBHOOK_LANE}'`, 'webhook.account_id')}, '${WEBHOOK_PROCESS}', webhook.id, account_id, '${DELIVER_STEP}'
  from unnest($1::text[], $2::text[]) as given(id, task_id) join webhook on webhook.id = given.id order by webhook.id
  on conflict (subject) do update set signals = task.signals + 1, attempts = 0, state = 'READY', lane = excluded.lane,
    run_at = case when task.leased_by is null then least(task.run_at, excluded.run_at) else task.run_at end
  returning lane`;

/** Wakes webhooks in a separate statement and tells the workers. */
export async function wakeWebhooks(db: Queryable, bus: Bus, webhookIds: readonly string[]): Promise<void> {
  if (!webhookIds.length) return;
  const woken = await WAKE.all(db, [webhookIds, webhookIds.map(() => newId('task'))]);
  bus.publish([...new Set(woken.map(({ lane }) => lane))].map((id) => ({ kind: 'task', accountId: '', id })));
}

/** Wakes webhooks after commits, with one statement at a time. Commits meanwhile share the next statement. */
export class Waker {
  readonly #wake: (webhookIds: readonly string[]) => Promise<void>;
  readonly #waiting = new Set<string>();
  #waking: Promise<void> | undefined;

  constructor(wake: (webhookIds: readonly string[]) => Promise<void>) {
    this.#wake = wake;
  }

  wake(webhookIds: readonly string[]): void {
    for (const id of webhookIds) this.#waiting.add(id);
    if (this.#waiting.size) this.#waking ??= forAllCallers(() => this.#run()).finally(() => (this.#waking = undefined));
  }

  /** Waits until the requested webhooks are awake. */
  async idle(): Promise<void> {
    await this.#waking;
  }

  async #run(): Promise<void> {
    while (this.#waiting.size) {
      const ids = [...this.#waiting];
      this.#waiting.clear();
      // If the statement fails, the sweep of a worker wakes the webhooks.
      await this.#wake(ids).catch(() => {});
    }
  }
}
