/** What one client has subscribed to: servers that its credential may read. One subscription of the schema feeds all. */
import { ResourceNotFoundError } from '@modelcontextprotocol/server';
import type { Caller } from '../compile/run.ts';
import type { McpCaller } from './caller.ts';
import type { McpParts } from './parts.ts';
import { SERVER_URI, serverUpdates } from './server-updates.ts';

const URIS_MAX = 100;

export class Subscriptions {
  readonly #parts: Pick<McpParts, 'resources' | 'contextOf'>;
  readonly #tell: (uri: string) => Promise<void> | void;
  readonly #uris = new Set<string>();
  readonly #closed = new AbortController();
  #listening = false;

  constructor(parts: Pick<McpParts, 'resources' | 'contextOf'>, tell: (uri: string) => Promise<void> | void) {
    this.#parts = parts;
    this.#tell = tell;
  }

  /** @throws ResourceNotFoundError for what does not change, or is not the caller's */
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
    // It outlives the request that it began with.
    const context = this.#parts.contextOf({ ...caller, signal: this.#closed.signal });
    for await (const { orderNumber } of serverUpdates(context)) {
      const uri = SERVER_URI + orderNumber;
      if (this.#uris.has(uri)) await this.#tell(uri);
    }
    this.#listening = false;
  }
}
