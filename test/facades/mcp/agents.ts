/** The official clients, each at the protocol revisions that it speaks, behind one interface. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema, ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { expect, onTestFinished } from 'vitest';

// biome-ignore lint/suspicious/noExplicitAny: the test checks the answers
type Any = any;

export interface Agent {
  version: string;
  call(name: string, args?: Record<string, unknown>, options?: object): Promise<{ isError: boolean; content: Any }>;
  tools(): Promise<Any[]>;
  read(uri: string): Promise<Any>;
  /** Reports the URI of each changed resource. @returns a function that ends the subscription */
  watch(uri: string, changed: (uri: string) => void): Promise<() => Promise<unknown>>;
  complete(argument: string, value: string): Promise<string[]>;
  client: Any;
}

export interface AgentOptions {
  credential?: string;
  /** The user's answer to a question. Without it, the client declares no elicitation. */
  user?: (message: string) => { action: string; content?: object };
  headers?: Record<string, string>;
}

export const INFO = { name: 'test', version: '1.0.0' };

const requestInit = ({ credential, headers }: AgentOptions) => ({
  headers: { ...(credential && { authorization: `Bearer ${credential}` }), ...headers },
});

export const capabilities = ({ user }: AgentOptions) => ({ capabilities: user ? { elicitation: {} } : {} });

/** Checks that the text mirrors the structure, for clients that know only text. */
const resultOf = (result: Any) => {
  expect(JSON.parse(result.content[0].text)).toEqual(result.structuredContent);
  return { isError: Boolean(result.isError), content: result.structuredContent };
};

const SERVERS = 'freehold://servers/{order_number}';

export function agentOf(client: Any, version: string, old: boolean, watch: Agent['watch']): Agent {
  return {
    version,
    client,
    watch,
    call: async (name, args = {}, options) => {
      const call = { name, arguments: args };
      return resultOf(old ? await client.callTool(call, undefined, options) : await client.callTool(call, options));
    },
    tools: async () => (await client.listTools()).tools,
    read: async (uri) => JSON.parse((await client.readResource({ uri })).contents[0].text),
    complete: async (name, value) => {
      const ref = { type: 'ref/resource', uri: SERVERS };
      return (await client.complete({ ref, argument: { name, value } })).completion.values;
    },
  };
}

/** The client of SDK v1, set to an older revision. */
const old =
  (version: string) =>
  async (url: URL, options: AgentOptions = {}): Promise<Agent> => {
    const client = new OldClient(INFO, capabilities(options) as Any);
    const { user } = options;
    if (user) client.setRequestHandler(ElicitRequestSchema, async ({ params }) => user(params.message) as Any);
    const transport = new OldTransport(url, { requestInit: requestInit(options) });
    const send = transport.send.bind(transport);
    transport.send = (message, more) => {
      if ('method' in message && message.method === 'initialize') message.params!.protocolVersion = version;
      return send(message, more);
    };
    await client.connect(transport as never);
    onTestFinished(() => client.close());
    return agentOf(client, transport.protocolVersion!, true, async (uri, changed) => {
      client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => changed(params.uri));
      await client.subscribeResource({ uri });
      return () => client.unsubscribeResource({ uri });
    });
  };

/** The client of SDK v2. */
const modern =
  (more: object) =>
  async (url: URL, options: AgentOptions = {}): Promise<Agent> => {
    const client: Any = new Client(INFO, { ...capabilities(options), ...more });
    if (options.user)
      client.setRequestHandler('elicitation/create', async ({ params }: Any) => options.user!(params.message));
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit: requestInit(options) }));
    onTestFinished(() => client.close());
    const version = client.getNegotiatedProtocolVersion();
    return agentOf(client, version, false, async (uri, changed) => {
      client.setNotificationHandler('notifications/resources/updated', ({ params }: Any) => changed(params.uri));
      if (version !== '2026-07-28') {
        await client.subscribeResource({ uri });
        return () => client.unsubscribeResource({ uri });
      }
      const stream = await client.listen({ resourceSubscriptions: [uri] });
      return () => stream.close();
    });
  };

export type Connect = (url: URL, options?: AgentOptions) => Promise<Agent>;

/** The clients, with the revision that each negotiates. */
export const AGENTS: [name: string, version: string, connect: Connect][] = [
  ['v1', '2025-03-26', old('2025-03-26')],
  ['v1', '2025-06-18', old('2025-06-18')],
  ['v1', '2025-11-25', old('2025-11-25')],
  ['v2', '2025-11-25', modern({})],
  ['v2', '2026-07-28', modern({ versionNegotiation: { mode: { pin: '2026-07-28' } } })],
];
export const [OLDEST, , OLD, , NEWEST] = AGENTS.map(([, , connect]) => connect) as [
  Connect,
  Connect,
  Connect,
  Connect,
  Connect,
];
