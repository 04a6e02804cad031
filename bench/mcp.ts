/**
 * `node bench/mcp.ts`, a part of `npm run bench`. It measures the server's processor time for a tool call,
 * relative to a constant tool of the SDK. It also measures the size of the tool list and of a session.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { publicServer } from '../facades/http/listener.ts';
import { neverEnds } from '../test/facades/sample-api.ts';
import { freePort, restClient, spawnService } from '../test/setup/spawn.ts';
import { median, print } from './figure.ts';
import { cpuSeconds } from './report.ts';

const ROUNDS = 9;
const REQUESTS = 400;
const CONNECTIONS = 8;
const COST_BAR = 1.6;
const TOKENS_BAR = 6_000;
const SESSION_BAR_KIB = 16;
/** A rough average for JSON. */
const BYTES_PER_TOKEN = 4;

interface Peer {
  url: string;
  pid: number;
  credential: string;
}
type Json = Record<string, unknown>;

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

async function post(
  { url, credential }: Pick<Peer, 'url'> & Partial<Peer>,
  method: string,
  params: Json,
): Promise<Json> {
  const response = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(credential && { authorization: `Bearer ${credential}` }),
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(typeof params.name === 'string' && { 'mcp-name': params.name }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: META } }),
  });
  const { result, error } = (await response.json()) as { result?: Json; error?: Json };
  if (!result || result.isError) throw new Error(`${method}: ${JSON.stringify(error ?? result)}`);
  return result;
}

/** @returns microseconds of the server's processor time for one call */
async function cost(peer: Peer, name: string): Promise<number> {
  const before = cpuSeconds(peer.pid);
  let left = REQUESTS;
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      while (left-- > 0) await post(peer, 'tools/call', { name, arguments: {} });
    }),
  );
  return ((cpuSeconds(peer.pid) - before) / REQUESTS) * 1e6;
}

async function calls(service: Peer, peer: Peer): Promise<void> {
  for (const tool of ['list_bonus_tiers', 'list_coins', 'get_balance']) {
    const ratios: number[] = [];
    for (let round = -1; round < ROUNDS; round++) {
      const pair: [number, number] =
        round % 2
          ? [await cost(service, tool), await cost(peer, 'constant')]
          : ((await [await cost(peer, 'constant'), await cost(service, tool)].reverse()) as [number, number]);
      if (round >= 0) ratios.push(pair[0] / pair[1]);
    }
    print({ name: `tools/call ${tool}, CPU against the SDK's constant tool`, ratio: median(ratios), bar: COST_BAR });
  }
}

async function listSize(service: Peer): Promise<void> {
  const { tools } = (await post({ url: service.url }, 'tools/list', {})) as { tools: Json[] };
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

async function startPeer(): Promise<Peer & { stop: () => void }> {
  const port = await freePort();
  const child = spawn(process.execPath, [join(import.meta.dirname, 'peers', 'mcp.ts')], {
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  return { url: `http://127.0.0.1:${port}`, pid: child.pid!, credential: 'none', stop: () => child.kill() };
}

const service = await spawnService({ ROLES: 'api', RATE_LIMIT_STORE: 'memory' });
const peer = await startPeer();
try {
  const { body } = await restClient(service.url)('POST', '/v1/auth/register', {
    email: 'bench@example.org',
    password: 'a heron on the roof',
  });
  const measured = { url: service.url, pid: service.process.pid!, credential: body.tokens.access_token };
  await calls(measured, peer);
  await listSize(measured);
  await sessionSize();
} finally {
  peer.stop();
  await service.stop();
}
