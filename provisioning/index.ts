/** The interface for resolvers. A resolver starts work in its own transaction, and a worker does the work. */
import { Accounts } from './accounts/index.ts';
import { Agents } from './agents/index.ts';
import { type ArchiveOptions, Archives } from './archives/index.ts';
import { countedGateway, countedX402 } from './driver-calls.ts';
import { type Resolve, resolveName } from './outbound/call.ts';
import { AddressRules } from './outbound/public-address.ts';
import { Payments, type PaymentsOptions } from './payments/index.ts';
import { Servers, type ServersOptions } from './servers/index.ts';
import { DRIVER_HEALTH_PROCESS, driverHealthProcess } from './servers/reconcile/driver-health.ts';
import { PERIODIC_LANE, schedule } from './tasks/schedule.ts';
import type { Lane, WorkerPart } from './tasks/tasks.ts';
import { Worker } from './tasks/worker.ts';
import { type ExampleOf, type RenderResource, Webhooks } from './webhooks/index.ts';

export { type Letter, writeMessages } from './accounts/messages.ts';
export type { Gateway } from './payments/chains/health.ts';
export type { ClaimLost } from './payments/chains/transaction.ts';
export type { Coin, ProcessorWebhook } from './payments/drivers/driver.ts';
export { assignPayment, creditPosting, returnPayment, writeOffPayment } from './payments/suspense.ts';
export { formatUnits, unitsOf } from './payments/top-ups/amount.ts';
export { settleTopUps } from './payments/top-ups/settle.ts';
export { faultOfAddress } from './payments/wallet/address.ts';
export { type GivenMovement, recordMovement } from './payments/wallet/movements.ts';
export { cancelPayout, finishPayout, type RequestedPayout, requestPayout } from './payments/wallet/payouts.ts';
export type { Buyer } from './payments/x402/earlier.ts';
export { challengeOf, decodePayment, receiptOf, ruleOf, type SignedPayment } from './payments/x402/message.ts';
export { confirmPaidTopUp } from './payments/x402/reconcile.ts';
export { refuseUnusable, tooManyOpen } from './payments/x402/refusal.ts';
export { releaseChange } from './servers/billing/hold.ts';
export { beginResize, type Resize } from './servers/billing/resize.ts';
export { chargeUnproven } from './servers/billing/unproven.ts';
export type { MachineSpec } from './servers/drivers/driver.ts';
export { imageTask } from './servers/images/process.ts';
export { lookAtEngines } from './servers/index.ts';
export { closeManualJob, listManualJobs, manualSpecOf } from './servers/manual-jobs.ts';
export { waitForRoom } from './servers/placement/capacity.ts';
export { cancelServer } from './servers/steps/cancel.ts';
export { releaseHold } from './servers/steps/outcome.ts';
export { serverTask } from './servers/task.ts';
export { newWebhookSecret, type WebhookTest } from './webhooks/index.ts';

export interface ProvisioningOptions extends ServersOptions, PaymentsOptions {
  /** Networks to which customers' URLs may lead although they are not public, even without TLS. Default: none. */
  allowCidrs?: readonly string[];
  /** Networks to which customers' URLs never lead. Default: none. */
  denyCidrs?: readonly string[];
  /** Resolves names. Default: the nameservers of the machine. */
  resolve?: Resolve;
  /** Shows the resource of an event as REST does. Default: messages contain only its id. */
  render?: RenderResource;
  /** Where a worker writes an archive each day. Absent: nowhere. */
  archives?: ArchiveOptions | undefined;
  /** The example of a resource in the API. Default: examples of messages contain only ids. */
  exampleOf?: ExampleOf;
}

export class Provisioning {
  readonly #options: ProvisioningOptions;
  readonly servers: Servers;
  readonly payments: Payments;
  readonly webhooks: Webhooks;
  readonly accounts: Accounts;
  readonly agents: Agents;
  readonly archives: Archives;

  constructor(given: ProvisioningOptions) {
    const options = {
      ...given,
      payments: given.payments.map(countedGateway),
      x402: given.x402 && countedX402(given.x402),
    };
    this.#options = options;
    const {
      db,
      vault,
      allowCidrs,
      denyCidrs,
      resolve = resolveName,
      render = async () => undefined,
      exampleOf = () => undefined,
    } = options;
    const outbound = { rules: new AddressRules(allowCidrs, denyCidrs), resolve };
    this.servers = new Servers(options);
    this.payments = new Payments(options);
    this.webhooks = new Webhooks({ db, vault, render, exampleOf, ...outbound });
    this.accounts = new Accounts(db, vault);
    this.agents = new Agents(db, outbound);
    this.archives = new Archives(vault, options.archives);
  }

  get #parts(): readonly WorkerPart[] {
    return [this.servers, this.payments, this.webhooks, this.accounts, this.agents, this.archives];
  }

  /** Whether machines or payments are simulated. */
  get simulated(): { machines: boolean; payments: boolean } {
    return { machines: this.servers.simulated, payments: this.payments.simulated };
  }

  /** Writes the rows that drivers need before the first order. */
  async prepare(): Promise<void> {
    await Promise.all([this.servers.prepare(), this.payments.prepare()]);
  }

  /** Starts periodic processes that have no task yet. Those with a task keep its time, unless SECRET_KEY is new. */
  async schedule(): Promise<void> {
    await this.servers.writeEngines();
    await schedule(this.#options.db, [DRIVER_HEALTH_PROCESS, ...this.#parts.flatMap(({ periodic }) => periodic)]);
    await this.accounts.signWithNewKey();
  }

  /** Creates a worker for all lanes. Any number of processes may have one. */
  newWorker(options: { leaseSeconds?: number } = {}): Worker {
    const { db, payments, x402 } = this.#options;
    const health = driverHealthProcess(db, { engines: this.servers.engines, payments, x402 });
    const processes = this.#parts.flatMap((part) => Object.entries(part.processes));
    return new Worker(db, Object.fromEntries([[DRIVER_HEALTH_PROCESS, health], ...processes]), {
      lanes: this.lanes,
      ...options,
    });
  }

  /** The lanes of a worker, by their names. */
  get lanes(): Record<string, Lane> {
    const lanes = this.#parts.flatMap((part) => Object.entries(part.lanes));
    return { [PERIODIC_LANE]: 8, ...Object.fromEntries(lanes) };
  }
}
