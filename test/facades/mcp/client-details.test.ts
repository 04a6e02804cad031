/** Sessions and streams keep only a few details of their clients. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { describe, expect, it } from 'vitest';
import { withFewDetails } from '../../../facades/mcp/transport/client-details.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { call, envelope, INITIALIZE, MODERN, rawClient, rpc } from './raw-client.ts';

const many = Object.fromEntries(Array.from({ length: 900 }, (_, i) => [`name-${i}`, {}]));
const LONG = 'x'.repeat(100_000);
const ICONS = [{ src: `data:image/png;base64,${'A'.repeat(100_000)}` }];
const CAPABILITIES = {
  elicitation: { form: { applyDefaults: true, ...many }, url: many, ...many },
  sampling: { tools: many },
  roots: { listChanged: true },
  tasks: many,
  experimental: many,
  extensions: many,
};
const KEPT = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} };
const INFO = { name: LONG, version: LONG, title: LONG, websiteUrl: LONG, icons: ICONS };
const KEPT_INFO = { name: 'x'.repeat(200), version: 'x'.repeat(200) };

describe('Of a client the service keeps', () => {
  const initialize = (params: object) => rpc('initialize', { protocolVersion: '2025-06-18', ...params });

  it('a short name, a version and the capabilities that it uses, however much the client sends', () => {
    const sent = initialize({ capabilities: CAPABILITIES, clientInfo: INFO, _meta: many, more: many });
    const kept = initialize({ capabilities: KEPT, clientInfo: KEPT_INFO, _meta: {} });
    expect(withFewDetails(sent)).toEqual(kept);
    expect(withFewDetails([sent, rpc('ping')])).toEqual([kept, rpc('ping')]);
  });

  it('the same for a stream of updates, with the resources that can exist', () => {
    const { _meta } = envelope(MODERN, CAPABILITIES);
    const uri = 'freehold://servers/ord_1';
    const listen = (params: object) => rpc('subscriptions/listen', params);
    const notifications = { toolsListChanged: true, resourceSubscriptions: [uri] };
    const sent = listen({
      notifications: { ...notifications, ...many, resourceSubscriptions: [uri, LONG, 7] },
      _meta: { ..._meta, 'io.modelcontextprotocol/clientInfo': INFO, ...many, progressToken: LONG },
    });
    const meta = { ...envelope(MODERN, KEPT)._meta, 'io.modelcontextprotocol/clientInfo': KEPT_INFO };
    expect(withFewDetails(sent)).toEqual(listen({ notifications, _meta: meta }));
  });

  it('invalid values, which the SDK refuses', () => {
    for (const params of [undefined, null, 7, [many], { capabilities: 7, clientInfo: null }]) {
      const message = { ...rpc('initialize'), params };
      expect(withFewDetails(message)).toEqual(message);
    }
    for (const _meta of [null, 7, [many], { progressToken: { toString: 7, toJSON: 7 } }, { 'x402/payment': 7 }]) {
      const message = rpc('tools/call', { name: 7, _meta });
      expect(withFewDetails(message)).toEqual(message);
    }
  });

  it('the details of a call that its tool reads, while the call waits', () => {
    const payment = { x402Version: 2, payload: {} };
    const { _meta } = envelope(MODERN, KEPT);
    const wait = (more: object) => rpc('tools/call', { name: 'wait_for_server', arguments: {}, _meta: more });
    const kept = { ..._meta, progressToken: 7, 'x402/payment': payment };
    expect(withFewDetails(wait({ ...kept, ...many }))).toEqual(wait(kept));
    expect(withFewDetails([wait({ progressToken: LONG, more: LONG })])).toEqual([wait({})]);
    expect(withFewDetails(wait({ 'x402/payment': { ...payment, more: LONG } }))).toEqual(wait({ 'x402/payment': {} }));
    expect(withFewDetails(rpc('resources/read', { uri: 'u', _meta: many }))).toEqual(
      rpc('resources/read', { uri: 'u', _meta: {} }),
    );
  });

  it('no other parts of a call than its tool reads', () => {
    const answers = { confirm: { action: 'accept', content: { confirm: true } } };
    const args = { order_number: 'ord_1' };
    const sent = { name: 'cancel_server', arguments: args, requestState: 's', inputResponses: answers };
    const message = rpc('tools/call', sent);
    expect(withFewDetails({ ...rpc('tools/call', { ...sent, ...many }), ...many })).toEqual(message);
    const long = { ...sent, requestState: LONG, inputResponses: { confirm: LONG } };
    const { params } = withFewDetails(rpc('tools/call', long)) as { params: typeof sent };
    expect([params.requestState.length, params.inputResponses]).toEqual([2_000, {}]);
  });

  it('no other parts of any message than the service reads', () => {
    const read = { uri: LONG, _meta: {}, arguments: { a: LONG } };
    expect(withFewDetails(rpc('resources/read', { ...read, ...many }))).toEqual(
      rpc('resources/read', { uri: 'x'.repeat(2_000), _meta: {}, arguments: {} }),
    );
    expect(withFewDetails(rpc('notifications/x', many))).toEqual(rpc('notifications/x', {}));
  });

  it('the arguments of tools, and other values than messages, as they are', () => {
    for (const message of [call('get_balance', many), null, 7, 'text', undefined, {}])
      expect(withFewDetails(message)).toEqual(message);
  });
});

const { publicUrl, newAccount } = await startFreehold();

describe('The service', () => {
  it('connects a client with large icons', async () => {
    const client = new Client({ name: 'test', version: '1', icons: ICONS });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${publicUrl}/mcp`)));
    expect((await client.callTool({ name: 'list_coins' })).isError).toBeFalsy();
    await client.close();
  });

  it('refuses a request of more than 1,000 values, and names the limit', async () => {
    const { send } = rawClient(`${publicUrl}/mcp`, '');
    const without = ['authorization'];
    const members = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`name-${i}`, 1]));
    const bodies = [
      rpc('initialize', { ...INITIALIZE, capabilities: { experimental: members(1_000) } }),
      call('get_balance', members(1_000)),
      rpc('ping', members(1_000)),
      Array.from({ length: 10 }, (_, i) => rpc('ping', members(100), i)),
    ];
    for (const body of bodies) {
      const { status, messages } = await send({ body, without });
      expect([status, messages[0].error.message]).toEqual([400, 'The body has more than 1,000 values.']);
    }
    expect((await send({ body: rpc('ping', members(900)), without })).status).toBe(200);
  });

  it('publishes the largest entry of the directory', async () => {
    const { accessToken } = await newAccount();
    const { send } = rawClient(`${publicUrl}/mcp`, accessToken);
    const list = <T>(length: number, make: (i: number) => T) => Array.from({ length }, (_, i) => make(i));
    const url = (i: number) => `https://agent.example/${i}`;
    const args = {
      slug: 'largest',
      name: 'n',
      description: 'd',
      url: url(0),
      documentation_url: url(1),
      icon_url: url(2),
      provider_name: 'p',
      provider_url: url(3),
      public_key: Buffer.alloc(32, 7).toString('base64'),
      listed: true,
      version: '1',
      x402: true,
      endpoints: list(10, (i) => ({ protocol: 'mcp', protocol_version: '1', url: url(i) })),
      skills: list(20, (i) => ({
        id: `skill-${i}`,
        name: 's',
        description: 'd',
        tags: list(20, (tag) => `t${i}-${tag}`),
      })),
    };
    const { messages } = await send({ body: call('publish_agent', args) });
    expect(messages[0].result.structuredContent).toMatchObject({ slug: 'largest' });
  });

  it('refuses a message with a long id', async () => {
    const { send } = rawClient(`${publicUrl}/mcp`, '');
    const ping = async (id: string) =>
      (await send({ body: rpc('ping', {}, id), without: ['authorization'] })).messages[0];
    expect((await ping('x'.repeat(200))).result).toEqual({});
    expect((await ping('x'.repeat(201))).error).toEqual({
      code: -32600,
      message: expect.stringContaining('200 characters'),
    });
  });
});
