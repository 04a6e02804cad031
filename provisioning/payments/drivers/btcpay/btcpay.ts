/**
 * BTCPay Server, and with it Lightning. By the Greenfield API the driver makes one invoice of a store for each top-up. A
 * webhook of BTCPay credits nothing. The worker credits only payments that it reads from BTCPay itself.
 */
import {
  type Coin,
  closedObject,
  type GatewayKind,
  type Invoice,
  type ObservedPayment,
  type OpenInvoice,
  type PaymentDriver,
  type PaymentTarget,
  type ProcessorWebhook,
  type Received,
  type WebhookSubject,
} from '../driver.ts';
import { roundedUp, unitsIn } from './amounts.ts';
import { CONFIRMATIONS, coinOf, currencyOf, DEFAULT_METHODS, type MethodSettings, type SpeedPolicy } from './coins.ts';
import { Greenfield, GreenfieldError, type GreenfieldInvoice } from './greenfield.ts';
import { observedPayments } from './observed-payments.ts';
import { readWebhook } from './webhook.ts';

interface Settings {
  url: string;
  store: string;
  api_key: string;
  /** The secret of the webhook. Absent: BTCPay does not call. */
  webhook_secret?: string;
  speed_policy: SpeedPolicy;
  methods: MethodSettings[];
}

const text = (pattern: string) => ({ type: 'string', pattern });

export const btcpay: GatewayKind<Settings> = {
  schema: closedObject(['url', 'store', 'api_key'], {
    url: text('^https?://'),
    store: text('^[A-Za-z0-9]+$'),
    api_key: text('^[!-~]+$'),
    webhook_secret: { type: 'string', minLength: 16 },
    speed_policy: { enum: Object.keys(CONFIRMATIONS), default: 'LowMediumSpeed' },
    methods: {
      type: 'array',
      minItems: 1,
      default: DEFAULT_METHODS,
      items: closedObject(['method', 'code', 'name', 'network', 'decimals'], {
        method: text('^[A-Z0-9]+-[A-Z]+$'),
        code: text('^[A-Z0-9-]{2,32}$'),
        name: text('^.{1,64}$'),
        network: text('^[a-z0-9-]{1,32}$'),
        decimals: { type: 'integer', minimum: 0, maximum: 18 },
        pegged: { type: 'boolean', default: false },
      }),
    },
  }),
  open: (settings) => new BtcpayDriver(settings),
};

/** BTCPay watches an address for so long after the invoice is over. The worker does the same. */
const MONITORING_MINUTES = 31 * 24 * 60;
const OBSERVE_TIMEOUT_MS = 30_000;
/** The age of invoices that the driver asks for together. */
const RECENT_SECONDS = 2 * 3600;

/** Others may make invoices in the store, with any metadata. */
const isOrder = (orderId: unknown): orderId is string => typeof orderId === 'string' && /^[!-~]{1,200}$/.test(orderId);

class BtcpayDriver implements PaymentDriver {
  readonly name = 'btcpay';
  readonly simulated = false;
  readonly #settings: Settings;
  readonly #greenfield: Greenfield;
  readonly #coins: readonly Coin[];

  constructor(settings: Settings) {
    this.#settings = settings;
    this.#greenfield = new Greenfield({ ...settings, apiKey: settings.api_key });
    this.#coins = settings.methods.map((method) => coinOf(method, settings.speed_policy));
  }

  coins(): readonly Coin[] {
    return this.#coins;
  }

