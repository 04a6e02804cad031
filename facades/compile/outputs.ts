/**
 * Answers from GraphQL to the wire. `readOperations` has put the names there as aliases, so that only enum values and
 * `@spread` and `@optional` are left to a mapper, which is compiled once; where there are none, nothing runs.
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
import { wireOfEnum } from './names.ts';
import { type Fragments, fieldsOf, hasDirective, membersOf, possibleTypes } from './selection.ts';

/** Where the answer of an operation stands in its result, and what it is. */
export interface Answer {
  /** The keys that lead to it; none if it is the whole result. */
  path: string[];
  type: GraphQLOutputType;
  sets: SelectionSetNode[];
  /** Maps it to the wire; undefined if it is there what it is in GraphQL. */
  toWire: Mapper | undefined;
  /** It is a list, and is answered as the only page. */
  page: boolean;
  /** The last field of the path. */
  node: FieldNode | undefined;
}

/** A list as its only page. */
export const wholePage = (data: unknown) => ({ data, next_cursor: null, has_more: false });

/** One root field is the answer itself, or the field within it that has `@answer`; several are an object. */
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
  const toWire = mapperOf(shapeOf(from, type, sets));
  return { path, type, sets, toWire, page: isListType(getNullableType(type)), node: last };
}

/** Whether `@answer` stands on the field or, alone, below it. */
function leadsToAnswer(node: SelectionNode): boolean {
  if (node.kind !== Kind.FIELD) return false;
  const below = node.selectionSet?.selections ?? [];
  return hasDirective(node, 'answer') || (below.length === 1 && leadsToAnswer(below[0]!));
}

/** How the value of a selection looks: what the mapper of an answer is made from. */
type Shape =
  | { kind: 'leaf'; enum: GraphQLEnumType | undefined }
  | { kind: 'list'; of: Shape }
  | { kind: 'object'; members: Map<string, { shape: Shape; spread: boolean; optional: boolean }> };
type Members = Record<string, unknown>;

/** @throws GraphQLError if a type of the answer lacks fields, or fields of one name differ in kind */
function shapeOf(from: Fragments, type: GraphQLOutputType, sets: readonly SelectionSetNode[]): Shape {
  const bare = getNullableType(type);
  if (isListType(bare)) return { kind: 'list', of: shapeOf(from, bare.ofType, sets) };
  if (isLeafType(bare)) return { kind: 'leaf', enum: isEnumType(bare) ? bare : undefined };
  const members: Extract<Shape, { kind: 'object' }>['members'] = new Map();
  for (const possible of possibleTypes(from.schema, getNamedType(type))) {
    if (!membersOf(from, possible, sets).length)
      throw new GraphQLError(`The answer may be a ${possible.name}, and asks nothing of it.`, { nodes: sets });
    for (const { key, field, sets: inner, spread, optional, node } of fieldsOf(from, possible, sets).values()) {
      const shape = shapeOf(from, field.type, inner);
      const other = members.get(key);
      const alike = other?.spread === spread && other.optional === optional;
      const merged = other ? alike && merge(other.shape, shape) : shape;
      if (!merged) throw new GraphQLError(`${key} is of another kind in another type of the answer.`, { nodes: node });
      members.set(key, { shape: merged, spread, optional });
    }
  }
  return { kind: 'object', members };
}

/** One shape for a member that several types of an interface or union have, or false if they differ in kind. */
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
  const names = new Map(type.getValues().map(({ name }) => [name, wireOfEnum(name)]));
  return (name) => names.get(name as string);
}

/** The result of an execution is ours alone, so that it can be changed instead of copied. */
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
