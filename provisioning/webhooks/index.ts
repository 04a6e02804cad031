/** Webhooks: the processes that deliver events, and test messages. */
import type { Transaction } from '../../entities/database/transaction.ts';
import { ApiError } from '../../entities/errors.ts';
import type { Actor } from '../../entities/history/audit.ts';
import type { EventType } from '../../entities/history/event.ts';
import { freeLane, WEBHOOK_LANE } from '../../entities/tasks/lane.ts';
import { startTask } from '../../entities/tasks/start.ts';
import type { ExampleOf } from '../../entities/webhooks/body.ts';
import { WEBHOOK_PROCESS, type Webhook } from '../../entities/webhooks/webhook.ts';
import { checkNow } from '../outbound/call.ts';
import { HostPlaces } from '../outbound/host-places.ts';
import { RefusedUrl } from '../outbound/public-address.ts';
import type { WorkerPart } from '../tasks/tasks.ts';
import { type DeliveryOptions, webhookProcess } from './deliver.ts';
import type { RenderResource } from './message.ts';
import { PUBLIC_EVENT_LANE, PUBLIC_EVENT_PROCESS, publicEventProcess, publicEventTask } from './public-events.ts';
import { enableWebhook, wakeWebhook } from './resume.ts';
import { WEBHOOK_RETENTION_PROCESS, webhookRetentionProcess } from './retention.ts';
import { WEBHOOK_SWEEP_PROCESS, webhookSweepProcess } from './sweep.ts';
import { testWebhook, type WebhookTest } from './test.ts';

export { newWebhookSecret } from './sign.ts';
export type { ExampleOf, RenderResource, WebhookTest };

/** Half of the tasks of customers that a worker runs at once. The tasks of free accounts take the same places. */
const HOST_TASKS_MAX = 64;

export class Webhooks implements WorkerPart {
  readonly #options: DeliveryOptions;
  readonly lanes = {
    [WEBHOOK_LANE]: { places: 16, perParty: 6, waiting: 112 },
    [freeLane(WEBHOOK_LANE)]: { places: 16, perParty: 6, waiting: 80 },
    [PUBLIC_EVENT_LANE]: 1,
  };
  readonly periodic = [WEBHOOK_SWEEP_PROCESS, WEBHOOK_RETENTION_PROCESS];

  /** For the list of events. */
  readonly exampleOf: ExampleOf;

  constructor({ exampleOf, ...options }: Omit<DeliveryOptions, 'hosts'> & { exampleOf: ExampleOf }) {
    this.exampleOf = exampleOf;
    this.#options = { ...options, hosts: new HostPlaces(HOST_TASKS_MAX) };
  }

  /** One process delivers. The others spread public events, wake forgotten webhooks, and delete old deliveries. */
  get processes() {
    return {
      [WEBHOOK_PROCESS]: webhookProcess(this.#options),
      [PUBLIC_EVENT_PROCESS]: publicEventProcess(this.#options.db),
      [WEBHOOK_SWEEP_PROCESS]: webhookSweepProcess(this.#options.db),
      [WEBHOOK_RETENTION_PROCESS]: webhookRetentionProcess(this.#options.db),
    };
  }

  /** Checks the form of a URL, and a literal address. @throws ApiError invalid_url or url_not_allowed */
  parse(text: string): URL {
    try {
      return this.#options.rules.parse(text);
    } catch (error) {
      throw refusalOf(error);
    }
  }

  /**
   * Checks a URL with the addresses of its name. A name need not resolve yet: each connection checks its addresses.
   * @throws ApiError invalid_url or url_not_allowed
   */
  async check(text: string): Promise<void> {
    await checkNow(this.parse(text), this.#options).catch((error) => {
      throw refusalOf(error);
    });
  }

  /** Sends `webhook.test` now and waits for the answer, ten seconds at most. */
  test(webhook: Webhook, actor: Actor): Promise<WebhookTest> {
    return testWebhook(this.#options, webhook, actor);
  }

  /** Starts the task that ends a webhook with an expiry. */
  async expire(tx: Transaction, webhook: Webhook): Promise<void> {
    const { createdAt, expiresAt } = webhook;
    if (expiresAt) await this.wake(tx, webhook, (expiresAt.getTime() - createdAt.getTime()) / 1000);
  }

  /** Lets a worker deliver a public event to the webhooks of all accounts. */
  spread(tx: Transaction, eventId: string, type: EventType): Promise<void> {
    return startTask(tx, publicEventTask(eventId, type));
  }

  /** Lets a worker look for due deliveries. */
  wake(tx: Transaction, webhook: Pick<Webhook, 'id' | 'accountId'>, afterSeconds = 0): Promise<void> {
    return wakeWebhook(tx, webhook, afterSeconds);
  }

  /** Enables a webhook that is still disabled for the same reason. @returns the enabled webhook, or undefined */
  enable(tx: Transaction, webhook: Webhook, actor: Actor): Promise<Webhook | undefined> {
    return enableWebhook(tx, webhook, actor);
  }
}

function refusalOf(error: unknown): unknown {
  if (!(error instanceof RefusedUrl)) return error;
  const { code, message } = error;
  return new ApiError(code, message, { errors: [{ field: 'url', code, message }] });
}
