/** Values of any noun: times, texts, pages and JSON. */
import { GraphQLError } from 'graphql';
import { scalar, text } from './scalar.ts';

scalar(
  'DateTime',
  'A time, RFC 3339 in UTC.',
  { type: 'string', format: 'date-time', maxLength: 35 },
  {
    example: '2026-11-21T12:00:00.000Z',
    parse: (value: string) => {
      const time = new Date(value);
      // RFC 3339 has leap seconds, which JavaScript cannot represent.
      if (Number.isNaN(time.getTime())) throw new GraphQLError('The service does not support leap seconds.');
      return time;
    },
    serialize: (value: Date) => value.toISOString(),
  },
);
const DAY_MS = 86_400_000;
/** A day or a time. */
const DAY_OR_TIME = { type: 'string', anyOf: [{ format: 'date' }, { format: 'date-time' }], maxLength: 35 };
/** The end of the last year that RFC 3339 can write. */
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
/** The first millisecond of a day (UTC), or the time itself. */
const timeOf = (value: string): Date => {
  const time = new Date(value);
  if (Number.isNaN(time.getTime())) throw new GraphQLError('The service does not support leap seconds.');
  return time;
};
const isDay = (value: string): boolean => value.length === 10;

scalar('RangeStart', 'A time of RFC 3339, or a day (UTC) from its beginning on.', DAY_OR_TIME, {
  example: '2026-11-01T00:00:00.000Z',
  parse: timeOf,
  serialize: (value: Date) => value.toISOString(),
});
scalar('RangeEnd', 'A time of RFC 3339, or a day (UTC) to its end.', DAY_OR_TIME, {
  example: '2026-12-01T00:00:00.000Z',
  parse: (value: string) => new Date(Math.min(timeOf(value).getTime() + (isDay(value) ? DAY_MS : 0), LAST_MS)),
  serialize: (value: Date) => value.toISOString(),
});
scalar(
  'TimeOrder',
  'The order of a list: -created_at begins with the newest, created_at with the oldest.',
  {
    type: 'string',
    enum: ['-created_at', 'created_at'],
  },
  { example: '-created_at' },
);
scalar(
  'Date',
  'A day (UTC) such as 2026-11-21, or a time of it (RFC 3339).',
  { ...DAY_OR_TIME, pattern: '^2[0-9]{3}-' },
  {
    example: '2026-11-30',
    parse: (value: string) => new Date(Math.floor(timeOf(value).getTime() / DAY_MS) * DAY_MS),
    serialize: (value: Date) => value.toISOString().slice(0, 10),
  },
);
scalar(
  'EpochSeconds',
  'A time, in whole seconds since 1970 (UTC).',
  { type: 'integer', format: 'int64', minimum: 0, maximum: 253_402_300_799 },
  {
    example: 1_795_262_400,
    parse: (seconds: number) => new Date(seconds * 1000),
    serialize: (value: Date) => Math.floor(value.getTime() / 1000),
  },
);
scalar('Line', 'A line of text.', text(1, 255));
scalar('Prose', 'A text of up to 16 KiB.', text(1, 16_384));
scalar('Cursor', 'The next_cursor of the previous page.', text(1, 200), {
  example: 'eyJhIjoiMDFtN3ozZWF5bXg4cjFuNGI2dHEwYzVkMmgifQ',
});
scalar('PageLimit', 'The most entries of a page.', { type: 'integer', format: 'int32', minimum: 1, maximum: 200 });
scalar('JSON', 'Any JSON value.', {});
scalar('Empty', 'An object without members.', { type: 'object', maxProperties: 0 }, { example: {} });
