/** Streams a whole list as JSON Lines (application/x-ndjson): one entry in each line, page after page. */
import { Readable } from 'node:stream';
import Negotiator from 'negotiator';
import type { JsonSchema } from '../compile/json-schema.ts';
import type { Values } from '../compile/run.ts';

export const LINES_TYPE = 'application/x-ndjson';
const PAGE_LIMIT = 200;

export const LINES_SCHEMA: JsonSchema = {
  description: 'All entries from the cursor on, as JSON with one entry in each line.',
  type: 'string',
  maxLength: 2 ** 31 - 1,
  pattern: '^(\\{.*\\}\\n)*$',
};

/** Whether an Accept header prefers JSON Lines to JSON. */
export const wantsLines = (accept: string | undefined): boolean =>
  accept !== undefined &&
  new Negotiator({ headers: { accept } }).mediaType(['application/json', LINES_TYPE]) === LINES_TYPE;

/**
 * Reads the first page, and then streams all pages as the caller takes them.
 * @param read returns the JSON of a page
 * @param readmit checks the credential again before each later page. Its error ends the stream
 * @throws ApiError as `read` does for the first page
 */
export async function streamLines(
  values: Values,
  read: (values: Values) => Promise<string>,
  readmit: () => Promise<void>,
  gone: AbortSignal,
): Promise<Readable> {
  const pageAt = async (cursor: unknown) =>
    JSON.parse(await read({ ...values, limit: PAGE_LIMIT, ...(cursor ? { cursor } : {}) })) as {
      data: object[];
      next_cursor: string | null;
    };
  const first = await pageAt(values.cursor);
  async function* lines() {
    for (let page = first; ; page = await pageAt(page.next_cursor)) {
      yield page.data.map((entry) => `${JSON.stringify(entry)}\n`).join('');
      if (page.next_cursor === null || gone.aborted) return;
      await readmit();
    }
  }
  return Readable.from(lines());
}
