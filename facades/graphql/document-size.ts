/** The weight of an operation: its root fields, the rows that it asks for, and the values of its answer. */
import {
  type DocumentNode,
  type ExecutionArgs,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  GraphQLError,
  type GraphQLField,
  type GraphQLSchema,
  getArgumentValues,
  getNamedType,
  getNullableType,
  getOperationAST,
  getVariableValues,
  isCompositeType,
  isInterfaceType,
  isListType,
  isObjectType,
  Kind,
  type SelectionSetNode,
  type VariableValues,
} from 'graphql';

export interface Weight {
  /** The fields at the top, through fragments. Each counts as a call. */
  roots: number;
  /** The entries of the pages, as far as their limits allow. */
  rows: number;
  /** The values of the answer. */
  values: number;
}

/** The most rows of an operation of a customer. */
const ROWS_MAX = 400;
/** The most values of an answer to a customer. A page of the largest rows has half as many. */
const VALUES_MAX = 40_000;
/** The same of an answer of a subscription. The service makes one for each change. */
export const CHANGE_VALUES_MAX = 200;
/** The entries of a list without a limit, such as the skills of an agent. */
const ENTRIES = 10;
/** The scalar of each argument that limits a list. */
const LIMIT = 'PageLimit';

/** Weighs the chosen operation of a valid document. @throws GraphQLError if its variables are wrong */
export function weightOf({ schema, document, operationName, variableValues }: ExecutionArgs): Weight {
  const weight = { roots: 0, rows: 0, values: 0 };
  const operation = getOperationAST(document, operationName);
  const root = operation && schema.getRootType(operation.operation);
  if (!root) return weight;
  const definitions = operation.variableDefinitions ?? [];
  // Each further error would print the whole value again.
  const { variableValues: variables, errors } = getVariableValues(schema, definitions, variableValues ?? {}, {
    maxErrors: 1,
  });
  if (!variables) throw errors[0]!;
  new Scale(schema, document, variables, weight).add(operation.selectionSet, root, { times: 1, depth: 0 });
  return weight;
}

/** Where a selection is: how often the answer has it, its depth, and the limit of the page around it. */
interface Place {
  times: number;
  depth: number;
  limit?: number | undefined;
}

class Scale {
  readonly #schema: GraphQLSchema;
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly #variables: VariableValues;
  readonly #weight: Weight;

  constructor(schema: GraphQLSchema, document: DocumentNode, variables: VariableValues, weight: Weight) {
    this.#schema = schema;
    const fragments = document.definitions.filter((one) => one.kind === Kind.FRAGMENT_DEFINITION);
    this.#fragments = new Map(fragments.map((fragment) => [fragment.name.value, fragment]));
    this.#variables = variables;
    this.#weight = weight;
  }

  /** @param spread the fragments that the selection has already. As in execution, each counts once. */
  add(set: SelectionSetNode, type: GraphQLCompositeType, place: Place, spread = new Set<string>()): void {
    for (const node of set.selections) {
      if (node.kind === Kind.FIELD) this.#addField(node, type, place);
      else {
        const fragment = node.kind === Kind.INLINE_FRAGMENT ? node : this.#unlessSpread(node.name.value, spread);
        const named = fragment?.typeCondition && this.#schema.getType(fragment.typeCondition.name.value);
        if (fragment) this.add(fragment.selectionSet, isCompositeType(named) ? named : type, place, spread);
      }
    }
  }

  #unlessSpread(name: string, spread: Set<string>): FragmentDefinitionNode | undefined {
    if (spread.has(name)) return undefined;
    spread.add(name);
    return this.#fragments.get(name);
  }

  #addField(node: FieldNode, type: GraphQLCompositeType, { times, depth, limit: outer }: Place): void {
    if (depth === 0) this.#weight.roots++;
    if (node.name.value === '__typename') this.#weight.values += times;
    const field = isObjectType(type) || isInterfaceType(type) ? type.getFields()[node.name.value] : undefined;
    // Introspection has limits of its own.
    if (!field) return;
    const limit = this.#limitOf(field, node);
    if (limit !== undefined) this.#weight.rows += times * limit;
    const isList = isListType(getNullableType(field.type));
    const entries = isList ? times * (limit ?? outer ?? ENTRIES) : times;
    this.#weight.values += entries;
    const inner = getNamedType(field.type);
    if (!node.selectionSet || !isCompositeType(inner)) return;
    this.add(node.selectionSet, inner, { times: entries, depth: depth + 1, limit: isList ? undefined : limit });
  }

  #limitOf(field: GraphQLField<unknown, unknown>, node: FieldNode): number | undefined {
    const argument = field.args.find(({ type }) => getNamedType(type).name === LIMIT);
    return argument && (getArgumentValues(field, node, this.#variables)[argument.name] as number);
  }
}

/** Refuses an operation that asks for too much. @throws GraphQLError */
export function refuseHeavy({ rows, values }: Weight, valuesMax = VALUES_MAX): void {
  if (rows > ROWS_MAX) throw tooHeavy(`${rows} rows, and may for ${ROWS_MAX}. Ask for smaller pages`);
  if (values > valuesMax) throw tooHeavy(`up to ${values} values, and may for ${valuesMax}. Ask for fewer fields`);
}

const tooHeavy = (reason: string) =>
  new GraphQLError(`The document asks for ${reason}, or send several documents.`, {
    extensions: { code: 'BAD_USER_INPUT', http: { status: 400 } },
  });
