/**
 * Bounds the bytes of unfinished bodies, which wait in the process for their rest. Above a bound, the listener closes the
 * connections whose bodies began first: other bodies take a moment.
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
  /** The bytes of its unfinished bodies, the oldest first. */
  bodies: Map<IncomingMessage, number>;
}

export class ArrivingBytes {
  readonly #limits: ArrivingLimits;
  readonly #sites = new Map<string, Site>();
  #total = 0;

  constructor(limits: Partial<ArrivingLimits> = {}) {
    this.#limits = { perSite: 8 * MIB, perProcess: 64 * MIB, ...limits };
  }

  /** Counts the body of a request until it ends. Call it before a part of the body is read. May close connections. */
  watch(request: IncomingMessage, response: ServerResponse, address: string): void {
    if (!declaredBytes(request)) return;
    const name = freeSiteOf(address);
    const { push } = request;
    const note = (bytes: number) => this.#note(name, request, bytes);
    const forget = () => this.#forget(name, request);
    request.push = function (...given) {
      const [chunk] = given as [Buffer | null];
      if (chunk && !response.closed) note(chunk.length + CHUNK_BYTES);
      return push.apply(this, given);
    };
    request.once('end', forget);
    response.once('close', forget);
  }

  #note(name: string, request: IncomingMessage, bytes: number): void {
    const site = this.#sites.get(name) ?? { bytes: 0, bodies: new Map() };
    this.#sites.set(name, site);
    site.bodies.set(request, (site.bodies.get(request) ?? 0) + bytes);
    site.bytes += bytes;
    this.#total += bytes;
    while (site.bytes > this.#limits.perSite) this.#closeOldest(name, site);
    while (this.#total > this.#limits.perProcess) this.#closeOldest(...this.#largest());
  }

  #largest(): [string, Site] {
    return [...this.#sites].reduce((most, one) => (one[1].bytes > most[1].bytes ? one : most));
  }

  #closeOldest(name: string, { bodies }: Site): void {
    const [oldest] = bodies.keys();
    oldest!.socket.destroy();
    this.#forget(name, oldest!);
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
