/**
 * Shows one row as the REST API shows it, for whoever tells of it outside of a request. It executes the fragment of the
 * operation documents on the row itself: there is no second description of a resource, and nothing is read.
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

/** The fragment of each kind of thing that events are about. */
const FRAGMENTS = {
  server: 'Server',
  topup: 'TopUp',
  api_key: 'ApiKey',
  ssh_key: 'SshKey',
  webhook: 'Webhook',
  agent: 'Agent',
  canary: 'Canary',
  incident: 'Incident',
} as const;

type Render = (row: object) => Promise<object>;

/** Undefined where there is no such thing. */
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
  const query = new GraphQLObjectType({ name: 'Shown', fields: { object: { type } } });
  const shown = new GraphQLSchema({ query });
  const asked = parse(`{ object: object { ...${fragment} } }`).definitions[0] as OperationDefinitionNode;
  const document: DocumentNode = { kind: Kind.DOCUMENT, definitions: [asked, ...fragments.values()] };
  const { toWire } = answerOf({ schema: shown, fragments }, asked);
  return async (object) => {
    const { data, errors } = await execute({ schema: shown, document, rootValue: { object } });
    if (errors) throw errors[0]!;
    return (toWire ? toWire(data!.object) : data!.object) as object;
  };
}
