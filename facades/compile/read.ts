/**
 * Reads the documents of a folder. Each operation becomes a REST endpoint, an MCP tool, or both. The service does not start
 * with an invalid document, and the error names its file, line and column.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import {
  concatAST,
  type DocumentNode,
  extendSchema,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  type GraphQLSchema,
  getDirectiveValues,
  Kind,
  type OperationDefinitionNode,
  OverlappingFieldsCanBeMergedRule,
  parse,
  Source,
  separateOperations,
  specifiedRules,
  validate,
  visit,
} from 'graphql';
import type { ErrorCode, RequiredScope } from '../../schema/index.ts';
import { snake } from './names.ts';
import type { Http, Operation, Resource, Tool } from './operation.ts';
import { answerOf } from './outputs.ts';
import { parametersOf } from './parameters.ts';
import { clashes, problemsOf } from './rules.ts';

/** The documents of the service. */
const OPERATIONS = join(import.meta.dirname, '..', 'operations');
const DIRECTIVES = 'directives.graphql';
/** Fields of one name may differ in nullability between types. outputs.ts refuses other differences. */
const RULES = specifiedRules.filter((rule) => rule !== OverlappingFieldsCanBeMergedRule);

/** The operations of the service. All readers in one process share them and their compiled documents. */
const KNOWN = new WeakMap<GraphQLSchema, readonly Operation[]>();

/**
 * Reads a folder, or returns the operations of the service.
 * @throws Error that lists all problems, each with file, line and caret
 */
export function readOperations(schema: GraphQLSchema, folder?: string): readonly Operation[] {
  if (folder) return readFolder(schema, folder);
  const operations = KNOWN.get(schema) ?? readFolder(schema, OPERATIONS);
  KNOWN.set(schema, operations);
  return operations;
}

/** The operations of an installation that serves these announced ones. */
export const withFeatures = (operations: readonly Operation[], features: ReadonlySet<string>): readonly Operation[] =>
  operations.map((operation) => {
    const { http } = operation;
    return http?.feature && features.has(http.feature)
      ? { ...operation, http: { ...http, status: 'LIVE' } }
      : operation;
  });

function readFolder(schema: GraphQLSchema, folder: string): Operation[] {
  const annotated = extendSchema(schema, parse(readFileSync(join(OPERATIONS, DIRECTIVES), 'utf8')));
  const all = concatAST(documents(folder));
  refuse(validate(annotated, all, RULES));
  const problems: GraphQLError[] = [];
  const operations = Object.values(separateOperations(all)).flatMap((document) => {
    try {
      const operation = compile(schema, annotated, document);
      problems.push(...problemsOf(operation));
      return [operation];
    } catch (error) {
      if (!(error instanceof GraphQLError)) throw error;
      problems.push(error);
      return [];
    }
  });
  refuse([...problems, ...clashes(operations)]);
  const lists = new Map(operations.flatMap(({ name, http }) => (http?.method === 'GET' ? [[http.path, name]] : [])));
  return operations.map((operation) => {
    const [above] = operation.http?.path.split('/{') ?? [];
    const listedBy = operation.http?.path !== above && lists.get(above!);
    return listedBy ? { ...operation, listedBy } : operation;
  });
}

function documents(folder: string): DocumentNode[] {
  const errors: GraphQLError[] = [];
  const files = readdirSync(folder).filter((file) => file.endsWith('.graphql') && file !== DIRECTIVES);
  const parsed = files.sort().flatMap((file) => {
    try {
      return [withApiNames(parse(new Source(readFileSync(join(folder, file), 'utf8'), file)))];
    } catch (error) {
      errors.push(error as GraphQLError);
      return [];
    }
  });
  refuse(errors);
  return parsed;
}

/** Gives every field its name in the API as an alias, so that answers need no renaming. */
const withApiNames = (document: DocumentNode): DocumentNode =>
  visit(document, {
    Field: (field) =>
      field.alias ? undefined : { ...field, alias: { kind: Kind.NAME, value: snake(field.name.value) } },
  });

function compile(schema: GraphQLSchema, annotated: GraphQLSchema, document: DocumentNode): Operation {
  const definition = document.definitions.find((node) => node.kind === Kind.OPERATION_DEFINITION)!;
  const fragments = new Map(
    document.definitions
      .filter((node) => node.kind === Kind.FRAGMENT_DEFINITION)
      .map((node) => [node.name.value, node]),
  ) as Map<string, FragmentDefinitionNode>;
  const directive = <T>(name: string) =>
    getDirectiveValues(annotated.getDirective(name)!, definition) as unknown as T | undefined;
  const http = directive<Http>('http');
  const from = { schema, fragments };
  const given = parametersOf(schema, document, definition, http?.path ?? '');
  return {
    ...from,
    name: definition.name!.value,
    noun: basename(definition.loc!.source.name, '.graphql'),
    kind: definition.operation as 'query' | 'mutation',
    description: definition.description?.value ?? '',
    document,
    definition,
    scopes: scopesOf(schema, definition),
    activeOnly: rootFields(schema, definition).some(({ extensions }) => extensions.activeOnly),
    urgent: rootFields(schema, definition).every(({ extensions }) => extensions.urgent),
    creates: rootFields(schema, definition).some(({ extensions: { creates } }) => creates && creates !== 'tokens'),
    errors: rootFields(schema, definition).flatMap(({ extensions }) => (extensions.errors ?? []) as ErrorCode[]),
    ...given,
    pays: given.parameters.some(({ header }) => header === 'PAYMENT-SIGNATURE'),
    answer: answerOf(from, definition),
    http,
    tool: directive<Tool>('tool'),
    resource: directive<Resource>('resource'),
  };
}

/** The scopes of the root fields. @throws GraphQLError if a root field states no scope */
function scopesOf(schema: GraphQLSchema, definition: OperationDefinitionNode): RequiredScope[] {
  const scopes = rootFields(schema, definition).map(({ name, extensions }) => {
    const scope = extensions.scope as RequiredScope | undefined;
    if (!scope) throw new GraphQLError(`${name} states no scope.`, { nodes: definition });
    return scope;
  });
  return [...new Set(scopes)].filter((scope) => scope !== 'public');
}

/** @throws GraphQLError if the operation has a fragment in place of a root field */
function rootFields(schema: GraphQLSchema, { operation, selectionSet }: OperationDefinitionNode) {
  const root = schema.getRootType(operation)!;
  return selectionSet.selections.flatMap((node) => {
    if (node.kind !== Kind.FIELD)
      throw new GraphQLError('An operation must select root fields by name, without fragments.', { nodes: node });
    return schema.getField(root, (node as FieldNode).name.value) ?? [];
  });
}

function refuse(errors: readonly GraphQLError[]): void {
  if (errors.length) throw new Error(`The operation documents are invalid.\n\n${errors.map(String).join('\n\n')}`);
}
