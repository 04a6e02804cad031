import { GraphQLError } from 'graphql';
import { scalar } from './scalar.ts';

scalar(
  'DateTime',
  'A time, RFC 3339 in UTC with milliseconds.',
  { type: 'string', format: 'date-time', maxLength: 35 },
  {
    parse: (value: string) => {
      const time = new Date(value);
      // RFC 3339 has leap seconds, which no clock of ours can tell.
      if (Number.isNaN(time.getTime())) throw new GraphQLError('A time with a leap second cannot be told.');
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
    parse: (value: string) => new Date(`${value}T00:00:00Z`),
    serialize: (value: Date) => value.toISOString().slice(0, 10),
  },
);
scalar(
  'EpochSeconds',
  'A time, in whole seconds since 1970 (UTC).',
  { type: 'integer', format: 'int64', minimum: 0, maximum: 253_402_300_799 },
  {
    parse: (seconds: number) => new Date(seconds * 1000),
    serialize: (value: Date) => Math.floor(value.getTime() / 1000),
  },
);
