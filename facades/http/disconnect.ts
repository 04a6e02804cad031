/** Tells when a caller has gone. */
import type { ServerResponse } from 'node:http';

/** Aborts when the caller goes before the whole answer has left. It has aborted if the caller has already gone. */
export function disconnectOf(response: ServerResponse): AbortSignal {
  const disconnect = new AbortController();
  const end = () => !response.writableFinished && disconnect.abort();
  if (response.destroyed) end();
  else response.once('close', end);
  return disconnect.signal;
}
