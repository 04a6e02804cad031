/** The tools in tools/list. Models read the list at every step, so it has only the texts that a model needs. */
import type { Tool } from '@modelcontextprotocol/server';
import { isRecord } from '../compile/inputs.ts';
import { inputSchema, type JsonSchema, parameterSchema } from '../compile/json-schema.ts';
import type { Operation } from '../compile/operation.ts';
import type { Values } from '../compile/run.ts';

/** Agents read the whole page, so its default is smaller than in REST. */
const PAGE_LIMIT = 20;

const ACCESS_TOKEN = { type: 'string' };
const IDEMPOTENCY_KEY = {
  type: 'string',
  description: 'A new one for each new call. A call repeated with the same key has no further effect.',
};

/** The arguments: the parameters and the fields of the input object. */
export function argumentsSchema({ parameters, input }: Operation): JsonSchema {
  const body = input ? inputSchema(input.type) : {};
  const required = [
    ...parameters.filter((parameter) => parameter.required).map(({ name }) => name),
    ...((body.required as string[] | undefined) ?? []),
  ];
  return {
    type: 'object',
    properties: {
      ...Object.fromEntries(parameters.map((parameter) => [parameter.name, parameterSchema(parameter)])),
      ...(body.properties as Values | undefined),
    },
    ...(required.length && { required }),
    additionalProperties: false,
  };
}

/** The defaults of parameters that differ from REST, by variable. */
export const defaultsOf = ({ parameters, answer }: Operation): Values =>
  !answer.page && parameters.some(({ name }) => name === 'limit') ? { limit: PAGE_LIMIT } : {};

/** The tool as tools/list shows it. Callers without a header see an argument for the credential. */
export function definitionOf(
  operation: Operation,
  args: JsonSchema,
  outputSchema: Tool['outputSchema'],
  withToken: boolean,
): Tool {
  const { name, title = titleOf(name), idempotent, destructive, keyed, confirm } = operation.tool!;
  const readOnly = operation.kind === 'query';
  const deletes = operation.http?.method === 'DELETE';
  const shown = forModel(args);
  const properties: Values = {
    ...(shown.properties as Values),
    ...(keyed && { idempotency_key: IDEMPOTENCY_KEY }),
    ...(confirm && {
      confirm: { type: 'string', description: `${confirm} again, if your client cannot ask its user.` },
    }),
    ...(withToken && operation.scopes.length && { access_token: ACCESS_TOKEN }),
  };
  for (const [argument, value] of Object.entries(defaultsOf(operation)))
    properties[argument] = { ...(properties[argument] as JsonSchema), default: value };
  return {
    name,
    title,
    description: operation.description,
    inputSchema: { ...shown, properties } as unknown as Tool['inputSchema'],
    outputSchema,
    annotations: {
      readOnlyHint: readOnly,
      // Only calls that change something can destroy, or repeat an effect.
      ...(!readOnly && { destructiveHint: destructive ?? deletes, idempotentHint: idempotent ?? deletes }),
    },
  };
}

/** `get_catalog_item` → `Get catalog item`. */
const titleOf = (name: string): string => (name[0]!.toUpperCase() + name.slice(1)).replaceAll('_', ' ');

/** Keywords that a model cannot follow. The service checks them, and its errors name them. */
const IGNORED =
  /^(pattern|minLength|maxLength|minItems|maxItems|maxProperties|uniqueItems|propertyNames|additionalProperties|x-error)$/;
const LARGE = 10_000;

const forModel = (schema: JsonSchema): JsonSchema =>
  pruned(
    schema,
    (keyword, value) =>
      IGNORED.test(keyword) ||
      (keyword === 'anyOf' && (value as JsonSchema[]).every(hasOnlyFormat)) ||
      (keyword === 'format' && /^int/.test(String(value))) ||
      (/^(min|max)/.test(keyword) && typeof value === 'number' && Math.abs(value) > LARGE),
  );

/** Whether it is one of several formats. The description names them. */
const hasOnlyFormat = (schema: JsonSchema): boolean => Object.keys(schema).join() === 'format';

function pruned(schema: JsonSchema, drops: (keyword: string, value: unknown) => boolean): JsonSchema {
  return Object.fromEntries(
    Object.entries(schema).flatMap(([keyword, value]) => {
      if (drops(keyword, value)) return [];
      if (keyword === 'items' && schema.description && isRecord(value) && !value.properties) {
        const { description: _, ...entry } = value;
        return [[keyword, pruned(entry, drops)]];
      }
      if (keyword === 'properties') return [[keyword, mapValues(value as Values, (inner) => pruned(inner, drops))]];
      if (Array.isArray(value))
        return [[keyword, value.map((inner) => (isRecord(inner) ? pruned(inner, drops) : inner))]];
      return [[keyword, isRecord(value) && keyword !== 'default' ? pruned(value, drops) : value]];
    }),
  );
}

const mapValues = (members: Values, change: (schema: JsonSchema) => JsonSchema): Values =>
  Object.fromEntries(Object.entries(members).map(([name, schema]) => [name, change(schema as JsonSchema)]));
