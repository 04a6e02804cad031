/** POSTs of a session end, also after a cancelled call or without their client, and leave nothing in memory. */
import { type McpServerFactory, Server } from '@modelcontextprotocol/server';
import { describe, expect, it, onTestFinished } from 'vitest';
import { SessionTransport } from '../../../facades/mcp/transport/session-transport.ts';
import { Sessions } from '../../../facades/mcp/transport/sessions.ts';
import { eventually } from '../../setup/freehold.ts';
import { INITIALIZE, notification, rpc } from './raw-client.ts';

const HEADERS = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };
const LARGE = 'x'.repeat(10_000);
const cancel = (requestId: unknown) => notification('notifications/cancelled', { requestId });
const tool = (name: string, id: unknown) => rpc('tools/call', { name, arguments: {} }, id);

/** Servers with the tools `large`, and `wait`, which waits for `release` or asks a user. */
function sampleServer() {
  const ends: (() => void)[] = [];
  const factory: McpServerFactory = () => {
    const server = new Server({ name: 'test', version: '1' }, { capabilities: { tools: {} } });
    server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
      if (params.name === 'ask') {
        const form = { message: '?', requestedSchema: { type: 'object' as const, properties: {} } };
        const { id: relatedRequestId, signal } = mcpReq;
        await server.request({ method: 'elicitation/create', params: form }, { relatedRequestId, signal });
      }
      if (params.name === 'wait') await new Promise<void>((resolve) => ends.push(resolve));
      return { content: [{ type: 'text', text: LARGE }] };
    });
    return server;
  };
  const release = () => {
    for (const end of ends.splice(0)) end();
  };
  return { factory, release };
}

async function openSession() {
  const { factory, release } = sampleServer();
  const server = (await factory({ era: 'legacy' })) as Server;
  const transport = new SessionTransport({ sessionIdGenerator: () => 'one' });
  await server.connect(transport);
  onTestFinished(() => server.close());
  const post = (body: unknown) => {
    const headers = { ...HEADERS, 'mcp-session-id': 'one' };
    const request = new Request('http://localhost/mcp', { method: 'POST', headers });
    return transport.handleRequest(request, { parsedBody: body });
  };
  const capabilities = { elicitation: { form: {} } };
  await (await post(rpc('initialize', { ...INITIALIZE, capabilities }, 'first'))).text();
  /** The entries and the characters of all maps of the transport. */
  const held = () => {
    const maps = Object.values(transport).filter((value) => value instanceof Map);
    const entries = maps.flatMap((map) => [...map]);
    return [entries.length, JSON.stringify(entries, (key, value) => (key === 'encoder' ? '' : value)).length];
  };
  return { post, release, held };
}

const idsOf = (text: string) => [...text.matchAll(/^data: (.+)$/gm)].map(([, data]) => JSON.parse(data!).id);
const NOTHING = [0, 2];

