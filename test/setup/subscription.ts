/** A subscription of GraphQL over WebSocket, which collects what it is told. */
import { createClient } from 'graphql-ws';
import WebSocket from 'ws';

export function listen(url: string, credential: string, query: string, variables: Record<string, unknown> = {}) {
  // biome-ignore lint/suspicious/noExplicitAny: what came
  const messages: any[] = [];
  // biome-ignore lint/suspicious/noExplicitAny: what came
  let failure: any;
  let over = false;
  const client = createClient({
    url: url.replace('http', 'ws'),
    webSocketImpl: WebSocket,
    connectionParams: { authorization: `Bearer ${credential}` },
    retryAttempts: 0,
  });
  client.subscribe(
    { query, variables },
    {
      next: ({ data, errors }) => messages.push(errors ? { errors } : data),
      error: (error) => (failure = error),
      complete: () => (over = true),
    },
  );
  return { messages, failure: () => failure, over: () => over, dispose: () => client.dispose() };
}
