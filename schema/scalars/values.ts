/** Values of any noun: times, texts, pages and JSON. */
import { GraphQLError } from 'graphql';
import { scalar, text } from './scalar.ts';

scalar(
  'DateTime',
  'A time, RFC 3339 in UTC with milliseconds.',
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
scalar(
  'Date',
  'A day, RFC 3339 full-date, such as 2026-11-21.',
  { type: 'string', format: 'date', pattern: '^2[0-9]{3}-', maxLength: 10 },
  {
    example: '2026-11-30',
    parse: (value: string) => new Date(`${value}T00:00:00Z`),
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
