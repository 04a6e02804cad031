/**
 * Delivers what is due to one webhook: one task for each, four messages at a time. A message is sent at least once: its
 * result is committed after it was sent, and who died in between has sent it for nothing. `webhook-id` stays the same.
 */
import type { Database } from '../../entities/database/database.ts';
import { columnsOf } from '../../entities/database/table.ts';
import { Event } from '../../entities/history/event.ts';
import type { Vault } from '../../entities/secrets.ts';
import {
  DELIVER_STEP,
  WEBHOOK_LANE,
  Webhook,
  WebhookDelivery,
  webhookSecretContext,
} from '../../entities/webhooks/webhook.ts';
import type { Outbound } from '../outbound/call.ts';
import { done, hop, type LeasedTask, nap, type Outcome, type Process } from '../tasks/tasks.ts';
import { messageOf, type RenderResource } from './message.ts';
import { type Posted, post } from './post.ts';
import { keepResults, type Result, stopDeliveries } from './result.ts';
import { signedHeaders } from './sign.ts';

const PARALLEL = 4;
const TIMEOUT_SECONDS = 15;
const RETENTION_DAYS = 30;

export interface DeliveryOptions extends Outbound {
  db: Database;
  vault: Vault;
  render: RenderResource;
}

export function webhookProcess(options: DeliveryOptions): Process {
  return {
    lane: WEBHOOK_LANE,
    attemptsMax: Number.MAX_SAFE_INTEGER,
    backoffSeconds: (attempt) => Math.min(60, 2 ** attempt / 2),
    steps: { [DELIVER_STEP]: (task) => deliver(options, task) },
  };
}

async function deliver(options: DeliveryOptions, task: LeasedTask): Promise<Outcome> {
  const { db } = options;
  const webhook = await findWebhook(db, task.subject);
  if (!webhook) return done();
  if (webhook.status === 'DISABLED') return done({ commit: (tx) => stopDeliveries(tx, webhook.id) });
  const due = await db.query<WebhookDelivery>(TAKE, [webhook.id, PARALLEL]);
  if (!due.length) return rest(db, webhook);
  const results = await Promise.all(
    due.map(async (delivery): Promise<Result> => {
      const posted = await send(options, webhook, delivery, { timeoutSeconds: TIMEOUT_SECONDS, aborted: task.aborted });
      return { delivery, posted };
    }),
  );
  return hop(DELIVER_STEP, { commit: (tx) => keepResults(tx, webhook, results) });
}

/** Until the next attempt; without one, the task goes, and so does what has been over for a month. */
async function rest(db: Database, { id }: Webhook): Promise<Outcome> {
  const [next] = await db.query<{ seconds: number | null }>(
    `select extract(epoch from min(next_attempt_at) - now())::float8 as seconds from webhook_delivery
      where webhook_id = $1 and next_attempt_at is not null`,
    [id],
  );
  if (next?.seconds != null) return nap(Math.max(0, next.seconds));
  return done({
    commit: (tx) =>
      tx.query(
        `delete from webhook_delivery where webhook_id = $1 and next_attempt_at is null and created_at < now() - $2::int * interval '1 day'`,
        [id, RETENTION_DAYS],
      ),
  });
}

/** Sends one message, signed. @throws if it was aborted */
export async function send(
  { db, vault, rules, resolve, render }: DeliveryOptions,
  { id, url, secret }: Webhook,
  delivery: Pick<WebhookDelivery, 'accountId' | 'eventId' | 'snapshot'>,
  limits: { timeoutSeconds: number; aborted?: AbortSignal },
): Promise<Posted> {
  const [event] = await db.query<Event>(`select ${columnsOf(Event)} from event where id = $1`, [delivery.eventId]);
  const body = await messageOf(delivery, event!, render);
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'Freehold-Webhooks/1.0',
    ...signedHeaders([vault.open(secret, webhookSecretContext(id))], { id: delivery.eventId, body }),
  };
  return post({ url, headers, body }, { rules, resolve, ...limits });
}

export async function findWebhook(db: Pick<Database, 'query'>, id: string): Promise<Webhook | undefined> {
  const [webhook] = await db.query<Webhook>(`select ${columnsOf(Webhook)} from webhook where id = $1`, [id]);
  return webhook;
}

const TAKE = `
  with due as (
    select id from webhook_delivery where webhook_id = $1 and next_attempt_at <= now() order by next_attempt_at, id limit $2
    for update skip locked)
  update webhook_delivery set status = 'DELIVERING', first_attempt_at = coalesce(first_attempt_at, now())
  from due where webhook_delivery.id = due.id
  returning ${columnsOf(WebhookDelivery)}`;
