/** Customers and the operator fill the database of a version, by REST and GraphQL alone. */
import { randomUUID } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import { startReceiver } from '../setup/receiver.ts';
import { graphqlClient, type RunningService } from '../setup/spawn.ts';
import { awaited, type PlainClient, plainClient } from './client.ts';
import type { LastVersion } from './last-version.ts';

const SSH_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILZo0JzYJEHChHBt6zG/B6cGUZpbFXeUqaufc1ki+RX/';
const CUSTOMER = { email: 'lin@example.org', password: 'a heron on the roof' };
const CODES = ['CEASE', 'DURESS', 'GAG', 'RAID', 'SEIZE', 'SUBP', 'TRAP', 'WAR', 'XCRED', 'XOPERS'];
const IN_YEARS = '2099-12-31T00:00:00Z';

/** Sends a call that must succeed. @returns the body */
const must = async (rest: PlainClient, ...call: Parameters<PlainClient>) => {
  const { status, body } = await rest(...call);
  if (status >= 300) throw new Error(`${call[0]} ${call[1]} answered ${status}: ${JSON.stringify(body)}`);
  return body;
};

function operatorOf({ graphql, operatorToken }: RunningService) {
  const ask = graphqlClient(graphql, operatorToken);
  return async (query: string, variables: object = {}) => {
    const { data, errors } = await ask(query, variables);
    if (errors) throw new Error(`${query}: ${JSON.stringify(errors)}`);
    return data;
  };
}

/** Does work that ends: top-ups, machines, deliveries, decisions of the operator. */
export async function workDone(service: RunningService): Promise<Pick<LastVersion, 'customer' | 'careful'>> {
  const anonymous = plainClient(service.url);
  const operator = operatorOf(service);
  const { tokens, account } = await must(anonymous, 'POST', '/v1/auth/register', CUSTOMER);
  const rest = plainClient(service.url, tokens.access_token);
  const [receiver, refusing] = [await startReceiver(), await startReceiver()];
  refusing.answer = (response) => void response.writeHead(503).end();
  await must(rest, 'POST', '/v1/webhooks', { url: receiver.url, event_filter: '*' });
  await must(rest, 'POST', '/v1/webhooks', { url: refusing.url, event_filter: ['server.*'] });
  const apiKey = await credentials(rest);
  await topUps(rest);
  const [ipv4, orderNumber] = await servers(rest);
  await must(rest, 'POST', '/v1/account/messages', { subject: 'A question', body: 'Where is zrh?' });
  await publish(rest);

  await operator('mutation ($input: SendMessageInput!) { sendMessage(input: $input) { id } }', {
    input: { accountId: account.id, subject: 'An answer', body: 'In Zurich.' },
  });
  await operator('mutation ($input: OpenCaseInput!) { openCase(input: $input) { id } }', {
    input: {
      ...{ source: 'abuse@example.net', address: ipv4, at: new Date().toISOString() },
      ...{ deadline: IN_YEARS, text: 'It scans us.' },
    },
  });
  await operator('mutation ($id: ID!) { addNote(accountId: $id, text: "Pays early.") { id } }', { id: account.id });
  await operator(
    `mutation ($id: ID!) { adjustBalance(accountId: $id, amountUsd: 3.25, reason: "A gift", key: "gift") { balanceUsd } }`,
    { id: account.id },
  );
  await policies(operator);
  await suspension(anonymous, operator);
  await awaited(rest, `/v1/servers/${orderNumber}`, ({ status }) => status === 'running');
  await Promise.all([receiver.close(), refusing.close()]);
  return { customer: { ...CUSTOMER, apiKey }, careful: await secondFactor(service.url) };
}

