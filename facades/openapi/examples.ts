/**
 * Examples for the OpenAPI document. Requests are written down; answers are made from their schemas, with values that go
 * by the names of the fields. test/facades/openapi/examples.test.ts validates all of them.
 */

import type { JsonSchema } from '../compile/json-schema.ts';
import { PLACES } from './example-places.ts';
import { REQUESTS } from './example-requests.ts';
import { VALUES as NAMES } from './example-values.ts';

/** Shared schemas by name. */
export type Shared = ReadonlyMap<string, JsonSchema>;

/** Where a value stands: in which component or operation, and under which name. */
interface Place {
  owner: string;
  name: string;
}

/** The body of a request. */
export const requestExample = (operation: string, schema: JsonSchema, shared: Shared): unknown =>
  REQUESTS[operation] ?? exampleOf(schema, { owner: operation, name: '' }, shared, 'required');

/** The body of an answer, with all that it may have. */
export const answerExample = (operation: string, schema: JsonSchema, shared: Shared): unknown =>
  exampleOf(schema, { owner: operation, name: '' }, shared, 'all');

export const parameterExample = (operation: string, name: string, schema: JsonSchema): unknown =>
  exampleOf(schema, { owner: operation, name }, new Map(), 'all');

const VALUES: Readonly<Record<string, unknown>> = { ...NAMES, ...PLACES };
const NAMED = '#/components/schemas/';
const TIME = '2026-11-21T12:00:00.000Z';
const FORMATS: Readonly<Record<string, string>> = {
  'date-time': TIME,
  date: TIME.slice(0, 10),
  uri: 'https://www.example.com/',
  email: 'you@example.com',
};

function exampleOf(schema: JsonSchema, { owner, name }: Place, shared: Shared, members: 'all' | 'required'): unknown {
  const known = [`${owner}.${name}`, name].find((key) => Object.hasOwn(VALUES, key) && fits(VALUES[key], schema));
  if (known !== undefined) return VALUES[known];
  const { $ref, anyOf, type, enum: values, items, properties = {}, required = [] } = schema as Keywords;
  if ($ref) {
    const component = $ref.slice(NAMED.length);
    return exampleOf(shared.get(component)!, { owner: component, name: '' }, shared, members);
  }
  if (anyOf) return exampleOf(anyOf[0]!, { owner, name }, shared, members);
  if ('default' in schema) return schema.default;
  if ('const' in schema) return schema.const;
  if (values) return values[0];
  if (type === 'array') return [exampleOf(items!, { owner, name }, shared, members)];
  if (type === 'object')
    return Object.fromEntries(
      Object.entries(properties)
        .filter(([key]) => required.includes(key) || (members === 'all' && !isLeftOut(`${owner}.${key}`)))
        .map(([key, inner]) => [key, exampleOf(inner, { owner, name: key }, shared, members)]),
    );
  if (type === 'boolean') return true;
  if (type === 'integer' || type === 'number') return Math.max(1, (schema.minimum as number | undefined) ?? 1);
  return FORMATS[schema.format as string] ?? name;
}

interface Keywords {
  $ref?: string;
  anyOf?: JsonSchema[];
  type?: string;
  enum?: unknown[];
  items?: JsonSchema;
  properties?: Record<string, JsonSchema>;
  required?: string[];
}

/** What is not there when the rest is: its value is written down as undefined. */
const isLeftOut = (key: string): boolean => Object.hasOwn(VALUES, key) && VALUES[key] === undefined;

/** Whether a value may stand there, as far as its kind goes. */
function fits(value: unknown, schema: JsonSchema): boolean {
  const { anyOf, type, enum: values } = schema as Keywords;
  if (anyOf) return anyOf.some((one) => fits(value, one));
  if (values) return values.includes(value);
  if ('const' in schema) return value === schema.const;
  if (value === null) return type === 'null';
  if (Array.isArray(value)) return type === 'array';
  if (type === 'integer') return Number.isInteger(value);
  return typeof value === type && !(typeof value === 'string' && misses(value, schema));
}

function misses(value: string, { pattern, format }: JsonSchema): boolean {
  if (typeof format === 'string' && !FORM[format]?.test(value)) return true;
  return typeof pattern === 'string' && !new RegExp(pattern).test(value);
}

const FORM: Readonly<Record<string, RegExp>> = {
  'date-time': /^\d{4}-\d\d-\d\dT.*Z$/,
  date: /^\d{4}-\d\d-\d\d$/,
  uri: /^\w+:/,
  email: /@/,
};
