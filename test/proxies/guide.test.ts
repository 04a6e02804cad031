/** The files of docs/operate/proxies.md work as printed, with other names, ports and folders, before two processes. */
import dns from 'node:dns';
import { once } from 'node:events';
import { type IncomingMessage, request as requestPlainly } from 'node:http';
import { type RequestOptions, request } from 'node:https';
import { createConnection } from 'node:net';
import { text } from 'node:stream/consumers';
import tls, { type TLSSocket } from 'node:tls';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { AGENTS } from '../facades/mcp/agents.ts';
import { newDatabaseUrl } from '../setup/database.ts';
import { atEnd } from '../setup/end.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';
import { freePort, newFolder, removeFolder, spawnService } from '../setup/spawn.ts';
import { listen } from '../setup/subscription.ts';
import { type Ports, PROXIES, type RunningProxy, settingsOf } from './programs.ts';

const DATABASE_URL = await newDatabaseUrl();
const ports: Ports = { api: await freePort(), internal: await freePort() };
/** Opens accounts, and is behind no proxy. */
const { newAccount } = await startFreehold({
  DATABASE_URL,
  ROLES: 'api',
  LIMIT_API_KEYS: '100',
  LIMIT_SERVERS: '1000',
});
const account = await newAccount();
await account.fund(100_000);
const [first, second] = await Promise.all([startProcess(2), startProcess(3)]);

async function startProcess(column: 2 | 3) {
  const folder = newFolder();
  const service = await spawnService({
    ...{ ...settingsOf(column), PUBLIC_URL: 'https://localhost', DATABASE_URL, DATA_DIR: folder },
    ...{ PORT: String(ports.api), INTERNAL_PORT: String(ports.internal), LOG_LEVEL: 'debug', POLL_SECONDS: '0.05' },
    ...{ LOGIN_FAILURES_MAX: '3', LIMIT_SERVERS: '1000' },
    ...{ SIMULATED_PAYMENT_SECONDS: '0', SIMULATED_PROVISION_SECONDS: '0' },
  });
  atEnd(async () => {
    await service.kill();
    removeFolder(folder);
  });
  return service;
}

const running = await Promise.all(
  PROXIES.map(async ([name, start]) => ({ name, ...(await start({ ports, onEnd: atEnd })) })),
);

// The official clients and WebSockets take the certificates and addresses that Node takes.
const [defaults, order] = [tls.getCACertificates('default'), dns.getDefaultResultOrder()];
beforeAll(() => {
  tls.setDefaultCACertificates([...defaults, ...running.map(({ ca }) => ca)]);
  dns.setDefaultResultOrder('ipv4first');
});
atEnd(() => {
  tls.setDefaultCACertificates(defaults);
  dns.setDefaultResultOrder(order);
});

interface Sent {
  method?: string;
  headers?: Record<string, string>;
  body?: string | object;
  /** The address of the client, in 127.0.0.0/8. */
  from?: string;
  /** A connection to the proxy. */
  socket?: TLSSocket;
}

/** Sends a request on a connection of its own. */
async function send({ url, ca }: Pick<RunningProxy, 'url' | 'ca'>, path: string, sent: Sent = {}) {
  const { method = sent.body ? 'POST' : 'GET', headers, body, from = '127.0.0.1', socket } = sent;
  const connection = socket ? { createConnection: () => socket } : ({ agent: false, localAddress: from } as const);
  const options: RequestOptions = { method, ca, family: 4, servername: 'localhost', ...connection };
  const asked = request(url + path, { ...options, headers: { 'content-type': 'application/json', ...headers } });
  asked.end(typeof body === 'object' ? JSON.stringify(body) : body);
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  const answer = await text(response);
  const isJson = response.headers['content-type']?.includes('json');
  // biome-ignore lint/suspicious/noExplicitAny: each test checks the type of the members that it reads
  const read: any = isJson ? JSON.parse(answer) : answer;
  return { status: response.statusCode!, headers: response.headers, body: read };
}
const bearer = (credential: string) => ({ authorization: `Bearer ${credential}` });

const CLAIMED = '198.51.100.7';
/** The headers by which a client could claim an address. */
const claims = ['x-forwarded-for', 'forwarded', 'x-real-ip', 'x-client-ip', 'true-client-ip'].map((name) => ({
  [name]: name === 'forwarded' ? `for=${CLAIMED}` : CLAIMED,
}));
const keyFor = async (address: string): Promise<string> => {
  const { body } = await account.rest('POST', '/v1/auth/api-keys', {
    name: 'k',
    scope: 'read',
    ip_allowlist: [address],
  });
  return body.plaintext;
};

