/** The cost of MCP alone: one constant tool of the official SDK, behind the same server and transport. */
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, Server } from '@modelcontextprotocol/server';
import Fastify from 'fastify';

const text = process.env.ANSWER!;
const RESULT = { content: [{ type: 'text' as const, text }], structuredContent: JSON.parse(text) };

const handler = createMcpHandler(() => {
  const server = new Server({ name: 'peer', version: '1.0.0' }, { capabilities: { tools: {} } });
  server.setRequestHandler('tools/call', () => RESULT);
  return server;
});
const serve = toNodeHandler(handler);
const app = Fastify();
app.post('/mcp', async (request, reply) => {
  reply.hijack();
  await serve(request.raw, reply.raw, request.body);
});
console.log(await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' }));
