/**
 * Reports the errors of an input, field by field. It runs only after GraphQL has refused the input, and validates it against
 * the public JSON Schema. A message repeats the value, unless the field may have a secret.
 */
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import {
  ApiError,
  ERRORS,
  type ErrorCode,
  EXPECTED,
  type FieldError,
  shortened,
  withoutSecrets,
} from '../../schema/index.ts';
import { isRecord } from './inputs.ts';
import type { JsonSchema } from './json-schema.ts';
import { meant } from './synonyms.ts';

/** The most errors of an answer. */
export const ERRORS_MAX = 50;

/** A function that returns the errors of a value. Its first call compiles the schema. */
export function checker(schema: JsonSchema, root = ''): (value: unknown) => FieldError[] {
  let validate: ValidateFunction | undefined;
  return (value) => {
    validate ??= ajv().compile(schema);
    if (validate(new Reading().of(schema, value))) return [];
    const reported = validate.errors!.filter(isOutermost).slice(0, ERRORS_MAX);
    const errors = reported.map((error) => fieldError(error, root)).sort(unknownFirst);
    return [...new Map(errors.map((error) => [`${error.field} ${error.code}`, error])).values()];
  };
}

let instance: Ajv2020 | undefined;
function ajv(): Ajv2020 {
  if (instance) return instance;
  instance = new Ajv2020({ strict: false, allErrors: true, verbose: true, logger: false });
  addFormats.default(instance);
  // The keywords type, minimum and maximum already check these formats.
  instance.addFormat('int32', true).addFormat('int64', true);
  return instance;
}

/** Limits of a schema, as far as a reading needs them. */
interface Shape {
  anyOf?: JsonSchema[];
  type?: string;
  items?: JsonSchema;
  maxItems?: number;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  maxProperties?: number;
}

/**
 * Returns the part of an input that its errors need. So Ajv makes few errors, however many members the input has. Coerces
 * as GraphQL does: null is absent, and a single value is a list of one.
 */
class Reading {
  /** How many more unknown members the part may have. */
  #unknown = ERRORS_MAX;

  of(schema: JsonSchema, value: unknown): unknown {
    const { anyOf, type, items, maxItems, properties, required, maxProperties } = schema as Shape;
    const branch = anyOf?.find((one) => one.type === (Array.isArray(value) ? 'array' : typeof value));
    if (branch) return this.of(branch, value);
    if (type === 'array' && items) {
      // One item too many is an error as much as a thousand.
      const few = Array.isArray(value) ? value.slice(0, (maxItems ?? ERRORS_MAX) + 1) : [value];
      return few.map((item) => this.of(items, item));
    }
    if (!isRecord(value)) return value;
    if (properties) return this.#members(properties, required, value);
    return maxProperties === undefined ? value : firstMembers(value, maxProperties + 1);
  }

  #members(properties: Record<string, JsonSchema>, required: string[] = [], value: Record<string, unknown>) {
    const members: Record<string, unknown> = {};
    for (const key in value) {
      if (this.#unknown === 0) break;
      if (Object.hasOwn(properties, key)) continue;
      Object.defineProperty(members, key, { value: null, enumerable: true });
      this.#unknown--;
    }
    for (const [key, schema] of Object.entries(properties))
      if (Object.hasOwn(value, key) && (value[key] !== null || required.includes(key)))
        members[key] = this.of(schema, value[key]);
    return members;
  }
}

/** Returns an object with the first members of another. */
function firstMembers(value: Record<string, unknown>, most: number): Record<string, unknown> {
  const members: [string, unknown][] = [];
  for (const key in value) {
    if (members.length === most) break;
    members.push([key, value[key]]);
  }
  return Object.fromEntries(members);
}

/** Excludes errors inside `anyOf`, `oneOf` and `propertyNames`, because Ajv also reports the keyword itself. */
const isOutermost = ({ schemaPath, keyword }: ErrorObject): boolean =>
  !/\/(anyOf|oneOf)\/\d+\//.test(schemaPath) &&
  (keyword === 'propertyNames' || !schemaPath.includes('/propertyNames/'));

