/** Webhooks. */
import { line, scalar, text } from './scalar.ts';

scalar(
  'EventFilter',
  'Event types: a list, or text with commas.',
  { anyOf: [text(1, 2048), { type: 'array', minItems: 1, maxItems: 50, items: text(1, 64) }] },
  {
    parse: (value: string | string[]) =>
      typeof value === 'string' ? value.split(',').map((name) => name.trim()) : value,
    serialize: (value: string[]) => value.join(','),
  },
);
scalar(
  'WebhookDescription',
  'A description of up to 255 characters, without control characters and marks of direction.',
  line(1, 255),
);
scalar(
  'WebhookUrl',
  'An https URL of up to 2048 characters.',
  text(1, 2048, { 'x-error': { minLength: 'invalid_url', maxLength: 'invalid_url' } }),
  { example: 'https://hooks.example.com/freehold' },
);
