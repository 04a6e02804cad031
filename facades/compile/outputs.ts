/**
 * Maps results of GraphQL to answers of the API. `readOperations` adds the names of the API as aliases. A mapper, built once,
 * handles the rest: enum values, `@spread` and `@optional`.
 */
import {
  type FieldNode,
  type GraphQLEnumType,
  GraphQLError,
  type GraphQLOutputType,
  getNamedType,
  getNullableType,
  isEnumType,
  isLeafType,
  isListType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql';
import type { Mapper } from './inputs.ts';
import { apiEnumValue } from './names.ts';
import { type Fragments, fieldsOf, hasDirective, membersOf, possibleTypes } from './selection.ts';

/** The part of a result that callers get, with its type. */
export interface Answer {
  /** The keys from the result to the answer; empty if the answer is the whole result. */
  path: string[];
  type: GraphQLOutputType;
  sets: SelectionSetNode[];
  /** Maps the value to the API; undefined if it needs no change. */
  toApi: Mapper | undefined;
  /** Whether the answer is a list, which callers get as its only page. */
  page: boolean;
  /** The last field of the path. */
  node: FieldNode | undefined;
}

/** A list as its only page. */
export const wholePage = (data: unknown) => ({ data, next_cursor: null, has_more: false });

/** A single root field is the answer, or its inner field with `@answer`. Several root fields form an object. */
export function answerOf(from: Fragments, { operation, selectionSet }: OperationDefinitionNode): Answer {
  let type: GraphQLOutputType = from.schema.getRootType(operation)!;
  let sets = [selectionSet];
  const path: string[] = [];
  let last: FieldNode | undefined;
  for (let fields = selectionSet.selections; fields.length === 1; fields = sets[0]?.selections ?? []) {
    const node = fields[0] as FieldNode;
    const parent: GraphQLOutputType = getNullableType(type);
    if (!isObjectType(parent) || (path.length && !leadsToAnswer(node))) break;
    type = from.schema.getField(parent, node.name.value)!.type;
    sets = node.selectionSet ? [node.selectionSet] : [];
    path.push(node.alias!.value);
    last = node;
    if (hasDirective(node, 'answer')) break;
  }
  const toApi = mapperOf(shapeOf(from, type, sets));
  return { path, type, sets, toApi, page: isListType(getNullableType(type)), node: last };
}

/** Whether the field, or the only field below it, has `@answer`. */
function leadsToAnswer(node: SelectionNode): boolean {
  if (node.kind !== Kind.FIELD) return false;
  const below = node.selectionSet?.selections ?? [];
  return hasDirective(node, 'answer') || (below.length === 1 && leadsToAnswer(below[0]!));
}

/** The shape of a selection's value. The mapper of an answer follows it. */
type Shape =
  | { kind: 'leaf'; enum: GraphQLEnumType | undefined }
  | { kind: 'list'; of: Shape }
  | { kind: 'object'; members: Map<string, { shape: Shape; spread: boolean; optional: boolean }> };
type Members = Record<string, unknown>;

/** @throws GraphQLError if the document selects no field of a possible type, or fields of one name differ in kind */
function shapeOf(from: Fragments, type: GraphQLOutputType, sets: readonly SelectionSetNode[]): Shape {
  const bare = getNullableType(type);
  if (isListType(bare)) return { kind: 'list', of: shapeOf(from, bare.ofType, sets) };
  if (isLeafType(bare)) return { kind: 'leaf', enum: isEnumType(bare) ? bare : undefined };
  const members: Extract<Shape, { kind: 'object' }>['members'] = new Map();
  for (const possible of possibleTypes(from.schema, getNamedType(type))) {
    if (!membersOf(from, possible, sets).length)
      throw new GraphQLError(`The answer may be a ${possible.name}, but the document selects no field of it.`, {
        nodes: sets,
      });
    for (const { key, field, sets: inner, spread, optional, node } of fieldsOf(from, possible, sets).values()) {
      const shape = shapeOf(from, field.type, inner);
      const other = members.get(key);
      const sameDirectives = other?.spread === spread && other.optional === optional;
      const merged = other ? sameDirectives && merge(other.shape, shape) : shape;
      if (!merged) throw new GraphQLError(`${key} differs in kind between the types of the answer.`, { nodes: node });
      members.set(key, { shape: merged, spread, optional });
    }
  }
  return { kind: 'object', members };
}

/** Merges the shapes of a member of several types of an interface or union. @returns false if they differ in kind */
function merge(a: Shape, b: Shape): Shape | false {
  if (a.kind === 'leaf' && b.kind === 'leaf') return a.enum === b.enum && a;
  if (a.kind === 'list' && b.kind === 'list') {
    const of = merge(a.of, b.of);
    return of && { kind: 'list', of };
  }
  if (a.kind !== 'object' || b.kind !== 'object') return false;
  const members = new Map(a.members);
  for (const [key, member] of b.members) {
    const other = members.get(key);
    const shape = other ? other.spread === member.spread && merge(other.shape, member.shape) : member.shape;
    if (!shape) return false;
    members.set(key, { ...member, shape });
  }
  return { kind: 'object', members };
}

function mapperOf(shape: Shape): Mapper | undefined {
  if (shape.kind === 'leaf') return shape.enum && enumMapper(shape.enum);
  if (shape.kind === 'list') {
    const map = mapperOf(shape.of);
    return map && eachInPlace(map);
  }
  const mapped = [...shape.members].flatMap(([key, member]) => {
    const map = mapperOf(member.shape);
    return map ? [[key, map] as const] : [];
  });
  const spread = [...shape.members].filter(([, member]) => member.spread).map(([key]) => key);
  const optional = [...shape.members].filter(([, member]) => member.optional).map(([key]) => key);
  const map = mapped.length || optional.length ? inPlace(mapped, optional) : undefined;
  return spread.length ? spreading(new Set(spread), map) : map;
}

function enumMapper(type: GraphQLEnumType): Mapper {
  const names = new Map(type.getValues().map(({ name }) => [name, apiEnumValue(name)]));
  return (name) => names.get(name as string);
}

/** Changes the list in place instead of copying it: no other code uses the result of an execution. */
function eachInPlace(map: Mapper): Mapper {
  return (value) => {
    const items = value as unknown[];
    for (let i = 0; i < items.length; i++) if (items[i] !== null) items[i] = map(items[i]);
    return items;
  };
}

function inPlace(mapped: readonly (readonly [key: string, map: Mapper])[], optional: readonly string[]): Mapper {
  return (value) => {
    const members = value as Members;
    for (const [key, map] of mapped) {
      const inner = members[key];
      if (inner !== null && inner !== undefined) members[key] = map(inner);
    }
    for (const key of optional) if (members[key] === null) delete members[key];
    return members;
  };
}

function spreading(spread: ReadonlySet<string>, map: Mapper = (value) => value): Mapper {
  return (value) => {
    const flat: Members = {};
    for (const [key, inner] of Object.entries(map(value) as Members)) {
      if (spread.has(key)) Object.assign(flat, inner);
      else flat[key] = inner;
    }
    return flat;
  };
}
