/** Failures of the stdio process, as a host sees them. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { newDatabaseUrl } from '../../../setup/database.ts';
import { eventually, startFreehold } from '../../../setup/freehold.ts';
import { freePort, newFolder, removeFolder, restClient, spawnService } from '../../../setup/spawn.ts';
import { STDIO_AGENTS, start } from './stdio-package.ts';

const freehold = await startFreehold({ SIMULATED_PROVISION_SECONDS: '600' });
const FREEHOLD_URL = freehold.publicUrl;

const initialize = (id: number) => ({
  jsonrpc: '2.0',
  id,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
});
const INITIALIZED = { jsonrpc: '2.0', method: 'notifications/initialized' };
const request = (id: number, method: string, params = {}) => ({ jsonrpc: '2.0', id, method, params });
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};
type Process = ReturnType<typeof start>;
const answerTo = ({ answers }: Process, id: number | null) =>
  eventually(async () => answers.find((answer) => answer.id === id && !('method' in answer)));

async function withServer() {
  const account = await freehold.newAccount();
  await account.fund(30);
  const { body } = await account.rest('POST', '/v1/servers', { service_code: 'vps-1' });
  return { FREEHOLD_API_KEY: account.accessToken, order_number: body.order_number as string };
}

describe('The process', () => {
  const SECRET = 'svc_live_secret';
  it.each([
    ['FREEHOLD_URL is missing', {}],
    ['FREEHOLD_URL is missing', { FREEHOLD_URL: ' ' }],
    ['FREEHOLD_URL is wrong', { FREEHOLD_URL: 'nowhere' }],
    ['FREEHOLD_URL is wrong', { FREEHOLD_URL: 'ftp://localhost' }],
    ['FREEHOLD_URL is wrong', { FREEHOLD_URL: `https://user:${SECRET}@localhost` }],
    ['FREEHOLD_API_KEY is wrong', { FREEHOLD_URL, FREEHOLD_API_KEY: `Bearer ${SECRET}` }],
    ['FREEHOLD_READONLY is wrong', { FREEHOLD_URL, FREEHOLD_READONLY: 'perhaps' }],
  ])('ends with 2 and a sentence: %s', async (sentence, environment) => {
    const process = start(environment as Record<string, string>);
    expect(await process.exited).toBe(2);
    expect(process.complaints()).toContain(sentence);
    expect(process.complaints().trim().split('\n')).toHaveLength(1);
    expect(process.complaints()).not.toContain(SECRET);
    expect(process.output()).toBe('');
  });

  it('answers invalid lines, and goes on', async () => {
    const process = start({ FREEHOLD_URL });
    process.write('nonsense', '', '{"jsonrpc":"2.0","id":5,"method":7}', '"text"', '[]', 'null');
    expect((await answerTo(process, null)).error.code).toBe(-32_700);
    expect((await answerTo(process, 5)).error.code).toBe(-32_600);
    process.write([request(6, 'tools/list'), request(7, 'prompts/list')]);
    expect((await answerTo(process, 6)).result.tools.length).toBeGreaterThan(30);
    expect((await answerTo(process, 7)).result.prompts.length).toBeGreaterThan(0);
    process.write(initialize(8));
    expect((await answerTo(process, 8)).result.protocolVersion).toBe('2025-06-18');
  });

  it('answers all piped requests, and ends its session and itself at the end of the input', async () => {
    const methods: string[] = [];
    const url = await recorder(methods);
    const process = start({ FREEHOLD_URL: url });
    process.write(initialize(1), INITIALIZED, request(2, 'tools/list'), request(3, 'ping'));
    process.child.stdin.end();
    expect(await process.exited).toBe(0);
    expect(process.answers.map(({ id }) => id).sort()).toEqual([1, 2, 3]);
    expect(methods).toContain('DELETE');
    expect(process.complaints()).toBe('');
  });

  it.each(['SIGTERM', 'SIGINT'] as const)(
    'ends its session and itself on %s, even during a request',
    async (signal) => {
      const methods: string[] = [];
      const { order_number, FREEHOLD_API_KEY } = await withServer();
      const process = start({ FREEHOLD_URL: await recorder(methods), FREEHOLD_API_KEY });
      process.write(initialize(1), INITIALIZED);
      await answerTo(process, 1);
      const args = { order_number, status: 'running', timeout: 25 };
      process.write(request(2, 'tools/call', { name: 'wait_for_server', arguments: args }));
      await eventually(async () => methods.length >= 4);
      process.child.kill(signal);
      expect(await process.exited).toBe(0);
      expect(methods).toContain('DELETE');
    },
  );
});

describe('A request', () => {
  it('with a refused key gets an error that says so, without the key', async () => {
    const key = `svc_live_${'a'.repeat(38)}`;
    const process = start({ FREEHOLD_URL, FREEHOLD_API_KEY: key });
    process.write(initialize(1), request(2, 'tools/list', { _meta: META }), INITIALIZED);
    for (const id of [1, 2])
      expect((await answerTo(process, id)).error.message).toContain('FREEHOLD_API_KEY was refused');
    await eventually(async () => process.complaints());
    expect(process.output() + process.complaints()).not.toContain(key);
  });

  it('to an address without MCP gets an error that says so', async () => {
    const process = start({ FREEHOLD_URL: `${FREEHOLD_URL}/nowhere` });
    process.write(initialize(1));
    const { error } = await answerTo(process, 1);
    expect(error.message).toContain(`${FREEHOLD_URL}/nowhere/mcp: check FREEHOLD_URL`);
  });

  it('for unknown toolsets gets an error with the known ones', async () => {
    const process = start({ FREEHOLD_URL, FREEHOLD_TOOLSETS: 'nonsense' });
    process.write(initialize(1));
    expect((await answerTo(process, 1)).error.message).toContain('billing');
  });

  it('has no key if the host left a placeholder in its place', async () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: as Claude Desktop does
    const process = start({ FREEHOLD_URL, FREEHOLD_API_KEY: '${user_config.api_key}', FREEHOLD_READONLY: 'false' });
    process.write(initialize(1));
    expect((await answerTo(process, 1)).result.serverInfo.name).toBe('freehold');
  });

  it.each([
    ['a session', {}],
    ['the modern version', { _meta: META }],
  ])('gets no answer once it is cancelled, while others do: %s', async (_, meta) => {
    const { order_number, FREEHOLD_API_KEY } = await withServer();
    const process = start({ FREEHOLD_URL, FREEHOLD_API_KEY });
    if (!('_meta' in meta)) process.write(initialize(1), INITIALIZED);
    const args = { order_number, status: 'running', timeout: 2 };
    process.write(request(2, 'tools/call', { name: 'wait_for_server', arguments: args, ...meta }));
    process.write(request(3, 'tools/list', meta));
    await answerTo(process, 3);
    process.write({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 2 } });
    process.write(request(4, 'tools/call', { name: 'wait_for_server', arguments: { ...args, timeout: 4 }, ...meta }));
    expect((await answerTo(process, 4)).result.structuredContent.status).toMatch(/pending|provisioning/);
    expect(process.answers.filter(({ id }) => id === 2)).toEqual([]);
    expect(process.complaints()).toBe('');
  });
});

describe.each(STDIO_AGENTS)('The official client %s at %s', (_, __, connect) => {
  it('gets progress while it waits', async () => {
    const { order_number, FREEHOLD_API_KEY } = await withServer();
    const { call } = await connect({ FREEHOLD_URL, FREEHOLD_API_KEY });
    const heard: string[] = [];
    const onprogress = ({ message }: { message: string }) => heard.push(message);
    await call('wait_for_server', { order_number, status: 'running', timeout: 2 }, { onprogress });
    expect(heard[0]).toMatch(new RegExp(`^${order_number} is `));
  });
});

const RESTARTED = [STDIO_AGENTS[1]!, STDIO_AGENTS[3]!];
describe.each(RESTARTED)('Through a restart, the official client %s at %s', (_, version, connect) => {
  it('gets an error for an uncertain request, and goes on once the endpoint is back', async () => {
    const [DATA_DIR, DATABASE_URL, PORT] = [newFolder(), await newDatabaseUrl(), String(await freePort())];
    onTestFinished(() => removeFolder(DATA_DIR));
    const simulated = { SIMULATED_PAYMENT_SECONDS: '0.05', SIMULATED_PROVISION_SECONDS: '600', POLL_SECONDS: '0.02' };
    const environment = { DATA_DIR, DATABASE_URL, PORT, ...simulated };
    const first = await spawnService(environment);
    const account = { email: 'ada@example.org', password: 'a heron on the roof' };
    const { body } = await restClient(first.url)('POST', '/v1/auth/register', account);
    const { call, watch } = await connect({ FREEHOLD_URL: first.url, FREEHOLD_API_KEY: body.tokens.access_token });
    await call('create_topup', { amount_usd: 30, crypto: 'xmr' });
    await eventually(async () => (await call('get_balance')).content.balance_usd === 30);
    const { order_number } = (await call('order_server', { service_code: 'vps-1' })).content;
    let changes = 0;
    const listen = () => watch(`freehold://servers/${order_number}`, () => changes++);
    await listen();

    const heard = Promise.withResolvers<unknown>();
    const waiting = call('wait_for_server', { order_number, status: 'running' }, { onprogress: heard.resolve });
    const told = expect(waiting).rejects.toThrow('may have taken effect');
    await heard.promise;
    await first.kill();
    await told;
    for (let calls = 0; calls < 2; calls++)
      await expect(call('list_catalog')).rejects.toThrow(/Cannot reach Freehold at .*ECONNREFUSED/);

    const second = await spawnService(environment);
    onTestFinished(async () => void (await second.stop()));
    expect((await call('get_server', { order_number })).content.order_number).toBe(order_number);
    changes = 0;
    // In the modern version the client opens the stream itself, and was told of its end.
    if (version === '2026-07-28') await listen();
    // The service sends no updates for changes before the new stream.
    await eventually(async () => {
      await call('update_server', { order_number, labels: { change: `n${Math.round(performance.now())}` } });
      return changes > 0;
    });
  });
});

/** Forwards all requests to the service, and records their methods. */
async function recorder(methods: string[]): Promise<string> {
  const server = createServer(async (incoming, outgoing) => {
    methods.push(incoming.method!);
    const over = new AbortController();
    outgoing.on('close', () => over.abort());
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const { host: _, connection: __, 'content-length': ___, ...headers } = incoming.headers;
    try {
      const response = await fetch(FREEHOLD_URL + incoming.url, {
        method: incoming.method!,
        headers: headers as Record<string, string>,
        ...(chunks.length && { body: Buffer.concat(chunks) }),
        signal: over.signal,
      });
      const { 'content-encoding': ____, 'transfer-encoding': _____, ...rest } = Object.fromEntries(response.headers);
      outgoing.writeHead(response.status, rest).flushHeaders();
      for await (const chunk of response.body ?? []) outgoing.write(chunk);
      outgoing.end();
    } catch {
      outgoing.destroy();
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
