/** The one door for resolvers: what they hand over is written in their own transaction, and carried out after it. */
import type { Database, Transaction } from '../entities/database.ts';
import type { OauthClient } from '../entities/oauth-client.ts';
import type { Vault } from '../entities/secrets.ts';
import type { Server } from '../entities/server.ts';
import { WEBHOOK_LANE, WEBHOOK_PROCESS } from '../entities/webhook.ts';
import { API_KEY_LANE, API_KEY_PROCESS, apiKeyProcess, type ExpiringKey, expiryTask } from './api-keys/expire.ts';
import { AUDIT_RETENTION_PROCESS, auditRetentionProcess } from './audit-retention.ts';
import { CREDENTIAL_RETENTION_PROCESS, credentialRetentionProcess } from './credential-retention.ts';
import { OAUTH_CLIENT_LANE, OAUTH_CLIENT_PROCESS, oauthClientProcess, removalTask } from './oauth-clients/remove.ts';
import type { Coin, Invoice, PaymentAddress, PaymentDriver } from './payments/drivers/driver.ts';
import { LOW_BALANCE_PROCESS, lowBalanceProcess } from './payments/low-balance.ts';
import { TOP_UP_LANE, TOP_UP_PROCESS, topUpProcess } from './payments/watch-top-up.ts';
import { PERIODIC_LANE, schedule } from './schedule.ts';
import { seedDocumentationAddresses } from './servers/addresses.ts';
import { releaseHold } from './servers/create.ts';
import type { HardwareDriver } from './servers/drivers/driver.ts';
import { passwordContext, SERVER_LANE, SERVER_PROCESS, serverProcess } from './servers/process.ts';
import { RENEWAL_PROCESS, RESUME_TASK, renewalProcess } from './servers/renew.ts';
import { beginResize, type Resize, releaseResize } from './servers/resize.ts';
import { retrySuspended } from './servers/suspend.ts';
import { type NewTask, startTask } from './tasks.ts';
import { type WebhookOptions, Webhooks } from './webhooks/index.ts';
import { Worker } from './worker.ts';

export type { Coin } from './payments/drivers/driver.ts';
export { START_TASK_PARAMETERS, startTaskParameters, startTaskSql, taskChange } from './tasks.ts';
export { newWebhookSecret, type WebhookTest } from './webhooks/index.ts';
export { beginResize, passwordContext, type Resize, releaseHold, releaseResize };

export interface ProvisioningOptions {
  db: Database;
  vault: Vault;
  drivers: Record<Server['kind'], HardwareDriver>;
  payments: PaymentDriver;
  /** How long a worker waits before it looks at a machine or an invoice again. */
  pollSeconds: number;
  /** Default: webhooks reach public addresses only, and name what an event is about without showing it. */
  webhooks?: WebhookOptions;
}

/** How long an order or a change may take before it is given up, by the kind of machine. */
const DEADLINE_SECONDS: Record<Server['kind'], number> = { VPS: 30 * 60, DEDICATED: 8 * 3600 };

/** The task that makes an ordered server run. */
export const serverTask = ({
  kind,
  orderNumber,
  accountId,
}: Pick<Server, 'kind' | 'orderNumber' | 'accountId'>): NewTask => ({
  lane: SERVER_LANE,
  process: SERVER_PROCESS,
  subject: orderNumber,
  accountId,
  step: 'claim',
  deadlineSeconds: DEADLINE_SECONDS[kind],
});

/** The step that removes the machine of a server that is DELETING. */
const DESTROY_TASK = { lane: SERVER_LANE, process: SERVER_PROCESS, step: 'destroy' } as const;

export class Provisioning {
  readonly #options: ProvisioningOptions;
  readonly webhooks: Webhooks;

  constructor(options: ProvisioningOptions) {
    this.#options = options;
    const { db, vault, webhooks = { allowCidrs: [], render: async () => undefined } } = options;
    this.webhooks = new Webhooks(db, vault, webhooks);
  }

