/**
 * Delivers the due messages of a webhook. Each webhook has one task, which sends four messages at a time. A receiver gets a
 * message at least once. If the worker dies between sending and its commit, the next worker sends the message again with the
 * same `webhook-id`.
 */
import type { Database } from '../../entities/database/database.ts';
import type { Vault } from '../../entities/secrets.ts';
import { WEBHOOK_LANE } from '../../entities/tasks/lane.ts';
import {
  FIND_TOLD_EVENT,
  SECONDS_TO_NEXT_ATTEMPT,
  type Snapshot,
  STOP_DELIVERIES,
  TAKE_DELIVERIES,
  type WebhookDelivery,
} from '../../entities/webhooks/delivery.ts';
import {
  DELIVER_STEP,
  FIND_WEBHOOK,
  PREVIOUS_WEBHOOK_SECRET,
  WEBHOOK_SECRET,
  type Webhook,
} from '../../entities/webhooks/webhook.ts';
import type { Outbound } from '../outbound/call.ts';
import type { HostPlaces } from '../outbound/host-places.ts';
import { done, hop, type LeasedTask, nap, type Outcome, type Process } from '../tasks/tasks.ts';
import { messageOf, type RenderResource } from './message.ts';
import { type Posted, type PostOptions, post } from './post.ts';
import { expire, keepResults, type Result } from './result.ts';
import { signedHeaders } from './sign.ts';

const PARALLEL = 4;
const TIMEOUT_SECONDS = 15;

type ExpiringWebhook = NonNullable<Awaited<ReturnType<typeof FIND_WEBHOOK.first>>>;

export interface DeliveryOptions extends Outbound {
  db: Database;
  vault: Vault;
  render: RenderResource;
  hosts: HostPlaces;
}

export function webhookProcess(options: DeliveryOptions): Process {
  return {
    lane: WEBHOOK_LANE,
    attemptsMax: Number.MAX_SAFE_INTEGER,
    backoffSeconds: (attempt) => Math.min(60, 2 ** attempt / 2),
    steps: {
      [DELIVER_STEP]: async (task) => {
        const webhook = await FIND_WEBHOOK.first(options.db, [task.subject]);
        if (!webhook) return done();
        if (webhook.status === 'DISABLED') return done({ commit: (tx) => STOP_DELIVERIES.all(tx, [webhook.id]) });
        if (webhook.secondsLeft !== null && webhook.secondsLeft <= 0)
          return done({ commit: (tx) => expire(tx, webhook) });
        const place = { url: webhook.url, account: webhook.accountId };
        return options.hosts.during(place, () => deliver(options, webhook, task), nap);
      },
    },
  };
}

async function deliver(options: DeliveryOptions, webhook: ExpiringWebhook, { aborted }: LeasedTask): Promise<Outcome> {
  const { db } = options;
  const due = await TAKE_DELIVERIES.all(db, [webhook.id, PARALLEL]);
  if (!due.length) return rest(db, webhook);
  const results = await Promise.all(
    due.map(async (delivery): Promise<Result> => {
      const posted = await send(options, webhook, delivery, { timeoutSeconds: TIMEOUT_SECONDS, aborted });
      return { delivery, posted };
    }),
  );
  return hop(DELIVER_STEP, { commit: (tx) => keepResults(tx, webhook, results) });
}

/** Rests until the next attempt or the expiry. */
async function rest(db: Database, { id, secondsLeft }: ExpiringWebhook): Promise<Outcome> {
  const next = await SECONDS_TO_NEXT_ATTEMPT.first(db, [id]);
  if (next?.seconds != null) return nap(Math.max(0, Math.min(next.seconds, secondsLeft ?? Infinity)));
  return secondsLeft === null ? done() : hop(DELIVER_STEP, { afterSeconds: secondsLeft });
}

/**
 * Signs and sends one message.
 * @param snapshot the changed row, of an event that has no kept one
 * @throws if the caller aborts it
 */
export async function send(
  { db, vault, rules, resolve, render }: DeliveryOptions,
  { id, accountId: webhookAccount, url, secret, previousSecret }: Webhook,
  { accountId, eventId, snapshot }: Pick<WebhookDelivery, 'accountId' | 'eventId'> & { snapshot?: Snapshot },
  limits: Omit<PostOptions, keyof Outbound>,
): Promise<Posted> {
  const event = (await FIND_TOLD_EVENT.first(db, [eventId]))!;
  const body = await messageOf({ accountId, snapshot: snapshot ?? event.snapshot }, event, render);
  const secrets = [WEBHOOK_SECRET.open(vault, secret, id)];
  if (previousSecret) secrets.push(PREVIOUS_WEBHOOK_SECRET.open(vault, previousSecret, id));
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'Freehold-Webhooks/1.0',
    ...signedHeaders(secrets, { id: eventId, body }),
  };
  return post({ url, account: webhookAccount, headers, body }, { rules, resolve, ...limits });
}
