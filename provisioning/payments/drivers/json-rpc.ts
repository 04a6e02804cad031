/** Calls JSON-RPC over HTTP, in batches. It asks the first node that answers and belongs to the right chain. */

/** A method and its parameters. */
export type Call = readonly [method: string, ...parameters: unknown[]];

/** A node answered with an error. */
export class RpcError extends Error {
  override readonly name = 'RpcError';
  readonly code: number;

  constructor({ code, message }: { code: number; message: string }) {
    super(message);
    this.code = code;
  }
}

interface Options {
  /** Nodes to try in turn, beginning with the last one that answered. */
  urls: readonly string[];
  /** Returns the value of the header Authorization for each request. */
  authorization?: () => string;
  /** The most calls of one request. */
  batchMax: number;
  /** Checks a node before its first use, and after each fault. @throws Error if it belongs to another chain */
  verify: (call: <T>(...call: Call) => Promise<T>) => Promise<void>;
}

const TIMEOUT_MS = 20_000;

interface Reply {
  id: number;
  result?: unknown;
  error?: { code: number; message: string } | null;
}

export class JsonRpc {
  readonly #options: Options;
  readonly #verified = new Set<string>();
  #first = 0;

  constructor(options: Options) {
    this.#options = options;
  }

  async call<T>(signal: AbortSignal, ...call: Call): Promise<T> {
    return (await this.batch<T>(signal, [call]))[0]!;
  }

  /** Asks one node for all of them. @throws the error of the only node, or an Error that lists the errors of all nodes */
  async batch<T>(signal: AbortSignal, calls: readonly Call[]): Promise<T[]> {
    const { urls } = this.#options;
    const faults: Error[] = [];
    for (let turn = 0; turn < urls.length; turn++) {
      const index = (this.#first + turn) % urls.length;
      const url = urls[index]!;
      try {
        await this.#verify(url, signal);
        const results = await this.#send(url, calls, signal);
        this.#first = index;
        return results as T[];
      } catch (fault) {
        signal.throwIfAborted();
        if (!(fault instanceof RpcError)) this.#verified.delete(url);
        faults.push(fault as Error);
      }
    }
    if (faults.length === 1) throw faults[0];
    // Without the URLs of nodes, because they may contain keys.
    throw new Error(faults.map(({ message }, turn) => `node ${turn + 1}: ${message}`).join('; '));
  }

  async #verify(url: string, signal: AbortSignal): Promise<void> {
    if (this.#verified.has(url)) return;
    await this.#options.verify(async <T>(...call: Call) => (await this.#send(url, [call], signal))[0] as T);
    this.#verified.add(url);
  }

  async #send(url: string, calls: readonly Call[], signal: AbortSignal): Promise<unknown[]> {
    const { batchMax } = this.#options;
    const results: unknown[] = [];
    for (let from = 0; from < calls.length; from += batchMax)
      results.push(...(await this.#request(url, calls.slice(from, from + batchMax), signal)));
    return results;
  }

  async #request(url: string, calls: readonly Call[], signal: AbortSignal): Promise<unknown[]> {
    const bodies = calls.map(([method, ...params], id) => ({ jsonrpc: '2.0', id, method, params }));
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(this.#options.authorization && { authorization: this.#options.authorization() }),
      },
      body: JSON.stringify(bodies.length === 1 ? bodies[0] : bodies),
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    }).catch((fault: Error) => {
      throw new Error(`The node is unreachable: ${(fault.cause as Error | undefined)?.message ?? fault.message}`);
    });
    // Errors of a call come with their own status, and with a body.
    const answer = await response.json().catch(() => undefined);
    if (answer === undefined) throw new Error(`The node answered with status ${response.status}, without JSON.`);
    const replies: Reply[] = Array.isArray(answer) ? answer : [answer];
    const refused = replies.find(({ error }) => error);
    if (refused) throw new RpcError(refused.error!);
    const byId = new Map(replies.map(({ id, result }) => [id, result]));
    return calls.map((_, id) => {
      if (!byId.has(id)) throw new Error(`The node answered with status ${response.status}, without every call.`);
      return byId.get(id);
    });
  }
}
