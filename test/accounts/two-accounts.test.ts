/**
 * No account can use an id of another account, on any facade. The service answers as for a made-up id, and changes
 * nothing. The cases come from the endpoints, the tools and the schema, so new ones are tested too.
 */
import { type GraphQLField, getNamedType, getNullableType, isLeafType } from 'graphql';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { newId, newOrderNumber } from '../../entities/ids.ts';
import { readOperations } from '../../facades/compile/read.ts';
import { schema } from '../../schema/index.ts';
import { atEnd } from '../setup/end.ts';
import { ALL_ENDPOINTS } from '../setup/endpoints.ts';
import { eventually, startFreehold, type TestAccount } from '../setup/freehold.ts';
import { startReceiver } from '../setup/receiver.ts';
import { listen } from '../setup/subscription.ts';
import { callTool } from '../setup/tool.ts';
import { basic, oauthRequests } from './oauth/requests.ts';

const { anonymous, db, graphqlUrl, newAccount, publicUrl } = await startFreehold({
  WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
});
const { form, newClient, tokenOf } = oauthRequests(anonymous);
const receiver = await startReceiver();
atEnd(() => receiver.close());
const SSH_KEYS = [
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILZo0JzYJEHChHBt6zG/B6cGUZpbFXeUqaufc1ki+RX/',
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKkm4o3AUy9jM9UwkKx6CTVn0hlpPpAZYSbY9mNu7SYv',
];

/** The name of each kind of thing, and a made-up id of it. */
const MADE_UP = {
  ...{ server: () => newOrderNumber('SRV'), topup: () => newOrderNumber('TOP') },
  key: () => newId('key'),
  session: () => newId('tok'),
  sshKey: () => newId('sshkey'),
  ...{ webhook: () => newId('whk'), delivery: () => newId('dlv') },
  client: () => newId('cl'),
  ...{ account: () => newId('acct'), message: () => newId('msg') },
};
type Thing = keyof typeof MADE_UP;
const THINGS = Object.keys(MADE_UP) as Thing[];

/** An account with two of everything. `ids` has the newest of each. */
async function withEverything(): Promise<TestAccount & { ids: Record<Thing, string> }> {
  const account = await newAccount();
  await account.topUp(50);
  await account.topUp(50);
  const make = async (path: string, body: unknown) => {
    const answer = await account.rest('POST', path, body);
    expect([200, 201], JSON.stringify(answer.body)).toContain(answer.status);
    return answer.body;
  };
  const hook = { url: receiver.url, event_filter: 'ssh_key.created' };
  const hooks = [await make('/v1/webhooks', hook), await make('/v1/webhooks', { ...hook, url: `${hook.url}/2` })];
  const sshKeys = await Promise.all(SSH_KEYS.map((public_key) => make('/v1/ssh-keys', { public_key })));
  const order = (service_code: string) => make('/v1/servers', { service_code });
  const servers = [await order('vps-1'), await order('vps-2')];
  const [keyPath, newKey] = ['/v1/auth/api-keys', { name: 'k', scope: 'read' }] as const;
  const keys = [await make(keyPath, newKey), await make(keyPath, newKey)];
  await newClient({ scope: 'read' }, account.rest);
  const client = await newClient({ scope: 'read', grant_types: ['client_credentials', 'refresh_token'] }, account.rest);
  await tokenOf(client);
  for (const { order_number } of servers)
    await eventually(async () => (await account.rest('GET', `/v1/servers/${order_number}`)).body.status === 'running');
  const letter = { subject: 'Why?', body: 'It is off.' };
  const messages = [await make('/v1/account/messages', letter), await make('/v1/account/messages', letter)];
  const { data } = await eventually(async () => {
    const { data } = await account.graphql('{ webhookDeliveries { data { id status } } }');
    return (
      data.webhookDeliveries.data.length === 4 &&
      data.webhookDeliveries.data.every((one: { status: string }) => one.status === 'SUCCEEDED') &&
      data.webhookDeliveries
    );
  });
  const [session] = (await account.rest('GET', '/v1/auth/sessions')).body.data;
  const [topup] = (await account.rest('GET', '/v1/billing/topups')).body.data;
  return {
    ...account,
    ids: {
      ...{ server: servers[1].order_number, topup: topup.order_number, key: keys[1].key_id },
      ...{ session: session.token_id, sshKey: sshKeys[1].id, webhook: hooks[1].id, delivery: data[0].id },
      ...{ client: client.client_id, account: account.id, message: messages[1].id },
    },
  };
}

