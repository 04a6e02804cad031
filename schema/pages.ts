/** Pages of lists: newest first, by keyset and never by offset. */
import type { ObjectRef } from '@pothos/core';
import type { Page } from '../resolvers/pages.ts';
import { builder } from './builder.ts';

type SchemaTypesOf = (typeof builder)['$inferSchemaTypes'];

/** The page type of a list. */
export function pageOf<Row>(name: string, item: ObjectRef<SchemaTypesOf, Row>) {
  return builder.objectRef<Page<Row>>(`${name}Page`).implement({
    description: `A page of a list of ${name}.`,
    fields: (t) => ({
      data: t.field({ type: [item], resolve: (page) => page.data as never }),
      nextCursor: t.expose('nextCursor', {
        type: 'String',
        nullable: true,
        description: 'Pass it as cursor to read the next page; null on the last.',
      }),
      hasMore: t.boolean({ description: 'Whether there is a next page.', resolve: (page) => page.nextCursor !== null }),
    }),
  });
}

/** The arguments that every list takes. */
export const pageArgs = () =>
  builder.args((t) => ({
    limit: t.field({
      type: 'PageLimit',
      required: true,
      defaultValue: 50,
      description: 'How many entries the page has, 1 to 200.',
    }),
    cursor: t.field({ type: 'Cursor', description: 'The next_cursor of the page before.' }),
  }));

/** A list that is always whole, in the form of a page. */
export const listOf = <Row>(data: readonly Row[]): Page<Row> => ({ data: [...data], nextCursor: null });
