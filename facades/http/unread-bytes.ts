/**
 * Bounds the bytes that wait in the process for slow readers. Above a bound, the listener closes the connections that have
 * waited longest without progress. A reader that makes progress keeps its connection, up to a hard bound.
 */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** A response, or the connection of a WebSocket. */
type Reader = ServerResponse | Socket;
const socketOf = (reader: Reader): Socket => ('req' in reader ? reader.req.socket : reader);

const KIB = 1024;
const MIB = 1024 * KIB;
/** Fewer bytes are not worth their bookkeeping. Smaller steps are no progress. */
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
  perReader: number;
  /** The most bytes that wait for all readers, while one of them is stalled. */
  perProcess: number;
  /** The most bytes that wait for all readers. */
  most: number;
  /** Milliseconds without progress after which a reader is stalled. */
  stalledMs: number;
}

export class UnreadBytes {
  readonly #limits: UnreadLimits;
  /** The readers with waiting bytes, the longest without progress first. */
  readonly #waiting = new Map<Reader, Waiting>();
  readonly #watched = new WeakSet<Reader>();
  #total = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(limits: Partial<UnreadLimits> = {}) {
    this.#limits = { perReader: 4 * MIB, perProcess: 16 * MIB, most: 64 * MIB, stalledMs: 5000, ...limits };
  }

  /** Counts what waits after a write. May close this connection, or others, now or later. */
  readonly note = (reader: Reader): void => {
    this.#update(reader);
    const bytes = this.#waiting.get(reader)?.bytes ?? 0;
    if (bytes > this.#limits.perReader || this.#total > this.#limits.perProcess) this.#relieve();
  };

  /** Closes the connections of stalled readers above the bounds, and looks again while a bound is exceeded. */
  #relieve(): void {
    const { perReader, perProcess, most, stalledMs } = this.#limits;
    for (const one of [...this.#waiting.keys()]) this.#update(one);
    const stalledBefore = performance.now() - stalledMs;
    let exceeded = false;
    for (const [one, { bytes, progressAt }] of this.#waiting) {
      const above = bytes > perReader || this.#total > perProcess;
      if (this.#total > most || (above && progressAt <= stalledBefore)) this.#close(one);
      else exceeded ||= above;
    }
    if (!exceeded || this.#timer) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#relieve();
    }, stalledMs / 4).unref();
  }

  #update(reader: Reader): void {
    const before = this.#waiting.get(reader);
    const bytes = reader.closed || reader.writableLength < COUNTED_MIN ? 0 : reader.writableLength;
    this.#total += bytes - (before?.bytes ?? 0);
    if (!bytes) return void this.#waiting.delete(reader);
    const socket = socketOf(reader);
    const now = { bytes, completed: socket.bytesWritten - socket.writableLength, queued: queuedIn(socket) };
    if (before && now.completed <= before.completed && now.queued > before.queued - COUNTED_MIN) before.bytes = bytes;
    else {
      this.#waiting.delete(reader);
      this.#waiting.set(reader, { ...now, progressAt: performance.now() });
    }
    if (this.#watched.has(reader)) return;
    this.#watched.add(reader);
    reader.once('close', () => this.#update(reader));
  }

  #close(reader: Reader): void {
    socketOf(reader).destroy();
    this.#total -= this.#waiting.get(reader)?.bytes ?? 0;
    this.#waiting.delete(reader);
  }
}

/** Returns what the kernel has not taken of the present write. Node's own timeouts read it, too. */
function queuedIn(socket: Socket): number {
  return (socket as { _handle?: { writeQueueSize?: number } | null })._handle?.writeQueueSize ?? 0;
}
