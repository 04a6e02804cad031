/**
 * The thread of the outbound calls. Receivers choose the bytes that TLS and HTTP read there. A receiver that keeps the
 * thread busy, or makes it throw, delays other outbound calls. It delays no request to the service. A full heap ends the
 * whole process, as in each thread of Node. So a call keeps few buffers, of known sizes.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { SHARE_ENV, Worker } from 'node:worker_threads';
import { log } from '../../entities/monitoring/log.ts';

/** One request to an address that the rules permit. */
export interface Sending {
  method: 'GET' | 'POST';
  url: string;
  /** The account whose time of the thread the call uses. */
  account: string;
  /** The connection goes to this address. The host of the URL is for TLS and HTTP. */
  address: string;
  headers: Record<string, string>;
  body?: string | undefined;
  /** The thread reads no more bytes of the answer. */
  answerBytesMax: number;
  /** The limit for the connection and the answer together. */
  limitMs: number;
}

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Uint8Array;
  /** Whether the whole body came within the limits. */
  complete: boolean;
}

/** `tls` means that a TLS server showed an invalid certificate. */
export type SendingError = 'tls' | 'unreachable';

/** The messages to the thread, and its answer to one of them. */
export type Instruction = { id: number } & ({ sending: Sending } | { abort: true });
export type Reply = { id: number; result: Answer | SendingError };

/** The thread answers each call within its limit. After this time more, it is busy. */
const BUSY_MS = 1000;
const ENTRY = new URL('./send.ts', import.meta.url);

type Calls = Map<number, (result: Answer | SendingError) => void>;

export class OutboundThread {
  readonly #entry: URL;
  #running: { worker: Worker; calls: Calls } | undefined;
  #count = 0;

  /** @param entry the program of the thread, which reads an `Instruction` and posts a `Reply` */
  constructor(entry: URL = ENTRY) {
    this.#entry = entry;
  }

  /**
   * Sends the request in the thread, which the first call starts. If the thread ends, each call of it is unreachable, and
   * the next call starts another one.
   * @throws the reason of `aborted` if the caller aborts it
   */
  send(sending: Sending, aborted?: AbortSignal): Promise<Answer | SendingError> {
    this.#running ??= this.#start();
    const { worker, calls } = this.#running;
    const id = ++this.#count;
    return new Promise((done, fail) => {
      const abort = () => {
        worker.postMessage({ id, abort: true } satisfies Instruction);
        end();
        fail(aborted!.reason);
      };
      const busy = setTimeout(() => this.#stop(worker), sending.limitMs + BUSY_MS);
      const end = () => {
        clearTimeout(busy);
        aborted?.removeEventListener('abort', abort);
        calls.delete(id);
        if (!calls.size) worker.unref();
      };
      calls.set(id, (result) => {
        end();
        done(result);
      });
      worker.ref();
      worker.postMessage({ id, sending } satisfies Instruction);
      if (aborted?.aborted) abort();
      else aborted?.addEventListener('abort', abort);
    });
  }

  #start() {
    const calls: Calls = new Map();
    // TLS reads variables, such as the operator's own authorities.
    const worker = new Worker(this.#entry, { name: 'outbound calls', env: SHARE_ENV });
    worker
      .on('message', ({ id, result }: Reply) => calls.get(id)?.(result))
      .on('error', (error) => log.error(`The thread of the outbound calls ended: ${error}`))
      .on('exit', () => this.#stop(worker));
    return { worker, calls };
  }

  #stop(worker: Worker): void {
    if (this.#running?.worker !== worker) return;
    const { calls } = this.#running;
    this.#running = undefined;
    void worker.terminate();
    for (const answer of [...calls.values()]) answer('unreachable');
  }
}
