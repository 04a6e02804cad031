import { describe, expect, it } from 'vitest';
import { INSTRUCTIONS } from '../../../facades/mcp/server.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { AGENTS, NEWEST, OLDEST } from './agents.ts';

const freehold = await startFreehold();
const endpoint = (query = '') => new URL(`${freehold.publicUrl}/mcp${query}`);

/** The tools of the contract with their scopes. */
const TOOLS: Record<string, string[]> = {
  public: [
    ...['register_account', 'login', 'login_totp', 'refresh_token', 'list_coins', 'list_bonus_tiers'],
    ...['list_catalog', 'list_vps', 'list_dedicated', 'list_bastions', 'list_os_images', 'get_catalog_item'],
    ...['get_canary', 'get_peering', 'get_status', 'search_agents', 'list_webhook_events'],
  ],
  read: [
    ...['get_balance', 'list_api_keys', 'get_account', 'get_usage', 'get_audit_log', 'get_topup', 'list_topups'],
    ...['list_servers', 'get_server', 'wait_for_server', 'list_ssh_keys', 'get_ssh_key', 'list_webhooks'],
    ...['list_messages', 'list_webhook_deliveries'],
  ],
  servers: ['add_ssh_key', 'quote_server', 'order_server', 'update_server', 'cancel_server', 'remove_ssh_key'],
  billing: ['create_topup', 'cancel_topup'],
  full: [
    ...['create_api_key', 'revoke_api_key', 'create_webhook', 'delete_webhook', 'test_webhook', 'publish_agent'],
    ...['list_oauth_clients', 'delete_oauth_client', 'send_message', 'mark_message_read'],
    ...['redeliver_webhook', 'rotate_webhook_secret'],
  ],
};
const INCLUDED: Record<string, string[]> = {
  public: ['public'],
  read: ['public', 'read'],
  servers: ['public', 'read', 'servers'],
  billing: ['public', 'read', 'billing'],
  full: Object.keys(TOOLS),
};
const named = (tools: { name: string }[]) => tools.map(({ name }) => name).sort();
const ofScopes = (scopes: string[]) => scopes.flatMap((scope) => TOOLS[scope]!).sort();

