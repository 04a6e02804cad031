/** The one door for resolvers: what they hand over is written in their own transaction, and carried out after it. */
import type { Database, Transaction } from '../entities/database.ts';
import type { Vault } from '../entities/secrets.ts';
import type { Server } from '../entities/server.ts';
import { WEBHOOK_LANE, WEBHOOK_PROCESS } from '../entities/webhook.ts';
import type { Coin, Invoice, PaymentAddress, PaymentDriver } from './payments/drivers/driver.ts';
import { TOP_UP_LANE, TOP_UP_PROCESS, topUpProcess } from './payments/watch-top-up.ts';
import { seedDocumentationAddresses } from './servers/addresses.ts';
import { releaseHold } from './servers/create.ts';
import type { HardwareDriver } from './servers/drivers/driver.ts';
import { passwordContext, SERVER_LANE, SERVER_PROCESS, serverProcess } from './servers/process.ts';
import { type NewTask, startTask } from './tasks.ts';
import { type WebhookOptions, Webhooks } from './webhooks/index.ts';
import { Worker } from './worker.ts';

export { START_TASK_PARAMETERS, startTaskParameters, startTaskSql, taskChange } from './tasks.ts';
export type { Coin } from './payments/drivers/driver.ts';
export { newWebhookSecret, type WebhookTest } from './webhooks/index.ts';
export { passwordContext, releaseHold };

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

/** How long an order may take before it is given up, by the kind of machine. */
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

  /** Has the machine of a server destroyed, also if it is still being made. */
  deleteServer(tx: Transaction, { orderNumber, accountId }: Pick<Server, 'orderNumber' | 'accountId'>): Promise<void> {
    return startTask(tx, {
      lane: SERVER_LANE,
      process: SERVER_PROCESS,
      subject: orderNumber,
      accountId,
      step: 'destroy',
    });
  }

  /** Whatever the drivers need in the database before the first order. */
  async prepare(): Promise<void> {
    if (this.simulated.machines) await seedDocumentationAddresses(this.#options.db);
  }

  /** A worker that carries everything out. Any number of processes may have one. */
  newWorker(options: { leaseSeconds?: number } = {}): Worker {
    const { db, vault, drivers, payments, pollSeconds } = this.#options;
    const processes = {
      [SERVER_PROCESS]: serverProcess({ db, vault, drivers, pollSeconds }),
      [TOP_UP_PROCESS]: topUpProcess({ db, driver: payments, pollSeconds }),
      [WEBHOOK_PROCESS]: this.webhooks.process,
    };
    return new Worker(db, processes, {
      lanes: { [SERVER_LANE]: 16, [TOP_UP_LANE]: 8, [WEBHOOK_LANE]: 16 },
      ...options,
    });
  }
}
