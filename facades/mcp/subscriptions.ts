/** The subscriptions of one client to servers that its credential may read. They share one subscription of the schema. */
import { ResourceNotFoundError } from '@modelcontextprotocol/server';
import { ApiError } from '../../schema/index.ts';
import type { Caller } from '../compile/run.ts';
import type { McpCaller } from './caller.ts';
import type { McpParts } from './parts.ts';
import { SERVER_URI, type ServerUpdate, serverUpdates } from './server-updates.ts';

const URIS_MAX = 100;

export interface SubscriptionOptions {
  parts: Pick<McpParts, 'resources' | 'contextOf'>;
  notify: (uri: string) => Promise<void> | void;
  /** Called when no more updates come. */
  onEnd?: () => void;
}

export class Subscriptions {
  readonly #options: SubscriptionOptions;
  readonly #uris = new Set<string>();
  #opening: Promise<void> | undefined;
  #ended = new AbortController();
  #closed = false;

  constructor(options: SubscriptionOptions) {
    this.#options = options;
  }

  /**
   * @throws ResourceNotFoundError for other resources than servers, and for servers of others
   * @throws ProtocolError with the error of REST, rate_limited beyond a limit
   */
  async add(uri: string, caller: McpCaller & Caller): Promise<void> {
    if (!uri.startsWith(SERVER_URI)) throw new ResourceNotFoundError(uri);
    const { resources } = this.#options.parts;
    await resources.read(uri, caller);
    await resources.refusing(uri, caller, async () => {
      if (this.#uris.size >= URIS_MAX && !this.#uris.has(uri))
        throw new ApiError('rate_limited', `A client can subscribe to ${URIS_MAX} servers at once. End one first.`);
      // The client left during the read, so no call would end a subscription that opens now.
      if (this.#closed) throw new ApiError('unavailable');
      this.#opening ??= this.#open(caller);
      await this.#opening;
    });
    this.#uris.add(uri);
  }

  remove(uri: string): void {
    this.#uris.delete(uri);
    if (!this.#uris.size) this.#stop();
  }

  close(): void {
    this.#closed = true;
    this.#uris.clear();
    this.#stop();
  }

  #stop(): void {
    this.#ended.abort();
    this.#opening = undefined;
  }

  async #open(caller: McpCaller & Caller): Promise<void> {
    const ended = new AbortController();
    this.#ended = ended;
    try {
      // The subscription outlives the first request, and so keeps none of its messages.
      const { viewer, requestId, userAgent, address, host } = caller;
      const context = this.#options.parts.contextOf({
        viewer,
        requestId,
        userAgent,
        address,
        host,
        signal: ended.signal,
      });
      void this.#follow(await serverUpdates(context), ended);
    } catch (error) {
      this.#opening = undefined;
      throw error;
    }
  }

  async #follow(updates: AsyncGenerator<ServerUpdate>, ended: AbortController): Promise<void> {
    try {
      for await (const { orderNumber } of updates) {
        const uri = SERVER_URI + orderNumber;
        if (this.#uris.has(uri)) await this.#options.notify(uri);
      }
    } catch {
      // The client learns from the end of the updates, and subscribes again.
    }
    if (this.#ended !== ended) return;
    this.#opening = undefined;
    this.#options.onEnd?.();
  }
}
