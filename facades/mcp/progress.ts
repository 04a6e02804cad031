/** Notifies a client of the states of a server while it waits for that server. */
import type { ServerContext } from '@modelcontextprotocol/server';
import type { ContextOf, Values } from '../compile/run.ts';
import { serverUpdates } from './server-updates.ts';
import type { ReportProgress } from './tools.ts';

/** The tools that wait for a server, with the argument that names the server. */
const WAITS: ReadonlyMap<string, string> = new Map([['wait_for_server', 'order_number']]);

/** Reports the progress of a waiting tool if the client asked for it; undefined for other tools. */
export function progressOf(name: string, contextOf: ContextOf): ReportProgress | undefined {
  const argument = WAITS.get(name);
  if (!argument) return undefined;
  return (args, caller, request) => {
    const token = request.mcpReq._meta?.progressToken;
    const orderNumber = args[argument];
    if (token === undefined || typeof orderNumber !== 'string') return () => {};
    const stop = new AbortController();
    const signal = AbortSignal.any([caller.signal, stop.signal]);
    // The call itself reports errors, so progress ignores them.
    void notify(contextOf({ ...caller, signal }), orderNumber, token, request).catch(() => {});
    return () => stop.abort();
  };
}

async function notify(
  context: ReturnType<ContextOf>,
  orderNumber: string,
  progressToken: string | number,
  { mcpReq }: ServerContext,
): Promise<void> {
  let progress = 0;
  let last: Values[string];
  for await (const { status } of await serverUpdates(context, orderNumber)) {
    if (context.signal.aborted) return;
    if (status === last) continue;
    last = status;
    const params = { progressToken, progress: ++progress, message: `${orderNumber} is ${status.toLowerCase()}.` };
    await mcpReq.notify({ method: 'notifications/progress', params });
  }
}
