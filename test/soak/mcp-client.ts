/** Clients of MCP: the official SDKs of both generations of the protocol. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ApiClient, type ApiClientOptions, PATIENCE_MS } from './api-client.ts';
import { type CallName, callOf } from './calls.ts';
import type { Arguments, Reply } from './measurements.ts';

// biome-ignore lint/suspicious/noExplicitAny: the two generations have no type in common
type Any = any;

export interface McpOptions extends ApiClientOptions {
  /** The address of an API process. */
  url: string;
  credential: string;
  /** Old: 2025-11-25, with a session. New: 2026-07-28, where each request stands alone. */
  generation: 'old' | 'new';
}

/** The tools that take an idempotency key. */
const KEYED: ReadonlySet<CallName> = new Set(['orderServer', 'createTopup']);

const INFO = { name: 'soak', version: '1.0.0' };

export class McpClient extends ApiClient {
  readonly #client: Any;
  readonly #generation: McpOptions['generation'];

  static async connect(options: McpOptions): Promise<McpClient> {
    const url = new URL(`${options.url}/mcp`);
    const requestInit = { headers: { authorization: `Bearer ${options.credential}` } };
    const client: Any =
      options.generation === 'old'
        ? new OldClient(INFO)
        : new Client(INFO, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
    const Transport = options.generation === 'old' ? OldTransport : StreamableHTTPClientTransport;
    await client.connect(new Transport(url, { requestInit }));
    return new McpClient(client, options);
  }

  private constructor(client: Any, options: McpOptions) {
    super(options);
    this.#client = client;
    this.#generation = options.generation;
  }

  protected nameOf(call: CallName): string {
    return `${callOf(call).tool} (MCP, ${this.#generation})`;
  }

  protected async send(call: CallName, args: Arguments, key: string | undefined): Promise<Reply> {
    const given = {
      ...args,
      ...(key && KEYED.has(call) && { idempotency_key: key }),
      // This client has no user to ask, so it confirms the deletion itself.
      ...(call === 'deleteServer' && { confirm: args.order_number }),
    };
    const request = { name: callOf(call).tool!, arguments: given };
    const patience = { timeout: PATIENCE_MS };
    const result = await (this.#generation === 'old'
      ? this.#client.callTool(request, undefined, patience)
      : this.#client.callTool(request, patience));
    const body = result.structuredContent;
    return { code: result.isError ? (body?.code ?? JSON.stringify(result)) : 'ok', body };
  }

  /** Subscribes to a resource while the work runs. @throws if the resource is gone */
  async watch(uri: string, work: () => Promise<unknown>): Promise<void> {
    if (this.#generation === 'old') {
      await this.#client.subscribeResource({ uri });
      await work();
      await this.#client.unsubscribeResource({ uri });
    } else {
      const stream = await this.#client.listen({ resourceSubscriptions: [uri] });
      await work();
      await stream.close();
    }
  }

  override close(): Promise<void> {
    return this.#client.close();
  }
}
