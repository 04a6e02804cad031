/** What tools/list says of a tool. A model reads it at every step, so it says what a model needs and no more. */
import type { Tool } from '@modelcontextprotocol/server';
import { isRecord } from '../compile/inputs.ts';
import { answerSchema, inputSchema, type JsonSchema, parameterSchema } from '../compile/json-schema.ts';
import type { Operation } from '../compile/operation.ts';
import type { Values } from '../compile/run.ts';

/** Agents read what they ask for, all of it; the lists of REST are larger. */
const PAGE_LIMIT = 20;

const ACCESS_TOKEN = { type: 'string', description: 'API key or access token, instead of a header.' };
const IDEMPOTENCY_KEY = { type: 'string', description: 'A new one for each intention: repeating it is safe.' };

const ERROR: JsonSchema = {
  type: 'object',
  properties: {
    code: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    retryable: { type: 'boolean' },
  },
  required: ['code', 'status', 'detail', 'retryable'],
};

/** Parameters and the fields of the input object stand beside one another. */
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

/** Defaults of parameters, by their variables, where they are others than in REST. */
export const defaultsOf = ({ parameters, answer }: Operation): Values =>
  !answer.page && parameters.some(({ name }) => name === 'limit') ? { limit: PAGE_LIMIT } : {};

/** The tool as it is listed; with an argument for the credential if the caller sends no header. */
export function definitionOf(operation: Operation, args: JsonSchema, withToken: boolean): Tool {
  const { name, title = titleOf(name), idempotent, destructive, keyed, confirm } = operation.tool!;
  const readOnly = operation.kind === 'query';
  const deletes = operation.http?.method === 'DELETE';
  const properties: Values = {
    ...(forModel(args).properties as Values),
    ...(keyed && { idempotency_key: IDEMPOTENCY_KEY }),
    ...(confirm && {
      confirm: { type: 'string', description: `${confirm} again, if your client cannot ask its user.` },
    }),
    ...(withToken && operation.scopes.length && { access_token: ACCESS_TOKEN }),
  };
  for (const [one, value] of Object.entries(defaultsOf(operation)))
    properties[one] = { ...(properties[one] as JsonSchema), default: value };
  return {
    name,
    title,
    description: operation.description,
    inputSchema: { ...args, properties } as unknown as Tool['inputSchema'],
    outputSchema: outputSchemaOf(operation),
    annotations: {
      readOnlyHint: readOnly,
      destructiveHint: destructive ?? deletes,
      idempotentHint: idempotent ?? (readOnly || deletes),
      openWorldHint: false,
    },
  };
}

/** Clients of 2025 check errors against it, too. */
export function outputSchemaOf(operation: Operation): NonNullable<Tool['outputSchema']> {
  const answer = forProgram(answerSchema(operation));
  const anyOf = [...((answer.anyOf as JsonSchema[] | undefined) ?? [answer]), ERROR];
  return { type: 'object', anyOf } as NonNullable<Tool['outputSchema']>;
}

/** `get_catalog_item` → `Get catalog item`. */
const titleOf = (name: string): string => (name[0]!.toUpperCase() + name.slice(1)).replaceAll('_', ' ');

/** Keywords that a model cannot heed. The service checks them, and its refusals name them. */
const UNREAD = /^(pattern|minLength|maxLength|uniqueItems|propertyNames|additionalProperties|x-error)$/;
const LARGE = 10_000;

const forModel = (schema: JsonSchema): JsonSchema =>
  thinned(
    schema,
    (keyword, value) =>
      UNREAD.test(keyword) ||
      (keyword === 'format' && /^int/.test(String(value))) ||
      (/^(min|max)/.test(keyword) && typeof value === 'number' && Math.abs(value) > LARGE),
  );

/** Programs that read answers need their types. The reference explains them. */
const forProgram = (schema: JsonSchema): JsonSchema =>
  thinned(schema, (keyword, value) => keyword === 'description' && typeof value === 'string');

function thinned(schema: JsonSchema, drops: (keyword: string, value: unknown) => boolean): JsonSchema {
  return Object.fromEntries(
    Object.entries(schema).flatMap(([keyword, value]) => {
      if (drops(keyword, value)) return [];
      if (keyword === 'properties') return [[keyword, each(value as Values, (one) => thinned(one, drops))]];
      if (Array.isArray(value)) return [[keyword, value.map((one) => (isRecord(one) ? thinned(one, drops) : one))]];
      return [[keyword, isRecord(value) && keyword !== 'default' ? thinned(value, drops) : value]];
    }),
  );
}

const each = (members: Values, change: (one: JsonSchema) => JsonSchema): Values =>
  Object.fromEntries(Object.entries(members).map(([name, one]) => [name, change(one as JsonSchema)]));
