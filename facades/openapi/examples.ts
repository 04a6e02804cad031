/**
 * The examples of parameters, requests and answers. The scalars and `@example` in the documents state the values of
 * leaves, and objects are composed of them. test/facades/openapi/examples.test.ts validates all of them.
 */
import {
  type GraphQLInputType,
  type GraphQLLeafType,
  type GraphQLOutputType,
  getNamedType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isLeafType,
  isListType,
  isRequiredInputField,
  type SelectionSetNode,
} from 'graphql';
import { schema } from '../../schema/index.ts';
import { apiEnumValue, snake } from '../compile/names.ts';
import type { Operation } from '../compile/operation.ts';
import { wholePage } from '../compile/outputs.ts';
import type { Input, Parameter } from '../compile/parameters.ts';
import { FRAGMENTS } from '../compile/resources.ts';
import { directiveOn, type Fragments, fieldsOf, possibleTypes } from '../compile/selection.ts';

type Members = Record<string, unknown>;

export const parameterExample = ({ node, default: fallback, type }: Parameter): unknown =>
  stated(node) ?? fallback ?? inputExample(type);

/** The fields that a request requires, and those that its document states. */
export const requestExample = ({ node, type }: Input): Members => ({
  ...(inputExample(type) as Members),
  ...(stated(node) as Members | undefined),
});

/** The example of an answer. The document states only the members that differ. */
export function answerExample(operation: Operation): unknown {
  const { type, sets, node, page } = operation.answer;
  const example = outputExample(operation, type, sets, node && stated(node));
  return page ? wholePage(example) : example;
}

/** A function that returns the example of a type of resource; undefined for one without a fragment. */
export function resourceExamples(operations: readonly Operation[]): (resource: string) => object | undefined {
  const fragments = new Map(operations.flatMap((operation) => [...operation.fragments]));
  return (resource) => {
    const fragment = fragments.get(FRAGMENTS[resource as keyof typeof FRAGMENTS]);
    if (!fragment) return undefined;
    const type = schema.getType(fragment.typeCondition.name.value) as GraphQLOutputType;
    return outputExample({ schema, fragments }, type, [fragment.selectionSet], undefined) as object;
  };
}

const stated = (node: Parameters<typeof directiveOn>[0]): unknown => directiveOn(node, 'example')?.value;

function inputExample(type: GraphQLInputType): unknown {
  const bare = getNullableType(type);
  if (isListType(bare)) return [inputExample(bare.ofType)];
  if (!isInputObjectType(bare)) return leafExample(bare);
  const required = Object.values(bare.getFields()).filter(isRequiredInputField);
  return Object.fromEntries(required.map((field) => [snake(field.name), inputExample(field.type)]));
}

function outputExample(from: Fragments, type: GraphQLOutputType, sets: SelectionSetNode[], own: unknown): unknown {
  const bare = getNullableType(type);
  if (isLeafType(bare)) return own === undefined ? leafExample(bare) : own;
  if (own === null) return null;
  if (isListType(bare)) return own ?? [outputExample(from, bare.ofType, sets, undefined)];
  const [possible] = possibleTypes(from.schema, getNamedType(bare));
  const members: Members = {};
  for (const { key, field, node, sets: inner, spread, optional } of fieldsOf(from, possible!, sets).values()) {
    const example = outputExample(from, field.type, inner, stated(node));
    if (spread) Object.assign(members, example);
    else if (example !== null || !optional) members[key] = example;
  }
  return { ...members, ...(own as Members | undefined) };
}

const BUILT_IN: Readonly<Record<string, unknown>> = { Boolean: false, Int: 1, Float: 1 };

/** Null where neither the scalar nor the document has an example. */
const leafExample = (type: GraphQLLeafType): unknown =>
  isEnumType(type) ? apiEnumValue(type.getValues()[0]!.name) : (type.extensions.example ?? BUILT_IN[type.name] ?? null);
