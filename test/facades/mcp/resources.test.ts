import { describe, expect, it } from 'vitest';
import { eventually, startFreehold } from '../../setup/freehold.ts';
import type { RestClient } from '../../setup/spawn.ts';
import { AGENTS, type Agent, NEWEST, OLD } from './agents.ts';

const freehold = await startFreehold();
/** Its machines take two seconds, so that clients have to wait. */
const slow = await startFreehold({ SIMULATED_PROVISION_SECONDS: '2' });
const url = new URL(`${freehold.publicUrl}/mcp`);
const PUBLIC = ['catalog', 'coins', 'canary', 'status'];

async function order(rest: RestClient) {
  const { order_number } = (await rest('POST', '/v1/servers', { service_code: 'vps-1' })).body;
  const path = `/v1/servers/${order_number}`;
  const becomes = (status: string) => eventually(async () => (await rest('GET', path)).body.status === status);
  await becomes('running');
  const toggle = async (state: 'on' | 'off') => {
    await rest('PATCH', path, { power_state: state });
    await becomes(state === 'on' ? 'running' : 'stopped');
  };
  return { order_number, uri: `freehold://servers/${order_number}`, path, toggle };
}
async function withServer() {
  const account = await freehold.newAccount();
  await account.fund(30);
  return { ...account, credential: account.accessToken, ...(await order(account.rest)) };
}

describe.each(AGENTS)('The client %s at %s', (_, __, connect) => {
  it('reads public resources without a credential, with the answers of REST', async () => {
    const agent = await connect(url);
    const { resources } = await agent.client.listResources();
    expect(resources.map(({ uri }: { uri: string }) => uri).sort()).toEqual(
      PUBLIC.map((name) => `freehold://${name}`).sort(),
    );
    expect(resources.every(({ description, mimeType }: Record<string, string>) => description && mimeType)).toBe(true);
    expect(await agent.read('freehold://catalog')).toEqual((await freehold.anonymous('GET', '/v1/catalog')).body);
    expect((await agent.read('freehold://coins')).data.length).toBeGreaterThan(3);
    expect(await agent.read('freehold://canary')).toHaveProperty('status');
    expect(await agent.read('freehold://status')).toHaveProperty('indicator');
  });

  it('reads its own server, gets updates about it, and completes its number', async () => {
    const { credential, uri, rest, path, order_number, toggle } = await withServer();
    const agent = await connect(url, { credential });
    const { resourceTemplates } = await agent.client.listResourceTemplates();
    expect(resourceTemplates).toMatchObject([{ name: 'server', uriTemplate: 'freehold://servers/{order_number}' }]);
    expect(await agent.read(uri)).toEqual((await rest('GET', path)).body);
    expect(await agent.complete('order_number', 'srv-')).toEqual([order_number]);
    expect(await agent.complete('order_number', 'SRV-!')).toEqual([]);
    const changed: string[] = [];
    const unwatch = await agent.watch(uri, (one) => changed.push(one));
    await toggle('off');
    await eventually(async () => changed.length > 0);
    await unwatch();
    expect(new Set(changed)).toEqual(new Set([uri]));
  });

  it('finds no resource of another account, and none that does not exist', async () => {
    const mine = await withServer();
    const { accessToken: credential } = await freehold.newAccount();
    for (const agent of [await connect(url, { credential }), await connect(url)]) {
      for (const uri of [
        mine.uri,
        'freehold://servers/SRV-0000000000',
        'freehold://nothing',
        'file:///etc/passwd',
        'freehold://servers/..%2f',
        'freehold://servers/a/b',
      ])
        await expect(agent.read(uri)).rejects.toThrow();
      expect(await agent.complete('order_number', 'SRV')).toEqual([]);
    }
  });

  it('gets the prompt with its arguments', async () => {
    const { client } = await connect(url);
    const { prompts } = await client.listPrompts();
    expect(prompts).toMatchObject([{ name: 'onboarding', description: expect.any(String) }]);
    const { messages } = await client.getPrompt({
      name: 'onboarding',
      arguments: { purpose: 'a blog', region: 'ams' },
    });
    expect(messages[0].content.text).toMatch(/a blog.*ams[\s\S]*register_account[\s\S]*order_server/);
    await expect(client.getPrompt({ name: 'nonsense' })).rejects.toMatchObject({ code: -32_602 });
    await expect(client.getPrompt({ name: 'onboarding', arguments: { purpose: 'x'.repeat(501) } })).rejects.toThrow();
  });

  it('gets the progress of a server while it waits', async () => {
    const { rest, accessToken: credential, fund } = await slow.newAccount();
    await fund(30);
    const agent = await connect(new URL(`${slow.publicUrl}/mcp`), { credential });
    const { order_number } = (await rest('POST', '/v1/servers', { service_code: 'vps-1' })).body;
    const said: string[] = [];
    const onprogress = ({ message }: { message?: string }) => said.push(message!);
    const args = { order_number, status: 'running' };
    expect((await agent.call('wait_for_server', args, { onprogress })).content.status).toBe('running');
    expect(said[0]).toMatch(new RegExp(`^${order_number} is (pending|provisioning)\\.$`));
  });
});

