/** The listener of an onion service: the line of the PROXY protocol, and HTTP and MCP after it. */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { NetConnectOpts, Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { listenAt } from '../../../facades/http/circuits.ts';
import { atEnd } from '../../setup/end.ts';
import { eventually, startFreehold } from '../../setup/freehold.ts';
import { freePort, newFolder, removeFolder } from '../../setup/spawn.ts';
import { call, INITIALIZE, rpc } from '../mcp/raw-client.ts';
import { lineOf, openCircuit, overCircuit } from './circuit.ts';

const port = await freePort();
const at = { host: '127.0.0.1', port };
const { newAccount } = await startFreehold({
  ONION_LISTENER: `127.0.0.1:${port}`,
  TRUSTED_PROXY_CIDRS: 'fc00::/7,127.0.0.0/8',
  SIMULATED_PROVISION_SECONDS: '1',
});

async function open(line: number | string, place: NetConnectOpts = at): Promise<Socket> {
  const socket = await openCircuit(place, line);
  onTestFinished(() => void socket.destroy());
  return socket;
}
const get = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`;
const headersOf = (headers: Record<string, string>) =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
/** Reads until the text has come. */
async function until(socket: Socket, wanted: RegExp): Promise<string> {
  let text = '';
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    text += chunk;
    if (wanted.test(text)) return text;
  }
  return `closed after: ${text}`;
}
const ANSWER = /^HTTP\/1.1 200 OK\r\n[\s\S]*\}$/;
/** Everything that the service sends until it closes the connection. */
async function rest(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (chunk) => (text += chunk));
  if (!socket.closed) await once(socket, 'close');
  return text;
}

describe('A connection of Tor', () => {
  it('is answered after its line, however the bytes are cut', async () => {
    const whole = lineOf(0x29a) + get('/v1/catalog/vps');
    expect(await until(await open(whole), ANSWER)).toMatch(ANSWER);
    for (const cut of [1, 20, lineOf(0x29a).length - 1, lineOf(0x29a).length, lineOf(0x29a).length + 3]) {
      const socket = await open(whole.slice(0, cut));
      await pause(20);
      socket.write(whole.slice(cut));
      expect(await until(socket, ANSWER)).toMatch(ANSWER);
    }
    const slow = await open('');
    for (const byte of whole) {
      slow.write(byte);
      await pause(1);
    }
    expect(await until(slow, ANSWER)).toMatch(ANSWER);
  });

  it('carries more requests, one after the other and at once, and a large body', async () => {
    const socket = await open(0xffff_ffff);
    for (let i = 0; i < 3; i++) {
      socket.write(get('/v1/catalog/vps'));
      expect(await until(socket, ANSWER)).toMatch(ANSWER);
    }
    const burst = await open(lineOf(0x10000) + get('/v1/catalog/vps').repeat(3));
    expect(await until(burst, /(HTTP\/1.1 200[\s\S]*){3}\}$/)).toMatch(/^HTTP/);
    const large = { email: 'x'.repeat(100_000), password: 'a heron on the roof' };
    expect((await overCircuit(at, 9, ['POST', '/v1/auth/login', large])).status).toBe(422);
  });

  it.each([
    ['no line', get('/v1/catalog/vps')],
    ['another version', '\r\n\r\n\0\r\nQUIT\n\x21\x21'],
    ['an unknown protocol', `PROXY UNKNOWN\r\n${get('/v1/catalog/vps')}`],
    ['an IPv4 caller', `PROXY TCP4 198.51.100.7 127.0.0.1 1 80\r\n${get('/v1/catalog/vps')}`],
    ['a caller that is no circuit', `PROXY TCP6 2001:db8::7 ::1 1 80\r\n${get('/v1/catalog/vps')}`],
    ['no address', `PROXY TCP6 fc00:dead:beef:4dad::x:1 ::1 1 80\r\n${get('/v1/catalog/vps')}`],
    ['no ports', `PROXY TCP6 fc00:dead:beef:4dad::0:1 ::1\r\n${get('/v1/catalog/vps')}`],
    ['a second space', `PROXY TCP6  fc00:dead:beef:4dad::0:1 ::1 1 80\r\n${get('/v1/catalog/vps')}`],
    ['a bare line break', `${lineOf(1).replace('\r', '')}${get('/v1/catalog/vps')}`],
    ['a line of more than 107 bytes', lineOf(1).replace('::1 ', `::1 ${'0'.repeat(80)}`)],
    ['107 bytes without an end', `PROXY TCP6 ${'f'.repeat(96)}`],
  ])('with %s is closed without an answer', async (_, text) => {
    expect(await rest(await open(text))).toBe('');
  });

  it('is closed after a few seconds without a line, and when its line breaks off', async () => {
    const began = Date.now();
    expect(await Promise.all([open(''), open('PROXY TCP6 fc00')].map(async (one) => rest(await one)))).toEqual([
      '',
      '',
    ]);
    expect(Date.now() - began).toBeGreaterThan(2_500);
    expect(Date.now() - began).toBeLessThan(10_000);
    const ended = await open('PROXY TCP6');
    ended.end();
    expect(await rest(ended)).toBe('');
  });

  it('gets the usual error for HTTP that is not valid', async () => {
    const socket = await open(3);
    socket.write('GET nothing\r\n\r\n');
    expect(await rest(socket)).toMatch(/^HTTP\/1.1 400 /);
  });
});

it('The service warns once of connections without the line, and names the line of torrc', async () => {
  const warnings: unknown[] = [];
  const warn = vi.spyOn(console, 'error').mockImplementation((text) => void warnings.push(text));
  onTestFinished(() => warn.mockRestore());
  const own = await freePort();
  await startFreehold({ ROLES: 'api', ONION_LISTENER: `127.0.0.1:${own}` });
  for (let i = 0; i < 2; i++) await rest(await open(get('/v1/catalog/vps'), { host: '127.0.0.1', port: own }));
  expect(warnings).toEqual([expect.stringContaining('HiddenServiceExportCircuitID haproxy')]);
});

describe('Over circuits', () => {
  it('an MCP client has a session, calls tools, and hears of the progress of its server', async () => {
    const account = await newAccount();
    await account.fund(100);
    const headers = {
      authorization: `Bearer ${account.accessToken}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    };
    let session = {};
    // One client may use several circuits, and several connections of one.
    let circuit = 0;
    const post = async (message: object) => {
      const body = JSON.stringify(message);
      const socket = await open(0x77 + (circuit++ % 2));
      const head = headersOf({ ...headers, ...session, 'content-length': String(body.length) });
      socket.write(`POST /mcp HTTP/1.1\r\nhost: localhost\r\n${head}\r\n${body}`);
      return until(socket, /\r\n0\r\n\r\n$|\}$/);
    };
    const opened = await post(rpc('initialize', INITIALIZE));
    session = { 'mcp-session-id': /mcp-session-id: (\S+)/i.exec(opened)![1]! };
    const stream = await open(0x80);
    stream.write(get('/mcp', headersOf({ ...headers, ...session, accept: 'text/event-stream' })));
    expect(await until(stream, /\r\n\r\n/)).toMatch(/^HTTP\/1.1 200 OK[\s\S]*text\/event-stream/);
    const order = await post(call('order_server', { service_code: 'vps-1', hostname: 'web' }));
    const order_number = /SRV-[0-9A-Z-]+/.exec(order)![0];
    const wait = rpc('tools/call', {
      name: 'wait_for_server',
      arguments: { order_number, status: 'running' },
      _meta: { progressToken: 'p' },
    });
    expect(await post(wait)).toMatch(/notifications\/progress[\s\S]*"status":"running"/);
  });
});

