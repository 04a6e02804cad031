/** A client of BTCPay Server's Greenfield API. Its decimals are strings. */

export interface GreenfieldInvoice {
  id: string;
  status: 'New' | 'Processing' | 'Expired' | 'Invalid' | 'Settled';
  metadata: { orderId?: string | null };
}

export interface GreenfieldPayment {
  id: string;
  /** Unix time. */
  receivedDate: number;
  value: string;
  status: 'Invalid' | 'Processing' | 'Settled';
  destination: string;
}

export interface GreenfieldMethod {
  paymentMethodId: string;
  destination: string;
  paymentLink: string | null;
  /** The amount that is still due. */
  due: string;
  payments: GreenfieldPayment[];
}

export interface NewInvoice {
  amount: string;
  currency: string;
  metadata: { orderId: string };
  checkout: {
    speedPolicy: string;
    paymentMethods: string[];
    lazyPaymentMethods: boolean;
    expirationMinutes: number;
    monitoringMinutes: number;
    paymentTolerance: number;
  };
}

/** BTCPay answered with an error. */
export class GreenfieldError extends Error {
  override readonly name = 'GreenfieldError';
  readonly status: number;
  constructor(status: number, path: string, text: string) {
    super(`${path} answered ${status}: ${text.slice(0, 300)}`);
    this.status = status;
  }
}

export class Greenfield {
  readonly #url: string;
  readonly #key: string;
  readonly #store: string;

  constructor({ url, apiKey, store }: { url: string; apiKey: string; store: string }) {
    this.#url = url.replace(/\/+$/, '');
    this.#key = apiKey;
    this.#store = `/api/v1/stores/${encodeURIComponent(store)}`;
  }

  createInvoice(invoice: NewInvoice, signal: AbortSignal): Promise<GreenfieldInvoice> {
    return this.#call('POST', `${this.#store}/invoices`, signal, invoice);
  }

  invoicesOf(orderNumber: string, signal: AbortSignal): Promise<GreenfieldInvoice[]> {
    return this.#call('GET', `${this.#store}/invoices?orderId=${encodeURIComponent(orderNumber)}`, signal);
  }

  /** The newest invoices of a status, a thousand at most. @param since Unix time of the oldest */
  invoicesSince(since: number, status: GreenfieldInvoice['status'], signal: AbortSignal): Promise<GreenfieldInvoice[]> {
    return this.#call('GET', `${this.#store}/invoices?status=${status}&startDate=${since}&take=1000`, signal);
  }

  invoice(id: string, signal: AbortSignal): Promise<GreenfieldInvoice> {
    return this.#call('GET', `/api/v1/invoices/${encodeURIComponent(id)}`, signal);
  }

  /** The methods with their payments, without payments that were replaced or spent elsewhere. */
  methodsOf(id: string, signal: AbortSignal): Promise<GreenfieldMethod[]> {
    return this.#call('GET', `/api/v1/invoices/${encodeURIComponent(id)}/payment-methods`, signal);
  }

  /** Makes a cheap call that needs the key. */
  async check(signal: AbortSignal): Promise<void> {
    await this.#call('GET', `${this.#store}/invoices?take=1`, signal);
  }

  /** @throws GreenfieldError, or the error of the connection */
  async #call<T>(method: string, path: string, signal: AbortSignal, body?: object): Promise<T> {
    const response = await fetch(this.#url + path, {
      method,
      signal,
      redirect: 'error',
      headers: {
        authorization: `token ${this.#key}`,
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new GreenfieldError(response.status, `${method} ${path}`, text);
    return JSON.parse(text) as T;
  }
}
