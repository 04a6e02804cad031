import { once } from 'node:events';
import { connect } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { newDatabaseUrl } from '../../setup/database.ts';
import { eventually, startFreehold } from '../../setup/freehold.ts';
import { freePort, newFolder, removeFolder, restClient, spawnService } from '../../setup/spawn.ts';
import { AGENTS, type Agent, OLD } from './agents.ts';

const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

/** A client that writes HTTP itself, for requests that the official clients do not send. */
function rawClient(url: string, credential?: string) {
  const headers = { ...HEADERS, ...(credential && { authorization: `Bearer ${credential}` }) };
  const post = (body: object, more: Record<string, string> = {}) =>
    fetch(url, { method: 'POST', headers: { ...headers, ...more }, body: JSON.stringify({ jsonrpc: '2.0', ...body }) });
  const initialize = async () => {
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } };
    const response = await post({ id: 1, method: 'initialize', params });
    await response.text();
    return response.headers.get('mcp-session-id')!;
  };
  const list = async (session: string) => {
    const response = await post({ id: 2, method: 'tools/list' }, { 'mcp-session-id': session });
    await response.text();
    return response.status;
  };
  const end = async (session: string) =>
    (await fetch(url, { method: 'DELETE', headers: { ...headers, 'mcp-session-id': session } })).status;
  return { initialize, list, end, post };
}

const { publicUrl, newAccount, db } = await startFreehold();

describe('A session', () => {
  it('belongs to its credential: with another, with none, or under a forged id, it does not exist', async () => {
    const url = `${publicUrl}/mcp`;
    const [mine, theirs] = [await newAccount(), await newAccount()];
    const session = await rawClient(url, mine.accessToken).initialize();
    expect(await rawClient(url, mine.accessToken).list(session)).toBe(200);
    expect(await rawClient(url, theirs.accessToken).list(session)).toBe(404);
    expect(await rawClient(url).list(session)).toBe(404);
    const anonymous = await rawClient(url).initialize();
    expect(await rawClient(url).list(anonymous)).toBe(200);
    expect(await rawClient(url, mine.accessToken).list(anonymous)).toBe(404);
    const [nonce, flag, mac] = session.split('.') as [string, string, string];
    for (const forged of [
      'x',
      '..',
      `${nonce}.a.${mac}`,
      `${nonce}.${flag}.`,
      `A${nonce}.${flag}.${mac}`,
      session.slice(0, -1),
    ])
      expect([forged, await rawClient(url, mine.accessToken).list(forged)]).toEqual([forged, 404]);
  });

  it('ends when the client ends it, without the other sessions of the client', async () => {
    const client = rawClient(`${publicUrl}/mcp`, (await newAccount()).accessToken);
    const [one, two] = [await client.initialize(), await client.initialize()];
    expect(await client.end(one)).toBe(200);
    expect([await client.list(one), await client.list(two)]).toEqual([404, 200]);
    expect(await client.end(one)).toBe(404);
  });

  it('survives its eviction by many newer sessions of the client', async () => {
    const client = rawClient(`${publicUrl}/mcp`, (await newAccount()).accessToken);
    const first = await client.initialize();
    for (let i = 0; i < 60; i++) await client.initialize();
    expect(await client.list(first)).toBe(200);
  });

  it('opens its stream at once, before there is any update', async () => {
    const { accessToken } = await newAccount();
    const session = await rawClient(`${publicUrl}/mcp`, accessToken).initialize();
    const over = new AbortController();
    onTestFinished(() => over.abort());
    const headers = { authorization: `Bearer ${accessToken}`, accept: 'text/event-stream', 'mcp-session-id': session };
    const { status, body } = await fetch(`${publicUrl}/mcp`, { headers, signal: over.signal });
    expect(status).toBe(200);
    const { value } = await body!.getReader().read();
    expect(Buffer.from(value!).toString()).toMatch(/^:.*\n\n$/);
  });

  it('answers open calls when its credential ends', async () => {
    const { rest } = await newAccount();
    const { body: key } = await rest('POST', '/v1/auth/api-keys', { name: 'mine', scope: 'full' });
    const client = rawClient(`${publicUrl}/mcp`, key.plaintext);
    const session = await client.initialize();
    const call = (name: string, args: object) =>
      client
        .post({ id: name, method: 'tools/call', params: { name, arguments: args } }, { 'mcp-session-id': session })
        .then((response) => response.text());
    const revoked = await call('revoke_api_key', { key_id: key.key_id });
    expect(revoked).toContain('"status":"revoked"');
    expect(await client.list(session)).toBe(401);
  });

  it('answers a call if its account is suspended or resumed while it reopens', async () => {
    const account = await newAccount();
    const { body: key } = await account.rest('POST', '/v1/auth/api-keys', { name: 'mine', scope: 'read' });
    const client = rawClient(`${publicUrl}/mcp`, key.plaintext);
    const session = await client.initialize();
    const sent = { isAnswered: false };
    const answer = client.list(session).finally(() => (sent.isAnswered = true));
    while (!sent.isAnswered) {
      db.bus.publish([{ kind: 'credential', accountId: account.id, id: null }]);
      await setImmediate();
    }
    expect(await answer).toBe(200);
    expect(await client.list(session)).toBe(200);
  });

  it('is refused once its credential is revoked', async () => {
    const { rest } = await newAccount();
    const { body: key } = await rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'read' });
    const client = rawClient(`${publicUrl}/mcp`, key.plaintext);
    const session = await client.initialize();
    await rest('DELETE', `/v1/auth/api-keys/${key.key_id}`);
    expect(await client.list(session)).toBe(401);
  });
});

