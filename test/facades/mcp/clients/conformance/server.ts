/** A server with the fixtures of the conformance suite, behind the HTTP handler of the service. */
import {
  createRequestStateCodec,
  fromJsonSchema,
  McpServer,
  type McpServerFactory,
  ResourceTemplate,
} from '@modelcontextprotocol/server';
import { publicServer } from '../../../../../facades/http/listener.ts';
import { PROTOCOL_VERSIONS } from '../../../../../facades/mcp/server.ts';
import { neverEnds } from '../../../sample-api.ts';
import { embedded, image, PNG, text } from './content.ts';
import { addQuestions, type Step } from './questions.ts';
import { addTools } from './tools.ts';

const codec = createRequestStateCodec<Step>({ key: Buffer.alloc(32, 7), ttlSeconds: 60 });
const HINT = { ttlMs: 1_000, cacheScope: 'public' as const };
const OPTIONS = {
  capabilities: {
    tools: { listChanged: false },
    prompts: { listChanged: false },
    resources: { listChanged: false, subscribe: true },
    completions: {},
    logging: {},
  },
  supportedProtocolVersions: PROTOCOL_VERSIONS,
  requestState: { verify: codec.verify },
  cacheHints: {
    'tools/list': HINT,
    'prompts/list': HINT,
    'resources/list': HINT,
    'resources/templates/list': HINT,
    'resources/read': HINT,
  },
};

const factory: McpServerFactory = ({ era }) => {
  const server = new McpServer({ name: 'fixtures', version: '1.0.0' }, OPTIONS);
  addTools(server);
  addQuestions(server, codec);
  addPrompts(server);
  addResources(server);
  const low = server.server;
  low.setRequestHandler('completion/complete', ({ params }) => {
    const values = ['paris', 'park', 'party'].filter((one) => one.startsWith(params.argument.value));
    return { completion: { values, total: values.length, hasMore: false } };
  });
  if (era === 'legacy') {
    low.setRequestHandler('resources/subscribe', () => ({}));
    low.setRequestHandler('resources/unsubscribe', () => ({}));
  }
  return server;
};

const words = (...names: string[]) =>
  fromJsonSchema<Record<string, string>>({
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, { type: 'string', description: `The ${name}` }])),
    required: names,
  });

function addPrompts(server: McpServer): void {
  const saying = (...contents: (ReturnType<typeof text> | ReturnType<typeof embedded> | typeof image)[]) => ({
    messages: contents.map((content) => ({ role: 'user' as const, content })),
  });
  server.registerPrompt('test_simple_prompt', { description: 'Says one thing' }, () =>
    saying(text('This is a simple prompt for testing.')),
  );
  server.registerPrompt('test_prompt_with_image', { description: 'Shows an image' }, () =>
    saying(image, text('Please analyze the image above.')),
  );
  const two = { description: 'Repeats its arguments', argsSchema: words('arg1', 'arg2') };
  server.registerPrompt('test_prompt_with_arguments', two, ({ arg1, arg2 }) =>
    saying(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)),
  );
  const uri = { description: 'Embeds a resource', argsSchema: words('resourceUri') };
  server.registerPrompt('test_prompt_with_embedded_resource', uri, ({ resourceUri }) =>
    saying(
      embedded(resourceUri!, 'text/plain', 'Embedded resource content for testing.'),
      text('Please process the embedded resource above.'),
    ),
  );
}

function addResources(server: McpServer): void {
  const plain = { description: 'A text', mimeType: 'text/plain' };
  server.registerResource('static-text', 'test://static-text', plain, ({ href }) => ({
    contents: [{ uri: href, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }],
  }));
  const png = { description: 'An image', mimeType: PNG.mimeType };
  server.registerResource('static-binary', 'test://static-binary', png, ({ href }) => ({
    contents: [{ uri: href, mimeType: PNG.mimeType, blob: PNG.data }],
  }));
  const template = new ResourceTemplate('test://template/{id}/data', { list: undefined });
  const json = { description: 'A record', mimeType: 'application/json' };
  server.registerResource('template', template, json, ({ href }, { id }) => ({
    contents: [
      {
        uri: href,
        mimeType: json.mimeType,
        text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
      },
    ],
  }));
  const watched = { description: 'It could change', mimeType: 'text/plain' };
  server.registerResource('watched', 'test://watched-resource', watched, ({ href }) => ({
    contents: [{ uri: href, mimeType: 'text/plain', text: 'Watched.' }],
  }));
}

/** Listens on a free port. @returns its URL, and a function that closes it */
export async function openFixtures(): Promise<{ url: string; close: () => Promise<void> }> {
  let requests = 0;
  const app = await publicServer({
    operations: [],
    authenticate: async () => null,
    contextOf: (context) => context as never,
    publicUrl: 'http://127.0.0.1',
    mcpSecrets: [Buffer.alloc(32, 7)],
    onCredentialEnd: neverEnds,
    newRequestId: () => `req_${++requests}`,
    onError: (line) => console.error(line),
    factoryOf: () => factory,
  });
  const address = await app.listen({ host: '127.0.0.1', port: 0 });
  return { url: `${address}/mcp`, close: () => app.close() };
}