describe.each(running)('$name', (proxy) => {
  it('speaks TLS 1.2 and newer only, and leads others there', async () => {
    const { port } = new URL(proxy.url);
    const handshake = (version: 'TLSv1.1' | 'TLSv1.2') => {
      const versions = { minVersion: 'TLSv1', maxVersion: version, ciphers: 'DEFAULT@SECLEVEL=0' } as const;
      const socket = tls.connect({ ...versions, port: Number(port), servername: 'localhost', ca: proxy.ca });
      return once(socket, 'secureConnect').then(
        () => socket.destroy(),
        ({ code }) => code,
      );
    };
    expect(await handshake('TLSv1.2')).not.toBeTypeOf('string');
    expect(await handshake('TLSv1.1')).toBeTypeOf('string');
    const asked = requestPlainly(`${proxy.plainUrl}/v1/catalog`, { agent: false, family: 4 }).end();
    const [{ statusCode, headers: plain }] = (await once(asked, 'response')) as [IncomingMessage];
    expect([Math.floor(statusCode! / 100), plain.location]).toEqual([
      3,
      expect.stringMatching(/^https:.*\/v1\/catalog$/),
    ]);
  });

  it('brings the address of the client, although the client claims others', async () => {
    const [own, claimed] = [await keyFor('127.0.3.1'), await keyFor(CLAIMED)];
    const ask = async (key: string, from: string, headers = {}) =>
      (await send(proxy, '/v1/account', { from, headers: { ...bearer(key), ...headers } })).status;
    expect([await ask(own, '127.0.3.1'), await ask(own, '127.0.3.2')]).toEqual([200, 403]);
    for (const claim of claims)
      expect([claim, await ask(own, '127.0.3.1', claim), await ask(claimed, '127.0.3.1', claim)]).toEqual([
        claim,
        200,
        403,
      ]);
  });

  it('counts the failed logins of a client by its address, although the client claims others', async () => {
    const place = `127.0.${20 + running.indexOf(proxy)}`;
    const guess = async (i: number, from: string) => {
      const body = { email: `${from}-${i}@example.org`, password: 'not the password' };
      const headers = { 'x-forwarded-for': `198.51.100.${i}` };
      return (await send(proxy, '/v1/auth/login', { from, headers, body })).body.code;
    };
    for (let i = 0; i < 3; i++) expect(await guess(i, `${place}.1`)).toBe('invalid_login');
    expect([await guess(4, `${place}.1`), await guess(5, `${place}.2`)]).toEqual(['login_throttled', 'invalid_login']);
  });

  it.each([AGENTS[2]!, AGENTS[4]!])(
    'carries a session of MCP and its updates at once (client %s, %s)',
    async (_, __, connect) => {
      const { accessToken: credential, rest, fund } = await newAccount();
      await fund(30);
      const { order_number } = (await rest('POST', '/v1/servers', { service_code: 'vps-1' })).body;
      const agent = await connect(new URL(`${proxy.url}/mcp`), { credential });
      const changed: string[] = [];
      await agent.watch(`freehold://servers/${order_number}`, (uri) => changed.push(uri));
      const waited = await agent.call('wait_for_server', { order_number, status: 'running', timeout: 25 });
      expect(waited.content.status).toBe('running');
      const before = changed.length;
      await rest('PATCH', `/v1/servers/${order_number}`, { hostname: 'other' });
      await expect.poll(() => changed.length).toBeGreaterThan(before);
    },
  );

  it('leaves large bodies, large heads and long answers to the service', async () => {
    const body = JSON.stringify({ email: 'x'.repeat(300 * 1024), password: 'x' });
    expect((await send(proxy, '/v1/auth/login', { body })).body).toMatchObject({ code: 'body_too_large' });
    expect((await send(proxy, '/mcp', { body })).body).toMatchObject({ jsonrpc: '2.0', error: {} });
    const large = await send(proxy, '/v1/catalog', { headers: { 'x-large': 'x'.repeat(17 * 1024) } });
    expect(large.body).toMatchObject({ code: 'invalid_header' });
    const headers = { ...bearer(account.accessToken), 'x-payment-mode': 'x402' };
    const challenge = await send(proxy, '/v1/servers', { headers, body: { service_code: 'vps-1' } });
    expect([challenge.status, challenge.headers['payment-required']]).toEqual([402, expect.any(String)]);
  });

  it('reaches nothing of the internal listener, although a client names its host', async () => {
    for (const path of ['/graphql', '/sign-in', '/healthz', '/readyz', '/metrics']) {
      const customers = await send(proxy, path);
      expect([path, customers.status, customers.body.code]).toEqual([path, 404, 'not_found']);
      const named = await send(proxy, path, { headers: { host: `127.0.0.1:${ports.internal}` } });
      expect(['', 'not_found']).toContain(named.body.code ?? named.body);
    }
  });

  it('brings the console and its subscriptions to the network of the operators, and to no other', async () => {
    const console = { url: proxy.consoleUrl, ca: proxy.ca };
    expect(await send(console, '/readyz')).toMatchObject({ status: 200, body: 'ready\n' });
    const stranger = await send(console, '/readyz', { from: '127.0.3.9' }).catch((error) => ({ status: error.code }));
    expect([403, 'ECONNRESET']).toContain(stranger.status);
    const query = 'subscription { serverUpdated { server { orderNumber } } }';
    const feed = listen(`${proxy.consoleUrl}/graphql`, first.operatorToken, query);
    await eventually(async () => {
      await account.rest('POST', '/v1/servers', { service_code: 'vps-1' });
      return feed.failure() ?? feed.messages.length > 0;
    });
    expect(feed.failure()).toBeUndefined();
    feed.dispose();
  });
});