/** Another account has a second factor. */
async function secondFactor(url: string): Promise<LastVersion['careful']> {
  const given = { email: 'sam@example.org', password: 'a heron in the reeds' };
  const { tokens } = await must(plainClient(url), 'POST', '/v1/auth/register', given);
  const rest = plainClient(url, tokens.access_token);
  const { secret } = await must(rest, 'POST', '/v1/auth/totp/setup', { password: given.password });
  await must(rest, 'POST', '/v1/auth/totp/enable', { totp_code: codeOf(secret) });
  return { ...given, secret };
}

/** Returns the code of an authenticator. */
export const codeOf = (secret: string): string => new TOTP({ secret: Secret.fromBase32(secret) }).generate();

async function credentials(rest: PlainClient): Promise<string> {
  await must(rest, 'POST', '/v1/auth/api-keys', {
    ...{ name: 'limited', scope: 'servers', ip_allowlist: ['192.0.2.0/24'], spend_limit_usd: 20, expires_at: IN_YEARS },
  });
  const client = { client_name: 'tool', scope: 'read', grant_types: ['client_credentials'] };
  await must(rest, 'POST', '/v1/oauth/register', client);
  const key = await must(rest, 'POST', '/v1/auth/api-keys', { name: 'laptop', scope: 'servers billing' });
  return key.plaintext;
}

async function topUps(rest: PlainClient): Promise<void> {
  const numbers: string[] = [];
  for (const crypto of ['BTC', 'XMR'])
    numbers.push((await must(rest, 'POST', '/v1/billing/topups', { amount_usd: 100, crypto })).order_number);
  for (const number of numbers)
    await awaited(rest, `/v1/billing/topups/${number}`, ({ status }) => status === 'confirmed');
}

/** Orders servers, and changes them. @returns the address of one that runs, and its order number */
async function servers(rest: PlainClient): Promise<[ipv4: string, orderNumber: string]> {
  const { id } = await must(rest, 'POST', '/v1/ssh-keys', { name: 'laptop', public_key: SSH_KEY });
  const order = async (hostname: string, more: object = {}) => {
    const given = { service_code: 'vps-1', hostname, ssh_key_ids: [id], ...more };
    const { order_number } = await must(rest, 'POST', '/v1/servers', given, randomUUID());
    return awaited(rest, `/v1/servers/${order_number}`, ({ status }) => status === 'running');
  };
  const change = (number: string, input: object) => must(rest, 'PATCH', `/v1/servers/${number}`, input);
  const web = await order('web', { labels: { role: 'web' }, user_data: '#cloud-config\n' });
  const [off, gone] = [await order('off', { auto_renew: false }), await order('gone')];
  await change(web.order_number, { reverse_dns: [{ ip: web.ipv4, ptr: 'web.example.org' }], delete_protection: true });
  await change(off.order_number, { power_state: 'off' });
  await awaited(rest, `/v1/servers/${off.order_number}`, ({ status }) => status === 'stopped');
  await must(rest, 'DELETE', `/v1/servers/${gone.order_number}`);
  await change(web.order_number, { action: 'rebuild', os: 'debian-12' });
  return [web.ipv4, web.order_number];
}

const publish = (rest: PlainClient) =>
  must(rest, 'POST', '/v1/agents/directory', {
    ...{ slug: 'night-owl', name: 'Night Owl', description: 'It wakes up at night.', url: 'https://owl.example.org' },
    endpoints: [{ protocol: 'mcp', url: 'https://owl.example.org/mcp' }],
  });

async function policies(operator: ReturnType<typeof operatorOf>): Promise<void> {
  await operator(
    'mutation { addOperator(input: { name: "monitor", role: READ_ONLY }) { token } inviteOperator(input: { name: "ann", role: SUPPORT }) { code } }',
  );
  await operator('mutation ($input: PublishCanaryInput!) { publishCanary(input: $input) { version } }', {
    input: { statement: 'We have received no order.', codes: CODES },
  });
  await operator('mutation ($input: PublishIncidentInput!) { publishIncident(input: $input) { id } }', {
    input: {
      ...{ name: 'Slow disks', status: 'INVESTIGATING', impact: 'MINOR', components: ['api'], body: 'We look.' },
    },
  });
  await operator('mutation { setStock(region: "zrh", serviceCode: "vps-2", total: 7) { total } }');
  await operator(
    `mutation { createWebhook(input: { url: "https://pager.example.org/hook", eventFilter: ["payment.*"] }) { secret } }`,
  );
}

