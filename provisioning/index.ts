/** The one door for resolvers: what they hand over is written in their own transaction, and carried out after it. */

import type { OauthClient } from '../entities/accounts/oauth-client.ts';
import type { Agent } from '../entities/agents/agent.ts';
import type { Database, Queryable, Transaction } from '../entities/database/database.ts';
import { chainsBehind } from '../entities/payments/chain.ts';
import { nextDeposit } from '../entities/payments/deposit.ts';
import type { Vault } from '../entities/secrets.ts';
import { writeEngine } from '../entities/servers/engine.ts';
import type { Server } from '../entities/servers/server.ts';
import { WEBHOOK_LANE } from '../entities/webhooks/webhook.ts';
import { AUDIT_RETENTION_PROCESS, auditRetentionProcess } from './accounts/audit-retention.ts';
import { CREDENTIAL_RETENTION_PROCESS, credentialRetentionProcess } from './accounts/credential-retention.ts';
import {
  API_KEY_LANE,
  API_KEY_PROCESS,
  apiKeyProcess,
  type ExpiringKey,
  expiryTask,
} from './accounts/expire-api-keys.ts';
import {
  OAUTH_CLIENT_LANE,
  OAUTH_CLIENT_PROCESS,
  oauthClientProcess,
  removalTask,
} from './accounts/remove-oauth-clients.ts';
import { AGENT_LANE, AGENT_PROCESS, agentProcess, verificationTask } from './agents/verify.ts';
import { type Outbound, type Resolve, resolveName } from './outbound/call.ts';
import { AddressRules } from './outbound/public-address.ts';
import { type Gateway, gatewayOf, x402GatewayOf } from './payments/chains/health.ts';
import { takeHint } from './payments/chains/processor-webhook.ts';
import { followProcess, followProcessName } from './payments/chains/sync.ts';
import type { Coin, Hint, Invoice, PaymentDriver, PaymentTarget } from './payments/drivers/driver.ts';
import type { X402Driver } from './payments/drivers/x402/driver.ts';
import { type Worths, worthsOf } from './payments/exchange-rates/exchange-rate.ts';
import { RATES_PROCESS, ratesProcess } from './payments/exchange-rates/fetch.ts';
import type { RateSource } from './payments/exchange-rates/source.ts';
import {
  driverOf,
  isKnownAddress,
  TOP_UP_LANE,
  TOP_UP_PROCESS,
  topUpProcess,
} from './payments/top-ups/await-payment.ts';
import { LOW_BALANCE_PROCESS, lowBalanceProcess } from './payments/top-ups/low-balance.ts';
import { confirmPaidTopUp, X402_PROCESS, x402Process } from './payments/x402/watch.ts';
import { X402, x402CoinOf } from './payments/x402/x402.ts';
import { releaseChange } from './servers/billing/hold.ts';
import { RENEWAL_PROCESS, RESUME_TASK, renewalProcess } from './servers/billing/renew.ts';
import type { HardwareDriver } from './servers/drivers/driver.ts';
import { seedDocumentationAddresses } from './servers/placement/addresses.ts';
import { DRIVER_HEALTH_PROCESS, driverHealthProcess } from './servers/reconcile/driver-health.ts';
import { OBSERVER_PROCESS, observerProcess } from './servers/reconcile/observe.ts';
import { REVERSE_DNS_PROCESS, type ReverseDnsHook, reverseDnsProcess } from './servers/reconcile/reverse-dns.ts';
import { giveUpServer } from './servers/steps/cancel.ts';
import { releaseHold } from './servers/steps/create.ts';
import { passwordContext, serverProcess } from './servers/steps/process.ts';
import { beginResize, type Resize } from './servers/steps/resize.ts';
import { retrySuspended } from './servers/steps/resume.ts';
import { destroyTask, SERVER_LANE, SERVER_PROCESS, serverTask } from './servers/steps/task.ts';
import { PERIODIC_LANE, schedule } from './tasks/schedule.ts';
import { signalTask, startTask } from './tasks/tasks.ts';
import { Worker } from './tasks/worker.ts';
import { type RenderResource, WEBHOOK_SWEEP_PROCESS, Webhooks } from './webhooks/index.ts';

export type { Gateway } from './payments/chains/health.ts';
export type { Coin, Hint } from './payments/drivers/driver.ts';
export { formatUnits, unitsOf } from './payments/top-ups/amount.ts';
export { writeOffPayment } from './payments/top-ups/credit.ts';
export type { SignedPayment } from './payments/x402/message.ts';
export { assignX402, writeOffX402 } from './payments/x402/suspense.ts';
export type { MachineSpec } from './servers/drivers/driver.ts';
export { closeManualJob, listManualJobs, manualSpecOf } from './servers/manual/queue.ts';
export { claimSql, waitForRoom } from './servers/placement/capacity.ts';
export { START_TASK_PARAMETERS, startTaskParameters, startTaskSql, taskChange } from './tasks/tasks.ts';
export { newWebhookSecret, type WebhookTest } from './webhooks/index.ts';
export {
  beginResize,
  confirmPaidTopUp,
  giveUpServer,
  passwordContext,
  type Resize,
  releaseChange,
  releaseHold,
  serverTask,
  signalTask,
};

