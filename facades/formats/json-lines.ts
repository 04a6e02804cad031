/** Streams a whole list as JSON Lines (application/x-ndjson): one entry in each line, page after page. */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyRequest } from 'fastify';
import { Ceiling, groupOf } from '../../schema/index.ts';
import type { JsonSchema } from '../compile/json-schema.ts';
import type { Values } from '../compile/run.ts';
import { refuseDenied } from '../rate-limit/rate-headers.ts';
import type { RateLimits } from '../rate-limit/rate-limit.ts';
import { preferredType } from './accept.ts';

export const LINES_TYPE = 'application/x-ndjson';
const PAGE_LIMIT = 200;
/** The most streams of an account at once. */
const STREAMS_MAX = 2;
/** Longer than the wait for a full minute, and shorter than the timeouts of clients. */
const WAIT_MAX_MS = 90_000;
const WAIT_MIN_MS = 100;
/** The time between two looks at the credential of a caller who does not read on. */
const READMIT_MS = 5_000;

interface Page {
  data: object[];
  next_cursor: string | null;
}

export const LINES_SCHEMA: JsonSchema = {
  description: 'All entries from the cursor on, as JSON with one entry in each line.',
  type: 'string',
  maxLength: 2 ** 31 - 1,
  pattern: '^(\\{.*\\}\\n)*$',
};

/** Whether an Accept header prefers JSON Lines to JSON. */
export const wantsLines = (accept: string | undefined): boolean => preferredType(accept, LINES_TYPE) !== undefined;

export interface LinesOptions {
  /** Checks the credential again. Its error ends the stream. */
  readmit: (request: FastifyRequest) => Promise<void>;
  /** Absent: pages do not count. */
  rateLimits?: RateLimits | undefined;
  /** Called after each written page. */
  onWrite: (response: ServerResponse) => void;
}
/** How the entries of a list become text. */
export interface ListFormat {
  head: string;
  lineOf: (entry: object) => string;
}
export const LINES: ListFormat = { head: '', lineOf: (entry) => `${JSON.stringify(entry)}\n` };

/** Reads the JSON of a page. @throws ApiError */
type ReadPage = (values: Values) => Promise<string>;

/**
 * Returns a function that reads the first page, and makes the stream of all pages. The stream reads a page when the caller
 * has taken the one before. Each page counts as a call of the caller, and waits for its turn.
 */
export function linesStreamer({ readmit, rateLimits, onWrite }: LinesOptions) {
  const streams = new Ceiling(STREAMS_MAX, `You have ${STREAMS_MAX} such lists under way. Wait until one ends.`, 5);
  return async (
    request: FastifyRequest,
    response: ServerResponse,
    values: Values,
    read: ReadPage,
    /** Ends a wait, and the stream with it. */
    signal: AbortSignal,
    { head, lineOf }: ListFormat,
  ): Promise<Readable> => {
    const leave = streams.enter(groupOf(request.viewer, request.ip));
    if (response.closed) leave();
    else response.once('close', leave);
    let lines = '';
    const load = async (cursor: unknown): Promise<string | null> => {
      const page = JSON.parse(await read({ ...values, limit: PAGE_LIMIT, ...(cursor ? { cursor } : {}) })) as Page;
      lines = page.data.map(lineOf).join('');
      return page.next_cursor;
    };
    let cursor = await load(values.cursor);
    lines = head + lines;
    async function* pages() {
      for (;;) {
        yield lines;
        lines = '';
        onWrite(response);
        if (cursor === null || request.method === 'HEAD' || response.closed) return;
        while (response.writableNeedDrain) {
          await drainOf(response, signal);
          await readmit(request);
        }
        if (rateLimits) await turnOf(request, rateLimits, signal);
        await readmit(request);
        cursor = await load(cursor);
      }
    }
    return Readable.from(pages());
  };
}

/** Waits until the caller has read on, for some seconds at most. */
async function drainOf(response: ServerResponse, signal: AbortSignal): Promise<void> {
  const within = AbortSignal.any([signal, AbortSignal.timeout(READMIT_MS)]);
  await once(response, 'drain', { signal: within }).catch((error) => {
    if (signal.aborted) throw error;
  });
}

/** Counts a call, and waits while a limit refuses it. @throws ApiError rate_limited for a longer wait */
async function turnOf({ viewer, ip }: FastifyRequest, rateLimits: RateLimits, signal: AbortSignal): Promise<void> {
  for (;;) {
    const standing = await rateLimits.take(viewer, ip);
    if (standing.deniedUntil === undefined) return;
    const wait = standing.deniedUntil - Date.now();
    if (wait > WAIT_MAX_MS) refuseDenied(standing);
    await sleep(Math.max(wait, WAIT_MIN_MS), undefined, { signal });
  }
}