/** Another account is suspended. */
async function suspension(anonymous: PlainClient, operator: ReturnType<typeof operatorOf>): Promise<void> {
  const given = { email: 'kim@example.org', password: 'a heron at the pond' };
  const { account } = await must(anonymous, 'POST', '/v1/auth/register', given);
  await operator('mutation ($id: ID!) { suspendAccount(id: $id, reason: "Spam was sent.") { id } }', {
    id: account.id,
  });
}

/** Begins a top-up, an order and a restart. The simulations of this service are too slow to end them. */
export async function workBegun({ url }: RunningService, { apiKey }: LastVersion['customer']): Promise<void> {
  const rest = plainClient(url, apiKey);
  await must(rest, 'POST', '/v1/billing/topups', { amount_usd: 40, crypto: 'LTC' });
  const cancelled = await must(rest, 'POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'ETH' });
  await must(rest, 'POST', `/v1/billing/topups/${cancelled.order_number}/cancel`);
  const { order_number } = await must(rest, 'POST', '/v1/servers', { service_code: 'vps-1', hostname: 'new' });
  await awaited(rest, `/v1/servers/${order_number}`, ({ status }) => status === 'provisioning');
  const { data } = await must(rest, 'GET', '/v1/servers');
  // biome-ignore lint/suspicious/noExplicitAny: an answer of any version
  const web = data.find(({ hostname }: any) => hostname === 'web');
  await must(rest, 'PATCH', `/v1/servers/${web.order_number}`, { action: 'reboot' });
}

/** Paths whose answers tell of other things than the database, or of the credential that asks. */
const APART =
  /^\/v1\/(openapi\.json|oauth\/introspect|auth\/sessions|transparency\/(status|audit-digest)|.*\/metrics$)/;

/**
 * Reads all that the customer can read.
 * @param day the day of the journey
 * @returns the bodies, by their paths
 */
export async function readAll(url: string, rest: PlainClient, day: string): Promise<LastVersion['answers']> {
  const document = (await plainClient(url)('GET', '/v1/openapi.json')).body;
  const templates = Object.keys(document.paths).filter((path) => document.paths[path].get && !APART.test(path));
  const answers: Record<string, unknown> = {};
  const read = async (path: string, template = path) => {
    const { status, body } = await rest('GET', path + queryOf(document.paths[template].get, day));
    if (status === 200) answers[path] = body;
    // An open top-up has no receipt.
    else if (status !== 404) throw new Error(`GET ${path} answered ${status}: ${JSON.stringify(body)}`);
  };
  for (const path of templates.filter((path) => !path.includes('{'))) await read(path);
  for (const template of templates.filter((path) => path.includes('{'))) {
    const [, list = '', rest = ''] = /^(.*)\/\{[^}]+\}(.*)$/.exec(template)!;
    for (const id of idsOf(answers[list])) await read(`${list}/${id}${rest}`, template);
  }
  return answers;
}

/** Asks for a whole list. By default, a range of days ends today. */
function queryOf(
  { operationId, parameters = [] }: { operationId: string; parameters?: object[] },
  day: string,
): string {
  const to = new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10);
  if (operationId === 'GetUsage') return `?from=${day}&to=${to}&limit=200`;
  return /"name":"limit"/.test(JSON.stringify(parameters)) ? '?limit=200' : '';
}

/** Returns the ids of the things of a list. */
const idsOf = (list: unknown): string[] =>
  // biome-ignore lint/suspicious/noExplicitAny: an answer of any version
  ((list as any)?.data ?? []).map((one: any) => one.order_number ?? one.id ?? one.code ?? one.key_id);
