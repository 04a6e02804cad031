/**
 * The MCP server (official SDK v2). A server is made for every request, so what it says is made beforehand: the low-level
 * `Server` with constant handlers, not tools that are registered one by one.
 */
import {
  type CallToolResult,
  createMcpHandler,
  type McpHttpHandler,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server';
import type { Log } from '../errors.ts';
import type { McpTool, ToolCaller } from './tools.ts';

const SERVER_INFO = { name: 'freehold', title: 'Freehold', version: '1.1.0' };
const OPTIONS = {
  capabilities: { tools: {} },
  supportedProtocolVersions: ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26'],
  instructions:
    'Hosting without identity verification. Register with register_account, then pass access_token to each tool or send it as Authorization: Bearer. The catalog can be read without a credential.',
  cacheHints: {
    'tools/list': { ttlMs: 300_000, cacheScope: 'public' as const },
    'server/discover': { ttlMs: 300_000, cacheScope: 'public' as const },
  },
};

/** Serves 2026-07-28 and the revisions of 2025, without sessions. */
export function mcpHandler(tools: readonly McpTool[], onError: Log): McpHttpHandler {
  const byName = new Map(tools.map((tool) => [tool.definition.name, tool]));
  const list = { tools: tools.map(({ definition }) => definition) };
  const call = async (
    { params }: { params: { name: string; arguments?: Record<string, unknown> | undefined } },
    { http, mcpReq }: ServerContext,
  ): Promise<CallToolResult> => {
    const tool = byName.get(params.name);
    if (!tool) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'There is no such tool. See tools/list.');
    const caller = http!.authInfo!.extra!.caller as Omit<ToolCaller, 'signal'>;
    return tool.call(params.arguments ?? {}, { ...caller, signal: mcpReq.signal });
  };
  return createMcpHandler(
    () => {
      const server = new Server(SERVER_INFO, OPTIONS);
      server.setRequestHandler('tools/list', () => list);
      server.setRequestHandler('tools/call', call);
      return server;
    },
    // Requests that were refused are reported here, too; they were answered, and are not worth a line.
    { legacy: 'stateless', onerror: ({ name, stack }) => name !== 'Error' && onError({ name, stack }) },
  );
}
