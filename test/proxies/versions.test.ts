/** The proxies of docs/operate/proxies.md speak only HTTP/1.1, so that one connection has one request under way. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import tls from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../setup/freehold.ts';
import { freePort } from '../setup/spawn.ts';
import { PROXIES, type RunningProxy } from './programs.ts';

/** The first bytes of a client of HTTP/2, with empty settings. */
const PREFACE = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]),
]);
const REQUEST = 'GET /v1/catalog HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
const UPGRADE = REQUEST.replace('close', 'Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAQAAP__');
const SETTINGS = 4;

const portOf = (url: string) => Number(new URL(url).port);

/** Opens TLS, and offers protocols. @returns the connection, or the code of its refusal */
async function secure(url: string, { ca }: RunningProxy, protocols?: string[], group?: string) {
  const offer = { ...(protocols && { ALPNProtocols: protocols }), ...(group && { ecdhCurve: group }) };
  const socket = tls.connect({ port: portOf(url), servername: 'localhost', ca, ...offer });
  onTestFinished(() => void socket.destroy());
  return once(socket, 'secureConnect').then(
    () => socket,
    ({ code }) => String(code),
  );
}

/** Sends bytes. @returns the first bytes of the answer, which are none if the proxy ends the connection */
async function answerTo(bytes: string | Buffer, socket: Socket): Promise<Buffer> {
  onTestFinished(() => void socket.destroy());
  const answer = Promise.race([once(socket, 'data').then(([data]) => data), once(socket, 'close').then(() => '')]);
  socket.write(bytes);
  return Buffer.from(await answer.catch(() => ''));
}
const isHttp2 = (answer: Buffer) => answer.length > 3 && answer[3] === SETTINGS;

describe.each(PROXIES)('%s', (_, start) => {
  it('speaks only HTTP/1.1 to customers and operators', async () => {
    const ports = { api: await freePort(), internal: await freePort() };
    const proxy = await start({ ports, onEnd: onTestFinished });
    await eventually(async () => typeof (await secure(proxy.url, proxy)) !== 'string');
    for (const url of [proxy.url, proxy.consoleUrl]) {
      const both = await secure(url, proxy, ['h2', 'http/1.1']);
      if (typeof both === 'string') throw new Error(both);
      expect(both.alpnProtocol).not.toBe('h2');
      expect(String(await answerTo(REQUEST, both))).toMatch(/^HTTP\/1\.1 /);
      const only = await secure(url, proxy, ['h2']);
      if (typeof only === 'string') expect(only).toBe('ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL');
      else expect([only.alpnProtocol, isHttp2(await answerTo(PREFACE, only))]).toEqual([false, false]);
      const silent = await secure(url, proxy);
      if (typeof silent === 'string') throw new Error(silent);
      expect(isHttp2(await answerTo(PREFACE, silent))).toBe(false);
    }
    // A handshake in a large group costs the caller nothing, and the proxy a tenth of a second.
    for (const url of [proxy.url, proxy.consoleUrl])
      for (const costly of ['ffdhe8192', 'secp521r1'])
        expect(await secure(url, proxy, undefined, costly)).toMatch(/HANDSHAKE_FAILURE/);
    const plainly = () => connect(portOf(proxy.plainUrl), '127.0.0.1');
    expect(isHttp2(await answerTo(PREFACE, plainly()))).toBe(false);
    expect(String(await answerTo(UPGRADE, plainly()))).toMatch(/^HTTP\/1\.[01] 30/);
  });
});

it('The customers of more than one machine come by the same lines of HAProxy', () => {
  const [one, more] = ['proxies', 'failover'].map((page) => {
    const text = readFileSync(join(import.meta.dirname, `../../docs/operate/${page}.md`), 'utf8');
    return (section: string) => new RegExp(`^${section}\n((?: .*\n)+)`, 'm').exec(text)![1]!;
  });
  for (const section of ['global', 'frontend customers', 'backend sites']) expect(more!(section)).toBe(one!(section));
  // With more than one machine, a dead one must be found sooner.
  const defaults = one!('defaults')
    .split('\n')
    .filter((line) => !line.includes('timeout connect'));
  expect(more!('defaults').split('\n')).toEqual(expect.arrayContaining(defaults));
});
