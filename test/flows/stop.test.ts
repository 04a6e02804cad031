import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { createClient } from 'graphql-ws';
import { describe, expect, it, onTestFinished } from 'vitest';
import WebSocket from 'ws';
import { newDatabaseUrl } from '../setup/database.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';
import {
  freePort,
  MACHINE,
  MAIN,
  newFolder,
  removeFolder,
  restClient,
  spawnService,
  UNLIMITED,
} from '../setup/spawn.ts';

const NOWHERE = 'postgres://freehold@127.0.0.1:1/freehold';
const environment = async (more: Record<string, string> = {}) => {
  const folder = newFolder();
  onTestFinished(() => removeFolder(folder));
  return { DATA_DIR: folder, DATABASE_URL: await newDatabaseUrl(), ...more };
};

/**
 * Sends a request, and returns as soon as the service has it (Expect: 100-continue, RFC 9110, 10.1.1).
 * @returns the promise of the answer
 */
async function received(url: string, credential: string) {
  const headers = { authorization: `Bearer ${credential}`, expect: '100-continue' };
  const asked = request(url, { headers });
  const response = once(asked, 'response') as Promise<[IncomingMessage]>;
  asked.flushHeaders();
  await once(asked, 'continue');
  asked.end();
  const answered = async () => {
    const [message] = await response;
    return { status: message.statusCode, body: await json(message) };
  };
  return { answer: answered() };
}

/** Opens a WebSocket to GraphQL, and never reads from it again. */
async function openSilently(url: string): Promise<Socket> {
  const headers = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' };
  const key = { 'sec-websocket-key': Buffer.alloc(16).toString('base64') };
  const asked = request(url, { headers: { ...headers, ...key, 'sec-websocket-protocol': 'graphql-transport-ws' } });
  asked.end();
  const [, socket] = (await once(asked, 'upgrade')) as [IncomingMessage, Socket];
  return socket.on('error', () => {}).pause();
}

