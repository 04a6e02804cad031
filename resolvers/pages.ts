/** Keyset pages: a cursor is the last id of the page before, bound to the filters of its list. */
import { createHash } from 'node:crypto';
import { ApiError } from '../entities/errors.ts';

export interface Page<Row> {
  data: Row[];
  nextCursor: string | null;
}
export interface PageRequest {
  limit: number;
  cursor?: string | null | undefined;
}

const ID = /^[a-z]{2,8}_[0-9a-z]{26}$/;
const bindingOf = (filters: object) =>
  createHash('sha256').update(JSON.stringify(filters)).digest('base64url').slice(0, 8);

/**
 * The id after which a page begins, or null for the first page.
 * @throws ApiError invalid_cursor if the cursor is garbage, or of a list with other filters
 */
export function afterCursor({ cursor }: PageRequest, filters: object): string | null {
  if (!cursor) return null;
  const [id = '', binding] = Buffer.from(cursor, 'base64url').toString('latin1').split(' ');
  if (!ID.test(id) || binding !== bindingOf(filters)) throw new ApiError('invalid_cursor');
  return id;
}

/** A page of rows of which one more than the limit was asked for. */
export function pageFrom<Row extends { id: string }>(rows: Row[], { limit }: PageRequest, filters: object): Page<Row> {
  const data = rows.slice(0, limit);
  const last = rows.length > limit ? data.at(-1) : undefined;
  return { data, nextCursor: last ? Buffer.from(`${last.id} ${bindingOf(filters)}`).toString('base64url') : null };
}
