/** Sends calls to the service over REST or MCP, with one credential. It times and checks every answer. */
import { type CallName, callOf } from './calls.ts';
import { type Arguments, type Measurements, NO_ANSWER, type Reply } from './measurements.ts';

export interface Asking {
  /** Error codes that are legitimate here, since other clients use the same account. */
  refusals?: readonly string[];
  /** The Idempotency-Key of the request. */
  key?: string;
}

export interface ApiClientOptions {
  /** The name of the client in the report. */
  who: string;
  measurements: Measurements;
  /** Error codes that are legitimate for every call. */
  always?: readonly string[];
}

/** A client gives up on an answer after this time. */
export const PATIENCE_MS = 30_000;

export abstract class ApiClient {
  readonly #options: ApiClientOptions;

  constructor(options: ApiClientOptions) {
    this.#options = options;
  }

  /** The name of a call in the report. */
  protected abstract nameOf(call: CallName): string;
  /** Sends the call and reads the answer. */
  protected abstract send(call: CallName, args: Arguments, key: string | undefined): Promise<Reply>;

  async ask(call: CallName, args: Arguments = {}, { refusals = [], key }: Asking = {}): Promise<Reply> {
    const startedAt = performance.now();
    const reply = await this.send(call, args, key).catch((error) => ({ code: NO_ANSWER, body: String(error) }));
    const { waits = false } = callOf(call);
    const name = this.nameOf(call) + (waits ? ' (waits)' : '');
    const { measurements, always = [], who } = this.#options;
    measurements.answered({ name, waits, ms: performance.now() - startedAt, code: reply.code });
    if (![...refusals, ...always, 'ok'].includes(reply.code)) measurements.surprise(`${name} of ${who}`, args, reply);
    return reply;
  }

  async close(): Promise<void> {}
}