describe('The connections of circuits', () => {
  const place = async () => ({ host: '127.0.0.1', port: await freePort() });
  const status = async (socket: Socket) => {
    socket.write(get('/v1/catalog/vps'));
    return (await until(socket, /\}$/)).slice(9, 12);
  };

  it('have a limit for each circuit, and one for all circuits, which affect no other caller', async () => {
    const at = await place();
    const limits = { CONNECTIONS_MAX: '3', ONION_CONNECTIONS_MAX: '7' };
    const service = await startFreehold({ ROLES: 'api', ONION_LISTENER: `${at.host}:${at.port}`, ...limits });
    const sockets: Socket[] = [];
    for (const circuit of [1, 1, 1, 2, 2, 2, 3]) sockets.push(await open(circuit, at));
    // Their first requests may still arrive, so none gives way.
    expect(await rest(await open(1, at))).toMatch(/^HTTP\/1.1 429 [\s\S]*Your network has 3 connections/);
    expect(await rest(await open(3, at))).toMatch(/^HTTP\/1.1 429 [\s\S]*All callers of the onion service .* 7 conn/);
    for (const socket of sockets) expect(await status(socket)).toBe('200');
    expect((await service.anonymous('GET', '/v1/catalog/vps')).status).toBe(200);
    // The longest idle ones give way: of the circuit at its limit, and of all circuits.
    expect(await status(await open(2, at))).toBe('200');
    expect(await status(await open(4, at))).toBe('200');
    await eventually(async () => sockets[3]!.closed && sockets[0]!.closed);
    expect(sockets.filter(({ closed }) => closed)).toHaveLength(2);
  });

  it('end with the service, which answers the requests under way', async () => {
    const at = await place();
    const service = await startFreehold({ ROLES: 'api', ONION_LISTENER: `${at.host}:${at.port}` });
    const [idle, silent, sending] = [await open(1, at), await open('', at), await open(2, at)];
    expect(await status(idle)).toBe('200');
    const body = JSON.stringify({ email: 'ada@example.org', password: 'a heron on the roof' });
    const head = headersOf({ 'content-type': 'application/json', 'content-length': String(body.length) });
    sending.write(`POST /v1/auth/login HTTP/1.1\r\nhost: localhost\r\n${head}\r\n${body.slice(0, 20)}`);
    await pause(100);
    const stopped = service.stop();
    const ends = Promise.all([idle, silent, sending].map(rest));
    await pause(500);
    sending.write(body.slice(20));
    expect(await ends).toEqual(['', '', expect.stringMatching(/^HTTP\/1.1 401 [\s\S]*"code":"invalid_login"/)]);
    await stopped;
    await expect(open(1, at)).rejects.toThrow('ECONNREFUSED');
  });

  it('also come to a socket, which replaces that of a killed process and no other file', async () => {
    const folder = newFolder();
    atEnd(() => removeFolder(folder));
    const path = join(folder, 'onion.sock');
    const dies = `require('node:net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))`;
    expect(spawnSync(process.execPath, ['-e', dies, path]).signal).toBe('SIGKILL');
    expect(statSync(path).isSocket()).toBe(true);
    await startFreehold({ ROLES: 'api', ONION_LISTENER: `unix:${path}` });
    expect(statSync(path).mode & 0o777).toBe(0o660);
    expect(await status(await open(1, { path }))).toBe('200');
    await expect(startFreehold({ ROLES: 'api', ONION_LISTENER: `unix:${path}` })).rejects.toThrow('EADDRINUSE');
    expect(await status(await open(1, { path }))).toBe('200');
    const file = join(folder, 'file');
    writeFileSync(file, 'kept');
    await expect(startFreehold({ ROLES: 'api', ONION_LISTENER: `unix:${file}` })).rejects.toThrow('EADDRINUSE');
    expect(existsSync(file)).toBe(true);
  });
});

it('A socket in a folder that does not exist is refused with the name of its variable, and the remedy', async () => {
  const refused = listenAt(createServer(), { path: '/nowhere/onion.sock' });
  await expect(refused).rejects.toThrow(/^ONION_LISTENER cannot make the socket.*RuntimeDirectory=/);
});
