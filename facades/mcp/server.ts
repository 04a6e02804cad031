/**
 * The MCP server (official SDK v2). The SDK makes one for each request or session, so its lists are prepared once. With the
 * low-level `Server`, tools need no registration one by one.
 */
import {
  type McpServerFactory,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { groupOf } from '../../schema/index.ts';
import { callerIn, callerOf } from './caller.ts';
import { type Asking, confirmOf } from './confirm.ts';
import type { McpParts } from './parts.ts';
import { progressOf } from './progress.ts';
import { PROMPTS, promptOf } from './prompts.ts';
import { ANSWER_SECONDS } from './questions.ts';
import { withShortText } from './short-text.ts';
import { Subscriptions } from './subscriptions.ts';

export const PROTOCOL_VERSIONS = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26'];
const SERVER_INFO = { name: 'freehold', title: 'Freehold', version: '1.1.0' };
/** Agents read it once. It has at most 150 words. */
export const INSTRUCTIONS = `Hosting without identity verification, paid in coins.
1. register_account, then create_api_key. Send the key as Authorization: Bearer, or as access_token to each tool.
2. list_catalog needs no credential. A bastion is a region. quote_server tells the price.
3. create_topup tells where to send coins. Then get_topup until it is confirmed. A client of x402 can pay an order instead.
4. add_ssh_key, then order_server. Without a key, keep its root_password: the service shows it once.
5. wait_for_server until it is running. It may answer before: call it again.
6. update_server changes a server. cancel_server deletes it, and refunds the rest of the month.
Amounts are in US dollars. REST alone has metrics and receipts. get_status names simulated parts.
Errors have code, detail and retryable, which says whether the same call may succeed later.
An output schema with a title alone has the members of the one that lists them.`;
const TTL_MS = 300_000;

export function serverFactory(parts: McpParts): McpServerFactory {
  const { codec } = parts;
  const options = {
    capabilities: { tools: {}, prompts: {}, resources: { subscribe: true }, completions: {} },
    supportedProtocolVersions: PROTOCOL_VERSIONS,
    instructions: INSTRUCTIONS,
    requestState: { verify: codec.verify },
    cacheHints: {
      // The list depends on the credential.
      'tools/list': { ttlMs: TTL_MS, cacheScope: 'private' as const },
      'prompts/list': { ttlMs: TTL_MS, cacheScope: 'public' as const },
      'resources/list': { ttlMs: TTL_MS, cacheScope: 'public' as const },
      'resources/templates/list': { ttlMs: TTL_MS, cacheScope: 'public' as const },
      'server/discover': { ttlMs: TTL_MS, cacheScope: 'public' as const },
    },
  };
  return ({ era }) => {
    const server = new Server(SERVER_INFO, options);
    handleTools(server, parts, era === 'legacy');
    handleResources(server, parts);
    server.setRequestHandler('prompts/list', () => PROMPTS);
    server.setRequestHandler('prompts/get', ({ params }) => promptOf(params));
    server.setRequestHandler('completion/complete', ({ params }, request) => {
      const caller = callerIn(request);
      return parts.resources.refusing(undefined, caller, () => parts.complete(params, caller));
    });
    // Clients of the newer generation open a stream instead (see protocol-versions.ts).
    if (era === 'legacy') handleSubscriptions(server, parts);
    return server;
  };
}

function handleTools(server: Server, parts: McpParts, isLegacy: boolean): void {
  const { lists, codec, contextOf, prechecks } = parts;
  const asking = askingOf(server, parts, isLegacy);
  server.setRequestHandler('tools/list', (_, { http }) => lists.of(callerOf(http!.authInfo)));
  server.setRequestHandler('tools/call', async ({ params }, request: ServerContext) => {
    const { view } = callerOf(request.http!.authInfo);
    const tool = lists.find(params.name, view);
    if (!tool) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'There is no such tool. See tools/list.');
    const result = await tool.call(params.arguments ?? {}, request, {
      confirm: confirmOf(tool.operation, { codec, precheck: prechecks.get(params.name), ...asking }),
      reportProgress: progressOf(params.name, contextOf),
    });
    return view.shortText ? withShortText(result, params.name) : result;
  });
}

function askingOf(server: Server, { questions }: McpParts, isLegacy: boolean): Asking {
  const canAsk = () => {
    const { elicitation } = server.getClientCapabilities() ?? {};
    // The first version of elicitation had forms only, without a name.
    return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);
  };
  if (!isLegacy) return { canAsk };
  return {
    canAsk,
    ask: (form, { viewer, address, questions: ofSession }, { mcpReq }) =>
      questions.ask({ group: groupOf(viewer, address), ofSession, call: mcpReq.signal }, (signal) =>
        server.request(
          { method: 'elicitation/create', params: form },
          { relatedRequestId: mcpReq.id, timeout: ANSWER_SECONDS * 1000, signal },
        ),
      ),
  };
}

function handleResources(server: Server, { resources }: McpParts): void {
  server.setRequestHandler('resources/list', () => resources.list);
  server.setRequestHandler('resources/templates/list', () => resources.templates);
  server.setRequestHandler('resources/read', ({ params }, request) => resources.read(params.uri, callerIn(request)));
}

function handleSubscriptions(server: Server, parts: McpParts): void {
  const subscriptions = new Subscriptions({ parts, notify: (uri) => server.sendResourceUpdated({ uri }) });
  server.setRequestHandler('resources/subscribe', async ({ params }, request) => {
    await subscriptions.add(params.uri, callerIn(request));
    return {};
  });
  server.setRequestHandler('resources/unsubscribe', ({ params }) => {
    subscriptions.remove(params.uri);
    return {};
  });
  server.onclose = () => subscriptions.close();
}
