/** The fields that a selection takes from one object type, with its fragments resolved. */
import {
  type DirectiveNode,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNullableType,
  isAbstractType,
  isNonNullType,
  isObjectType,
  Kind,
  print,
  type SelectionNode,
  type SelectionSetNode,
  valueFromASTUntyped,
} from 'graphql';

export interface Fragments {
  schema: GraphQLSchema;
  fragments: ReadonlyMap<string, FragmentDefinitionNode>;
}

export interface SelectedField {
  /** The name in the API. */
  key: string;
  field: GraphQLField<unknown, unknown>;
  node: FieldNode;
  /** The selections of its value. A field in several fragments has several. */
  sets: SelectionSetNode[];
  /** Whether its members go into the object around it. */
  spread: boolean;
  /** Whether the answer leaves it out when it is null. */
  optional: boolean;
}

/** The object types that a value of a composite type can have. */
export const possibleTypes = (schema: GraphQLSchema, type: GraphQLNamedType): readonly GraphQLObjectType[] =>
  isAbstractType(type) ? schema.getPossibleTypes(type) : isObjectType(type) ? [type] : [];

/** The fields, and the fragments whose type condition matches an object type. */
export const selectionsFor = (from: Fragments, type: GraphQLObjectType, sets: readonly SelectionSetNode[]) =>
  sets.flatMap(({ selections }) => selections).filter((selection) => applies(from, type, selection));

function applies({ schema, fragments }: Fragments, type: GraphQLObjectType, selection: SelectionNode): boolean {
  if (selection.kind === Kind.FIELD) return true;
  const { typeCondition } = selection.kind === Kind.FRAGMENT_SPREAD ? fragments.get(selection.name.value)! : selection;
  const condition = typeCondition ? schema.getType(typeCondition.name.value) : type;
  return condition === type || (isAbstractType(condition) && schema.isSubType(condition, type));
}

/**
 * The fields of an object type by their names in the API.
 * @throws GraphQLError if two fields have the same name, or a field has `@skip` or `@include`
 */
export function fieldsOf(
  from: Fragments,
  type: GraphQLObjectType,
  sets: readonly SelectionSetNode[],
  fields: Map<string, SelectedField> = new Map(),
): Map<string, SelectedField> {
  for (const selection of selectionsFor(from, type, sets)) {
    if (selection.kind === Kind.FIELD) add(from, type, selection, fields);
    else {
      const { selectionSet } =
        selection.kind === Kind.FRAGMENT_SPREAD ? from.fragments.get(selection.name.value)! : selection;
      fieldsOf(from, type, [selectionSet], fields);
    }
  }
  return fields;
}

function add({ schema }: Fragments, type: GraphQLObjectType, node: FieldNode, fields: Map<string, SelectedField>) {
  const key = node.alias?.value ?? node.name.value;
  const field = schema.getField(type, node.name.value)!;
  const sets = node.selectionSet ? [node.selectionSet] : [];
  const spread = hasDirective(node, 'spread');
  const optional = hasDirective(node, 'optional');
  for (const { name } of node.directives ?? []) {
    if (name.value === 'skip' || name.value === 'include')
      throw new GraphQLError(`@${name.value} would make ${key} optional. Write another document.`, { nodes: node });
  }
  const same = fields.get(key);
  if (!same) fields.set(key, { key, field, node, sets, spread, optional });
  else if (
    same.field === field &&
    argumentsOf(same.node) === argumentsOf(node) &&
    same.spread === spread &&
    same.optional === optional
  )
    same.sets.push(...sets);
  else throw new GraphQLError(`Two fields of ${type.name} are called ${key}.`, { nodes: [same.node, node] });
}

/** The arguments of a node's directive, without defaults; undefined if the node lacks the directive. */
export function directiveOn(
  { directives = [] }: { directives?: readonly DirectiveNode[] | undefined },
  name: string,
): Readonly<Record<string, unknown>> | undefined {
  const found = directives.find((directive) => directive.name.value === name);
  if (!found) return undefined;
  return Object.fromEntries((found.arguments ?? []).map(({ name, value }) => [name.value, valueFromASTUntyped(value)]));
}
export const hasDirective = (node: FieldNode, name: string): boolean => directiveOn(node, name) !== undefined;

const argumentsOf = (node: FieldNode): string => (node.arguments ?? []).map(print).sort().join();

/** A member of an answer: a field, or a field of an object with `@spread`. */
export interface Member {
  name: string;
  selected: SelectedField;
  /** Whether the answer leaves it out when it, or its object with `@spread`, is null. */
  optional: boolean;
}

/** The members of an object type in the API. @throws GraphQLError if two members have the same name */
export function membersOf(from: Fragments, type: GraphQLObjectType, sets: readonly SelectionSetNode[]): Member[] {
  const members = new Map<string, Member>();
  for (const selected of fieldsOf(from, type, sets).values()) {
    for (const member of selected.spread
      ? spreadMembers(from, selected)
      : [{ name: selected.key, selected, optional: selected.optional }]) {
      const nodes = selected.node;
      if (members.has(member.name))
        throw new GraphQLError(`Two members of the answer are called ${member.name}.`, { nodes });
      members.set(member.name, member);
    }
  }
  return [...members.values()];
}

function spreadMembers(from: Fragments, { field, sets, node, key }: SelectedField): Member[] {
  const inner = getNullableType(field.type);
  if (!isObjectType(inner))
    throw new GraphQLError(`@spread needs an object, and ${key} is not an object.`, { nodes: node });
  const optional = !isNonNullType(field.type);
  return membersOf(from, inner, sets).map((member) => ({ ...member, optional: member.optional || optional }));
}