describe('The list of tools', () => {
  it.each(AGENTS)('has all tools of the contract, well described, for the client %s at %s', async (_, __, connect) => {
    const tools = await (await connect(endpoint())).tools();
    expect(named(tools)).toEqual(ofScopes(Object.keys(TOOLS)));
    for (const tool of tools) {
      expect(tool, tool.name).toMatchObject({
        title: expect.stringMatching(/^[A-Z]/),
        description: expect.stringMatching(/.{15}/),
        inputSchema: { type: 'object' },
        outputSchema: { type: 'object' },
        annotations: { readOnlyHint: expect.any(Boolean) },
      });
      const { readOnlyHint, ...hints } = tool.annotations;
      expect(hints, tool.name).toEqual(
        readOnlyHint ? {} : { destructiveHint: expect.any(Boolean), idempotentHint: expect.any(Boolean) },
      );
      const credential = tool.inputSchema.properties?.access_token;
      expect([tool.name, Boolean(credential)]).toEqual([tool.name, !TOOLS.public!.includes(tool.name)]);
    }
    expect(tools.find(({ name }) => name === 'cancel_server').annotations.destructiveHint).toBe(true);
  });

  it('is at most 36 KB for a model, with all tools', async () => {
    const tools = await (await NEWEST(endpoint())).tools();
    expect(Buffer.byteLength(JSON.stringify({ tools }))).toBeLessThanOrEqual(36 * 1024);
  });

  it('comes with instructions of at most 150 words, which name only tools', async () => {
    const agent = await OLDEST(endpoint());
    const names = new Set(named(await agent.tools()));
    expect(INSTRUCTIONS.split(/\s+/).length).toBeLessThanOrEqual(150);
    for (const [name] of INSTRUCTIONS.matchAll(
      /\b(get|list|create|add|update|cancel|order|quote|register|wait)(_[a-z]+)+/g,
    ))
      expect(names).toContain(name);
  });

  it('has each shape of a result once, under its title', async () => {
    const tools = await (await NEWEST(endpoint())).tools();
    const shapeOf = (name: string) => tools.find((tool) => tool.name === name).outputSchema.description;
    expect(shapeOf('list_servers')).toMatch(/^data\[\] \(Server: order_number, kind, .*failure \(code, message\),/);
    expect(shapeOf('get_server')).toBe('Server');
    expect(shapeOf('cancel_server')).toBe('Server, refunded_usd');
    expect(shapeOf('get_catalog_item')).toBe('VpsTier or DedicatedTier or Bastion or OsImage');
    const titles = [...JSON.stringify(tools).matchAll(/([A-Z]\w+): \w+,/g)].map(([, title]) => title);
    expect(titles.length).toBe(new Set(titles).size);
  });

  it.each(['read', 'servers', 'billing', 'full'])('shows a key only the tools of its scope: %s', async (scope) => {
    const { rest } = await freehold.newAccount();
    const { body } = await rest('POST', '/v1/auth/api-keys', { name: 'k', scope });
    for (const connect of [NEWEST, OLDEST]) {
      const agent = await connect(endpoint(), { credential: body.plaintext });
      const tools = await agent.tools();
      expect(named(tools)).toEqual(ofScopes(INCLUDED[scope]!));
      expect(JSON.stringify(tools.map(({ inputSchema }) => inputSchema))).not.toContain('access_token');
      // An unlisted tool exists all the same, for another credential.
      if (scope === 'read')
        expect((await agent.call('cancel_topup', { order_number: 'x' })).content.code).toBe('insufficient_scope');
    }
  });

  it('has the toolsets of the URL, and no tool that changes anything with readonly', async () => {
    const some = await NEWEST(endpoint('?toolsets=catalog,servers'));
    expect(named(await some.tools())).toEqual(expect.arrayContaining(['list_vps', 'order_server', 'wait_for_server']));
    expect(named(await some.tools())).not.toContain('get_balance');
    await expect(some.call('get_balance')).rejects.toMatchObject({ code: -32_602 });
    for (const connect of [NEWEST, OLDEST]) {
      const reader = await connect(endpoint('?readonly=1'));
      const tools = await reader.tools();
      expect(tools.every(({ annotations }) => annotations.readOnlyHint)).toBe(true);
      expect(named(tools)).toContain('list_servers');
      await expect(reader.call('order_server', { service_code: 'vps-1' })).rejects.toMatchObject({ code: -32_602 });
    }
    expect(await (await NEWEST(endpoint('?toolsets=billing&readonly=true'))).tools()).toHaveLength(4);
    for (const query of ['?toolsets=nonsense', '?toolsets=', '?readonly=perhaps', '?readOnly=1', '?toolset=servers']) {
      const response = await fetch(endpoint(query), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{}',
      });
      expect([response.status, await response.json()]).toMatchObject([400, { error: { code: -32_000 } }]);
    }
  });

  it('has fewer than 6,500 tokens, since a model reads it at every step', async () => {
    const tools = await (await NEWEST(endpoint())).tools();
    const read = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
    expect(JSON.stringify(read).length / 4).toBeLessThan(6_500);
  });

  it('warns of the strangers who wrote the directory, and of its endpoints', async () => {
    const tools = await (await NEWEST(endpoint())).tools();
    const { description, inputSchema } = tools.find(({ name }) => name === 'search_agents');
    expect(description).toMatch(/strangers/i);
    expect(inputSchema.properties.verified.description).toMatch(/endpoints/);
  });
});

it('A page of a list is short unless the agent asks for more', async () => {
  const account = await freehold.newAccount();
  await account.fund(1_000);
  for (let i = 0; i < 22; i++) await account.rest('POST', '/v1/servers', { service_code: 'vps-1' });
  const { call } = await NEWEST(endpoint(), { credential: account.accessToken });
  const { content } = await call('list_servers');
  expect([content.data.length, content.has_more]).toEqual([20, true]);
  expect((await call('list_servers', { cursor: content.next_cursor })).content.data).toHaveLength(2);
  expect((await call('list_servers', { limit: 50 })).content.data).toHaveLength(22);
});
