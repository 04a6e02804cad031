/** Tools that the conformance suite calls by name. None of them asks the client a question. */
import { setTimeout as wait } from 'node:timers/promises';
import { fromJsonSchema, type McpServer, type ServerContext } from '@modelcontextprotocol/server';
import { answer, audio, embedded, image, text } from './content.ts';

const STEP_MS = 50;

const MIXED = embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}');
const EMBEDDED = embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.');

export function addTools(server: McpServer): void {
  const add = (name: string, description: string, call: (request: ServerContext) => ReturnType<typeof later>) =>
    server.registerTool(name, { description }, call);
  const constant = (name: string, description: string, ...content: Parameters<typeof answer>) =>
    add(name, description, async () => answer(...content));

  constant('test_simple_text', 'Answers text', text('This is a simple text response for testing.'));
  constant('test_image_content', 'Answers an image', image);
  constant('test_audio_content', 'Answers a sound', audio);
  constant('test_embedded_resource', 'Answers a resource', EMBEDDED);
  constant('test_multiple_content_types', 'Answers of every kind', text('Multiple content types test:'), image, MIXED);
  add('test_error_handling', 'Always fails', async () => {
    throw new Error('This tool intentionally returns an error for testing');
  });
  add('test_tool_with_logging', 'Logs while it works', logging);
  add('test_logging_tool', 'Logs while it works', logging);
  add('test_tool_with_progress', 'Tells how far it is', progressing);
  add('test_reconnection', 'Closes its stream before it answers, where streams can be resumed', async ({ http }) => {
    http?.closeSSE?.();
    return later('The answer after the stream.');
  });
  addSchemas(server);
}

async function later(said: string) {
  await wait(STEP_MS);
  return answer(text(said));
}

async function logging({ mcpReq }: ServerContext) {
  await mcpReq.log('info', 'Tool execution started');
  await wait(STEP_MS);
  await mcpReq.log('info', 'Tool processing data');
  await wait(STEP_MS);
  await mcpReq.log('info', 'Tool execution completed');
  return answer(text('Logged three times.'));
}

async function progressing({ mcpReq }: ServerContext) {
  const progressToken = mcpReq._meta?.progressToken;
  for (const progress of [0, 50, 100]) {
    if (progress) await wait(STEP_MS);
    if (progressToken === undefined) continue;
    await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
  }
  return answer(text('It is done.'));
}

/** Tools whose schemas the scenarios check. */
function addSchemas(server: McpServer): void {
  server.registerTool(
    'json_schema_2020_12_tool',
    { description: 'Has the keywords of JSON Schema 2020-12', inputSchema: fromJsonSchema<object>(KEYWORDS) },
    async (args) => answer(text(JSON.stringify(args))),
  );
  const inputSchema = fromJsonSchema<{ region?: string }>({
    type: 'object',
    properties: { region: { type: 'string', description: 'Repeated in a header', ...{ 'x-mcp-header': 'Region' } } },
  });
  server.registerTool(
    'test_header_argument',
    { description: 'Has an argument for routers', inputSchema },
    async (args) => answer(text(`The region is ${args.region}.`)),
  );
}

const KEYWORDS = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
};
