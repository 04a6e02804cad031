/** Changes of servers, from the schema's subscription. Resource updates and progress notifications use them. */
import { type ExecutionResult, parse } from 'graphql';
import { type Context, schema } from '../../schema/index.ts';
import { watch } from '../compile/watchers.ts';

export const SERVER_URI = 'freehold://servers/';

export interface ServerUpdate {
  orderNumber: string;
  status: string;
}

const UPDATES = parse(`subscription ($orderNumber: ID) {
  serverUpdated(orderNumber: $orderNumber) { server { orderNumber status } }
}`);

/**
 * Subscribes to one server or to all the caller's servers. The updates are the current state, and then each change. They end
 * with the context's signal or the credential.
 * @throws ApiError not_found, missing_credential, insufficient_scope or rate_limited
 */
export async function serverUpdates(context: Context, orderNumber?: string): Promise<AsyncGenerator<ServerUpdate>> {
  const variableValues = { orderNumber: orderNumber ?? null };
  const updates = await watch({ schema, document: UPDATES, variableValues, contextValue: context });
  if (!(Symbol.asyncIterator in updates)) throw updates.errors![0]!;
  return serversIn(updates);
}

async function* serversIn(updates: AsyncIterable<ExecutionResult>): AsyncGenerator<ServerUpdate> {
  for await (const { data, errors } of updates) {
    if (errors) throw errors[0]!;
    yield (data as { serverUpdated: { server: ServerUpdate } }).serverUpdated.server;
  }
}