describe('Updates', () => {
  it.each([
    ['a listening client of 2026', NEWEST],
    ['a session of 2025', OLD],
  ])('do not reach another account or anonymous clients, for %s', async (_, connect) => {
    const mine = await withServer();
    const theirs = await withServer();
    const heard: string[] = [];
    const owner = await connect(url, { credential: mine.credential });
    await owner.watch(mine.uri, (uri) => heard.push(`owner ${uri}`));
    for (const credential of [theirs.credential, undefined]) {
      const other = await connect(url, { ...(credential && { credential }) });
      // The newest version tells the client that it gets no updates; the older one refuses.
      await other.watch(mine.uri, (uri) => heard.push(`other ${uri}`)).catch(() => {});
      if (credential) await other.watch(theirs.uri, (uri) => heard.push(`their own ${uri}`)).catch(() => {});
    }
    await mine.toggle('off');
    await theirs.toggle('off');
    await eventually(async () => heard.includes(`owner ${mine.uri}`) && heard.includes(`their own ${theirs.uri}`));
    expect(heard).not.toContain(`other ${mine.uri}`);
    expect(heard).not.toContain(`owner ${theirs.uri}`);
    expect(heard).not.toContain(`their own ${mine.uri}`);
  });

  it.each([
    ['a listening client of 2026', NEWEST],
    ['a session of 2025', OLD],
  ])('end with the credential, for %s', async (_, connect) => {
    const { rest, uri, toggle, credential } = await withServer();
    const { body: key } = await rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'read' });
    const agent = await connect(url, { credential: key.plaintext });
    const changed: string[] = [];
    await agent.watch(uri, (one) => changed.push(one));
    await toggle('off');
    // Updates arrive in order: after one of another server, none of this server is on its way.
    const marker = await order(rest);
    await agent.watch(marker.uri, (one) => changed.push(one));
    await marker.toggle('off');
    await eventually(async () => changed.includes(marker.uri));
    expect(changed).toContain(uri);
    await rest('DELETE', `/v1/auth/api-keys/${key.key_id}`);
    await expect(agent.tools()).rejects.toThrow();
    const before = changed.filter((one) => one === uri);
    const heard: string[] = [];
    const owner = await connect(url, { credential });
    await owner.watch(uri, (one) => heard.push(one));
    await toggle('on');
    await eventually(async () => heard.length > 0);
    expect(changed.filter((one) => one === uri)).toEqual(before);
  });

  it('exist only for servers, not for public resources', async () => {
    const session = await OLD(url);
    await expect(session.watch('freehold://catalog', () => {})).rejects.toThrow();
    const listening = await NEWEST(url);
    const stream = await listening.client.listen({ resourceSubscriptions: ['freehold://catalog'] });
    expect(stream.honoredFilter.resourceSubscriptions ?? []).toEqual([]);
    await stream.close();
  });
});

describe('A subscription above the limit', () => {
  it.each([
    ['a listening client of 2026', NEWEST],
    ['a session of 2025', OLD],
  ])('is refused and not ignored, until another ends: the eleventh stream of %s', async (_, connect) => {
    const { credential, uri } = await withServer();
    const agents: Agent[] = [];
    for (let i = 0; i < 11; i++) agents.push(await connect(url, { credential }));
    const last = agents.pop()!;
    const ends = [];
    for (const agent of agents) ends.push(await agent.watch(uri, () => {}));
    await expect(last.watch(uri, () => {})).rejects.toThrow('10 subscriptions at once');
    await ends[0]!();
    const watches = () =>
      last
        .watch(uri, () => {})
        .then(
          () => true,
          () => false,
        );
    await eventually(watches);
  });

  it('is refused and not ignored: the hundred and first server of a client', async () => {
    const { credential, id } = await withServer();
    const numbers = Array.from({ length: 101 }, (_, i) => `SRV-${String(i).padStart(10, 'A')}`);
    await freehold.db.query(
      `insert into server select (jsonb_populate_record(server, jsonb_build_object('id', number, 'order_number', number))).*
       from server, unnest($2::text[]) number where account_id = $1`,
      [id, numbers],
    );
    const uris = numbers.map((number) => `freehold://servers/${number}`);
    const { client } = await NEWEST(url, { credential });
    await expect(client.listen({ resourceSubscriptions: uris })).rejects.toThrow('100 servers at once');
    const old = await OLD(url, { credential });
    for (const uri of uris.slice(0, 100)) await old.client.subscribeResource({ uri });
    await expect(old.client.subscribeResource({ uri: uris[100]! })).rejects.toThrow('100 servers at once');
  });
});
