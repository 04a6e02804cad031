/** Tells a client how a server comes along, while it waits for it. */
import type { ServerContext } from '@modelcontextprotocol/server';
import type { ContextOf, Values } from '../compile/run.ts';
import { serverUpdates } from './server-updates.ts';
import type { ReportProgress } from './tools.ts';

/** The tools that wait, and the argument that says for what. */
const WAITS: ReadonlyMap<string, string> = new Map([['wait_for_server', 'order_number']]);

/** Follows a call of a tool that waits, if the client has asked for progress. */
export function progressOf(name: string, contextOf: ContextOf): ReportProgress | undefined {
  const argument = WAITS.get(name);
  if (!argument) return undefined;
  return (args, caller, request) => {
    const token = request.mcpReq._meta?.progressToken;
    const orderNumber = args[argument];
    if (token === undefined || typeof orderNumber !== 'string') return () => {};
    const over = new AbortController();
    const signal = AbortSignal.any([caller.signal, over.signal]);
    // What is wrong is told by the call itself; progress is extra.
    void tell(contextOf({ ...caller, signal }), orderNumber, token, request).catch(() => {});
    return () => over.abort();
  };
}

async function tell(
  context: ReturnType<ContextOf>,
  orderNumber: string,
  progressToken: string | number,
  { mcpReq }: ServerContext,
): Promise<void> {
  let progress = 0;
  let last: Values[string];
  for await (const { status } of serverUpdates(context, orderNumber)) {
    if (context.signal.aborted) return;
    if (status === last) continue;
    last = status;
    const params = { progressToken, progress: ++progress, message: `${orderNumber} is ${status.toLowerCase()}.` };
    await mcpReq.notify({ method: 'notifications/progress', params });
  }
}