let [owner, stranger] = [] as unknown as [
  Awaited<ReturnType<typeof withEverything>>,
  Awaited<ReturnType<typeof withEverything>>,
];
let before: string;
/** All rows of both accounts, without logged requests, refused credentials, links of the log, and last uses. */
async function everything(): Promise<string> {
  const tables = await db.query<{ name: string }>(
    `select table_name as name from information_schema.columns where column_name = 'account_id' and table_name <> 'audit_link' order by 1`,
  );
  const rows = tables.map(({ name }) =>
    db.query(
      `select '${name}' as of, to_jsonb(t) - 'last_used_at' as row from ${name} as t
        where account_id = any($1) and coalesce(to_jsonb(t) ->> 'action', to_jsonb(t) ->> 'type', '')
          not in ('api.request', 'oauth_client.refused') order by 2::text`,
      [[owner.id, stranger.id]],
    ),
  );
  return JSON.stringify(await Promise.all(rows), (_, value) => (typeof value === 'bigint' ? String(value) : value), 1);
}
beforeAll(async () => {
  // In this order: a cursor of the owner, real or made up, comes after all rows of the stranger.
  [stranger, owner] = [await withEverything(), await withEverything()];
  before = await everything();
  expect(before).toContain(owner.ids.client);
});
afterEach(async () => expect(await everything()).toBe(before));

/** Removes the members and the id that differ between equal answers. */
const textOf = (answer: unknown) => JSON.stringify(answer, (name, value) => (name === 'request_id' ? '' : value));
const same = (answer: unknown, id = 'no id'): unknown => JSON.parse(textOf(answer).replaceAll(id, 'the id'));

/** The kind of thing that each path parameter names. */
const IN_PATHS: Record<string, Thing> = {
  ...{ '/v1/auth/sessions/{token_id}': 'session', '/v1/auth/api-keys/{key_id}': 'key' },
  '/v1/billing/topups/{order_number}': 'topup',
  ...{ '/v1/billing/topups/{order_number}/cancel': 'topup', '/v1/billing/topups/{order_number}/receipt': 'topup' },
  ...{ '/v1/servers/{order_number}': 'server', '/v1/servers/{order_number}/metrics': 'server' },
  ...{ '/v1/ssh-keys/{id}': 'sshKey', '/v1/oauth/clients/{client_id}': 'client' },
  '/v1/account/messages/{id}/read': 'message',
  '/v1/oauth/clients/{client_id}/rotate-secret': 'client',
  ...{ '/v1/webhooks/{id}': 'webhook', '/v1/webhooks/{id}/test': 'webhook' },
  '/v1/webhooks/{id}/rotate-secret': 'webhook',
  '/v1/webhooks/{id}/deliveries': 'webhook',
  '/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver': 'delivery',
};
/** Valid bodies of each PATCH, and of a POST that needs one. */
const BODIES: Record<string, object[]> = {
  '/v1/oauth/clients/{client_id}/rotate-secret': [{ client_secret: 'svc_cs_x' }],
  '/v1/servers/{order_number}': [
    ...[{ hostname: 'mine.example' }, { labels: { mine: 'yes' } }, { auto_renew: false }, { delete_protection: true }],
    ...[{ power_state: 'off' }, { action: 'reboot' }, { action: 'rebuild' }, { service_code: 'vps-3' }],
  ],
};

