/**
 * `node bench/mcp.ts`, a part of `npm run bench`. It measures the server's processor time for a tool call. The peer is a
 * constant tool of the SDK with the same answer. It also measures the size of the tool list and of a session.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { publicServer } from '../facades/http/listener.ts';
import { neverEnds } from '../test/facades/sample-api.ts';
import { freePort, restClient, spawnService } from '../test/setup/spawn.ts';
import { compareCosts, print } from './figure.ts';
import { load, prepare } from './load.ts';
import { cpuSeconds } from './report.ts';

const ROUNDS = 9;
const SLICE_SECONDS = 1;
/** Compilers need some ten thousand calls. */
const WARM_SECONDS = 8;
const CONNECTIONS = 8;
const COST_BAR = 1.4;
const TOKENS_BAR = 6_000;
const SESSION_BAR_KIB = 16;
/** A rough average for JSON. */
const BYTES_PER_TOKEN = 4;

interface Peer {
  port: number;
  pid: number;
  credential: string;
}
type Json = Record<string, unknown>;

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** The headers of a client that uses fetch. */
const headersOf = (method: string, tool?: unknown): Record<string, string> => ({
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  'accept-encoding': 'gzip, deflate',
  'accept-language': '*',
  'sec-fetch-mode': 'cors',
  'user-agent': 'node',
  'mcp-protocol-version': '2026-07-28',
  'mcp-method': method,
  ...(typeof tool === 'string' && { 'mcp-name': tool }),
});
const messageOf = (method: string, params: Json): Json => ({
  ...{ jsonrpc: '2.0', id: 1, method },
  params: { ...params, _meta: META },
});

async function post(
  { port, credential }: Pick<Peer, 'port'> & Partial<Peer>,
  method: string,
  params: Json,
): Promise<Json> {
  const authorization = credential && `Bearer ${credential}`;
  const response = await fetch(`http://127.0.0.1:${port}/mcp`, {
    method: 'POST',
    headers: { ...headersOf(method, params.name), ...(authorization && { authorization }) },
    body: JSON.stringify(messageOf(method, params)),
  });
  const { result, error } = (await response.json()) as { result?: Json; error?: Json };
  if (!result || result.isError) throw new Error(`${method}: ${JSON.stringify(error ?? result)}`);
  return result;
}

/** @returns microseconds of the server's processor time for one call */
async function cost({ port, pid, credential }: Peer, tool: string, seconds = SLICE_SECONDS): Promise<number> {
  const { 'content-type': _, ...headers } = headersOf('tools/call', tool);
  const message = messageOf('tools/call', { name: tool, arguments: {} });
  const before = cpuSeconds(pid);
  const { requests } = await load({
    port,
    request: prepare('POST', '/mcp', credential, message, headers),
    expects: (body) => body.includes('"resultType":"complete"') && !body.includes('"isError":true'),
    connections: CONNECTIONS,
    seconds,
  });
  return ((cpuSeconds(pid) - before) / requests) * 1e6;
}

/** Compares a tool with a constant one of the SDK that gives the same answer. */
async function compareTool(service: Peer, tool: string): Promise<void> {
  const { structuredContent } = await post(service, 'tools/call', { name: tool, arguments: {} });
  const peer = await startPeer(structuredContent);
  try {
    const sides = [() => cost(service, tool), () => cost(peer, 'constant')] as const;
    await cost(service, tool, WARM_SECONDS);
    await cost(peer, 'constant', WARM_SECONDS);
    const costs: [number[], number[]] = [[], []];
    for (let round = 0; round < ROUNDS; round++)
      for (const side of round % 2 ? ([0, 1] as const) : ([1, 0] as const)) costs[side].push(await sides[side]());
    print(compareCosts(`tools/call ${tool}, CPU against the SDK's constant tool`, COST_BAR, 'µs', ...costs));
  } finally {
    peer.stop();
  }
}

async function listSize(service: Peer): Promise<void> {
  const { tools } = (await post({ port: service.port }, 'tools/list', {})) as { tools: Json[] };
  const read = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
  const tokens = (value: unknown) => Math.ceil(JSON.stringify(value).length / BYTES_PER_TOKEN);
  print({
    name: `tools/list, tokens that a model reads (${tools.length} tools)`,
    ratio: tokens(read),
    bar: TOKENS_BAR,
  });
  console.log(`tools/list, tokens of the whole answer, with output schemas: ${tokens(tools)}`);
}

async function sessionSize(): Promise<void> {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  const used = () => {
    gc();
    return process.memoryUsage().heapUsed;
  };
  const app = await publicServer({
    authenticate: async (authorization) =>
      ({ accountId: 'acct_bench', kind: 'api_key', credentialId: authorization!, scopes: new Set(['read']) }) as never,
    contextOf: (caller) => caller as never,
    publicUrl: 'http://localhost',
    newRequestId: () => 'req_bench',
    mcpSecrets: [Buffer.alloc(32, 1)],
    onCredentialEnd: neverEnds,
    onError: console.error,
  });
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } };
  const payload = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
  const open = async (owner: number) =>
    app.inject({
      method: 'POST',
      url: '/mcp',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        authorization: `Bearer ${owner}`,
      },
      payload,
    });
  const [warm, counted] = [200, 1_000];
  for (let i = 0; i < warm; i++) await open(i);
  const before = used();
  for (let i = 0; i < counted; i++) await open(warm + i);
  print({ name: 'A session of 2025, KiB', ratio: (used() - before) / counted / 1024, bar: SESSION_BAR_KIB });
  await app.close();
}

async function startPeer(answer: unknown): Promise<Peer & { stop: () => void }> {
  const port = await freePort();
  const child = spawn(process.execPath, [join(import.meta.dirname, 'peers', 'mcp.ts')], {
    env: { ...process.env, PORT: String(port), ANSWER: JSON.stringify(answer) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  return { port, pid: child.pid!, credential: 'none', stop: () => child.kill() };
}

const service = await spawnService({ ROLES: 'api', RATE_LIMIT_STORE: 'memory' });
try {
  const { body } = await restClient(service.url)('POST', '/v1/auth/register', {
    email: 'bench@example.org',
    password: 'a heron on the roof',
  });
  const port = Number(new URL(service.url).port);
  const measured = { port, pid: service.process.pid!, credential: body.tokens.access_token };
  for (const tool of ['list_coins', 'get_balance']) await compareTool(measured, tool);
  await listSize(measured);
  await sessionSize();
} finally {
  await service.stop();
}
