/**
 * Every scalar is a JSON Schema. It checks inputs, and it describes them in OpenAPI and MCP. `x-error` names the code of
 * the catalogue for a keyword that fails.
 */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { GraphQLError } from 'graphql';
import { builder } from '../builder.ts';

/** The words of a scalar for an error. A symbol, so that no document shows it. */
export const EXPECTED = Symbol('expected');

type Name = Exclude<
  keyof (typeof builder)['$inferSchemaTypes']['Scalars'],
  'String' | 'Int' | 'Float' | 'Boolean' | 'ID'
>;
interface Options {
  /** A value on the wire, for the OpenAPI document. Scalars for the operator need none. */
  example?: unknown;
  parse?: (value: never) => unknown;
  serialize?: (value: never) => unknown;
}

/** A test checks the schemas themselves, because that would take longer than the rest of the compilation. */
const ajv = new Ajv2020({ strict: false, meta: false, validateSchema: false });
addFormats.default(ajv);

/** Whether a value has text that PostgreSQL or JSON cannot hold: U+0000 or lone surrogates. */
export const malformed = (value: unknown): boolean => {
  if (typeof value === 'string') return !value.isWellFormed() || value.includes('\0');
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([key, inner]) => malformed(key) || malformed(inner));
};

export function scalar(name: Name, description: string, jsonSchema: object, options: Options = {}) {
  const { example, parse, serialize } = options;
  const expected = typeof example === 'string' ? `${description} Example: ${example}` : description;
  let valid: ValidateFunction | undefined;
  builder.scalarType(name, {
    description,
    extensions: { jsonSchema: { ...jsonSchema, description, [EXPECTED]: expected }, example },
    serialize: (serialize ?? ((value: unknown) => value)) as never,
    parseValue: (value) => {
      // Compiling all scalars would take a quarter of the start.
      valid ??= ajv.compile(jsonSchema);
      if (!valid(value)) {
        const reason = ajv.errorsText(valid.errors, { dataVar: 'it' });
        throw new GraphQLError(`${name}: ${reason}. Expected: ${expected}`);
      }
      if (malformed(value)) throw new GraphQLError(`${name} has a character that the service cannot store.`);
      return (parse ? parse(value as never) : value) as never;
    },
  });
}

/** Returns the schema of a text with a length in characters (code points). */
export const text = (minLength: number, maxLength: number, more: object = {}) => ({
  type: 'string',
  minLength,
  maxLength,
  ...more,
});

/** Returns the schema of a line for people: without controls of terminals, ends of lines and marks of direction. */
export const line = (minLength: number, maxLength: number) =>
  text(minLength, maxLength, {
    pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]*$',
  });