/** Opens TLS after a line of the PROXY protocol, as a balancer does. */
async function throughBalancer({ url, ca }: RunningProxy, from: string, line: string): Promise<TLSSocket> {
  const socket = createConnection({ port: Number(new URL(url).port), host: '127.0.0.1', localAddress: from });
  await once(socket, 'connect');
  socket.write(line);
  const secure = tls.connect({ socket, servername: 'localhost', ca });
  await once(secure, 'secureConnect');
  return secure;
}

describe.each(PROXIES.filter(([name]) => name !== 'Caddy'))('%s behind a balancer', (_, start) => {
  it('believes the PROXY protocol of the balancer only', async () => {
    const proxy = await start({ ports, onEnd: onTestFinished, balancer: '127.0.5.1' });
    const key = await keyFor(CLAIMED);
    const ask = async (from: string) => {
      const line = `PROXY TCP4 ${CLAIMED} 127.0.0.1 4444 443\r\n`;
      const socket = await throughBalancer(proxy, from, line).catch(({ code }) => String(code));
      if (typeof socket === 'string') return socket;
      return (await send(proxy, '/v1/account', { headers: bearer(key), socket })).status;
    };
    expect(await ask('127.0.5.1')).toBe(200);
    expect([403, 'ECONNRESET', 'EPROTO']).toContain(await ask('127.0.5.2'));
  });
});

it.skipIf(!running.length)(
  'A process that stops under reads and orders costs no customer of any proxy an error',
  async () => {
    const regions = ['ams', 'zrh', 'kef', 'buh'];
    let [stopped, requests] = [false, 0];
    /** Sends requests until some have followed the stop. */
    const repeat = async (proxy: RunningProxy, path: string, bodyOf: (i: number) => object | undefined) => {
      const answers = [];
      for (let rest = 4; rest > 0; rest -= stopped ? 1 : 0) {
        const body = bodyOf(requests++);
        // One address has a limit of connections.
        const from = `127.0.4.${1 + (requests % 200)}`;
        const answer = await send(proxy, path, { from, headers: bearer(account.accessToken), ...(body && { body }) });
        answers.push(answer);
        if (!answer.body.order_number) continue;
        // An order takes an address, and the next ones need it.
        const server = `/v1/servers/${answer.body.order_number}`;
        await account.rest('DELETE', server);
        await account.rest('GET', `${server}?wait_for=deleted`);
      }
      return answers.filter(({ status }) => status !== 200).map(({ status, body }) => [status, body.code]);
    };
    const refusals = running.flatMap((proxy) => [
      repeat(proxy, '/v1/account/balance', () => undefined),
      repeat(proxy, '/v1/servers', (i) => ({ service_code: 'vps-1', region: regions[i % 4] })),
    ]);
    const answers = () => second.output().split('"answered"').length;
    const before = answers();
    await expect.poll(answers).toBeGreaterThan(before + 10);
    for (const { tell } of running) tell('before its stop');
    expect(await second.stop()).toBe(0);
    stopped = true;
    expect(await Promise.all(refusals)).toEqual(refusals.map(() => []));
    // A process that has not started costs no error either.
    for (const proxy of running) {
      proxy.tell('after its start');
      for (let i = 0; i < 4; i++) expect((await send(proxy, '/v1/catalog/vps')).status).toBe(200);
    }
  },
);

it('No proxy keeps the address of a client in a log, and the service warns of no proxy', async () => {
  // A stranger names the host.
  for (const proxy of running) await send(proxy, '/v1/catalog', { headers: { host: `${'a'.repeat(56)}.onion` } });
  for (const { name, logs } of running)
    expect([name, logs().match(/127\.0\.([34]|2\d)\.\d/)?.[0]]).toEqual([name, undefined]);
  expect(first.output() + second.output()).not.toMatch(/TRUSTED_PROXY_CIDRS|ONION_LISTENER/);
});
