/** Pages of lists, newest first. A cursor names the last row of a page. */
import type { ObjectRef } from '@pothos/core';
import type { Page } from '../resolvers/pages.ts';
import { builder, objectType } from './builder.ts';

type SchemaTypesOf = (typeof builder)['$inferSchemaTypes'];

/** Defines the page type of a list. */
export function pageOf<Row>(name: string, item: ObjectRef<SchemaTypesOf, Row>) {
  return objectType<Page<Row>>(`${name}Page`, `A page of a list of ${name}.`, (t) => ({
    data: t.field({ type: [item], description: 'The entries of the page.', resolve: (page) => page.data as never }),
    nextCursor: t.expose('nextCursor', {
      type: 'String',
      nullable: true,
      description: 'Send it as cursor to read the next page; null on the last page.',
    }),
    hasMore: t.boolean({ description: 'Whether there is a next page.', resolve: (page) => page.nextCursor !== null }),
  }));
}

/** The arguments of every list. */
export const pageArgs = () =>
  builder.args((t) => ({
    limit: t.field({
      type: 'PageLimit',
      required: true,
      defaultValue: 50,
      description: 'Entries of a page.',
    }),
    cursor: t.field({ type: 'Cursor', description: 'The previous next_cursor.' }),
  }));

/** The arguments of a list by the times of its entries. */
export const madeArgs = () =>
  builder.args((t) => ({
    createdSince: t.field({ type: 'RangeStart', description: 'Only those of this day or time, or later.' }),
    createdUntil: t.field({ type: 'RangeEnd', description: 'Only those before this time, or to this day.' }),
    sort: t.field({ type: 'TimeOrder', description: 'Default: the newest first.' }),
  }));

/** Returns a complete list in the form of a page. */
export const listOf = <Row>(data: readonly Row[]): Page<Row> => ({ data: [...data], nextCursor: null });
