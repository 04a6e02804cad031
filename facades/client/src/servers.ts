import { FreeholdError } from './errors.ts';
import type { OrderedServer, Quote, Server } from './api.ts';
import { List } from './pages.ts';
import type { CallOptions, Input, Transport } from './transport.ts';

/** A status that lasts until somebody changes the server. */
const STABLE: ReadonlySet<string> = new Set(['running', 'stopped', 'suspended', 'failed', 'deleted']);

export interface WaitOptions {
  signal?: AbortSignal;
  /** Gets each reading of the server while it changes. */
  onChange?: (server: Server) => void;
}
/** An order, and the way to wait for its server. */
export type Order = OrderedServer & {
  /** Waits until the server runs. @throws FreeholdError if it fails */
  ready(options?: WaitOptions): Promise<Server>;
};
type Changes = Omit<Input<'UpdateServer'>, 'order_number'>;

export class Servers {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Orders a server, and pays its first month. `ready()` of the answer waits until it runs. */
  async order(order: Omit<Input<'OrderServer'>, 'dry_run'>, options?: CallOptions): Promise<Order> {
    const ordered = (await this.#transport.call('OrderServer', order, options)) as OrderedServer;
    return { ...ordered, ready: (wait) => this.ready(ordered.order_number, wait) };
  }

  /** Returns the price of an order, and orders nothing. */
  async quote(order: Omit<Input<'OrderServer'>, 'dry_run'>, options?: CallOptions): Promise<Quote> {
    return (await this.#transport.call('OrderServer', { ...order, dry_run: true }, options)) as Quote;
  }

  get(orderNumber: string, options?: CallOptions): Promise<Server> {
    return this.#transport.call('GetServer', { order_number: orderNumber }, options);
  }

  list(filter: Omit<Input<'ListServers'>, 'cursor'> = {}, options?: CallOptions): List<Server> {
    return new List((cursor) => this.#transport.call('ListServers', { ...filter, ...(cursor && { cursor }) }, options));
  }

  /** Changes fields of a server, or starts one operation: `power_state`, `action` or `service_code`. */
  update(orderNumber: string, changes: Changes, options?: CallOptions) {
    return this.#transport.call('UpdateServer', { ...changes, order_number: orderNumber }, options);
  }

  start(orderNumber: string, options?: CallOptions) {
    return this.update(orderNumber, { power_state: 'on' }, options);
  }

  stop(orderNumber: string, options?: CallOptions) {
    return this.update(orderNumber, { power_state: 'off' }, options);
  }

  reboot(orderNumber: string, options?: CallOptions) {
    return this.update(orderNumber, { action: 'reboot' }, options);
  }

  /** Deletes all data of a server, and installs its system again. */
  rebuild(orderNumber: string, changes: Omit<Changes, 'action'> = {}, options?: CallOptions) {
    return this.update(orderNumber, { ...changes, action: 'rebuild' }, options);
  }

  /** Gives a stopped server another tier. */
  resize(orderNumber: string, serviceCode: string, options?: CallOptions) {
    return this.update(orderNumber, { service_code: serviceCode }, options);
  }

  /** Deletes a server and its data. The unused hours go back to the balance. */
  delete(orderNumber: string, options?: CallOptions) {
    return this.#transport.call('DeleteServer', { order_number: orderNumber }, options);
  }

  metrics(orderNumber: string, range: Omit<Input<'GetServerMetrics'>, 'order_number'> = {}, options?: CallOptions) {
    return this.#transport.call('GetServerMetrics', { ...range, order_number: orderNumber }, options);
  }

  /** Waits until a server runs. @throws FreeholdError with the code of its failure, or of its status */
  async ready(orderNumber: string, options: WaitOptions = {}): Promise<Server> {
    const server = await this.settled(orderNumber, 'running', options);
    if (server.status === 'running' && !server.failure) return server;
    const { code = server.status, message = `The server is ${server.status}.` } = server.failure ?? {};
    throw new FreeholdError(0, { code, detail: message, server });
  }

  /** Waits until a server has a status, or another one that lasts. The service holds each call until then. */
  async settled(
    orderNumber: string,
    status: Input<'GetServer'>['wait_for'] & string,
    options: WaitOptions = {},
  ): Promise<Server> {
    const { signal, onChange } = options;
    for (;;) {
      const input = { order_number: orderNumber, wait_for: status, timeout: 25 };
      const server = await this.#transport.call('GetServer', input, { ...(signal && { signal }) });
      onChange?.(server);
      if (server.status === status || STABLE.has(server.status)) return server;
    }
  }
}
