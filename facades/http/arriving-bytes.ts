/**
 * Bounds the bytes of bodies that wait in the process: for their rest, or to be read. Above a bound, the listener closes the
 * connection with the largest one. So many large bodies close none of usual size.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { freeSiteOf } from '../../schema/index.ts';
import { CHUNK_BYTES, declaredBytes } from './request-bodies.ts';

const MIB = 1024 * 1024;

export interface ArrivingLimits {
  /** The most bytes of an IPv4 address, of an IPv6 /48, or of all circuits of an onion service. */
  perSite: number;
  perProcess: number;
}

interface Site {
  bytes: number;
  /** The bytes of its bodies, the oldest first. */
  bodies: Map<IncomingMessage, number>;
}

export class ArrivingBytes {
  readonly #limits: ArrivingLimits;
  readonly #sites = new Map<string, Site>();
  #total = 0;

  constructor(limits: Partial<ArrivingLimits> = {}) {
    this.#limits = { perSite: 8 * MIB, perProcess: 64 * MIB, ...limits };
  }

  /** Counts the body of a request until `forget`. Call it before a part of the body is read. May close connections. */
  watch(request: IncomingMessage, response: ServerResponse, address: string): void {
    if (!declaredBytes(request)) return;
    const name = freeSiteOf(address);
    const { push } = request;
    const note = (bytes: number) => this.#note(name, request, bytes);
    request.push = function (...given) {
      const [chunk] = given as [Buffer | null];
      if (chunk && !response.closed) note(chunk.length + CHUNK_BYTES);
      return push.apply(this, given);
    };
    response.once('close', () => this.#forget(name, request));
  }

  /**
   * Ends the count of a body that no longer waits. The end of the response ends it, too. Nothing reads the body of a GET, so that
   * one counts until then.
   */
  forget(request: IncomingMessage, address: string): void {
    if (declaredBytes(request) && !request.readableLength) this.#forget(freeSiteOf(address), request);
  }

  #note(name: string, request: IncomingMessage, bytes: number): void {
    const site = this.#sites.get(name) ?? { bytes: 0, bodies: new Map() };
    this.#sites.set(name, site);
    site.bodies.set(request, (site.bodies.get(request) ?? 0) + bytes);
    site.bytes += bytes;
    this.#total += bytes;
    while (site.bytes > this.#limits.perSite) this.#closeLargest(name, site);
    while (this.#total > this.#limits.perProcess) this.#closeLargest(...this.#largest());
  }

  #largest(): [string, Site] {
    return [...this.#sites].reduce((most, one) => (one[1].bytes > most[1].bytes ? one : most));
  }

  /** Among bodies of the same size, the newest: the others are nearer to their turns. */
  #closeLargest(name: string, { bodies }: Site): void {
    const [largest] = [...bodies].reduce((most, one) => (one[1] >= most[1] ? one : most));
    largest.socket.destroy();
    this.#forget(name, largest);
  }

  #forget(name: string, request: IncomingMessage): void {
    const site = this.#sites.get(name);
    const bytes = site?.bodies.get(request);
    if (!site || bytes === undefined) return;
    site.bodies.delete(request);
    site.bytes -= bytes;
    this.#total -= bytes;
    if (!site.bodies.size) this.#sites.delete(name);
  }
}
