/** Calls JSON-RPC over HTTP, in batches. */

/** A method and its parameters. */
export type Call = readonly [method: string, ...parameters: unknown[]];

interface Fault {
  code: number;
  message: string;
  data?: unknown;
}

const MESSAGE_CHARACTERS_MAX = 500;

/** A text of a node in one line. It goes to logs and terminals, which obey control characters. */
const shown = (text: unknown): string =>
  String(text)
    .replace(/[\p{Cc}\p{Bidi_Control}\s]+/gu, ' ')
    .slice(0, MESSAGE_CHARACTERS_MAX);

/** A node answered with an error. */
export class RpcError extends Error {
  override readonly name = 'RpcError';
  readonly code: number;
  readonly data: unknown;
  /** The status of the answer. Nodes of Bitcoin's family answer errors with 500; others so say that they are busy. */
  readonly status: number;

  constructor({ code, message, data }: Fault, status: number) {
    super(shown(message));
    this.code = code;
    this.data = data;
    this.status = status;
  }
}

/** Posts a body to a node. */
export type Exchange = (url: string, body: string, signal: AbortSignal) => Promise<{ status: number; text: string }>;

interface Options {
  url: string;
  /** Returns the value of the header Authorization for each request. */
  authorization?: () => string;
  /** Replaces fetch. */
  exchange?: Exchange;
  /** The most calls of one request. */
  batchMax: number;
  /** Checks the node before its first use, and after each fault. @throws Error if it belongs to another chain */
  verify?: (call: <T>(...call: Call) => Promise<T>) => Promise<void>;
  /** Whether parameters have names: each call has one object of them. */
  named?: boolean;
  /** Reads values that a double would cut. */
  reviver?: (key: string, value: unknown, context: { source: string }) => unknown;
}

const TIMEOUT_MS = 20_000;

interface Reply {
  id: number;
  result?: unknown;
  error?: Fault | null;
}

export class JsonRpc {
  readonly #options: Options;
  #isVerified = false;

  constructor(options: Options) {
    this.#options = options;
  }

  async call<T>(signal: AbortSignal, ...call: Call): Promise<T> {
    return (await this.batch<T>(signal, [call]))[0]!;
  }

  async batch<T>(signal: AbortSignal, calls: readonly Call[]): Promise<T[]> {
    try {
      if (!this.#isVerified)
        await this.#options.verify?.(async <R>(...call: Call) => (await this.#send([call], signal))[0] as R);
      this.#isVerified = true;
      return (await this.#send(calls, signal)) as T[];
    } catch (fault) {
      if (!(fault instanceof RpcError)) this.#isVerified = false;
      throw fault;
    }
  }

  async #send(calls: readonly Call[], signal: AbortSignal): Promise<unknown[]> {
    const { batchMax } = this.#options;
    const results: unknown[] = [];
    for (let from = 0; from < calls.length; from += batchMax)
      results.push(...(await this.#request(calls.slice(from, from + batchMax), signal)));
    return results;
  }

  async #request(calls: readonly Call[], signal: AbortSignal): Promise<unknown[]> {
    const { url, named, exchange = this.#fetch, reviver } = this.#options;
    const bodies = calls.map(([method, ...given], id) => {
      return { jsonrpc: '2.0', id, method, params: named ? (given[0] ?? {}) : given };
    });
    const body = JSON.stringify(bodies.length === 1 ? bodies[0] : bodies);
    const { status, text } = await exchange(url, body, signal);
    // Errors of a call come with their own status, and with a body.
    const replies = parsed(text, reviver);
    if (replies === undefined) throw new Error(`The node answered with status ${status}, without JSON.`);
    const refused = replies.find(({ error }) => error);
    if (refused) throw new RpcError(refused.error!, status);
    const byId = new Map(replies.map(({ id, result }) => [id, result]));
    return calls.map((_, id) => {
      if (!byId.has(id)) throw new Error(`The node answered with status ${status}, without every call.`);
      return byId.get(id);
    });
  }

  readonly #fetch: Exchange = async (url, body, aborted) => {
    const signal = AbortSignal.any([aborted, AbortSignal.timeout(TIMEOUT_MS)]);
    const authorization = this.#options.authorization?.();
    const headers = { 'content-type': 'application/json', ...(authorization && { authorization }) };
    const response = await fetch(url, { method: 'POST', headers, body, signal }).catch((fault: Error) => {
      throw new Error(`The node is unreachable: ${(fault.cause as Error | undefined)?.message ?? fault.message}`);
    });
    return { status: response.status, text: await response.text() };
  };
}

function parsed(text: string, reviver: Options['reviver']): Reply[] | undefined {
  try {
    return [JSON.parse(text, reviver as Parameters<typeof JSON.parse>[1])].flat();
  } catch {
    return undefined;
  }
}
