/** Webhooks, as the door of provisioning offers them. */
import type { Actor } from '../../entities/audit.ts';
import type { Database, Transaction } from '../../entities/database.ts';
import { ApiError } from '../../entities/errors.ts';
import type { Vault } from '../../entities/secrets.ts';
import { DELIVER_STEP, WEBHOOK_LANE, WEBHOOK_PROCESS, type Webhook } from '../../entities/webhook.ts';
import { type Process, startTask } from '../tasks.ts';
import { type DeliveryOptions, webhookProcess } from './deliver.ts';
import type { RenderResource } from './message.ts';
import { checkNow, type Resolve, resolveName } from './post.ts';
import { AddressRules, RefusedUrl } from './public-address.ts';
import { testWebhook, type WebhookTest } from './test.ts';

export { newWebhookSecret } from './sign.ts';
export type { RenderResource, WebhookTest };

export interface WebhookOptions {
  /** Networks that may be called although they are not public, also without TLS. */
  allowCidrs: readonly string[];
  /** Shows the object of an event as REST does. */
  render: RenderResource;
  /** Default: asks the nameservers of the machine. */
  resolve?: Resolve;
}

export class Webhooks {
  readonly #options: DeliveryOptions;

  constructor(db: Database, vault: Vault, { allowCidrs, render, resolve = resolveName }: WebhookOptions) {
    this.#options = { db, vault, render, resolve, rules: new AddressRules(allowCidrs) };
  }

  get process(): Process {
    return webhookProcess(this.#options);
  }

  /**
   * The URL as it is kept. A name that does not resolve now is taken: it is checked again at each connection.
   * @throws ApiError invalid_url or url_not_allowed
   */
  async check(text: string): Promise<string> {
    const { rules, resolve } = this.#options;
    try {
      const url = rules.parse(text);
      await checkNow(url, rules, resolve);
      return url.href;
    } catch (error) {
      throw error instanceof RefusedUrl ? new ApiError(error.code, error.message) : error;
    }
  }

  /** Sends `webhook.test` now, and waits for the answer, ten seconds at most. */
  test(webhook: Webhook, actor: Actor): Promise<WebhookTest> {
    return testWebhook(this.#options, webhook, actor);
  }

  /** Has the worker look for what is due. */
  wake(tx: Transaction, { id, accountId }: Pick<Webhook, 'id' | 'accountId'>): Promise<void> {
    return startTask(tx, {
      lane: WEBHOOK_LANE,
      process: WEBHOOK_PROCESS,
      subject: id,
      accountId,
      step: DELIVER_STEP,
    });
  }
}
