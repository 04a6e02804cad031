/**
 * Bounds the bytes that wait in the process for slow readers. Above a bound, the listener closes the connections that have
 * waited longest without progress. A reader that makes progress keeps its connection, up to a hard bound.
 */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

const KIB = 1024;
const MIB = 1024 * KIB;
/** Smaller responses are not worth their bookkeeping. Smaller steps are no progress. */
export const COUNTED_MIN = 16 * KIB;

interface Waiting {
  bytes: number;
  /** The bytes of completed writes, and the bytes of the present write that the kernel has not taken. */
  completed: number;
  queued: number;
  /** When the reader last made progress, by performance.now(). */
  progressAt: number;
}

export interface UnreadLimits {
  /** The most bytes that wait for a stalled reader. */
  perResponse: number;
  /** The most bytes that wait for all readers, while one of them is stalled. */
  perProcess: number;
  /** The most bytes that wait for all readers. */
  most: number;
  /** Milliseconds without progress after which a reader is stalled. */
  stalledMs: number;
}

export class UnreadBytes {
  readonly #limits: UnreadLimits;
  /** The waiting responses, the longest without progress first. */
  readonly #waiting = new Map<ServerResponse, Waiting>();
  readonly #watched = new WeakSet<ServerResponse>();
  #total = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(limits: Partial<UnreadLimits> = {}) {
    this.#limits = { perResponse: 4 * MIB, perProcess: 16 * MIB, most: 64 * MIB, stalledMs: 5000, ...limits };
  }

  /** Counts what waits after a write. May close this connection, or others, now or later. */
  readonly note = (response: ServerResponse): void => {
    this.#update(response);
    const bytes = this.#waiting.get(response)?.bytes ?? 0;
    if (bytes > this.#limits.perResponse || this.#total > this.#limits.perProcess) this.#relieve();
  };

  /** Closes the connections of stalled readers above the bounds, and looks again while a bound is exceeded. */
  #relieve(): void {
    const { perResponse, perProcess, most, stalledMs } = this.#limits;
    for (const one of [...this.#waiting.keys()]) this.#update(one);
    const stalledBefore = performance.now() - stalledMs;
    let exceeded = false;
    for (const [one, { bytes, progressAt }] of this.#waiting) {
      const above = bytes > perResponse || this.#total > perProcess;
      if (this.#total > most || (above && progressAt <= stalledBefore)) this.#close(one);
      else exceeded ||= above;
    }
    if (!exceeded || this.#timer) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#relieve();
    }, stalledMs / 4).unref();
  }

  #update(response: ServerResponse): void {
    const before = this.#waiting.get(response);
    const bytes = response.closed || response.writableLength < COUNTED_MIN ? 0 : response.writableLength;
    this.#total += bytes - (before?.bytes ?? 0);
    if (!bytes) return void this.#waiting.delete(response);
    const { socket } = response.req;
    const now = { bytes, completed: socket.bytesWritten - socket.writableLength, queued: queuedIn(socket) };
    if (before && now.completed <= before.completed && now.queued > before.queued - COUNTED_MIN) before.bytes = bytes;
    else {
      this.#waiting.delete(response);
      this.#waiting.set(response, { ...now, progressAt: performance.now() });
    }
    if (this.#watched.has(response)) return;
    this.#watched.add(response);
    response.once('close', () => this.#update(response));
  }

  #close(response: ServerResponse): void {
    response.req.socket.destroy();
    this.#total -= this.#waiting.get(response)?.bytes ?? 0;
    this.#waiting.delete(response);
  }
}

/** Returns what the kernel has not taken of the present write. Node's own timeouts read it, too. */
function queuedIn(socket: Socket): number {
  return (socket as { _handle?: { writeQueueSize?: number } | null })._handle?.writeQueueSize ?? 0;
}
