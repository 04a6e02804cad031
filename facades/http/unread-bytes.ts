/**
 * Bounds the bytes that wait in the process for slow readers. Above a bound, the listener closes the connection that has
 * waited longest, and so none that reads.
 */
import type { ServerResponse } from 'node:http';

const KIB = 1024;
const MIB = 1024 * KIB;
/** Smaller responses are not worth their bookkeeping. */
export const COUNTED_MIN = 16 * KIB;

export class UnreadBytes {
  readonly #perResponse: number;
  readonly #perProcess: number;
  /** The waiting bytes by response, the longest waiting first. */
  readonly #waiting = new Map<ServerResponse, number>();
  readonly #watched = new WeakSet<ServerResponse>();
  #total = 0;

  constructor({ perResponse = 4 * MIB, perProcess = 16 * MIB } = {}) {
    this.#perResponse = perResponse;
    this.#perProcess = perProcess;
  }

  /** Counts what waits after a write. May close this connection, or others. */
  readonly note = (response: ServerResponse): void => {
    this.#update(response);
    if (response.writableLength > this.#perResponse) this.#close(response);
    if (this.#total <= this.#perProcess) return;
    for (const one of [...this.#waiting.keys()]) this.#update(one);
    for (const one of this.#waiting.keys()) {
      if (this.#total <= this.#perProcess) return;
      this.#close(one);
    }
  };

  #update(response: ServerResponse): void {
    const bytes = response.closed || response.writableLength < COUNTED_MIN ? 0 : response.writableLength;
    this.#total += bytes - (this.#waiting.get(response) ?? 0);
    if (bytes) this.#waiting.set(response, bytes);
    else this.#waiting.delete(response);
    if (!bytes || this.#watched.has(response)) return;
    this.#watched.add(response);
    response.once('close', () => this.#update(response));
  }

  #close(response: ServerResponse): void {
    response.req.socket.destroy();
    this.#total -= this.#waiting.get(response) ?? 0;
    this.#waiting.delete(response);
  }
}