export interface ProvisioningOptions {
  db: Database;
  vault: Vault;
  drivers: Record<Server['kind'], HardwareDriver>;
  /** Each with coins of its own. */
  payments: readonly PaymentDriver[];
  /** Who says what coins are worth. Default: nobody is asked. */
  rates?: readonly RateSource[];
  /** Absent: nothing is paid by x402. */
  x402?: X402Driver | undefined;
  /** How long a worker waits before it looks at a machine or an invoice again. */
  pollSeconds: number;
  /** How long a machine has to give proof, before something else is tried. Default: five minutes; dedicated: an hour. */
  proofSeconds?: Record<Server['kind'], number>;
  /** Absent: names of addresses are data alone. */
  reverseDns?: ReverseDnsHook | undefined;
  /** Networks that customers' URLs may lead to although they are not public, also without TLS. Default: none. */
  allowCidrs?: readonly string[];
  /** Default: asks the nameservers of the machine. */
  resolve?: Resolve;
  /** Shows the object of an event as REST does. Default: webhooks only name it. */
  render?: RenderResource;
}

/** How long a request waits for an address. */
const OPEN_TIMEOUT_MS = 10_000;

export class Provisioning {
  readonly #options: ProvisioningOptions;
  readonly #outbound: Outbound;
  readonly webhooks: Webhooks;
  /** Undefined: nothing is paid by x402. */
  readonly x402: X402 | undefined;

