/** Sends calls, and repeats those that did not reach the service. Needs only `fetch` and `crypto`. */

import { ENDPOINTS, type Operations } from './api.ts';
import { FreeholdError } from './errors.ts';

export type OperationName = keyof typeof ENDPOINTS & keyof Operations;
export type Input<Name extends OperationName> = Operations[Name]['input'];
export type Answer<Name extends OperationName> = Operations[Name]['answer'];

/** A demand for a payment by x402: the header PAYMENT-REQUIRED, and the body of the 402. */
export interface PaymentDemand {
  header: string;
  body: Readonly<Record<string, unknown>>;
}

export interface Options {
  /** The address of the service. Default: http://localhost:3000. */
  url?: string;
  /** An API key or an access token. Without it, only public calls work. */
  apiKey?: string;
  /** Default: the `fetch` of the runtime. */
  fetch?: typeof fetch;
  /** How often a call is tried. Default: 4. */
  tries?: number;
  /**
   * Pays by x402 with your signer. Returns the value of the header PAYMENT-SIGNATURE; undefined refuses to pay.
   */
  pay?: (demand: PaymentDemand) => Promise<string | undefined>;
}

/** The options of one call. */
export interface CallOptions {
  signal?: AbortSignal;
  /** Makes a repetition of the call safe, also by another process. Default: a random one. */
  idempotencyKey?: string;
  /** Asks to pay the call itself by x402, and leaves the balance alone. */
  payment?: 'x402';
}

/** The longest pause before another try, in seconds. A longer wait is an error, which tells its length. */
const PAUSE_SECONDS_MAX = 60;
const FIRST_PAUSE_SECONDS = 0.5;

export class Transport {
  readonly #url: string;
  readonly #options: Options;

  constructor(options: Options) {
    this.#url = (options.url ?? 'http://localhost:3000').replace(/\/+$/, '');
    this.#options = options;
  }

  /** @throws FreeholdError */
  call<Name extends OperationName>(name: Name, input: Input<Name>, options: CallOptions = {}): Promise<Answer<Name>> {
    const { method, path, query, hasBody, isKeyed } = ENDPOINTS[name];
    const rest: Record<string, unknown> = { ...input };
    const take = (member: string) => {
      const value = rest[member];
      delete rest[member];
      return value;
    };
    const taken = path.replace(/{(\w+)}/g, (_, member) => encodeURIComponent(String(take(member))));
    const search = new URLSearchParams();
    for (const member of query as readonly string[]) {
      const values = take(member);
      for (const value of Array.isArray(values) ? values : [values])
        if (value !== undefined) search.append(member, value instanceof Date ? value.toISOString() : String(value));
    }
    const body = hasBody ? rest : undefined;
    return this.send(method, search.size ? `${taken}?${search}` : taken, body, { isKeyed, ...options }) as Promise<
      Answer<Name>
    >;
  }

  /**
   * Sends any call.
   * @param path from /v1 on
   * @throws FreeholdError
   */
  async send(
    method: string,
    path: string,
    body: object | undefined,
    { isKeyed = method !== 'GET', signal, payment, ...given }: CallOptions & { isKeyed?: boolean } = {},
  ): Promise<unknown> {
    if (!path.startsWith('/')) throw new TypeError('The path begins with /v1.');
    const idempotencyKey = isKeyed ? (given.idempotencyKey ?? crypto.randomUUID()) : undefined;
    const headers: Record<string, string> = { accept: 'application/json' };
    if (this.#options.apiKey) headers.authorization = `Bearer ${this.#options.apiKey}`;
    if (body) headers['content-type'] = 'application/json';
    if (idempotencyKey) headers['idempotency-key'] = idempotencyKey;
    if (payment) headers['x-payment-mode'] = payment;
    // Another address must get neither the key nor a password in the body.
    const redirect = 'manual' as const;
    const request = {
      method,
      headers,
      redirect,
      ...(body && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    };
    const isSafe = method === 'GET' || idempotencyKey !== undefined;
    for (let tried = 1; ; tried++) {
      const error = await this.#try(path, request, idempotencyKey);
      if (!(error instanceof FreeholdError)) return error.answer;
      signal?.throwIfAborted();
      const paid = await this.#paid(error, headers);
      if (paid) tried--;
      else if (!isSafe || !isPassing(error) || isLong(error) || tried >= (this.#options.tries ?? 4)) throw error;
      else await pause(error, tried, signal);
    }
  }

  async #try(
    path: string,
    request: RequestInit,
    idempotencyKey: string | undefined,
  ): Promise<FreeholdError | { answer: unknown }> {
    const send = this.#options.fetch ?? fetch;
    let response: Response;
    let text: string;
    try {
      response = await send(`${this.#url}${path}`, request);
      text = await response.text();
    } catch (cause) {
      const detail = `${this.#url} does not answer: ${cause instanceof Error ? (cause.cause ?? cause) : cause}`;
      return new FreeholdError(0, { code: 'no_answer', detail }, { idempotencyKey, cause });
    }
    if (response.type === 'opaqueredirect' || (response.status >= 300 && response.status < 400))
      return new FreeholdError(response.status || 308, redirected(this.#url, response), { idempotencyKey });
    const body = parsed(text);
    if (response.ok) return { answer: body };
    const members = (typeof body === 'object' && body) || { detail: text.slice(0, 200) };
    const after = Number(response.headers.get('retry-after')) || undefined;
    const required = response.headers.get('payment-required') ?? undefined;
    const cause = required === undefined ? undefined : { required };
    return new FreeholdError(response.status, { retry_after: after, ...members }, { idempotencyKey, cause });
  }

  /** Signs the payment that a 402 demands, once for each call. */
  async #paid(error: FreeholdError, headers: Record<string, string>): Promise<boolean> {
    const { required } = (error.cause ?? {}) as { required?: string };
    if (error.status !== 402 || !required || !this.#options.pay || headers['payment-signature']) return false;
    const signature = await this.#options.pay({ header: required, body: error.body });
    if (!signature) return false;
    headers['payment-signature'] = signature;
    return true;
  }
}

/** Browsers do not tell the other address. */
function redirected(url: string, { headers }: Response): { code: string; detail: string } {
  const location = headers.get('location');
  const other = location ? ` ${location}` : ' another address';
  return { code: 'redirected', detail: `${url} leads to${other}. Use the address of the service itself as url.` };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Whether another try may succeed soon. A 402 needs money first. */
const isPassing = ({ status, body }: FreeholdError): boolean =>
  [0, 429, 502, 504].includes(status) || (body.retryable === true && status !== 402);

/** Whether the service demands a longer pause than the client makes. */
const isLong = ({ retryAfterSeconds = 0 }: FreeholdError): boolean => retryAfterSeconds > PAUSE_SECONDS_MAX;

async function pause(
  { retryAfterSeconds }: FreeholdError,
  tried: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  const seconds = retryAfterSeconds ?? FIRST_PAUSE_SECONDS * 2 ** (tried - 1) * (0.5 + Math.random());
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal?.addEventListener(
      'abort',
      () => {
        clearTimeout(timer);
        reject(signal.reason);
      },
      { once: true },
    );
  });
}
