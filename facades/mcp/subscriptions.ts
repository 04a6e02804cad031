/** The subscriptions of one client to servers that its credential may read. They share one subscription of the schema. */
import { ResourceNotFoundError } from '@modelcontextprotocol/server';
import type { Caller } from '../compile/run.ts';
import type { McpCaller } from './caller.ts';
import type { McpParts } from './parts.ts';
import { SERVER_URI, serverUpdates } from './server-updates.ts';

const URIS_MAX = 100;

export class Subscriptions {
  readonly #parts: Pick<McpParts, 'resources' | 'contextOf'>;
  readonly #notify: (uri: string) => Promise<void> | void;
  readonly #uris = new Set<string>();
  readonly #closed = new AbortController();
  #listening = false;

  constructor(parts: Pick<McpParts, 'resources' | 'contextOf'>, notify: (uri: string) => Promise<void> | void) {
    this.#parts = parts;
    this.#notify = notify;
  }

  /** @throws ResourceNotFoundError for other resources than servers, servers of others, and beyond the limit */
  async add(uri: string, caller: McpCaller & Caller): Promise<void> {
    if (!uri.startsWith(SERVER_URI) || this.#uris.size >= URIS_MAX) throw new ResourceNotFoundError(uri);
    await this.#parts.resources.read(uri, caller);
    this.#uris.add(uri);
    if (this.#listening) return;
    this.#listening = true;
    void this.#listen(caller).catch(() => {
      this.#listening = false;
    });
  }

  remove(uri: string): void {
    this.#uris.delete(uri);
  }

  close(): void {
    this.#uris.clear();
    this.#closed.abort();
  }

  async #listen(caller: McpCaller & Caller): Promise<void> {
    // The subscription outlives the first request.
    const context = this.#parts.contextOf({ ...caller, signal: this.#closed.signal });
    for await (const { orderNumber } of serverUpdates(context)) {
      const uri = SERVER_URI + orderNumber;
      if (this.#uris.has(uri)) await this.#notify(uri);
    }
    this.#listening = false;
  }
}
