/**
 * Renders a row as REST does, for webhooks and other uses outside of a request. It executes a fragment of the operation
 * documents on the row, so a resource has only one description. It reads nothing from the database.
 */
import {
  type DocumentNode,
  execute,
  type FragmentDefinitionNode,
  GraphQLObjectType,
  GraphQLSchema,
  Kind,
  type OperationDefinitionNode,
  parse,
} from 'graphql';
import { schema } from '../../schema/index.ts';
import type { Operation } from './operation.ts';
import { answerOf } from './outputs.ts';

/** The fragment of each type of resource that events concern. */
export const FRAGMENTS = {
  server: 'Server',
  topup: 'TopUp',
  api_key: 'ApiKey',
  ssh_key: 'SshKey',
  webhook: 'Webhook',
  agent: 'Agent',
  canary: 'Canary',
  incident: 'Incident',
  message: 'Message',
} as const;

type Render = (row: object) => Promise<object>;

/** A function that renders a row of a resource type; undefined for a type without a fragment. */
export function resourceRenderer(
  operations: readonly Operation[],
): (resource: string, row: object) => Promise<object | undefined> {
  const fragments = new Map(operations.flatMap((operation) => [...operation.fragments]));
  const renders = new Map(
    Object.entries(FRAGMENTS).map(([resource, fragment]) => [resource, rendererOf(fragment, fragments)]),
  );
  return async (resource, row) => renders.get(resource)?.(row);
}

function rendererOf(fragment: string, fragments: ReadonlyMap<string, FragmentDefinitionNode>): Render {
  const type = schema.getType(fragments.get(fragment)!.typeCondition.name.value) as GraphQLObjectType;
  const query = new GraphQLObjectType({ name: 'Rendered', fields: { object: { type } } });
  const rowSchema = new GraphQLSchema({ query });
  const operation = parse(`{ object: object { ...${fragment} } }`).definitions[0] as OperationDefinitionNode;
  const document: DocumentNode = { kind: Kind.DOCUMENT, definitions: [operation, ...fragments.values()] };
  const { toApi } = answerOf({ schema: rowSchema, fragments }, operation);
  return async (object) => {
    const { data, errors } = await execute({ schema: rowSchema, document, rootValue: { object } });
    if (errors) throw errors[0]!;
    return (toApi ? toApi(data!.object) : data!.object) as object;
  };
}
