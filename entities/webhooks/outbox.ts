/**
 * The outbox: the statement that writes an event also inserts a delivery for each enabled webhook that wants it. So a
 * delivery exists if and only if the change does, and the order in which transactions commit does not matter.
 *
 * The transaction only inserts. It locks no row that belongs to a webhook, so an account with webhooks orders as fast as one
 * without. The process wakes the webhooks after its commit. If it dies before that, a worker finds the
 * deliveries (provisioning/webhooks/sweep.ts).
 */
import type { Bus, Change } from '../database/bus.ts';
import type { Queryable } from '../database/transaction.ts';
import { newId } from '../ids.ts';
import { DELIVER_STEP, WEBHOOK_LANE, WEBHOOK_PROCESS } from './webhook.ts';

/** What is told to the webhooks of all accounts; it belongs to none. */
const PUBLIC_EVENTS = ['status.changed', 'canary.updated'];
/** A test is told to the webhook that is tested, by whoever tests it. */
const DIRECT_EVENT = 'webhook.test';
/** Columns of rows that no delivery needs. */
const LEFT_OUT = [
  'secret',
  'digest',
  'root_password',
  'user_data',
  'ssh_public_keys',
  'access_digest',
  'refresh_digest',
  'password_hash',
  // what `recordAll` carries along
  'happening',
];

const list = (values: string[]) => values.map((value) => `'${value}'`).join(', ');
/** 26 characters: the time of the event, and what only this event and this webhook have. */
const SUFFIX = `substr(event_id, 5, 10) || substr(md5(event_id || webhook_id), 1, 16)`;

/**
 * CTEs that insert the deliveries of an event, or of many. `from` names the relation of the change, with account_id, subject,
 * and the columns of its row if it has them; `id` and `type` are the parameters of the event.
 */
export const outboxSql = (from: string, id: string, type: string): string => `
  wanted as (
    select webhook.id as webhook_id, webhook.account_id, ${id}::text as event_id, ${type}::text as event_type,
      to_jsonb(${from}) - array[${list(LEFT_OUT)}] as snapshot
    from ${from} join webhook on webhook.account_id = ${from}.account_id or ${type}::text in (${list(PUBLIC_EVENTS)})
    where webhook.status = 'ENABLED' and ${type}::text <> '${DIRECT_EVENT}'
      and webhook.event_filter && array['*', ${type}::text, split_part(${type}::text, '.', 1) || '.*']),
  deliveries_written as (
    insert into webhook_delivery (id, account_id, webhook_id, event_id, event_type, snapshot, next_attempt_at)
    select 'dlv_' || ${SUFFIX}, account_id, webhook_id, event_id, event_type, snapshot, now() from wanted
    returning webhook_id)`;

/** A column with the webhooks that `outboxSql` has inserted deliveries for; hand it to `deliveriesFor`. */
export const WEBHOOK_IDS_SQL = 'array(select distinct webhook_id from deliveries_written) as webhook_ids';

/** What a transaction tells its database, so that these webhooks are woken after the commit. */
export const deliveriesFor = (webhookIds: readonly string[] = []): Change[] =>
  webhookIds.map((id) => ({ kind: 'webhook', accountId: '', id }));

/**
 * Starts the task of each webhook, or signals it: a task that is leased runs again after its step. The rows are locked in
 * the order of their key.
 */
const WAKE = `
  insert into task (id, lane, process, subject, account_id, step)
  select task_id, '${WEBHOOK_LANE}', '${WEBHOOK_PROCESS}', webhook.id, account_id, '${DELIVER_STEP}'
  from unnest($1::text[], $2::text[]) as given(id, task_id) join webhook on webhook.id = given.id order by webhook.id
  on conflict (subject) do update set signals = task.signals + 1, attempts = 0, state = 'READY',
    run_at = case when task.leased_by is null then least(task.run_at, excluded.run_at) else task.run_at end`;

/** Wakes webhooks, in a statement of its own, and tells the workers. */
export async function wakeWebhooks(db: Queryable, bus: Bus, webhookIds: readonly string[]): Promise<void> {
  if (!webhookIds.length) return;
  await db.query(WAKE, [webhookIds, webhookIds.map(() => newId('task'))], 'wake webhooks');
  bus.publish([{ kind: 'task', accountId: '', id: WEBHOOK_LANE }]);
}

/** Wakes webhooks after commits, one statement at a time: what commits meanwhile shares the next one. */
export class Waker {
  readonly #wake: (webhookIds: readonly string[]) => Promise<void>;
  readonly #waiting = new Set<string>();
  #waking: Promise<void> | undefined;

  constructor(wake: (webhookIds: readonly string[]) => Promise<void>) {
    this.#wake = wake;
  }

  wake(webhookIds: readonly string[]): void {
    for (const id of webhookIds) this.#waiting.add(id);
    if (this.#waiting.size) this.#waking ??= this.#run().finally(() => (this.#waking = undefined));
  }

  /** Waits until those that were asked for are awake. */
  async idle(): Promise<void> {
    await this.#waking;
  }

  async #run(): Promise<void> {
    while (this.#waiting.size) {
      const ids = [...this.#waiting];
      this.#waiting.clear();
      // The sweep of a worker wakes those that this could not.
      await this.#wake(ids).catch(() => {});
    }
  }
}
