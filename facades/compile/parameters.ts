/** The variables of an operation: parameters of the path, the query and the headers, and the input object. */
import {
  type DocumentNode,
  type GraphQLArgument,
  GraphQLError,
  type GraphQLInputField,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isNonNullType,
  isSpecifiedScalarType,
  Kind,
  type OperationDefinitionNode,
  TypeInfo,
  typeFromAST,
  type ValueNode,
  type VariableDefinitionNode,
  valueFromASTUntyped,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import { pathNames, snake, wireOfEnum } from './names.ts';
import { directiveOn } from './selection.ts';

/** What a variable feeds. */
type Fed = GraphQLArgument | GraphQLInputField;

export interface Parameter {
  /** Its name on the wire. */
  name: string;
  /** Its name in the document. */
  variable: string;
  in: 'path' | 'query' | 'header';
  /** The header that it is read from. */
  header: string | undefined;
  /** Whether tools have it, too. */
  tool: boolean;
  type: GraphQLInputType;
  required: boolean;
  description: string;
  /** On the wire. */
  default: unknown;
  node: VariableDefinitionNode;
}

/** Reads the credential as it was sent, and checks it itself: for clients of OAuth, and tokens that may be over. */
export const readsCredential = ({ header }: Pick<Parameter, 'header'>): boolean =>
  header?.toLowerCase() === 'authorization';

export interface Input {
  variable: string;
  type: GraphQLInputObjectType;
  required: boolean;
  node: VariableDefinitionNode;
}

/** @throws GraphQLError if there are two input objects, or one where it cannot be a body */
export function parametersOf(
  schema: GraphQLSchema,
  document: DocumentNode,
  { variableDefinitions = [] }: OperationDefinitionNode,
  path: string,
): { parameters: Parameter[]; input: Input | undefined } {
  const fed = fedBy(schema, document);
  const inPath = new Set(pathNames(path));
  const parameters: Parameter[] = [];
  let input: Input | undefined;
  for (const node of variableDefinitions) {
    const variable = node.variable.name.value;
    const type = typeFromAST(schema, node.type as never) as unknown as GraphQLInputType;
    const bare = getNullableType(type);
    const required = isNonNullType(type) && !node.defaultValue;
    if (!isInputObjectType(getNamedType(type))) parameters.push(parameter(node, type, fed.get(variable), inPath));
    else if (!isInputObjectType(bare)) throw new GraphQLError(`$${variable} is a list of objects.`, { nodes: node });
    else if (input) throw new GraphQLError('An operation has one input object: the body.', { nodes: node });
    else input = { variable, type: bare, required, node };
  }
  return { parameters, input };
}

function parameter(
  node: VariableDefinitionNode,
  type: GraphQLInputType,
  fed: Fed | undefined,
  inPath: ReadonlySet<string>,
): Parameter {
  const variable = node.variable.name.value;
  const name = snake(variable);
  const header = directiveOn(node, 'header') as { name: string; tool?: boolean } | undefined;
  const scalar = getNamedType(type);
  return {
    name,
    variable,
    in: inPath.has(name) ? 'path' : header ? 'header' : 'query',
    header: header?.name,
    tool: header?.tool ?? true,
    type,
    required: isNonNullType(type) && !node.defaultValue,
    description:
      node.description?.value ?? fed?.description ?? (isSpecifiedScalarType(scalar) ? '' : (scalar.description ?? '')),
    default: node.defaultValue ? onWire(node.defaultValue, type) : defaultOf(fed),
    node,
  };
}

/** The arguments and input fields that variables feed: they have the descriptions and the defaults. */
function fedBy(schema: GraphQLSchema, document: DocumentNode): Map<string, Fed> {
  const fed = new Map<string, Fed>();
  const info = new TypeInfo(schema);
  const feed = (value: ValueNode, to: Fed | undefined | null) => {
    if (value.kind === Kind.VARIABLE && to && !fed.has(value.name.value)) fed.set(value.name.value, to);
  };
  const visitor = visitWithTypeInfo(info, {
    Argument: ({ value }) => feed(value, info.getArgument()),
    ObjectField: ({ name, value }) => {
      const parent = getNamedType(info.getParentInputType());
      if (isInputObjectType(parent)) feed(value, parent.getFields()[name.value]);
    },
  });
  visit(document, visitor);
  return fed;
}

/** The default of an argument or input field as it is on the wire; undefined if there is none. */
export function defaultOf(fed: Fed | undefined): unknown {
  if (fed?.default?.literal) return onWire(fed.default.literal, fed.type);
  const value = fed?.default?.value ?? fed?.defaultValue;
  const named = getNamedType(fed?.type);
  if (value === undefined || !isEnumType(named)) return value;
  const name = (one: unknown) =>
    wireOfEnum(named.getValues().find((known) => known.value === one || known.name === one)!.name);
  return Array.isArray(value) ? value.map(name) : name(value);
}

function onWire(literal: ValueNode, type: GraphQLInputType): unknown {
  const value = valueFromASTUntyped(literal);
  if (!isEnumType(getNamedType(type))) return value;
  return Array.isArray(value) ? value.map(wireOfEnum) : wireOfEnum(String(value));
}