describe('An id of another account', () => {
  // A month is no thing of an account: see receipts.test.ts.
  const inPaths = ALL_ENDPOINTS.filter(([, path, scope]) => /\{(?!month)/.test(path) && scope !== 'public');
  it.each(inPaths)('does not exist in the path of %s %s', async (method, path) => {
    const thing = IN_PATHS[path];
    expect(thing, 'say in IN_PATHS what the path names').toBeDefined();
    const bodies = method === 'PATCH' ? BODIES[path] : (method === 'POST' && BODIES[path]) || [undefined];
    expect(bodies, 'add valid bodies to BODIES').toBeDefined();
    const query =
      method === 'GET' && path.endsWith('s/{order_number}') && thing === 'server' ? '?wait_for=running' : '';
    for (const body of bodies!) {
      const [real, madeUp] = [owner.ids[thing!], MADE_UP[thing!]()];
      const ask = async (id: string) => {
        const target = path.replace('{id}/deliveries/', `${owner.ids.webhook}/deliveries/`).replace(/\{\w+\}/, id);
        const { status, body: answer } = await stranger.rest(method, target + query, body);
        return { status, answer: same(answer, id) };
      };
      const answer = await ask(real);
      expect(answer).toEqual(await ask(madeUp));
      expect(answer).toMatchObject({ status: 404, answer: { code: 'not_found' } });
    }
  });

  const lists = readOperations(schema).filter(
    ({ http, answer, scopes, parameters }) =>
      http?.method === 'GET' &&
      !http.path.includes('{') &&
      scopes.length &&
      answer.page !== undefined &&
      parameters.some(({ name }) => name === 'cursor'),
  );
  it.each(lists.map(({ http }) => http!.path))('gives the page of a made-up id in a cursor of GET %s', async (path) => {
    const { body } = await owner.rest('GET', `${path}?limit=1`);
    expect(body.next_cursor).toEqual(expect.any(String));
    const [id, binding] = Buffer.from(body.next_cursor, 'base64url').toString().split(' ');
    const madeUp = Buffer.from(`${id!.slice(0, -6)}zzzzzz ${binding}`).toString('base64url');
    const ask = async (cursor: string) => stranger.rest('GET', `${path}?limit=100&cursor=${cursor}`);
    const [real, other] = [await ask(body.next_cursor), await ask(madeUp)];
    expect([real.status, same(real.body)]).toEqual([200, same(other.body)]);
    for (const thing of THINGS) expect(JSON.stringify(real.body)).not.toContain(owner.ids[thing]);
  });

  it('finds nothing in a filter', async () => {
    const { hostname } = (await owner.rest('GET', `/v1/servers/${owner.ids.server}`)).body;
    expect((await stranger.rest('GET', `/v1/servers?hostname=${hostname}`)).body.data).toEqual([]);
  });

  it('does not exist in a body: ssh_key_ids of an order and of a rebuild', async () => {
    for (const [method, path, body] of [
      ['POST', '/v1/servers', { service_code: 'vps-1' }],
      ['POST', '/v1/servers', { service_code: 'vps-1', dry_run: true }],
      ['PATCH', `/v1/servers/${stranger.ids.server}`, { action: 'rebuild' }],
    ] as const) {
      const ask = async (id: string) =>
        same(await stranger.rest(method, path, { ...body, ssh_key_ids: [stranger.ids.sshKey, id] }), id);
      const answer = (await ask(owner.ids.sshKey)) as { body: unknown };
      expect(answer).toEqual(await ask(MADE_UP.sshKey()));
      expect(answer.body).toMatchObject({ status: 422, code: 'unknown_ssh_key' });
    }
  });

  it('gives no access at the OAuth endpoints with the caller’s own secret or token', async () => {
    const mine = await newClient({ scope: 'read' });
    for (const [path, members] of [
      ['/v1/oauth/token', { grant_type: 'client_credentials' }],
      ['/v1/oauth/revoke', { token: stranger.accessToken }],
    ] as const) {
      const ask = async (id: string) => same(await form(path, members, basic(id, mine.client_secret)), id);
      const answer = (await ask(owner.ids.client)) as { body: unknown };
      expect(answer).toEqual(await ask(MADE_UP.client()));
      expect(answer.body).toMatchObject({ status: 401, code: 'invalid_client' });
    }
    const revoked = await form(
      '/v1/oauth/revoke',
      { token: owner.accessToken },
      basic(mine.client_id, mine.client_secret),
    );
    expect([revoked.status, revoked.body]).toEqual([200, {}]);
    expect((await owner.rest('GET', '/v1/account')).status).toBe(200);
  });

  const ofTools: Record<string, Thing> = {
    ...{ get_topup: 'topup', cancel_topup: 'topup', get_server: 'server', wait_for_server: 'server' },
    ...{ update_server: 'server', cancel_server: 'server', revoke_api_key: 'key', get_ssh_key: 'sshKey' },
    ...{ remove_ssh_key: 'sshKey', delete_webhook: 'webhook', test_webhook: 'webhook', mark_message_read: 'message' },
    delete_oauth_client: 'client',
    ...{ list_webhook_deliveries: 'webhook', redeliver_webhook: 'webhook', rotate_webhook_secret: 'webhook' },
  };
  const MORE: Record<string, object> = {
    wait_for_server: { status: 'running', timeout: 1 },
    update_server: { auto_renew: false },
    redeliver_webhook: { delivery_id: `dlv_${'0'.repeat(26)}` },
  };
  const tools = readOperations(schema).flatMap(({ tool, parameters, scopes }) => {
    const id = parameters.find(({ type }) => getNamedType(type).name === 'ID');
    return tool && id && scopes.length ? [[tool.name, id.name, tool.confirm] as const] : [];
  });
  it.each(tools)('does not exist for the tool %s as %s', async (name, argument, confirm) => {
    const thing = ofTools[name];
    expect(thing, 'say in ofTools what it names').toBeDefined();
    const ask = async (id: string) => {
      const args = { ...MORE[name], [argument]: id, ...(confirm && { confirm: id }) };
      return same(await callTool(publicUrl, stranger.accessToken, name, args), id);
    };
    const answer = await ask(owner.ids[thing!]);
    expect(answer).toEqual(await ask(MADE_UP[thing!]()));
    expect(answer).toMatchObject({ isError: true, content: { code: 'not_found' } });
  });

  const THINGS_OF_FIELDS: Partial<Record<Thing, string>> = {
    server: 'server serverMetrics deleteServer updateServer serverUpdated',
    topup: 'topUp cancelTopup receipt topUpUpdated',
    sshKey: 'sshKey deleteSshKey',
    ...{ key: 'revokeApiKey', session: 'revokeSession', delivery: 'redeliver', message: 'markMessageRead' },
    account: 'auditLog messages webhooks',
    webhook: 'webhookDeliveries deleteWebhook rotateWebhookSecret testWebhook',
    client: 'deleteOauthClient rotateOauthClientSecret',
  };
  const thingOf = (field: string) => THINGS.find((thing) => THINGS_OF_FIELDS[thing]?.split(' ').includes(field));
  /** A valid input of each field with an id. */
  const INPUTS: Record<string, string> = {
    ...{ updateServer: '{ autoRenew: false }', rotateWebhookSecret: '{}' },
    rotateOauthClientSecret: '{ clientSecret: "svc_cs_x" }',
  };
  const fields = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()].flatMap((root) =>
    Object.values(root!.getFields()).flatMap((field) => {
      const id = field.args.find(({ type }) => getNamedType(type).name === 'ID');
      const scope = String(field.extensions.scope);
      const open = id && !['public', 'operator'].includes(scope);
      return open ? [[root!.name.toLowerCase(), field.name, id.name, field] as const] : [];
    }),
  );
  it.each(fields)('does not exist in GraphQL for the %s %s', async (kind, name, argument, field) => {
    const thing = thingOf(name);
    expect(thing, 'say in THINGS_OF_FIELDS what it names').toBeDefined();
    const takesInput = field.args.some((arg) => arg.name === 'input');
    expect(INPUTS[name] !== undefined, 'add a valid input to INPUTS').toBe(takesInput);
    const input = takesInput ? `, input: ${INPUTS[name]}` : '';
    const document = `${kind} ($id: ID!) { ${name}(${argument}: $id${input}) { ${leafOf(field)} } }`;
    const ask = async (id: string) => {
      if (kind !== 'subscription') return same(await stranger.graphql(document, { id }), id);
      const live = listen(graphqlUrl, stranger.accessToken, document, { id });
      await eventually(async () => live.messages.length || live.failure());
      live.dispose();
      return same([live.messages, live.failure()]);
    };
    const answer = await ask(owner.ids[thing!]);
    expect(answer).toEqual(await ask(MADE_UP[thing!]()));
    expect(JSON.stringify(answer)).toContain('"not_found"');
  });
});

/** A selection of one field without arguments, with a selection of its own fields. */
function leafOf({ type }: Pick<GraphQLField<unknown, unknown>, 'type'>): string {
  const inner = getNamedType(getNullableType(type));
  if (!('getFields' in inner)) return '';
  const all = Object.values(inner.getFields()) as GraphQLField<unknown, unknown>[];
  const leaf = all.find((one) => isLeafType(getNamedType(one.type)));
  return leaf ? leaf.name : `${all[0]!.name} { ${leafOf(all[0]!)} }`;
}
