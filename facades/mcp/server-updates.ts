/** Changes of servers, from the schema's subscription. Resource updates and progress notifications use them. */
import { parse, subscribe } from 'graphql';
import { type Context, schema } from '../../schema/index.ts';

export const SERVER_URI = 'freehold://servers/';

export interface ServerUpdate {
  orderNumber: string;
  status: string;
}

const UPDATES = parse(`subscription ($orderNumber: ID) {
  serverUpdated(orderNumber: $orderNumber) { server { orderNumber status } }
}`);

/**
 * Yields the current state of one server or of all the caller's servers, and then each change. It ends with the context's
 * signal or the credential.
 * @throws ApiError not_found, missing_credential, insufficient_scope or rate_limited
 */
export async function* serverUpdates(context: Context, orderNumber?: string): AsyncGenerator<ServerUpdate> {
  const variableValues = { orderNumber: orderNumber ?? null };
  const updates = await subscribe({ schema, document: UPDATES, variableValues, contextValue: context });
  if (!(Symbol.asyncIterator in updates)) throw updates.errors![0]!;
  for await (const { data, errors } of updates) {
    if (errors) throw errors[0]!;
    yield (data as { serverUpdated: { server: ServerUpdate } }).serverUpdated.server;
  }
}
