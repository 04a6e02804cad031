/** A way in: REST or MCP with one credential. Every answer is timed, and held against what the caller expects. */
import { type CallName, callOf } from './calls.ts';
import { type Measurements, NO_ANSWER } from './measurements.ts';

export type Arguments = Record<string, unknown>;

export interface Reply {
  /** `ok`, or the code of the error. */
  code: string;
  // biome-ignore lint/suspicious/noExplicitAny: whoever asked knows what it looks like
  body: any;
}

export interface Asking {
  /** The codes of errors that are right here, since others work on the same account at the same time. */
  refusals?: readonly string[];
  /** Idempotency-Key. */
  key?: string;
}

export interface DoorOptions {
  /** Whose it is, for the report. */
  who: string;
  measurements: Measurements;
  /** What any answer may be refused with. */
  always?: readonly string[];
}

/** Whoever waits for so long does not wait any more. */
export const PATIENCE_MS = 30_000;

export abstract class Door {
  readonly #options: DoorOptions;

  constructor(options: DoorOptions) {
    this.#options = options;
  }

  /** The name of a call in the report. */
  protected abstract nameOf(call: CallName): string;
  /** @returns the answer, whatever it is */
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