  /** The service makes the quote: the invoice is in the coin, so BTCPay needs no rate. The store may add a fee. */
  async open(invoice: Invoice, _deposit: number | undefined, signal: AbortSignal): Promise<PaymentTarget> {
    const { method, network, decimals } = this.#methodOf(invoice.coin);
    const { id } = await this.#create(invoice, signal);
    const offered = (await this.#greenfield.methodsOf(id, signal)).find((one) => one.paymentMethodId === method);
    if (!offered?.destination) throw new Error(`The store has no ${method}.`);
    if (unitsIn(offered.due, decimals) < unitsIn(invoice.amountCrypto, decimals))
      throw new Error(`BTCPay asks for ${offered.due}, and the top-up for ${invoice.amountCrypto}.`);
    return {
      walletAddress: offered.destination,
      paymentUri: offered.paymentLink || `${network}:${offered.destination}`,
      reference: id,
      amountCrypto: roundedUp(offered.due, decimals),
    };
  }

  /** Greenfield makes a new invoice at each call. So the driver looks for an earlier one after a lost answer. */
  async #create(invoice: Invoice, signal: AbortSignal): Promise<GreenfieldInvoice> {
    const { orderNumber, coin, amountCrypto, createdAt, expiresAt } = invoice;
    const { method } = this.#methodOf(coin);
    const wanted = {
      amount: amountCrypto,
      currency: currencyOf({ method }),
      metadata: { orderId: orderNumber },
      checkout: {
        speedPolicy: this.#settings.speed_policy,
        paymentMethods: [method],
        // By default a store may make addresses only in its checkout page, which no customer opens here.
        lazyPaymentMethods: false,
        expirationMinutes: Math.ceil((expiresAt.getTime() - createdAt.getTime()) / 60_000),
        monitoringMinutes: MONITORING_MINUTES,
        paymentTolerance: 0,
      },
    };
    try {
      return await this.#greenfield.createInvoice(wanted, signal);
    } catch (fault) {
      signal.throwIfAborted();
      if (fault instanceof GreenfieldError && fault.status < 500) throw fault;
      const [made] = await this.#greenfield.invoicesOf(orderNumber, signal);
      return made ?? this.#greenfield.createInvoice(wanted, signal);
    }
  }

  async reachable(signal: AbortSignal): Promise<boolean> {
    await this.#greenfield.check(signal);
    return true;
  }

  /** An invalid invoice has no payments. The store's owner may have marked it. */
  async observe(
    open: OpenInvoice,
    aborted: AbortSignal,
    reject: (problem: string) => void = () => {},
  ): Promise<ObservedPayment[]> {
    const { orderNumber, coin, reference } = open;
    const signal = AbortSignal.any([aborted, AbortSignal.timeout(OBSERVE_TIMEOUT_MS)]);
    const settings = this.#methodOf(coin);
    const invoice = await this.#greenfield.invoice(reference!, signal);
    if (invoice.metadata.orderId !== orderNumber)
      throw new Error(`The invoice ${reference} belongs to another order than ${orderNumber}.`);
    const methods = await this.#greenfield.methodsOf(reference!, signal);
    const method = methods.find(({ paymentMethodId }) => paymentMethodId === settings.method);
    if (!method) throw new Error(`The invoice ${reference} has no ${settings.method}.`);
    if (invoice.status === 'Invalid') return [];
    const counting = method.payments.filter(({ status }) => status !== 'Invalid');
    const { confirmationsRequired } = this.#coins.find(({ code }) => code === coin)!;
    return observedPayments(counting, { settings, confirmationsRequired, invoice: open, reject });
  }

  async received(aborted: AbortSignal): Promise<Received[]> {
    const signal = AbortSignal.any([aborted, AbortSignal.timeout(OBSERVE_TIMEOUT_MS)]);
    const since = Math.floor(Date.now() / 1000) - RECENT_SECONDS;
    const most = Math.max(...this.#coins.map(({ confirmationsRequired }) => confirmationsRequired));
    const paid = async (status: 'Processing' | 'Settled', confirmations: number) =>
      (await this.#greenfield.invoicesSince(since, status, signal)).flatMap(({ metadata: { orderId } }) =>
        isOrder(orderId) ? [{ orderNumber: orderId, confirmations }] : [],
      );
    return [...(await paid('Processing', 0)), ...(await paid('Settled', most))];
  }

  readWebhook(webhook: ProcessorWebhook): WebhookSubject | undefined {
    const { webhook_secret: secret } = this.#settings;
    return secret === undefined ? undefined : readWebhook(secret, webhook);
  }

  #methodOf(coin: string): MethodSettings {
    return this.#settings.methods.find(({ code }) => code === coin)!;
  }
}
