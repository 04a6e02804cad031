/** Payments by coins: invoices for top-ups, payments by x402, the chains, and exchange rates. */
import type { Database } from '../../entities/database/database.ts';
import type { Queryable, Transaction } from '../../entities/database/transaction.ts';
import { chainsBehind, nextDeposit } from '../../entities/payments/chain.ts';
import { FIND_NAMED_TOP_UP } from '../../entities/payments/top-up.ts';
import type { Vault } from '../../entities/secrets.ts';
import { signalTask, startTask } from '../../entities/tasks/start.ts';
import type { WorkerPart } from '../tasks/tasks.ts';
import { type Gateway, gatewayOf, x402GatewayOf } from './chains/health.ts';
import { chainSyncName, chainSyncProcess } from './chains/sync.ts';
import type { Coin, Invoice, PaymentDriver, PaymentTarget, ProcessorWebhook } from './drivers/driver.ts';
import type { X402Driver } from './drivers/x402/driver.ts';
import { type ExchangeRates, exchangeRatesOf } from './exchange-rates/exchange-rate.ts';
import { EXCHANGE_RATES_PROCESS, exchangeRatesProcess } from './exchange-rates/fetch.ts';
import type { ExchangeRateSource } from './exchange-rates/source.ts';
import { driverOf, isKnownAddress, TOP_UP_LANE, TOP_UP_PROCESS, topUpProcess } from './top-ups/await-payment.ts';
import { LOW_BALANCE_PROCESS, lowBalanceProcess } from './top-ups/low-balance.ts';
import { x402Process } from './x402/reconcile.ts';
import { X402_PROCESS } from './x402/task.ts';
import { X402, x402CoinOf } from './x402/x402.ts';

export interface PaymentsOptions {
  db: Database;
  vault: Vault;
  /** Each driver has coins of its own. */
  payments: readonly PaymentDriver[];
  /** The sources of exchange rates. Default: none. */
  rates?: readonly ExchangeRateSource[];
  /** Absent: the service accepts no payment by x402. */
  x402?: X402Driver | undefined;
  /** Seconds before a worker asks for an invoice again. */
  pollSeconds: number;
}

/** How long a request waits for an address. */
const OPEN_TIMEOUT_MS = 10_000;

export class Payments implements WorkerPart {
  readonly #options: PaymentsOptions;
  /** Undefined: the service accepts no payment by x402. */
  readonly x402: X402 | undefined;
  readonly lanes = { [TOP_UP_LANE]: 8 };

  constructor(options: PaymentsOptions) {
    this.#options = options;
    const { db, vault, x402 } = options;
    this.x402 = x402 && new X402(db, x402, vault);
  }

  get #chains() {
    return this.#options.payments.flatMap(({ chains = [] }) => chains);
  }

  get simulated(): boolean {
    const { payments, x402 } = this.#options;
    return payments.some(({ simulated }) => simulated) || x402?.simulated === true;
  }

  get processes() {
    const { db, payments: drivers, rates = [], pollSeconds } = this.#options;
    const syncs = this.#chains.map((reader) => [
      chainSyncName(reader.network),
      chainSyncProcess({ db, reader, coins: () => this.coins(), pollSeconds }),
    ]);
    return {
      [TOP_UP_PROCESS]: topUpProcess({ db, drivers, pollSeconds }),
      ...Object.fromEntries(syncs),
      ...(this.x402 && { [X402_PROCESS]: x402Process(db, this.x402, pollSeconds) }),
      [EXCHANGE_RATES_PROCESS]: exchangeRatesProcess(rates, console.error),
      [LOW_BALANCE_PROCESS]: lowBalanceProcess(db),
    };
  }

  get periodic() {
    return [
      LOW_BALANCE_PROCESS,
      ...(this.#options.rates?.length ? [EXCHANGE_RATES_PROCESS] : []),
      ...this.#chains.map(({ network }) => chainSyncName(network)),
    ];
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

  /** The chains that are behind: the service would notice payments on them late. */
  chainsBehind(db: Queryable): Promise<Set<string>> {
    return chainsBehind(
      db,
      this.#chains.map(({ network }) => network),
    );
  }

  /** The exchange rate of each coin at the moment. */
  exchangeRates(db: Queryable): Promise<ExchangeRates> {
    return exchangeRatesOf(db, this.coins());
  }

  /** Asks each gateway how it is. */
  gateways(db: Queryable, signal: AbortSignal): Promise<Gateway[]> {
    const { payments, x402 } = this.#options;
    return Promise.all([
      ...payments.map((driver) => gatewayOf(db, driver, signal)),
      ...(x402 ? [x402GatewayOf(x402, signal)] : []),
    ]);
  }

  /**
   * Opens an invoice at a fresh address. Some drivers ask a processor for the address. They ask within the request, since
   * the answer contains it. If the request dies then, no debt exists.
   * @throws if the driver has no address at the moment, or gives one again, as a restored wallet may
   */
  async openInvoice(db: Queryable, invoice: Invoice, signal: AbortSignal): Promise<PaymentTarget> {
    const driver = driverOf(this.#options.payments, invoice.coin);
    const source = driver.depositSource?.(invoice.coin);
    const deposit = source === undefined ? undefined : await nextDeposit(db, source);
    const patience = AbortSignal.any([signal, AbortSignal.timeout(OPEN_TIMEOUT_MS)]);
    try {
      const target = await driver.open(invoice, deposit, patience);
      if (await isKnownAddress(db, driver, invoice.coin, target)) throw new Error('Another top-up has that address.');
      return target;
    } catch (fault) {
      // The customer learns only that there is no address. The operator needs the reason.
      if (!signal.aborted) console.error(`No address for ${invoice.coin}: ${(fault as Error).message}`);
      throw fault;
    }
  }

  /** Lets the worker watch an invoice until its money is credited. */
  awaitPayment(tx: Transaction, accountId: string, orderNumber: string): Promise<void> {
    return startTask(tx, {
      lane: TOP_UP_LANE,
      process: TOP_UP_PROCESS,
      subject: orderNumber,
      accountId,
      step: 'watch',
    });
  }

  /**
   * Wakes the task of the top-up that a processor webhook names. The webhook itself changes nothing.
   * @returns whether a configured processor has signed it
   */
  async acceptProcessorWebhook(db: Database, webhook: ProcessorWebhook): Promise<boolean> {
    for (const driver of this.#options.payments) {
      const subject = driver.readWebhook?.(webhook);
      if (!subject) continue;
      const codes = driver.coins().map(({ code }) => code);
      const named = [subject.orderNumber ?? null, subject.reference ?? null, codes];
      const topUp = await FIND_NAMED_TOP_UP.first(db, named);
      if (topUp) await db.transaction((tx) => signalTask(tx, topUp.orderNumber));
      return true;
    }
    return false;
  }
}
