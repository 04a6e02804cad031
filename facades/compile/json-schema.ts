/**
 * JSON Schemas (2020-12) of inputs and answers. The schema of an input follows its type, and that of an answer its selection.
 * OpenAPI, MCP and the details of a refusal use them.
 */
import {
  type GraphQLInputType,
  type GraphQLLeafType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  getNamedType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isLeafType,
  isListType,
  isNonNullType,
  Kind,
  type SelectionSetNode,
} from 'graphql';
import { EXPECTED } from '../../schema/index.ts';
import { ENTRIES_MAX } from './inputs.ts';
import { apiEnumValue, snake } from './names.ts';
import type { Operation } from './operation.ts';
import { defaultOf, type Parameter } from './parameters.ts';
import { type Fragments, membersOf, possibleTypes, type SelectedField, selectionsFor } from './selection.ts';

export type JsonSchema = { readonly [keyword: string]: unknown };

/** Stores a named schema as a shared one, and returns a reference to it. The default puts every schema inline. */
export type Define = (name: string, make: () => JsonSchema) => JsonSchema;
const inline: Define = (_, make) => make();

/** The limit of a body, and so of a text. */
const TEXT_MAX = 128 * 1024;
const ID_MAX = 64;
const LIST_MAX = 10_000;
const PAGE_MAX = 200;

const BUILT_IN: Readonly<Record<string, JsonSchema>> = {
  String: { type: 'string', maxLength: TEXT_MAX },
  ID: {
    type: 'string',
    maxLength: ID_MAX,
    pattern: '^[A-Za-z0-9._-]+$',
    [EXPECTED]: 'letters, digits, dots, underscores and hyphens.',
  } as JsonSchema,
  Int: { type: 'integer', format: 'int32', minimum: -(2 ** 31), maximum: 2 ** 31 - 1 },
  Float: { type: 'number' },
  Boolean: { type: 'boolean' },
};

const described = (description: string | null | undefined, schema: JsonSchema): JsonSchema =>
  description ? { ...schema, description } : schema;

function leaf(type: GraphQLLeafType): JsonSchema {
  if (isEnumType(type)) return { type: 'string', enum: type.getValues().map(({ name }) => apiEnumValue(name)) };
  return (type.extensions.jsonSchema as JsonSchema | undefined) ?? BUILT_IN[type.name] ?? {};
}

/** Drops the limits that hold for inputs only. In answers, amounts may exceed them and texts may be empty. */
function outputLeaf(type: GraphQLLeafType): JsonSchema {
  const { minLength, 'x-error': _, ...schema } = leaf(type);
  if (schema.type !== 'number') return schema;
  const { minimum, maximum, ...number } = schema;
  return number;
}

/** The schema of an input. It leaves out null, which GraphQL treats as absent. */
export function inputSchema(type: GraphQLInputType, define: Define = inline): JsonSchema {
  const bare = getNullableType(type);
  if (isListType(bare)) return { type: 'array', maxItems: ENTRIES_MAX, items: inputSchema(bare.ofType, define) };
  if (!isInputObjectType(bare)) return leaf(bare);
  return define(bare.name, () => {
    const fields = Object.values(bare.getFields()).map((field) => ({ ...field, default: defaultOf(field) }));
    const required = fields.filter((field) => isNonNullType(field.type) && field.default === undefined);
    return described(bare.description, {
      type: 'object',
      properties: Object.fromEntries(
        fields.map((field) => [snake(field.name), withDefault(field, inputSchema(field.type, define))]),
      ),
      ...(required.length && { required: required.map(({ name }) => snake(name)) }),
      additionalProperties: false,
    });
  });
}

/** The schema of a parameter. In MCP, the parameter is an argument. */
export const parameterSchema = (parameter: Parameter): JsonSchema =>
  withDefault(parameter, inputSchema(parameter.type));

type Described = { description?: string | null | undefined; default: unknown };
const withDefault = ({ description, default: value }: Described, schema: JsonSchema): JsonSchema =>
  described(description, value === undefined ? schema : { ...schema, default: value });

/** The schema of an operation's answer. */
export function answerSchema(operation: Operation, define: Define = inline): JsonSchema {
  const { answer } = operation;
  const schema = bare(operation, getNullableType(answer.type), answer.sets, define);
  return answer.page ? wholePage(schema) : schema;
}

/** The schema of a whole list as its only page. */
function wholePage(data: JsonSchema): JsonSchema {
  const properties = {
    data: described('All entries.', data),
    next_cursor: { type: 'null', description: 'The list is whole.' },
    has_more: { type: 'boolean', const: false, description: 'Always false.' },
  };
  return { type: 'object', properties, required: Object.keys(properties) };
}

function output(from: Fragments, type: GraphQLOutputType, sets: SelectionSetNode[], define: Define): JsonSchema {
  const schema = bare(from, getNullableType(type), sets, define);
  return isNonNullType(type) ? schema : { anyOf: [schema, { type: 'null' }] };
}

function bare(from: Fragments, type: GraphQLOutputType, sets: SelectionSetNode[], define: Define): JsonSchema {
  if (isListType(type)) return { type: 'array', maxItems: LIST_MAX, items: output(from, type.ofType, sets, define) };
  if (isLeafType(type)) return outputLeaf(type);
  const named = getNamedType(type);
  const variants = possibleTypes(from.schema, named).map((possible) => variant(from, possible, sets, define));
  const distinct = [...new Map(variants.map((schema) => [JSON.stringify(schema), schema])).values()];
  return distinct.length === 1 ? distinct[0]! : { anyOf: distinct };
}

/** The schema of one object type. A selection of a single fragment is a shared schema. */
function variant(from: Fragments, type: GraphQLObjectType, sets: SelectionSetNode[], define: Define): JsonSchema {
  const [only, ...others] = selectionsFor(from, type, sets);
  if (only?.kind === Kind.FRAGMENT_SPREAD && others.length === 0) {
    const fragment = from.fragments.get(only.name.value)!;
    const inner = [fragment.selectionSet];
    if (fragment.typeCondition.name.value !== type.name) return variant(from, type, inner, define);
    const description = fragment.description?.value ?? type.description;
    return define(fragment.name.value, () => described(description, object(from, type, inner, define)));
  }
  return object(from, type, sets, define);
}

function object(from: Fragments, type: GraphQLObjectType, sets: SelectionSetNode[], define: Define): JsonSchema {
  const members = membersOf(from, type, sets);
  const isPage = members.some(({ name }) => name === 'next_cursor');
  const schemaOf = ({ field, sets: inner, optional }: SelectedField) => {
    const schema = optional
      ? bare(from, getNullableType(field.type), inner, define)
      : output(from, field.type, inner, define);
    return described(field.description, isPage && schema.type === 'array' ? { ...schema, maxItems: PAGE_MAX } : schema);
  };
  return {
    type: 'object',
    properties: Object.fromEntries(members.map(({ name, selected }) => [name, schemaOf(selected)])),
    required: members.filter(({ optional }) => !optional).map(({ name }) => name),
  };
}