  /** Whether machines or payments are simulated. */
  get simulated(): { machines: boolean; payments: boolean } {
    const { drivers, payments } = this.#options;
    return { machines: Object.values(drivers).some(({ simulated }) => simulated), payments: payments.simulated };
  }

  coins(): readonly Coin[] {
    return this.#options.payments.coins();
  }

  /** A fresh address to pay an invoice to. */
  paymentAddress(invoice: Omit<Invoice, 'createdAt'>): PaymentAddress {
    return this.#options.payments.address(invoice);
  }

  /** Has an invoice watched until its money is credited. */
  watchTopUp(tx: Transaction, accountId: string, orderNumber: string): Promise<void> {
    return startTask(tx, {
      lane: TOP_UP_LANE,
      process: TOP_UP_PROCESS,
      subject: orderNumber,
      accountId,
      step: 'watch',
    });
  }

  /** Has a change of a server carried out, which its row names. */
  changeServer(tx: Transaction, server: Pick<Server, 'kind' | 'orderNumber' | 'accountId'>): Promise<void> {
    return startTask(tx, { ...serverTask(server), step: 'change' });
  }

  /** Has the expiry of a key told when it comes. */
  expireApiKey(tx: Transaction, key: ExpiringKey): Promise<void> {
    return startTask(tx, expiryTask(key));
  }

  /** Has an OAuth client removed when nobody has used it for long. */
  removeUnusedClient(tx: Transaction, client: Pick<OauthClient, 'id' | 'accountId'>): Promise<void> {
    return startTask(tx, removalTask(client));
  }

  /** Has the machine of a server destroyed, also if it is still being made. */
  deleteServer(tx: Transaction, { orderNumber, accountId }: Pick<Server, 'orderNumber' | 'accountId'>): Promise<void> {
    return startTask(tx, { ...DESTROY_TASK, subject: orderNumber, accountId });
  }

  /**
   * Has the suspended servers of an account tried again. For whatever lets one be paid for: a balance that grew, or a
   * server that is to renew itself again.
   */
  retrySuspended(tx: Transaction, accountId: string): Promise<void> {
    return retrySuspended(tx, accountId, RESUME_TASK);
  }

  /** Whatever the drivers need in the database before the first order. */
  async prepare(): Promise<void> {
    if (this.simulated.machines) await seedDocumentationAddresses(this.#options.db);
  }

  /** Has periodic work done from now on: renewals, alerts of low balances, the end of old audit entries and credentials. */
  schedule(): Promise<void> {
    return schedule(this.#options.db, [
      RENEWAL_PROCESS,
      LOW_BALANCE_PROCESS,
      AUDIT_RETENTION_PROCESS,
      CREDENTIAL_RETENTION_PROCESS,
    ]);
  }

  /** A worker that carries everything out. Any number of processes may have one. */
  newWorker(options: { leaseSeconds?: number } = {}): Worker {
    const { db, vault, drivers, payments, pollSeconds } = this.#options;
    const processes = {
      [SERVER_PROCESS]: serverProcess({ db, vault, drivers, pollSeconds }),
      [TOP_UP_PROCESS]: topUpProcess({ db, driver: payments, pollSeconds }),
      [RENEWAL_PROCESS]: renewalProcess(db, DESTROY_TASK),
      [LOW_BALANCE_PROCESS]: lowBalanceProcess(db),
      [AUDIT_RETENTION_PROCESS]: auditRetentionProcess(db),
      [CREDENTIAL_RETENTION_PROCESS]: credentialRetentionProcess(db),
      [API_KEY_PROCESS]: apiKeyProcess,
      [OAUTH_CLIENT_PROCESS]: oauthClientProcess(db),
      [WEBHOOK_PROCESS]: this.webhooks.process,
    };
    return new Worker(db, processes, {
      lanes: {
        [SERVER_LANE]: 16,
        [TOP_UP_LANE]: 8,
        [PERIODIC_LANE]: 4,
        [API_KEY_LANE]: 2,
        [OAUTH_CLIENT_LANE]: 1,
        [WEBHOOK_LANE]: 16,
      },
      ...options,
    });
  }
}
