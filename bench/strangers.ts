/**
 * `node bench/strangers.ts`, a part of `npm run bench`. Thirty strangers of as many networks send a batch of ten lists each
 * over a raw socket. They read nothing. It measures the growth of the service's memory, and the delays of another caller. Memory
 * also grows with garbage, so each round compares itself with the same seconds without strangers.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { restClient, spawnService } from '../test/setup/spawn.ts';
import { median, print, quantile } from './figure.ts';

const STRANGERS = 30;
/** The most messages of a batch. */
const BATCH = 10;
const ROUNDS = 5;
/** Rounds in which the heap takes its size; not counted. */
const ROUNDS_BEFORE = 2;
const SECONDS = 4;
const MEMORY_BAR_MIB = 32;
const WAIT_BAR = 2;
const PERCENTILE = 0.99;
const SAMPLE_MS = 20;

const ACCEPT = 'application/json, text/event-stream';
const service = await spawnService({
  ROLES: 'api',
  RATE_LIMIT_STORE: 'memory',
  RATE_LIMIT_PUBLIC_PER_MINUTE: '30',
  TRUSTED_PROXY_CIDRS: '127.0.0.1/32',
});
const { port } = new URL(service.url);

/** Resident memory of the service, in MiB. */
const memory = (): number =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${service.process.pid}/status`, 'utf8'))![1]) / 1024;

/** Sends a batch of lists, and reads nothing. */
async function stranger(address: string): Promise<Socket> {
  const socket = connect({ port: Number(port), host: '127.0.0.1' });
  await once(socket, 'connect');
  socket.pause().on('error', () => {});
  const messages = Array.from({ length: BATCH }, (_, id) => ({ jsonrpc: '2.0', id, method: 'tools/list' }));
  const body = JSON.stringify(messages);
  const head = [
    'POST /mcp HTTP/1.1',
    'Host: localhost',
    'Content-Type: application/json',
    `Accept: ${ACCEPT}`,
    `X-Forwarded-For: ${address}`,
    `Content-Length: ${body.length}`,
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  return socket;
}

/** Calls a tool again and again. @returns the milliseconds of each call */
async function caller(credential: string, seconds: number): Promise<number[]> {
  const times: number[] = [];
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get_balance' } });
  const headers = { accept: ACCEPT, 'content-type': 'application/json', authorization: `Bearer ${credential}` };
  for (const end = performance.now() + seconds * 1000; performance.now() < end; ) {
    const began = performance.now();
    const answer = await fetch(`${service.url}/mcp`, { method: 'POST', headers, body });
    if (!(await answer.text()).includes('balance_usd')) throw new Error(`get_balance: HTTP ${answer.status}`);
    times.push(performance.now() - began);
  }
  return times;
}

/** @returns the growth of memory in MiB, and the 99th percentile of the caller's milliseconds */
async function measure(credential: string, during = async () => {}) {
  const before = memory();
  let most = before;
  const sampler = setInterval(() => (most = Math.max(most, memory())), SAMPLE_MS);
  const calls = caller(credential, SECONDS);
  await sleep(SECONDS * 100);
  await during();
  const p99 = quantile(await calls, PERCENTILE);
  clearInterval(sampler);
  return { growth: most - before, p99 };
}

async function attack(round: number, credential: string) {
  const sockets: Socket[] = [];
  const measured = await measure(credential, async () => {
    const addresses = Array.from({ length: STRANGERS }, (_, i) => `198.51.${100 + round}.${i + 1}`);
    sockets.push(...(await Promise.all(addresses.map(stranger))));
  });
  for (const socket of sockets) socket.destroy();
  return measured;
}

try {
  const { body } = await restClient(service.url)('POST', '/v1/auth/register', {
    email: 'bench@example.org',
    password: 'a heron on the roof',
  });
  const credential = body.tokens.access_token;
  await caller(credential, SECONDS);
  const growths: number[] = [];
  const ratios: number[] = [];
  for (let round = -ROUNDS_BEFORE; round < ROUNDS; round++) {
    const calm = await measure(credential);
    const attacked = await attack(round, credential);
    if (round < 0) continue;
    growths.push(attacked.growth - calm.growth);
    ratios.push(attacked.p99 / calm.p99);
  }
  const attackers = `${STRANGERS} unread batches of strangers`;
  print({ name: `${attackers}, MiB of memory beyond a calm round`, ratio: median(growths), bar: MEMORY_BAR_MIB });
  print({ name: `${attackers}, another caller's p99 against its p99 alone`, ratio: median(ratios), bar: WAIT_BAR });
  console.log(`MiB in each round: ${growths.map((growth) => growth.toFixed(1)).join(', ')}`);
} finally {
  await service.stop();
}
