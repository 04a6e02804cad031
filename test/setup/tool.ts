/** Calls a tool with the official MCP client. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

export async function callTool(
  publicUrl: string,
  credential: string | undefined,
  name: string,
  args: Record<string, unknown> = {},
) {
  const client = new Client({ name: 'test', version: '1.0.0' });
  const requestInit = credential ? { headers: { authorization: `Bearer ${credential}` } } : {};
  await client.connect(new StreamableHTTPClientTransport(new URL(`${publicUrl}/mcp`), { requestInit }));
  const result = await client.callTool({ name, arguments: args });
  await client.close();
  // biome-ignore lint/suspicious/noExplicitAny: each test checks the type of an answer
  return { isError: Boolean(result.isError), content: result.structuredContent as any };
}
