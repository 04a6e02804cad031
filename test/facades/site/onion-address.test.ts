/** The onion service has its own address: its answers name no other one, and pages elsewhere lead to it. */
import { describe, expect, it } from 'vitest';
import { startFreehold } from '../../setup/freehold.ts';
import { freePort } from '../../setup/spawn.ts';
import { openCircuit } from '../http/circuit.ts';

const at = { host: '127.0.0.1', port: await freePort() };
const ONION = `http://${'a'.repeat(56)}.onion`;
const freehold = await startFreehold({
  ONION_LISTENER: `${at.host}:${at.port}`,
  ONION_URL: ONION,
  SECURITY_CONTACT: 'mailto:security@example.org',
});
/** The address of the other listener. */
const NAME = new URL(freehold.publicUrl).host;

let circuit = 0x2_0000;
/** Sends a request over Tor. @returns all bytes of the answer */
async function overTor(
  path: string,
  {
    method = 'GET',
    headers = {},
    body = '',
  }: { method?: string; headers?: Record<string, string>; body?: string } = {},
) {
  const socket = await openCircuit(at, ++circuit);
  const given = {
    host: new URL(ONION).host,
    connection: 'close',
    accept: 'text/html,*/*',
    'content-length': String(body.length),
    ...headers,
  };
  const lines = Object.entries(given).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`);
  return Buffer.concat(await socket.toArray()).toString();
}

const SEEDS = [
  ...['/', '/docs', '/llms.txt', '/robots.txt', '/sitemap.xml', '/downloads', '/v1/downloads', '/v1/openapi.json'],
  ...['/.well-known/api-catalog', '/.well-known/agent-card.json', '/.well-known/security.txt'],
  ...['/.well-known/oauth-authorization-server', '/.well-known/oauth-protected-resource', '/.well-known/mcp.json'],
  ...['/v1/catalog', '/v1/account', '/nothing', '/v1/nothing', '/oauth/authorize'],
];

describe('Over Tor', () => {
  it('no page, document or error names another address', async () => {
    const [seen, waiting] = [new Set<string>(SEEDS), [...SEEDS]];
    const named: string[] = [];
    for (let path = waiting.pop(); path; path = waiting.pop()) {
      const answer = await overTor(path);
      if (answer.includes(NAME)) named.push(path);
      for (const [, link] of answer.matchAll(/href="(\/[^"#?]*)/g))
        if (!seen.has(link!)) {
          seen.add(link!);
          waiting.push(link!);
        }
    }
    expect(named).toEqual([]);
    expect(seen.size).toBeGreaterThan(60);
    expect(await overTor('/')).toContain(ONION);
  });

  it('offers and challenges name the onion service', async () => {
    const json = { 'content-type': 'application/json' };
    const { accessToken } = await freehold.newAccount();
    const offer = await overTor('/v1/servers', {
      ...{ method: 'POST', body: '{"service_code":"vps-1"}' },
      headers: { ...json, authorization: `Bearer ${accessToken}`, 'x-payment-mode': 'x402' },
    });
    expect(offer).toMatch(/^HTTP\/1.1 402/);
    const required = Buffer.from(/payment-required: (\S+)/i.exec(offer)![1]!, 'base64').toString();
    expect(required).toContain(`${ONION}/v1/servers`);
    const challenge = await overTor('/mcp/secure', { method: 'POST', headers: json, body: '{}' });
    expect(challenge).toContain(`resource_metadata="${ONION}/`);
    for (const answer of [required, offer, challenge]) expect(answer).not.toContain(NAME);
  });

  it('a request that does not end closes its connection', async () => {
    const socket = await openCircuit(at, ++circuit);
    socket.write('GET / HTTP/1.1\r\nhost: ');
    const began = performance.now();
    await socket.toArray();
    expect(performance.now() - began).toBeLessThan(30_000);
  }, 60_000);

  it('MCP takes a browser with the origin of the onion service, and no other', async () => {
    const from = (origin: string) =>
      overTor('/mcp', { method: 'POST', headers: { origin, 'content-type': 'application/json' }, body: '{}' });
    expect(await from(ONION)).not.toMatch(/^HTTP\/1.1 403/);
    expect(await from('https://clearnet.example')).toMatch(/^HTTP\/1.1 403/);
  });
});

describe('Elsewhere', () => {
  const get = (path: string) => fetch(freehold.publicUrl + path, { headers: { accept: 'text/html' } });

  it('pages lead Tor Browser to the same page of the onion service', async () => {
    for (const path of ['/', '/docs/api'])
      expect([path, (await get(path)).headers.get('onion-location')]).toEqual([path, ONION + path]);
    expect((await get('/v1/catalog')).headers.get('onion-location')).toBeNull();
  });

  it('links name the public address', async () => {
    const page = await (await get('/')).text();
    expect(page).toContain(freehold.publicUrl);
    expect(page).not.toContain(ONION);
  });
});
