/** Keyset pages. A cursor holds the last id of a page, and a digest of the list's filters. */
import { createHash } from 'node:crypto';
import { type EntitySchema, type FindOptionsOrder, type FindOptionsWhere, LessThan, MoreThan } from 'typeorm';
import { ApiError } from '../entities/errors.ts';
import type { Context } from './context.ts';

export interface Page<Row> {
  data: Row[];
  nextCursor: string | null;
}
export interface PageRequest {
  limit: number;
  cursor?: string | null | undefined;
  /** Whether the oldest rows come first. */
  ascending?: boolean;
  /** The most bytes of the rows of a page, as JSON. Default: `PAGE_BYTES_MAX`. */
  bytesMax?: number;
}

const ID = /^[a-z]{2,8}_[0-9a-z]{26}$/;
/** The filters with the order, so that a cursor of one order does not fit the other. */
const ordered = ({ ascending }: PageRequest, filters: object): object =>
  ascending ? { ...filters, ascending } : filters;
const bindingOf = (filters: object) =>
  createHash('sha256').update(JSON.stringify(filters)).digest('base64url').slice(0, 8);
const cursorOf = (id: string, filters: object) => Buffer.from(`${id} ${bindingOf(filters)}`).toString('base64url');

/**
 * Returns the id after which a page begins, or null for the first page.
 * @throws ApiError invalid_cursor for a malformed cursor, and for a cursor of other filters
 */
export function afterCursor(request: PageRequest, filters: object): string | null {
  const { cursor } = request;
  if (!cursor) return null;
  const [id = ''] = Buffer.from(cursor, 'base64url').toString('latin1').split(' ');
  if (!ID.test(id) || cursor !== cursorOf(id, ordered(request, filters))) throw new ApiError('invalid_cursor');
  return id;
}

/** The bytes of the rows of a page, as JSON. MCP sends them twice, and escapes one of the copies. */
const PAGE_BYTES_MAX = 512 * 1024;

/**
 * Makes a page of the rows, which are one more than the limit if there is a next page. A page of large rows ends early,
 * but has at least one row.
 * @param sizeOf returns the bytes of a row, if they are known already. To count them takes as long as the rest of a request
 */
export function pageFrom<Row extends { id: string }>(
  rows: Row[],
  request: PageRequest,
  filters: object,
  sizeOf: (row: Row) => number = bytesOf,
): Page<Row> {
  const { limit, bytesMax = PAGE_BYTES_MAX } = request;
  let bytes = 0;
  const tooLarge = rows.findIndex((row) => {
    bytes += sizeOf(row);
    return bytes > bytesMax;
  });
  const data = rows.slice(0, tooLarge < 0 ? limit : Math.min(limit, Math.max(1, tooLarge)));
  const last = rows.length > data.length ? data.at(-1) : undefined;
  return { data, nextCursor: last ? cursorOf(last.id, ordered(request, filters)) : null };
}

const asJson = (_: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value);
/** The bytes of a value as JSON. */
export const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value, asJson));

/** The times between which the rows of a list were made, and their order. */
export interface Made {
  createdSince?: Date | null | undefined;
  /** Exclusive. */
  createdUntil?: Date | null | undefined;
  sort?: '-created_at' | 'created_at' | null | undefined;
}
/** @throws ApiError invalid_query if the range ends before it begins */
export function requireRange({ createdSince, createdUntil }: Made): void {
  if (!createdSince || !createdUntil || createdSince < createdUntil) return;
  const message = 'created_until must be later than created_since.';
  throw new ApiError('invalid_query', message, {
    errors: [{ field: 'created_until', code: 'out_of_range', message }],
  });
}

/** Reads a page of the caller's rows, newest first. The operator reads the rows of all accounts. */
export async function pageOfAccount<Row extends { id: string; accountId: string }>(
  { db, viewer }: Context,
  entity: EntitySchema<Row>,
  request: PageRequest,
  where: FindOptionsWhere<Row> = {},
): Promise<Page<Row>> {
  const after = afterCursor(request, where);
  const rows = await db.manager.find(entity, {
    where: {
      ...where,
      ...(viewer?.accountId && { accountId: viewer.accountId }),
      ...(after && { id: request.ascending ? MoreThan(after) : LessThan(after) }),
    } as FindOptionsWhere<Row>,
    order: { id: request.ascending ? 'ASC' : 'DESC' } as FindOptionsOrder<Row>,
    take: request.limit + 1,
  });
  return pageFrom(rows, request, where);
}
