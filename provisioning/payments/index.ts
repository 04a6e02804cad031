/** Payments by coins: invoices for top-ups, payments by x402, the chains, and exchange rates. */
import type { Database } from '../../entities/database/database.ts';
import { beforeOutsideCall } from '../../entities/database/request-transaction.ts';
import type { Queryable, Transaction } from '../../entities/database/transaction.ts';
import { log, logFault } from '../../entities/monitoring/log.ts';
import { chainsBehind } from '../../entities/payments/chain.ts';
import { nextDeposit, REUSE_DEPOSIT } from '../../entities/payments/deposit.ts';
import { CHAIN_TEXT } from '../../entities/payments/payout.ts';
import { FIND_NAMED_TOP_UP, IS_GIVEN_ADDRESS } from '../../entities/payments/top-up.ts';
import type { Vault } from '../../entities/secrets.ts';
import { freeLane, PAYMENT_LANE } from '../../entities/tasks/lane.ts';
import { signalTask, startTask } from '../../entities/tasks/start.ts';
import type { WorkerPart } from '../tasks/tasks.ts';
import { BOOKS_PROCESS, booksProcess } from './books-proof.ts';
import { type Gateway, gatewayOf, x402GatewayOf } from './chains/health.ts';
import { LostAddresses } from './chains/lost-addresses.ts';
import { chainSyncName, chainSyncProcess } from './chains/sync.ts';
import { type ClaimLost, observeTransaction } from './chains/transaction.ts';
import type { ChainReader, Coin, Invoice, PaymentDriver, PaymentTarget, ProcessorWebhook } from './drivers/driver.ts';
import { isSameHex, type X402Driver } from './drivers/x402/driver.ts';
import { type ExchangeRates, exchangeRatesOf } from './exchange-rates/exchange-rate.ts';
import { EXCHANGE_RATES_PROCESS, exchangeRatesProcess } from './exchange-rates/fetch.ts';
import type { ExchangeRateSource } from './exchange-rates/source.ts';
import { TOP_UP_PROCESS, topUpTask, X402_PROCESS } from './task.ts';
import { driverOf, topUpProcess } from './top-ups/await-payment.ts';
import { LOW_BALANCE_PROCESS, lowBalanceProcess } from './top-ups/low-balance.ts';
import { noticeName, noticeProcess } from './top-ups/notice.ts';
import { x402CoinOf } from './x402/message.ts';
import { requireOwnPayee } from './x402/payee.ts';
import { x402Process } from './x402/reconcile.ts';
import { X402 } from './x402/x402.ts';

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

/** A step that waits for its gateway gives its place away. */
const TURNS = { places: 8, perParty: 6, perAccount: 3, waiting: 32 };

export class Payments implements WorkerPart {
  readonly #options: PaymentsOptions;
  /** The chains that the service reads, with the addresses there that a lost time may have given out. */
  readonly #chains: readonly { reader: ChainReader; lost: LostAddresses }[];
  /** Undefined: the service accepts no payment by x402. */
  readonly x402: X402 | undefined;
  readonly lanes = { [PAYMENT_LANE]: TURNS, [freeLane(PAYMENT_LANE)]: TURNS };

