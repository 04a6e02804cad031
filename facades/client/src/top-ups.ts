import type { TopUp } from './api.ts';
import { List } from './pages.ts';
import type { CallOptions, Input, Transport } from './transport.ts';

/** A status after which nothing more happens by itself. */
const ENDED: ReadonlySet<string> = new Set(['confirmed', 'expired', 'cancelled']);
const POLL_MS = 2_000;

export interface ConfirmationOptions {
  signal?: AbortSignal;
  /** Gets each reading of the top-up, with its confirmations. */
  onChange?: (topUp: TopUp) => void;
}

export class TopUps {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Opens a top-up in a coin. Pay `amount_crypto` to `wallet_address` before `expires_at`. */
  create(input: Input<'CreateTopup'>, options?: CallOptions): Promise<TopUp> {
    return this.#transport.call('CreateTopup', input, options);
  }

  get(orderNumber: string, options?: CallOptions): Promise<TopUp> {
    return this.#transport.call('GetTopup', { order_number: orderNumber }, options);
  }

  list(filter: Omit<Input<'ListTopups'>, 'cursor'> = {}, options?: CallOptions): List<TopUp> {
    return new List((cursor) => this.#transport.call('ListTopups', { ...filter, ...(cursor && { cursor }) }, options));
  }

  /** Cancels an unpaid top-up. */
  cancel(orderNumber: string, options?: CallOptions): Promise<TopUp> {
    return this.#transport.call('CancelTopup', { order_number: orderNumber }, options);
  }

  receipt(orderNumber: string, options?: CallOptions) {
    return this.#transport.call('GetReceipt', { order_number: orderNumber }, options);
  }

  /** Waits until a top-up is confirmed, expired or cancelled. Reads it every two seconds. */
  async settled(orderNumber: string, { signal, onChange }: ConfirmationOptions = {}): Promise<TopUp> {
    for (;;) {
      const topUp = await this.get(orderNumber, { ...(signal && { signal }) });
      onChange?.(topUp);
      if (ENDED.has(topUp.status)) return topUp;
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      signal?.throwIfAborted();
    }
  }
}
