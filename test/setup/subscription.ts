/** A GraphQL subscription over WebSocket that collects its messages. */
import { createClient } from 'graphql-ws';
import WebSocket from 'ws';

export function listen(url: string, credential: string, query: string, variables: Record<string, unknown> = {}) {
  // biome-ignore lint/suspicious/noExplicitAny: each test checks the type of a message
  const messages: any[] = [];
  // biome-ignore lint/suspicious/noExplicitAny: each test checks the type of a message
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
