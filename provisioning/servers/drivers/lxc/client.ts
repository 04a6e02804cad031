/**
 * The client of the REST API of LXD and Incus. It tries the endpoints in turn, and waits for operations in the background.
 * Error messages are free text, and decide only whether the engine is reachable and has capacity.
 */
import { Readable } from 'node:stream';
import { DriverError, type DriverErrorCode } from '../driver.ts';
import { type Answer, type Endpoint, fingerprintOf, NoAnswer, send, Upload } from './endpoint.ts';

const SILENT_MS = 30_000;
/** The engine writes an upload to its disk before it answers. */
const UPLOAD_SILENT_MS = 120_000;
/** Seconds that one call waits for an operation. The client repeats the call until OPERATION_MS_MAX. */
const WAIT_SECONDS = 20;
const OPERATION_MS_MAX = 600_000;

/** An error that the engine reported. */
export class EngineError extends DriverError {
  /** The HTTP status; 0 if an operation failed in the background. */
  readonly status: number;
  constructor(status: number, text: string, what: string) {
    super(codeOf(status, text), `${what}: ${text}`);
    this.status = status;
  }
}

/** The engine does not trust us any more, starts, or is gone behind its proxy. The state is unknown, so the worker must not give up a machine. */
const AWAY: ReadonlySet<number> = new Set([401, 403, 502, 503, 504]);

/** A member that is away, or an engine that closes its database as it stops. It may still answer then. */
const GONE =
  /unable to connect|missing event connection|no available dqlite|no known leader|shutting down|database is closed|bad connection/i;

function codeOf(status: number, text: string): DriverErrorCode {
  if (/reached maximum|no space left|disk quota exceeded|not enough|exceeds? (the )?(project|available)/i.test(text))
    return 'no_capacity';
  return AWAY.has(status) || GONE.test(text) ? 'unreachable' : 'failed';
}

interface Operation {
  description: string;
  status_code: number;
  err: string;
  metadata: unknown;
}

/** An engine behind its client. */
export interface Engine {
  client: LxcClient;
  /** The operator's command, `lxc` or `incus`. */
  command: string;
  clustered: boolean;
}

export class LxcClient {
  readonly #endpoints: Endpoint[];
  readonly project: string;
  /** The SHA-256 of our certificate in hex, by which the engine knows it; undefined over a socket. */
  readonly fingerprint: string | undefined;

  constructor({ endpoints, project }: { endpoints: Endpoint[]; project: string }) {
    this.#endpoints = [...endpoints];
    this.project = project;
    this.fingerprint = endpoints.map(fingerprintOf).find(Boolean);
  }

  /**
   * @param bytesMax the most bytes of the answer
   * @throws EngineError; TooLong; DriverError unreachable
   */
  get<T>(path: string, signal: AbortSignal, project?: string, bytesMax?: number): Promise<T> {
    return this.call('GET', path, undefined, signal, project, bytesMax) as Promise<T>;
  }

  /** Like `get`. @returns undefined if it does not exist, or we may not see it */
  async find<T>(path: string, signal: AbortSignal): Promise<T | undefined> {
    return this.get<T>(path, signal).catch((error) => {
      if (error instanceof EngineError && [403, 404].includes(error.status)) return undefined;
      throw error;
    });
  }

  /**
   * Calls the engine, and waits until the operation is done.
   * @param path from /1.0 on
   * @param project default: ours
   * @param bytesMax the most bytes of the answer
   * @throws EngineError; DriverError unreachable, after which the operation may have been done
   */
  async call(
    method: string,
    path: string,
    body: object | undefined,
    signal: AbortSignal,
    project = this.project,
    bytesMax?: number,
  ): Promise<unknown> {
    const url = `${path}${path.includes('?') ? '&' : '?'}project=${encodeURIComponent(project)}`;
    const answer = await this.#ask(method, url, body, signal, SILENT_MS, bytesMax);
    return this.#resultOf(answer, `${method} ${path}`, signal);
  }

  /**
   * Sends bytes to the endpoint that answered last, and waits until the engine has used them. An error of their source ends the
   * request before its end, so the engine drops what it has of them.
   * @throws the error of the source, if it is a DriverError; EngineError; DriverError unreachable
   */
  async upload(
    path: string,
    bytes: AsyncIterable<Uint8Array>,
    headers: Record<string, string>,
    signal: AbortSignal,
  ): Promise<unknown> {
    const url = `${path}?project=${encodeURIComponent(this.project)}`;
    const stream = Readable.from(bytes, { objectMode: false });
    let fault: unknown;
    stream.on('error', (error) => (fault ??= error));
    const given = { method: 'POST', path: url, body: new Upload(stream, headers), silentMs: UPLOAD_SILENT_MS, signal };
    const answer = await send(this.#endpoints[0]!, given)
      .catch((error) => {
        if (fault instanceof DriverError) throw fault;
        if (error instanceof NoAnswer) throw new DriverError('unreachable', `POST ${path}: ${error.message}`);
        throw error;
      })
      .finally(() => stream.destroy());
    return this.#resultOf(answer, `POST ${path}`, signal);
  }

  /** @throws EngineError; DriverError unreachable */
  async #resultOf(answer: Answer, what: string, signal: AbortSignal): Promise<unknown> {
    if (answer.type === 'error') throw new EngineError(answer.error_code ?? 500, answer.error ?? '', what);
    if (answer.type !== 'async') return answer.metadata;
    // Clusters append a query, to which nothing can be added.
    return this.#wait(answer.operation!.split('?')[0]!, what, signal);
  }

  async #wait(operation: string, what: string, signal: AbortSignal): Promise<unknown> {
    for (const end = Date.now() + OPERATION_MS_MAX; Date.now() < end; ) {
      const path = `${operation}/wait?timeout=${WAIT_SECONDS}&project=${encodeURIComponent(this.project)}`;
      const answer = await this.#ask('GET', path, undefined, signal, SILENT_MS + WAIT_SECONDS * 1000);
      // The engine forgets finished operations after seconds. Then the caller must observe the instance.
      if (answer.type === 'error' && answer.error_code === 404)
        throw new DriverError('unreachable', `${what}: the engine has forgotten the operation.`);
      if (answer.type === 'error') throw new EngineError(answer.error_code ?? 500, answer.error ?? '', what);
      const { status_code: status, err, metadata } = answer.metadata as Operation;
      if (status === 200) return metadata;
      if (status >= 400) throw new EngineError(0, err, what);
    }
    throw new DriverError('unreachable', `${what}: the operation is not done after ${OPERATION_MS_MAX / 1000} s.`);
  }

  /** Asks one endpoint after the other, and prefers the last one that answered. Each member forwards to the right one. */
  async #ask(
    method: string,
    path: string,
    body: object | undefined,
    signal: AbortSignal,
    silentMs: number,
    bytesMax?: number,
  ): Promise<Answer> {
    let last: unknown;
    for (const endpoint of [...this.#endpoints]) {
      try {
        const answer = await send(endpoint, { method, path, body, silentMs, bytesMax, signal });
        this.#prefer(endpoint);
        return answer;
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
        last = error;
        if (error.sent && method !== 'GET') break; // It may have been done.
      }
    }
    throw new DriverError('unreachable', `${method} ${path}: ${last instanceof Error ? last.message : last}`);
  }

  #prefer(endpoint: Endpoint) {
    if (this.#endpoints[0] === endpoint) return;
    this.#endpoints.splice(this.#endpoints.indexOf(endpoint), 1);
    this.#endpoints.unshift(endpoint);
  }
}

export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  await new Promise<void>((resolve) => setTimeout(resolve, ms));
  signal.throwIfAborted();
}