/** The error code and the message of each JSON Schema keyword. `{}` is the limit. */
const KEYWORDS: Readonly<Record<string, readonly [code: string, message: string]>> = {
  type: ['wrong_type', 'must be of another type'],
  minimum: ['too_low', 'must be at least {}'],
  exclusiveMinimum: ['too_low', 'must be more than {}'],
  maximum: ['too_high', 'must be at most {}'],
  exclusiveMaximum: ['too_high', 'must be less than {}'],
  minLength: ['too_short', 'must have at least {} characters'],
  maxLength: ['too_long', 'must have at most {} characters'],
  minItems: ['too_few', 'must have at least {} entries'],
  maxItems: ['too_many', 'must have at most {} entries'],
  minProperties: ['too_few', 'must have at least {} entries'],
  maxProperties: ['too_many', 'must have at most {} entries'],
  uniqueItems: ['not_unique', 'must not have an entry twice'],
  enum: ['not_allowed', 'must be one of {}'],
  const: ['not_allowed', 'has a value that is not allowed'],
};

function fieldError({ keyword, instancePath, params, parentSchema, data }: ErrorObject, root: string): FieldError {
  const steps = instancePath
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  const pathTo = (...more: string[]) =>
    withoutSecrets([...(root ? [root] : []), ...steps, ...more].join('.').slice(0, 200));
  const schema = parentSchema as JsonSchema;
  if (keyword === 'required') return errorOf(pathTo(params.missingProperty), 'required', 'is required');
  if (keyword === 'additionalProperties')
    return unknownField(pathTo(params.additionalProperty), params.additionalProperty, schema);
  if (keyword === 'propertyNames')
    return errorOf(pathTo(params.propertyName), 'wrong_format', `is not an allowed name${expectation(schema)}`);
  const [code, message] = KEYWORDS[keyword] ?? ['wrong_format', `has the wrong format${expectation(schema)}`];
  const limit = typeof params.limit === 'number' ? params.limit : undefined;
  const scalarsCode = (schema['x-error'] as Record<string, string> | undefined)?.[keyword];
  const sent = sentOf(pathTo(), data);
  return errorOf(pathTo(), scalarsCode ?? code, sent + completed(message, keyword, schema, limit), limit);
}

/** An unknown field is often the reason why another one is missing. */
const unknownFirst = (one: FieldError, other: FieldError): number =>
  Number(other.code === 'unknown_field') - Number(one.code === 'unknown_field');

const MAY_BE_SECRET = /password|secret|token|key|totp|recovery|user_data|proof|payment|signature|(^|\.)code$/i;

/** The refused value and a space; empty for values with parts, and for secrets. */
function sentOf(field: string, value: unknown): string {
  if (!['string', 'number', 'boolean'].includes(typeof value) || !field || MAY_BE_SECRET.test(field)) return '';
  return typeof value === 'string' ? `"${shortened(value)}" ` : `${value} `;
}

/** The expected form in the words of the scalar. The description of the field says only its purpose. */
function expectation(schema: JsonSchema): string {
  const { [EXPECTED]: expected = schema.description } = schema as { [EXPECTED]?: string };
  return expected ? `. Expected: ${String(expected).replace(/\.$/, '')}` : '';
}

/** The message with its limit or its values. */
function completed(message: string, keyword: string, schema: JsonSchema, limit: number | undefined): string {
  const { type } = schema as { type?: string };
  if (keyword === 'type')
    return `must be ${/^[aeio]/.test(type ?? '') ? 'an' : 'a'} ${type}${EXPECTED in schema ? expectation(schema) : ''}`;
  if (keyword === 'enum') return message.replace('{}', (schema.enum as string[]).join(', '));
  return message.replace('{}', String(limit));
}

const unknownField = (field: string, name: string, { properties }: JsonSchema): FieldError => ({
  field,
  code: 'unknown_field',
  message: `There is no field ${field}.${meant(name, Object.keys(properties as object))}`,
});

const errorOf = (field: string, code: string, predicate: string, limit?: number): FieldError => ({
  field,
  code,
  message: `${field || 'The body'} ${predicate}.`,
  ...(limit !== undefined && { limit }),
});

/**
 * The error for a refused input. A code of the catalogue that all field errors share replaces `validation_failed`. Examples
 * are `unknown_field` and the `x-error` of a scalar.
 */
export function refusal(errors: FieldError[], general: ErrorCode = 'validation_failed'): ApiError {
  const codes = [...new Set(errors.map(({ code }) => code))];
  const shared = codes.length === 1 && Object.hasOwn(ERRORS, codes[0]!) ? (codes[0] as ErrorCode) : 'validation_failed';
  const code = general === 'validation_failed' ? shared : general;
  const more = errors.length > 1 ? ` (${errors.length - 1} more)` : '';
  return new ApiError(code, errors.length ? `${errors[0]!.message}${more}` : undefined, { errors });
}
