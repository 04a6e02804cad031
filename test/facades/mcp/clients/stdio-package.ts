/** The stdio package as users get it: its tarball, installed in an empty folder, run by the official clients. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ElicitRequestSchema, ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { onTestFinished } from 'vitest';
import { buildPackages } from '../../../../facades/downloads/build.ts';
import { newFolder, removeFolder } from '../../../setup/spawn.ts';
import { type Agent, type AgentOptions, agentOf, capabilities, INFO } from '../agents.ts';

export type Environment = Record<string, string>;
export type ConnectStdio = (environment: Environment, options?: AgentOptions) => Promise<Agent>;

let installation: string | undefined;

/** Installs the package once a process in an empty folder, without a network. @returns the path of the command */
export function installed(): string {
  if (installation) return installation;
  const folder = newFolder();
  process.once('exit', () => removeFolder(folder));
  const built = join(folder, 'built');
  const empty = join(folder, 'empty');
  buildPackages(built, 'http://localhost:3000');
  mkdirSync(empty);
  writeFileSync(join(empty, 'package.json'), '{}');
  const tarball = join(built, 'freehold-mcp-0.2.0.tgz');
  execFileSync('npm', ['install', '--offline', '--no-audit', '--no-fund', '--loglevel=error', tarball], { cwd: empty });
  installation = join(empty, 'node_modules', '.bin', 'freehold-mcp');
  return installation;
}

/** The machine's own Node, which may be older than the Node of the tests. */
const machinePath = (process.env.PATH ?? '')
  .split(':')
  .filter((folder) => !folder.includes('node_modules'))
  .concat(dirname(process.execPath))
  .join(':');

const parameters = (environment: Environment) => ({
  command: installed(),
  env: { ...environment, PATH: machinePath },
  stderr: 'pipe' as const,
});

// biome-ignore lint/suspicious/noExplicitAny: the test checks the answers of both SDKs
type Any = any;

const old =
  (asked: string): ConnectStdio =>
  async (environment, options = {}) => {
    const client = new OldClient(INFO, capabilities(options) as Any);
    const { user } = options;
    if (user) client.setRequestHandler(ElicitRequestSchema, async ({ params }) => user(params.message) as Any);
    const transport: OldTransport & { setProtocolVersion?: (version: string) => void } = new OldTransport(
      parameters(environment),
    );
    let version = '';
    transport.setProtocolVersion = (negotiated) => {
      version = negotiated;
    };
    const send = transport.send.bind(transport);
    transport.send = (message) => {
      if ('method' in message && message.method === 'initialize') message.params!.protocolVersion = asked;
      return send(message);
    };
    await client.connect(transport as never);
    onTestFinished(() => client.close());
    return agentOf(client, version, true, async (uri, changed) => {
      client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => changed(params.uri));
      await client.subscribeResource({ uri });
      return () => client.unsubscribeResource({ uri });
    });
  };

const modern =
  (more: object): ConnectStdio =>
  async (environment, options = {}) => {
    const client: Any = new Client(INFO, { ...capabilities(options), ...more });
    if (options.user)
      client.setRequestHandler('elicitation/create', async ({ params }: Any) => options.user!(params.message));
    await client.connect(new StdioClientTransport(parameters(environment)));
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

export const STDIO_AGENTS: [name: string, version: string, connect: ConnectStdio][] = [
  ['v1', '2025-03-26', old('2025-03-26')],
  ['v1', '2025-11-25', old('2025-11-25')],
  ['v2', '2025-11-25', modern({})],
  ['v2', '2026-07-28', modern({ versionNegotiation: { mode: { pin: '2026-07-28' } } })],
];

/** Starts the process without a client, for messages that no client sends. It ends with the test. */
export function start(environment: Environment) {
  const child = spawn(installed(), [], {
    env: { ...environment, PATH: machinePath, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE },
  });
  const answers: Any[] = [];
  let [output, complaints] = ['', ''];
  child.stdout.on('data', (chunk) => (output += chunk));
  child.stderr.on('data', (chunk) => (complaints += chunk));
  createInterface({ input: child.stdout }).on('line', (line) => answers.push(JSON.parse(line)));
  const exited = once(child, 'exit').then(([code]) => code as number | null);
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  return {
    child,
    answers,
    exited,
    output: () => output,
    complaints: () => complaints,
    write: (...messages: unknown[]) =>
      child.stdin.write(messages.map((one) => `${typeof one === 'string' ? one : JSON.stringify(one)}\n`).join('')),
  };
}
