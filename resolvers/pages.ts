/** Keyset pages: a cursor is the last id of the page before, bound to the filters of its list. */
import { createHash } from 'node:crypto';
import { type EntitySchema, type FindOptionsOrder, type FindOptionsWhere, LessThan } from 'typeorm';
import { ApiError } from '../entities/errors.ts';
import type { Context } from './context.ts';

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
const cursorOf = (id: string, filters: object) => Buffer.from(`${id} ${bindingOf(filters)}`).toString('base64url');

/**
 * The id after which a page begins, or null for the first page.
 * @throws ApiError invalid_cursor if the cursor is garbage, or of a list with other filters
 */
export function afterCursor({ cursor }: PageRequest, filters: object): string | null {
  if (!cursor) return null;
  const [id = ''] = Buffer.from(cursor, 'base64url').toString('latin1').split(' ');
  if (!ID.test(id) || cursor !== cursorOf(id, filters)) throw new ApiError('invalid_cursor');
  return id;
}

/** A page of rows of which one more than the limit was asked for. */
export function pageFrom<Row extends { id: string }>(rows: Row[], { limit }: PageRequest, filters: object): Page<Row> {
  const data = rows.slice(0, limit);
  const last = rows.length > limit ? data.at(-1) : undefined;
  return { data, nextCursor: last ? cursorOf(last.id, filters) : null };
}

/** A page of what an account has, of a table whose id sorts by creation; the operator sees that of all accounts. */
export async function pageOfAccount<Row extends { id: string; accountId: string }>(
  { db, viewer }: Context,
  entity: EntitySchema<Row>,
  request: PageRequest,
  where: FindOptionsWhere<Row> = {},
): Promise<Page<Row>> {
  const after = afterCursor(request, where);
  const rows = await db.source.manager.find(entity, {
    where: {
      ...where,
      ...(viewer?.accountId && { accountId: viewer.accountId }),
      ...(after && { id: LessThan(after) }),
    } as FindOptionsWhere<Row>,
    order: { id: 'DESC' } as FindOptionsOrder<Row>,
    take: request.limit + 1,
  });
  return pageFrom(rows, request, where);
}
