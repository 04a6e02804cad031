/** The variables of an operation: parameters in the path, the query and the headers, and the input object. */
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
import { apiEnumValue, pathNames, snake } from './names.ts';
import { directiveOn } from './selection.ts';

/** The argument or input field that gets the value of a variable. */
type Target = GraphQLArgument | GraphQLInputField;

export interface Parameter {
  /** The name in the API. */
  name: string;
  /** The name in the document. */
  variable: string;
  in: 'path' | 'query' | 'header';
  /** The name of its header. */
  header: string | undefined;
  /** Whether the tool takes it as an argument. */
  tool: boolean;
  type: GraphQLInputType;
  required: boolean;
  description: string;
  /** The default, as a value of the API. */
  default: unknown;
  node: VariableDefinitionNode;
}

/** Whether the operation reads Authorization and checks it itself: OAuth clients, and tokens that may have expired. */
export const readsCredential = ({ header }: Pick<Parameter, 'header'>): boolean =>
  header?.toLowerCase() === 'authorization';

export interface Input {
  variable: string;
  type: GraphQLInputObjectType;
  required: boolean;
  node: VariableDefinitionNode;
}

/** @throws GraphQLError if there are two input objects, or a list of them */
export function parametersOf(
  schema: GraphQLSchema,
  document: DocumentNode,
  { variableDefinitions = [] }: OperationDefinitionNode,
  path: string,
): { parameters: Parameter[]; input: Input | undefined } {
  const targets = targetsIn(schema, document);
  const inPath = new Set(pathNames(path));
  const parameters: Parameter[] = [];
  let input: Input | undefined;
  for (const node of variableDefinitions) {
    const variable = node.variable.name.value;
    const type = typeFromAST(schema, node.type as never) as unknown as GraphQLInputType;
    const bare = getNullableType(type);
    const required = isNonNullType(type) && !node.defaultValue;
    if (!isInputObjectType(getNamedType(type))) parameters.push(parameter(node, type, targets.get(variable), inPath));
    else if (!isInputObjectType(bare))
      throw new GraphQLError(`$${variable} is a list of objects. A body is a single object.`, { nodes: node });
    else if (input)
      throw new GraphQLError('An operation has at most one input object, which is its body.', { nodes: node });
    else input = { variable, type: bare, required, node };
  }
  return { parameters, input };
}

function parameter(
  node: VariableDefinitionNode,
  type: GraphQLInputType,
  target: Target | undefined,
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
      node.description?.value ??
      target?.description ??
      (isSpecifiedScalarType(scalar) ? '' : (scalar.description ?? '')),
    default: node.defaultValue ? apiValue(node.defaultValue, type) : defaultOf(target),
    node,
  };
}

/** The first target of each variable. Targets have the descriptions and the defaults. */
function targetsIn(schema: GraphQLSchema, document: DocumentNode): Map<string, Target> {
  const targets = new Map<string, Target>();
  const info = new TypeInfo(schema);
  const add = (value: ValueNode, target: Target | undefined | null) => {
    if (value.kind === Kind.VARIABLE && target && !targets.has(value.name.value)) targets.set(value.name.value, target);
  };
  const visitor = visitWithTypeInfo(info, {
    Argument: ({ value }) => add(value, info.getArgument()),
    ObjectField: ({ name, value }) => {
      const parent = getNamedType(info.getParentInputType());
      if (isInputObjectType(parent)) add(value, parent.getFields()[name.value]);
    },
  });
  visit(document, visitor);
  return targets;
}

/** The default of an argument or input field, as a value of the API; undefined if there is none. */
export function defaultOf(target: Target | undefined): unknown {
  if (target?.default?.literal) return apiValue(target.default.literal, target.type);
  const value = target?.default?.value ?? target?.defaultValue;
  const type = getNamedType(target?.type);
  if (value === undefined || !isEnumType(type)) return value;
  const apiEnum = (item: unknown) =>
    apiEnumValue(type.getValues().find(({ value, name }) => value === item || name === item)!.name);
  return Array.isArray(value) ? value.map(apiEnum) : apiEnum(value);
}

function apiValue(literal: ValueNode, type: GraphQLInputType): unknown {
  const value = valueFromASTUntyped(literal);
  if (!isEnumType(getNamedType(type))) return value;
  return Array.isArray(value) ? value.map(apiEnumValue) : apiEnumValue(String(value));
}