describe('The service as a process', () => {
  it('answers waiting requests with the present state when it has to stop, and ends with 0', async () => {
    const service = await spawnService(
      await environment({ SIMULATED_PROVISION_SECONDS: '600', SIMULATED_PAYMENT_SECONDS: '0' }),
    );
    const { body } = await restClient(service.url)('POST', '/v1/auth/register', {
      email: 's@example.org',
      password: 'a heron on the roof',
    });
    const rest = restClient(service.url, body.tokens.access_token);
    await rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'BTC' });
    await eventually(async () => (await rest('GET', '/v1/account/balance')).body.balance_usd === 30);
    const { order_number } = (await rest('POST', '/v1/servers', { service_code: 'vps-1' })).body;
    await eventually(async () => (await rest('GET', `/v1/servers/${order_number}`)).body.status === 'provisioning');
    const path = `/v1/servers/${order_number}?wait_for=running`;
    const { answer } = await received(service.url + path, body.tokens.access_token);
    const began = Date.now();
    const stopped = service.stop();
    expect(await answer).toMatchObject({ status: 200, body: { status: 'provisioning' } });
    // Without the stop, the request would wait 25 seconds.
    expect(Date.now() - began).toBeLessThan(20_000);
    expect(await stopped).toBe(0);
  });

  it('still answers for DRAIN_SECONDS when it has to stop, and is no longer ready', async () => {
    const service = await spawnService(await environment({ DRAIN_SECONDS: '600' }));
    onTestFinished(() => service.kill());
    service.process.kill('SIGTERM');
    await eventually(async () => (await fetch(service.graphql.replace('graphql', 'readyz'))).status === 503);
    expect((await restClient(service.url)('GET', '/v1/catalog')).status).toBe(200);
  });

  it('closes WebSockets with 1001 when it has to stop, and waits for no client that does not answer', async () => {
    const service = await spawnService(await environment());
    onTestFinished(() => service.kill());
    const silent = await openSilently(service.graphql);
    onTestFinished(() => void silent.destroy());
    const codes: number[] = [];
    const connected = Promise.withResolvers<void>();
    const client = createClient({
      url: service.graphql.replace('http', 'ws'),
      webSocketImpl: WebSocket,
      connectionParams: { authorization: `Bearer ${service.operatorToken}` },
      retryAttempts: 0,
      on: {
        connected: () => connected.resolve(),
        closed: (event) => void codes.push((event as { code: number }).code),
      },
    });
    const sink = { next: () => {}, error: () => {}, complete: () => {} };
    client.subscribe({ query: 'subscription { serverUpdated { type } }' }, sink);
    await connected.promise;
    const began = Date.now();
    expect(await service.stop()).toBe(0);
    expect(Date.now() - began).toBeLessThan(20_000);
    expect(codes).toEqual([1001]);
  });

  it.each([
    ['a supervisor signals npm', 'SIGTERM', (npm: number) => npm],
    ['a terminal signals both', 'SIGINT', (npm: number) => -npm],
  ] as const)('ends with 0 under npm, and does not outlive npm, when %s', async (_, signal, told) => {
    const ports = { PORT: String(await freePort()), INTERNAL_PORT: String(await freePort()) };
    const env = { PATH: process.env.PATH, ...UNLIMITED, ...ports, ...(await environment()) };
    const npm = spawn('npm', ['start'], { stdio: ['ignore', 'pipe', 'inherit'], detached: true, env });
    onTestFinished(() => void (npm.exitCode ?? npm.kill('SIGKILL')));
    let printed = '';
    npm.stdout.on('data', (chunk) => (printed += chunk));
    await eventually(async () => printed.includes('is running'), 240);
    process.kill(told(npm.pid!), signal);
    expect(await once(npm, 'exit')).toEqual([0, null]);
    await expect(fetch(`http://127.0.0.1:${ports.PORT}/v1/catalog`)).rejects.toThrow();
  });

  it('ends with 0 after its start if the signal comes during the start, and leaves no database running', async () => {
    const folder = newFolder();
    onTestFinished(() => removeFolder(folder));
    const ports = { PORT: String(await freePort()), INTERNAL_PORT: String(await freePort()) };
    const env = { ...MACHINE, ...UNLIMITED, ...ports, DATA_DIR: folder };
    const service = spawn(process.execPath, [MAIN], { stdio: 'ignore', env });
    onTestFinished(() => void (service.exitCode ?? service.kill('SIGKILL')));
    const running = join(folder, 'postgres', 'cluster', 'postmaster.pid');
    await eventually(async () => existsSync(running), 240);
    service.kill('SIGTERM');
    expect(await once(service, 'exit')).toEqual([0, null]);
    expect(existsSync(running)).toBe(false);
  });

  it('prints the address of every part, and that machines and payments are simulated', async () => {
    const service = await spawnService(await environment());
    for (const text of [
      '/v1',
      '/mcp',
      '/graphql',
      'operator-token',
      'Machines are SIMULATED',
      'Payments are SIMULATED',
    ]) {
      expect(service.output()).toContain(text);
    }
    await service.stop();
  });

  it('prints no address of REST or MCP for a worker, which has neither', async () => {
    const service = await spawnService({ ...(await environment()), ROLES: 'worker' });
    const lines = service
      .output()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const { level, time, msg, notes, ...parts } = lines.find(({ msg }) => msg.includes('is running'));
    expect([level, msg, notes.length]).toEqual(['info', 'Freehold is running (worker).', 2]);
    expect(new Date(time).getTime()).toBeGreaterThan(Date.now() - 600_000);
    expect(Object.keys(parts)).toEqual(['Console', 'GraphiQL', 'Operator token', 'Database', 'Start']);
    await service.stop();
  });

  it.each([
    [{ PORT: 'eighty' }, 'PORT is wrong: expected a whole number from 1 to 65535.'],
    [{ DATABASE_URL: NOWHERE }, 'Freehold cannot start. DATABASE_URL leads to no database: connect ECONNREFUSED'],
    [{ PORT: '39999' }, 'Another process listens on 127.0.0.1:39999.'],
  ])('names the reason if it cannot start: %j', async (wrong, sentence) => {
    const given = { ...(await environment()), INTERNAL_PORT: '39999', ...wrong };
    await expect(spawnService(given)).rejects.toThrow(sentence);
  });

  // The start prints the message of any error, so these need no process.
  it.each([
    [{ DATABASE_URL: NOWHERE, MIGRATION_DATABASE_URL: NOWHERE }, 'MIGRATION_DATABASE_URL leads to no database:'],
    [{ OPERATOR_TOKEN: `svc_op_${'a'.repeat(38)}` }, 'OPERATOR_TOKEN or its file has a wrong checksum.'],
  ])('fails with the reason if it cannot start: %j', async (wrong, sentence) => {
    await expect(startFreehold(wrong)).rejects.toThrow(sentence);
  });

  it('names a taken INTERNAL_PORT, and prints no stack', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void other.close());
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const failed = await spawnService({ ...(await environment()), INTERNAL_PORT: String(port) }).catch(String);
    expect(failed).toContain(`Another process listens on 127.0.0.1:${port}.`);
    expect(failed).not.toMatch(/Internal error|^ +at /m);
  });
});
