/**
 * Says what is wrong with an input, field by field. It runs only after GraphQL has refused: the JSON Schema that the
 * outside sees is compiled then, and kept. No message repeats a value, which may be a secret.
 */
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { ApiError, ERRORS, type ErrorCode, type FieldError } from '../../schema/index.ts';
import { isRecord } from './inputs.ts';
import type { JsonSchema } from './json-schema.ts';
import { suggestion } from './names.ts';

const ERRORS_MAX = 50;

/** The schema is compiled when something is checked for the first time. */
export function checker(schema: JsonSchema, root = ''): (value: unknown) => FieldError[] {
  let validate: ValidateFunction | undefined;
  return (value) => {
    validate ??= ajv().compile(schema);
    if (validate(asGraphqlReads(schema, value))) return [];
    const found = validate.errors!.filter(isOwn).slice(0, ERRORS_MAX);
    const errors = found.map((error) => fieldError(error, root));
    return [...new Map(errors.map((error) => [`${error.field} ${error.code}`, error])).values()];
  };
}

let shared: Ajv2020 | undefined;
function ajv(): Ajv2020 {
  if (shared) return shared;
  shared = new Ajv2020({ strict: false, allErrors: true, verbose: true, logger: false });
  addFormats.default(shared);
  // Said by type, minimum and maximum already.
  shared.addFormat('int32', true).addFormat('int64', true);
  return shared;
}

/** GraphQL takes null for absent, and one value for a list of it. */
function asGraphqlReads(schema: JsonSchema, value: unknown): unknown {
  const { type, items, properties, required } = schema as {
    type?: string;
    items?: JsonSchema;
    properties?: Record<string, JsonSchema>;
    required?: string[];
  };
  if (type === 'array' && items)
    return (Array.isArray(value) ? value : [value]).map((item) => asGraphqlReads(items, item));
  if (!properties || !isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, inner]) => inner !== null || !Object.hasOwn(properties, key) || required?.includes(key))
      .map(([key, inner]) => [key, Object.hasOwn(properties, key) ? asGraphqlReads(properties[key]!, inner) : inner]),
  );
}

/** Errors of branches and of inner schemas of names are told by the keyword around them. */
const isOwn = ({ schemaPath, keyword }: ErrorObject): boolean =>
  !/\/(anyOf|oneOf)\/\d+\//.test(schemaPath) &&
  (keyword === 'propertyNames' || !schemaPath.includes('/propertyNames/'));

/** What a keyword means to the caller, and the parameter of Ajv that is the limit. */
const KEYWORDS: Readonly<Record<string, readonly [code: string, says: string]>> = {
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

function fieldError({ keyword, instancePath, params, parentSchema }: ErrorObject, root: string): FieldError {
  const steps = instancePath
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  const at = (...more: string[]) => [...(root ? [root] : []), ...steps, ...more].join('.').slice(0, 200);
  const schema = parentSchema as JsonSchema;
  if (keyword === 'required') return say(at(params.missingProperty), 'required', 'is required');
  if (keyword === 'additionalProperties') return unknownField(at, params.additionalProperty, schema);
  if (keyword === 'propertyNames') return say(at(params.propertyName), 'wrong_format', 'is no allowed name');
  const [code, says] = KEYWORDS[keyword] ?? ['wrong_format', 'has the wrong form'];
  const limit = typeof params.limit === 'number' ? params.limit : undefined;
  const own = (schema['x-error'] as Record<string, string> | undefined)?.[keyword];
  return say(at(), own ?? code, sentence(keyword, says, schema, limit), limit);
}

function sentence(keyword: string, says: string, schema: JsonSchema, limit: number | undefined): string {
  const { type, description } = schema as { type?: string; description?: string };
  if (keyword === 'type') return `must be ${/^[aeio]/.test(type ?? '') ? 'an' : 'a'} ${type}`;
  if (keyword === 'enum') return says.replace('{}', (schema.enum as string[]).join(', '));
  if (limit !== undefined) return says.replace('{}', String(limit));
  return description ? `${says}: ${description.replace(/\.$/, '')}` : says;
}

function unknownField(at: (name: string) => string, name: string, { properties }: JsonSchema): FieldError {
  const field = at(name);
  const message = `There is no field ${field}.${suggestion(name, Object.keys(properties as object))}`;
  return { field, code: 'unknown_field', message };
}

const say = (field: string, code: string, what: string, limit?: number): FieldError => ({
  field,
  code,
  message: `${field || 'The body'} ${what}.`,
  ...(limit !== undefined && { limit }),
});

/**
 * The refusal of an input: the code that all its errors share if it is one of the catalogue (`unknown_field`, or the
 * `x-error` of a scalar), else the general one.
 */
export function refusal(errors: FieldError[], general: ErrorCode = 'validation_failed'): ApiError {
  const codes = [...new Set(errors.map(({ code }) => code))];
  const shared = codes.length === 1 && Object.hasOwn(ERRORS, codes[0]!) ? (codes[0] as ErrorCode) : 'validation_failed';
  const code = general === 'validation_failed' ? shared : general;
  const more = errors.length > 1 ? ` (${errors.length - 1} more)` : '';
  return new ApiError(code, errors.length ? `${errors[0]!.message}${more}` : undefined, { errors });
}
