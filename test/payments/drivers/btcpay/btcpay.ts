/**
 * A stand-in for BTCPay Server: a store with invoices in memory, for which the test makes payments. It checks requests
 * and answers against the published document, and collects deviations in `problems`.
 */
import { createHash, createHmac, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { endpointOf, problemsOf } from './greenfield.ts';

export const STORE = '9CiNzKoANXxmk5ayZngSXrHTiVvvgCrwrpFQd4m2K776';
export const API_KEY = 'a-key-of-the-store';
export const WEBHOOK_SECRET = 'a secret of the webhook';

type Status = 'New' | 'Processing' | 'Expired' | 'Invalid' | 'Settled';
interface Payment {
  id: string;
  receivedDate: number;
  value: string;
  fee: string;
  status: 'Invalid' | 'Processing' | 'Settled';
  destination: string;
}
export interface StoredInvoice {
  id: string;
  amount: string;
  currency: string;
  metadata: { orderId: string };
  checkout: { paymentMethods: string[]; expirationMinutes: number; monitoringMinutes: number };
  createdTime: number;
  status: Status;
  additionalStatus: string;
  payments: Payment[];
}

const digest = (text: string) => createHash('sha256').update(text).digest('hex');

export class Btcpay {
  readonly invoices: StoredInvoice[] = [];
  readonly problems: string[] = [];
  /** The called operations. */
  readonly calls: string[] = [];
  /** Faults of the next calls for an opening top-up: `lost` carries the call out and fails, `broken` only fails. */
  faults: ('lost' | 'broken')[] = [];
  /** The invoices whose next call fails. */
  readonly broken = new Set<string>();
  /** The payment address of all invoices, instead of a fresh one for each. */
  destination: string | undefined;
  /** The payment method whose new invoices get no answer. */
  silent: string | undefined;
  /** The bodies of the requests that got no answer. */
  readonly unanswered: string[] = [];
  /** The fee that the store adds to the due amount. */
  fee = 0n;
  url = '';
  readonly #server = createServer((request, response) => {
    this.#answer(request, response).catch((fault) => {
      this.problems.push(String(fault));
      response.destroy();
    });
  });

  async start(): Promise<this> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.url = `http://127.0.0.1:${(this.#server.address() as { port: number }).port}`;
    return this;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((done) => this.#server.close(done));
  }

  /** Answers all methods again, and ends the requests that wait. */
  wake(): void {
    this.silent = undefined;
    this.unanswered.length = 0;
    this.#server.closeAllConnections();
  }

  invoiceOf(orderNumber: string): StoredInvoice {
    return this.invoices.find(({ metadata }) => metadata.orderId === orderNumber)!;
  }

  /** Pays an amount in decimal coins to an invoice. */
  pay(invoice: StoredInvoice, value: string, status: Payment['status'] = 'Processing', at = Date.now()): Payment {
    const hash = digest(randomUUID());
    const isChain = invoice.checkout.paymentMethods[0]!.endsWith('-CHAIN');
    const id = isChain ? `${hash}-${invoice.payments.length}` : hash;
    const receivedDate = Math.floor(at / 1000);
    const payment = { id, receivedDate, value, fee: '0', status, destination: destinationOf(invoice) };
    invoice.payments.push(payment);
    invoice.status = status === 'Settled' ? 'Settled' : 'Processing';
    return payment;
  }

  /** Returns the bytes and the signature of an event, as BTCPay sends it. */
  event(invoice: StoredInvoice, type: string, secret = WEBHOOK_SECRET, more: object = {}) {
    const ids = { deliveryId: randomUUID(), webhookId: 'hook', originalDeliveryId: randomUUID(), isRedelivery: false };
    const about = { storeId: STORE, invoiceId: invoice.id, metadata: invoice.metadata };
    const event = { ...ids, type, timestamp: Math.floor(Date.now() / 1000), ...about, ...more };
    this.problems.push(...problemsOf(`/components/schemas/Webhook${type}Event`, event));
    const body = JSON.stringify(event, undefined, 2);
    const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
    return { body, headers: { 'content-type': 'application/json; charset=utf-8', 'btcpay-sig': signature } };
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const body = text ? JSON.parse(text) : undefined;
    const { pathname, searchParams } = new URL(request.url!, this.url);
    const endpoint = endpointOf(request.method!, pathname);
    const say = (status: number, value: unknown) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    this.calls.push(endpoint?.id ?? `${request.method} ${pathname}`);
    if (!endpoint) throw new Error(`There is no ${request.method} ${pathname}.`);
    if (request.headers.authorization !== `token ${API_KEY}`) return void say(401, { code: 'unauthenticated' });
    const wrong = endpoint.problemsOfRequest(searchParams, body);
    this.problems.push(...wrong);
    if (wrong.length) return void say(400, wrong);
    if (this.silent && text.includes(this.silent)) return void this.unanswered.push(text);
    // A worker calls at any time, also for other top-ups.
    const isOpening = endpoint.id === 'Invoices_CreateInvoice' || searchParams.has('orderId');
    const fault = isOpening ? this.faults.shift() : undefined;
    if (fault === 'broken' || pathname.split('/').some((part) => this.broken.delete(part)))
      return void say(502, { code: 'bad-gateway' });
    const value = this.#do(endpoint.id, pathname.split('/'), searchParams, body);
    if (value === undefined) return void say(404, { code: 'invoice-not-found', message: 'The invoice was not found' });
    this.problems.push(...endpoint.problemsOfAnswer(value));
    if (fault === 'lost') return void response.destroy();
    say(200, value);
  }

  #do(operation: string, path: string[], query: URLSearchParams, body: StoredInvoice): unknown {
    if (operation === 'Invoices_CreateInvoice') return shown(this.#create(body));
    if (operation === 'Invoices_GetInvoices') {
      const [orders, states, since] = [query.getAll('orderId'), query.getAll('status'), Number(query.get('startDate'))];
      return this.invoices
        .filter(({ metadata }) => !orders.length || orders.includes(metadata.orderId))
        .filter(({ status, createdTime }) => createdTime >= since && (!states.length || states.includes(status)))
        .map(shown);
    }
    const invoice = this.invoices.find(({ id }) => id === path[4]);
    if (!invoice) return undefined;
    return operation === 'Invoices_GetInvoice' ? shown(invoice) : [this.#method(invoice)];
  }

  #create({ amount, currency, metadata, checkout }: StoredInvoice): StoredInvoice {
    const id = digest(randomUUID()).slice(0, 22);
    const createdTime = Math.floor(Date.now() / 1000);
    const state = { status: 'New', additionalStatus: 'None', payments: [], createdTime } as const;
    const invoice = { id, amount, currency, metadata, checkout, ...state, payments: [] };
    this.invoices.push(invoice);
    return invoice;
  }

  #method(invoice: StoredInvoice) {
    const { amount, currency, checkout, payments } = invoice;
    const [paymentMethodId = ''] = checkout.paymentMethods;
    const destination = this.destination ?? destinationOf(invoice);
    const units = BigInt(Math.round(Number(amount) * 1e8)) + this.fee;
    const due = `${units / 100_000_000n}.${String(units % 100_000_000n).padStart(8, '0')}`;
    const paymentLink = paymentMethodId.endsWith('-LN')
      ? `lightning:${destination.toUpperCase()}`
      : `bitcoin:${destination}?amount=${due}`;
    const sums = { rate: '1', paymentMethodPaid: '0', totalPaid: '0', due, amount: due, paymentMethodFee: '0' };
    const accounted = payments.filter(({ status }) => status !== 'Invalid');
    return {
      paymentMethodId,
      currency,
      destination,
      paymentLink,
      ...sums,
      payments: accounted,
      activated: true,
      additionalData: {},
    };
  }
}

const destinationOf = ({ id, checkout }: StoredInvoice): string =>
  `${checkout.paymentMethods[0]!.endsWith('-LN') ? 'lnbc500u1p' : 'bc1q'}${digest(id).slice(0, 38)}`;

function shown({ id, amount, currency, metadata, checkout, createdTime, status, additionalStatus }: StoredInvoice) {
  const expirationTime = createdTime + checkout.expirationMinutes * 60;
  return {
    ...{ id, storeId: STORE, amount, paidAmount: '0', currency, type: 'Standard', status, additionalStatus },
    ...{ checkoutLink: `https://btcpay.example/i/${id}`, createdTime, expirationTime, archived: false },
    ...{ monitoringExpiration: expirationTime + checkout.monitoringMinutes * 60, metadata, checkout },
    ...{ availableStatusesForManualMarking: ['Settled', 'Invalid'], receipt: { enabled: true } },
  };
}