describe('A POST of a session', () => {
  it.each([
    ['one call', tool('wait', 7), 7, []],
    ['one call with an id that is text', tool('wait', 'a'), 'a', []],
    ['a call of a batch', [tool('large', 1), tool('large', 2), tool('wait', 3)], 3, [1, 2]],
  ])('of %s ends when its client cancels the call, without an answer to it', async (_, body, id, answered) => {
    const { post, held, release } = await openSession();
    const response = await post(body);
    expect((await post(cancel(id))).status).toBe(202);
    expect(idsOf(await response.text())).toEqual(answered);
    expect(held()).toEqual(NOTHING);
    release();
    await new Promise(setImmediate);
    expect(held()).toEqual(NOTHING);
  });

  it.each([
    ['after', [tool('large', 1), tool('wait', 2), cancel(2)]],
    ['before', [cancel(2), tool('large', 1), tool('wait', 2)]],
    ['twice after', [tool('large', 1), tool('wait', 2), cancel(2), cancel(2), cancel(9)]],
  ])('may cancel its own call %s it', async (_, body) => {
    const { post, held } = await openSession();
    expect(idsOf(await (await post(body)).text())).toEqual([1]);
    expect(held()).toEqual(NOTHING);
  });

  it('keeps no answer of a client that has left, and nothing after the last', async () => {
    const { post, held, release } = await openSession();
    const response = await post([tool('large', 1), tool('large', 2), tool('wait', 3)]);
    await response.body!.cancel();
    await new Promise(setImmediate);
    expect(held()[1]).toBeLessThan(LARGE.length);
    release();
    await eventually(async () => held()[0] === 0);
  });

  it('leaves nothing if its client cancels a call and leaves', async () => {
    const { post, held } = await openSession();
    const response = await post([tool('large', 1), tool('wait', 2), cancel(2)]);
    await response.body!.cancel();
    await eventually(async () => held()[0] === 0);
  });

  it('keeps none of its sent answers while it waits for another', async () => {
    const { post, held, release } = await openSession();
    const response = await post([tool('large', 1), tool('wait', 2)]);
    await new Promise(setImmediate);
    expect(held()[1]).toBeLessThan(LARGE.length);
    release();
    const text = await response.text();
    expect(idsOf(text)).toEqual([1, 2]);
    expect(text.split(LARGE)).toHaveLength(3);
  });

  it('answers a call that has the name of a cancellation, and cancels nothing for it', async () => {
    const { post, held } = await openSession();
    const named = rpc('notifications/cancelled', { requestId: 1 }, 2);
    const ids = idsOf(await (await post([tool('large', 1), named])).text());
    expect(ids.toSorted()).toEqual([1, 2]);
    expect(held()).toEqual(NOTHING);
  });

  it('cancels by the same type of id only', async () => {
    const { post, release } = await openSession();
    const response = await post(tool('wait', 1));
    await post(cancel('1'));
    await new Promise(setImmediate);
    release();
    expect(idsOf(await response.text())).toEqual([1]);
  });

  it('with the id of a call under way is refused, and takes nothing from it', async () => {
    const { post, held, release } = await openSession();
    const first = await post([tool('large', 1), tool('wait', 2)]);
    for (const body of [rpc('ping', {}, 2), [rpc('ping', {}, 3), rpc('ping', {}, 1)]])
      expect((await post(body)).status).toBe(400);
    expect(idsOf(await (await post(rpc('ping', {}, '2'))).text())).toEqual(['2']);
    release();
    expect(idsOf(await first.text())).toEqual([1, 2]);
    expect(idsOf(await (await post(rpc('ping', {}, 2))).text())).toEqual([2]);
    expect(held()).toEqual(NOTHING);
  });

  it('leaves its ids free if the protocol refuses it', async () => {
    const { post } = await openSession();
    expect((await post({ ...rpc('ping', {}, 1), jsonrpc: '1.0' })).status).toBe(400);
    expect((await post(rpc('ping', {}, 1))).status).toBe(200);
  });

  it('ends the question of a cancelled call, and tells its client', async () => {
    const { post, held } = await openSession();
    const response = await post(tool('ask', 1));
    await post(cancel(1));
    const text = await response.text();
    const [asked, ended] = [...text.matchAll(/^data: (.+)$/gm)].map(([, data]) => JSON.parse(data!));
    expect([asked.method, ended.method]).toEqual(['elicitation/create', 'notifications/cancelled']);
    expect(ended.params.requestId).toBe(asked.id);
    expect(held()).toEqual(NOTHING);
    expect((await post({ jsonrpc: '2.0', id: asked.id, result: { action: 'decline' } })).status).toBe(400);
  });
});

it('A POST without a session ends when it cancels its own call', async () => {
  const { factory } = sampleServer();
  const onCredentialEnd = () => ({ checked: Promise.resolve(), forget: () => {} });
  const secrets = [Buffer.alloc(32)] as [Buffer];
  const sessions = new Sessions({ factory, secrets, onCredentialEnd, onError: () => {} });
  onTestFinished(() => sessions.close());
  const request = new Request('http://localhost/mcp', { method: 'POST', headers: HEADERS });
  const authInfo = { token: '', clientId: '', scopes: [], extra: { caller: { viewer: null, address: '' } } };
  const parsedBody = [tool('large', 1), tool('wait', 2), cancel(2)];
  const response = await sessions.fetch(request, { authInfo, parsedBody });
  expect(idsOf(await response.text())).toEqual([1]);
});