it('A stopping service opens no stream for a request that is still arriving', async () => {
  const { publicUrl, stop } = await startFreehold();
  const session = await rawClient(`${publicUrl}/mcp`).initialize();
  const { hostname, port } = new URL(publicUrl);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  let answer = '';
  socket.on('data', (data) => (answer += data));
  const closed = new Promise((resolve) => socket.once('close', resolve));
  await once(socket, 'connect');
  const headers = { Host: hostname, Accept: HEADERS.accept, 'Mcp-Session-Id': session };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`GET /mcp HTTP/1.1\r\n${lines.join('')}`);
  const stopped = stop();
  await eventually(() =>
    fetch(publicUrl).then(
      () => false,
      () => true,
    ),
  );
  socket.write('\r\n');
  await stopped;
  await closed;
  // The service may close the connection before it reads the request.
  expect(answer).toMatch(/^(HTTP\/1\.1 503|$)/);
});

it('Connected clients go on after a kill and a restart of the service', async () => {
  const environment = {
    DATABASE_URL: await newDatabaseUrl(),
    DATA_DIR: newFolder(),
    PORT: String(await freePort()),
    INTERNAL_PORT: String(await freePort()),
    SIMULATED_PAYMENT_SECONDS: '0.1',
    SIMULATED_PROVISION_SECONDS: '0.1',
  };
  onTestFinished(() => removeFolder(environment.DATA_DIR));
  const first = await spawnService(environment);
  const url = new URL(`${first.url}/mcp`);
  const { body } = await restClient(first.url)('POST', '/v1/auth/register', {
    email: 'restart@example.org',
    password: 'a heron on the roof',
  });
  const credential: string = body.tokens.access_token;
  const rest = restClient(first.url, credential);
  await rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'BTC' });
  await eventually(async () => (await rest('GET', '/v1/account/balance')).body.balance_usd === 30);
  const { order_number } = (await rest('POST', '/v1/servers', { service_code: 'vps-1' })).body;
  const path = `/v1/servers/${order_number}`;
  await eventually(async () => (await rest('GET', path)).body.status === 'running');

  const user = () => ({ action: 'decline' });
  const agents: Agent[] = [];
  for (const [, , connect] of AGENTS) agents.push(await connect(url, { credential, user }));
  await first.kill();
  const { stop } = await startFreehold(environment);
  onTestFinished(stop);
  for (const agent of agents) {
    const { content } = await agent.call('get_server', { order_number });
    expect([agent.version, content.status]).toEqual([agent.version, 'running']);
    // The service remembers that the client can ask its user.
    const { content: refused } = await agent.call('cancel_server', { order_number });
    expect(refused.errors[0].message).toContain('did not confirm');
  }
  const heard: string[] = [];
  for (const agent of agents) await agent.watch(`freehold://servers/${order_number}`, () => heard.push(agent.version));
  await rest('PATCH', path, { power_state: 'off' });
  // The client itself reopens the stream of session updates, after a second or more.
  await eventually(async () => heard.includes('2026-07-28'));
  expect(await (await OLD(url, { credential })).tools()).not.toHaveLength(0);
});