  constructor(options: PaymentsOptions) {
    this.#options = options;
    const { db, vault, payments, x402 } = options;
    this.#chains = payments.flatMap((driver) =>
      (driver.chains ?? []).map((reader) => ({ reader, lost: new LostAddresses(driver) })),
    );
    this.x402 = x402 && new X402(db, x402, vault);
  }

  /** Checks the settings of x402. @throws Error that names the fault */
  async prepare(): Promise<void> {
    const { db, payments, x402 } = this.#options;
    await x402?.prepare?.();
    if (x402 && !x402.simulated) await requireOwnPayee(db, x402, payments);
  }

  /** The networks whose chains the service reads. */
  get networks(): string[] {
    return this.#chains.map(({ reader }) => reader.network);
  }

  /** The gateways that tell what they received lately. */
  get #asked(): readonly PaymentDriver[] {
    return this.#options.payments.filter(({ received }) => received);
  }

  get simulated(): boolean {
    const { payments, x402 } = this.#options;
    return payments.some(({ simulated }) => simulated) || x402?.simulated === true;
  }

  get processes() {
    const { db, vault, payments: drivers, rates = [], pollSeconds } = this.#options;
    const syncs = this.#chains.map(({ reader, lost }) => [
      chainSyncName(reader.network),
      chainSyncProcess({ db, reader, lost, coins: () => this.coins(), pollSeconds }),
    ]);
    return {
      [TOP_UP_PROCESS]: topUpProcess({ db, drivers, pollSeconds }),
      ...Object.fromEntries(syncs),
      ...Object.fromEntries(this.#asked.map((driver) => [noticeName(driver), noticeProcess(db, driver, pollSeconds)])),
      ...(this.x402 && { [X402_PROCESS]: x402Process(db, this.x402, pollSeconds) }),
      [EXCHANGE_RATES_PROCESS]: exchangeRatesProcess(rates, logFault),
      [LOW_BALANCE_PROCESS]: lowBalanceProcess(db),
      [BOOKS_PROCESS]: booksProcess({ db, vault, log: (line) => log.error(line) }),
    };
  }

  get periodic() {
    return [
      LOW_BALANCE_PROCESS,
      ...(this.#options.rates?.length ? [EXCHANGE_RATES_PROCESS] : []),
      ...this.networks.map(chainSyncName),
      ...this.#asked.map(noticeName),
      BOOKS_PROCESS,
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

  /** Whether addresses of the network can sign messages (EIP-191). */
  isEvm(network: string): boolean {
    const { payments, x402 } = this.#options;
    const isOfDriver = payments.some(
      (driver) => driver.depositAddress !== undefined && driver.coins().some((coin) => coin.network === network),
    );
    return isOfDriver || (x402 !== undefined && [x402.terms.network, x402CoinOf(x402.terms).network].includes(network));
  }

  /**
   * Spells an address of a network as its chain does; undefined: the chain has no such address. A processor reads no chain, but
   * the service knows the addresses of Bitcoin's family by their network. Simulated networks have any address of ASCII.
   */
  async spell(network: string, address: string): Promise<string | undefined> {
    const { payments } = this.#options;
    const reader = payments.find(({ chains = [] }) => chains.some((chain) => chain.network === network));
    if (reader?.spell) return reader.spell(address);
    const isReal = payments.some((one) => !one.simulated && one.coins().some((coin) => coin.network === network));
    if (!isReal) return CHAIN_TEXT.test(address) ? address : undefined;
    const family = (await import('./drivers/utxo/chains.ts')).CHAINS[network];
    return family ? family.spell(address) : address;
  }

  /** Whether x402 pays to the address. */
  isPayee(address: string): boolean {
    return this.x402 !== undefined && isSameHex(this.x402.terms.payTo, address);
  }

  /** The chains that are behind: the service would notice payments on them late. */
  chainsBehind(db: Queryable): Promise<Set<string>> {
    return chainsBehind(db, this.networks);
  }

  /** The exchange rate of each coin at the moment. */
  exchangeRates(db: Queryable): Promise<ExchangeRates> {
    return exchangeRatesOf(db, this.coins());
  }

  /** Asks each gateway how it is. */
  gateways(db: Queryable, signal: AbortSignal): Promise<Gateway[]> {
    beforeOutsideCall();
    const { payments, x402 } = this.#options;
    return Promise.all([
      ...payments.map((driver) => gatewayOf(db, driver, signal)),
      ...(x402 ? [x402GatewayOf(x402, signal)] : []),
    ]);
  }

  /**
   * Opens an invoice at a fresh address, or at an old one of the account that never got a payment. Some drivers ask a processor
   * for the address. They ask within the request, since the answer contains it. A caller who hangs up does not end the call.
   * Each address that a processor made needs the row that counts it.
   * @throws if the driver has no address at the moment, or gives one again, as a restored wallet may
   */
  async openInvoice(db: Queryable, accountId: string, invoice: Invoice): Promise<PaymentTarget & { deposit?: number }> {
    beforeOutsideCall();
    const driver = driverOf(this.#options.payments, invoice.coin);
    const source = driver.depositSource?.(invoice.coin);
    const patience = AbortSignal.timeout(OPEN_TIMEOUT_MS);
    const open = (deposit: number | undefined) =>
      driver.open(invoice, deposit, patience).catch(({ message }: Error) => {
        // A caller would take a cause such as ECONNREFUSED for a lost database.
        throw new Error(message);
      });
    try {
      if (source !== undefined) {
        const { network } = driver.coins().find(({ code }) => code === invoice.coin)!;
        const free = await REUSE_DEPOSIT.first(db, [accountId, network]);
        const again = free && (await open(free.number));
        // Another extended key has another address of that number.
        if (again && again.walletAddress === free.walletAddress) return { ...again, deposit: free.number };
      }
      const deposit = source === undefined ? undefined : await nextDeposit(db, source);
      const target = await open(deposit);
      const { known } = (await IS_GIVEN_ADDRESS.first(db, [target.walletAddress]))!;
      if (known) throw new Error('Another top-up has that address.');
      if (this.x402 && isSameHex(target.walletAddress, this.x402.terms.payTo)) throw new Error('x402 pays to it.');
      return { ...target, ...(deposit !== undefined && { deposit }) };
    } catch (fault) {
      // The customer learns only that there is no address. The operator needs the reason.
      log.error(`No address for ${invoice.coin}: ${(fault as Error).message}`);
      throw fault;
    }
  }

  /** Lets the worker watch an invoice in a coin until its money is credited. */
  awaitPayment(tx: Transaction, accountId: string, orderNumber: string, coin: string): Promise<void> {
    const { name } = driverOf(this.#options.payments, coin);
    return startTask(tx, topUpTask(orderNumber, accountId, name));
  }

  /**
   * Writes the payments of a transaction to addresses of top-ups, as the chain sync does. Then the chain sync settles them.
   * @returns undefined if no driver can look up transactions of the network
   * @throws if the node does not answer, or knows another block than the service
   */
  async observeTransaction(
    db: Database,
    network: string,
    txId: string,
    claim: ClaimLost,
    signal: AbortSignal,
  ): Promise<true | undefined> {
    beforeOutsideCall();
    const chain = this.#chains.find(({ reader }) => reader.network === network);
    return chain && observeTransaction(db, chain, { txId, claim, signal });
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