  constructor(options: ProvisioningOptions) {
    this.#options = options;
    const { db, vault, x402, allowCidrs, resolve = resolveName, render = async () => undefined } = options;
    this.#outbound = { rules: new AddressRules(allowCidrs), resolve };
    this.webhooks = new Webhooks({ db, vault, render, ...this.#outbound });
    this.x402 = x402 && new X402(db, x402, vault);
  }

  get #chains() {
    return this.#options.payments.flatMap(({ chains = [] }) => chains);
  }

  /** Whether machines or payments are simulated. */
  get simulated(): { machines: boolean; payments: boolean } {
    const { drivers, payments, x402 } = this.#options;
    return {
      machines: Object.values(drivers).some(({ simulated }) => simulated),
      payments: payments.some(({ simulated }) => simulated) || x402?.simulated === true,
    };
  }

  /** The engine that makes machines of a kind. */
  engineOf(kind: Server['kind']): string {
    return this.#options.drivers[kind].name;
  }

  coins(): readonly (Coin & { x402: boolean })[] {
    const { payments, x402 } = this.#options;
    const coins = payments.flatMap((driver) => driver.coins());
    const paying = x402 && x402CoinOf(x402.terms);
    const isBySignatureAlone = paying && !coins.some(({ code }) => code === paying.code);
    return [...coins, ...(isBySignatureAlone ? [paying] : [])].map((coin) => ({
      ...coin,
      x402: coin.code === paying?.code,
    }));
  }

  /** The chains that are behind: what comes on them would be noticed late. */
  chainsBehind(db: Queryable): Promise<Set<string>> {
    return chainsBehind(
      db,
      this.#chains.map(({ network }) => network),
    );
  }

  /** What each coin is worth at the moment. */
  worths(db: Queryable): Promise<Worths> {
    return worthsOf(db, this.coins());
  }

  /** By what coins come in; each is asked. */
  gateways(db: Queryable, signal: AbortSignal): Promise<Gateway[]> {
    const { payments, x402 } = this.#options;
    return Promise.all([
      ...payments.map((driver) => gatewayOf(db, driver, signal)),
      ...(x402 ? [x402GatewayOf(x402, signal)] : []),
    ]);
  }

  /**
   * A fresh address to pay an invoice to. Some drivers have to ask for it: within the request, since it belongs into the
   * answer; nothing is owed to anybody if the request dies then.
   * @throws if it cannot be had at the moment, or was given out before: a wallet that was restored may do that
   */
  async openInvoice(db: Queryable, invoice: Invoice, signal: AbortSignal): Promise<PaymentTarget> {
    const driver = driverOf(this.#options.payments, invoice.coin);
    const source = driver.depositSource?.(invoice.coin);
    const deposit = source === undefined ? undefined : await nextDeposit(db, source);
    const patience = AbortSignal.any([signal, AbortSignal.timeout(OPEN_TIMEOUT_MS)]);
    try {
      const target = await driver.open(invoice, deposit, patience);
      if (await isKnownAddress(db, driver, invoice.coin, target)) throw new Error('That address is of another top-up.');
      return target;
    } catch (fault) {
      // The customer hears only that there is none: why, the operator has to know.
      if (!signal.aborted) console.error(`No address for ${invoice.coin}: ${(fault as Error).message}`);
      throw fault;
    }
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

  /** Has a top-up looked at now of which a payment processor says that something is new. @returns whether it was he */
  takeHint(db: Database, hint: Hint): Promise<boolean> {
    return takeHint(db, this.#options.payments, hint);
  }

  /** Has a change of a server carried out, which its row names. */
  changeServer(tx: Transaction, server: Pick<Server, 'kind' | 'orderNumber' | 'accountId'>): Promise<void> {
    return startTask(tx, serverTask(server, 'change'));
  }

  /** Has the expiry of a key told when it comes. */
  expireApiKey(tx: Transaction, key: ExpiringKey): Promise<void> {
    return startTask(tx, expiryTask(key));
  }

  /** Has an OAuth client removed when nobody has used it for long. */
  removeUnusedClient(tx: Transaction, client: Pick<OauthClient, 'id' | 'accountId'>): Promise<void> {
    return startTask(tx, removalTask(client));
  }

  /** Has it checked whether an agent's own card names the key of its entry: now, and then each day. */
  verifyAgent(tx: Transaction, agent: Pick<Agent, 'id' | 'accountId'>): Promise<void> {
    return startTask(tx, verificationTask(agent));
  }

  /** Has the machine of a server destroyed, also if it is still being made. */
  deleteServer(tx: Transaction, server: Pick<Server, 'orderNumber' | 'accountId'>): Promise<void> {
    return startTask(tx, destroyTask(server));
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
    const { db, drivers } = this.#options;
    // Real machines would be given these addresses, too.
    if (Object.values(drivers).every(({ simulated }) => simulated)) await seedDocumentationAddresses(db);
  }

  /** Has periodic work done from now on: renewals, low balances, health, what engines have, the end of old audit entries and credentials. */
  async schedule(): Promise<void> {
    for (const [kind, { name, needsHosts = false }] of Object.entries(this.#options.drivers))
      await writeEngine(this.#options.db, { kind, driver: name, needsHosts });
    await schedule(this.#options.db, [
      RENEWAL_PROCESS,
      LOW_BALANCE_PROCESS,
      AUDIT_RETENTION_PROCESS,
      CREDENTIAL_RETENTION_PROCESS,
      DRIVER_HEALTH_PROCESS,
      OBSERVER_PROCESS,
      WEBHOOK_SWEEP_PROCESS,
      ...(this.#options.reverseDns ? [REVERSE_DNS_PROCESS] : []),
      ...(this.#options.rates?.length ? [RATES_PROCESS] : []),
      ...this.#chains.map(({ network }) => followProcessName(network)),
    ]);
  }

  /** A worker that carries everything out. Any number of processes may have one. */
  newWorker(options: { leaseSeconds?: number } = {}): Worker {
    const { db, vault, drivers, payments, rates = [], x402, pollSeconds, proofSeconds, reverseDns } = this.#options;
    const processes = {
      [SERVER_PROCESS]: serverProcess({ db, vault, drivers, pollSeconds, proofSeconds }),
      [TOP_UP_PROCESS]: topUpProcess({ db, drivers: payments, pollSeconds }),
      ...Object.fromEntries(
        this.#chains.map((reader) => [
          followProcessName(reader.network),
          followProcess({ db, reader, coins: () => this.coins(), pollSeconds }),
        ]),
      ),
      ...(this.x402 && { [X402_PROCESS]: x402Process(db, this.x402, pollSeconds) }),
      [RATES_PROCESS]: ratesProcess(rates, console.error),
      [RENEWAL_PROCESS]: renewalProcess(db),
      [LOW_BALANCE_PROCESS]: lowBalanceProcess(db),
      [AUDIT_RETENTION_PROCESS]: auditRetentionProcess(db),
      [DRIVER_HEALTH_PROCESS]: driverHealthProcess(db, { machines: Object.values(drivers), payments, x402 }),
      ...(reverseDns && { [REVERSE_DNS_PROCESS]: reverseDnsProcess(db, reverseDns) }),
      [OBSERVER_PROCESS]: observerProcess(db, drivers, console.error),
      [CREDENTIAL_RETENTION_PROCESS]: credentialRetentionProcess(db),
      [API_KEY_PROCESS]: apiKeyProcess,
      [OAUTH_CLIENT_PROCESS]: oauthClientProcess(db),
      ...this.webhooks.processes,
      [AGENT_PROCESS]: agentProcess(db, this.#outbound),
    };
    return new Worker(db, processes, {
      lanes: {
        [SERVER_LANE]: 16,
        [TOP_UP_LANE]: 8,
        [PERIODIC_LANE]: 8,
        [API_KEY_LANE]: 2,
        [OAUTH_CLIENT_LANE]: 1,
        [WEBHOOK_LANE]: 16,
        [AGENT_LANE]: 4,
      },
      ...options,
    });
  }
}
