/** Natural mistakes get an answer that helps, over REST and over MCP. */
import { describe, expect, it } from 'vitest';
import { readOperations } from '../../facades/compile/read.ts';
import { restTerms, toolTerms } from '../../facades/compile/terms.ts';
import { schema } from '../../schema/index.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';
import { NEWEST } from './mcp/agents.ts';
import { MISTAKES, type Mistake, PATHS } from './mistakes.ts';

const { publicUrl, newAccount } = await startFreehold();
const account = await newAccount();
await account.fund(100);
const { body: server } = await account.rest('POST', '/v1/servers', { service_code: 'vps-1' });
await eventually(
  async () => (await account.rest('GET', `/v1/servers/${server.order_number}`)).body.status === 'running',
);
const operations = new Map(readOperations(schema).map((operation) => [operation.name, operation]));
const PUBLIC_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKkm4o3AUy9jM9UwkKx6CTVn0hlpPpAZYSbY9mNu7SYv';
const OTHER_PUBLIC_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILZo0JzYJEHChHBt6zG/B6cGUZpbFXeUqaufc1ki+RX/';
const TERMS = { REST: restTerms([...operations.values()]), MCP: toolTerms([...operations.values()]) };

/** Sends what a row says to an endpoint. */
async function overRest(name: string, sent: Record<string, unknown>) {
  const { http, parameters, input } = operations.get(name)!;
  let path: string = http!.path;
  const [query, body] = [new URLSearchParams(), {} as Record<string, unknown>];
  for (const [field, value] of Object.entries(sent)) {
    const place = parameters.find((parameter) => parameter.name === field)?.in ?? (input ? 'body' : 'query');
    if (place === 'path') path = path.replace(`{${field}}`, encodeURIComponent(String(value)));
    else if (place === 'query') query.append(field, String(value));
    else body[field] = value;
  }
  const url = query.size ? `${path}?${query}` : path;
  return (await account.rest(http!.method, url, input ? body : undefined)).body;
}
async function overMcp(name: string, sent: Record<string, unknown>) {
  const agent = await NEWEST(new URL(`${publicUrl}/mcp`), { credential: account.accessToken });
  return (await agent.call(operations.get(name)!.tool!.name, sent)).content;
}

/** The value that the answer must repeat; undefined for one with parts, and for a secret. */
function repeated(field: string, sent: Record<string, unknown>): string | undefined {
  const value = sent[field];
  if (!['string', 'number', 'boolean'].includes(typeof value) || /password|_key$|^key|user/.test(field))
    return undefined;
  return String(value).slice(0, 40);
}

const within = (sent: Record<string, unknown>) =>
  JSON.parse(JSON.stringify(sent).replaceAll('{server}', server.order_number)) as Record<string, unknown>;

describe.each(['REST', 'MCP'] as const)('Over %s', (facade) => {
  it.each(MISTAKES.map((mistake) => [mistake[0], JSON.stringify(mistake[1]).slice(0, 80), mistake] as const))(
    'a mistake is explained: %s %s',
    async (_, __, [name, row, field, ...says]: Mistake) => {
      const sent = within(row);
      const answer = await (facade === 'REST' ? overRest : overMcp)(name, sent);
      expect(answer.status, JSON.stringify(answer)).toBeGreaterThanOrEqual(400);
      expect(answer.status).toBeLessThan(500);
      expect(answer.detail).toContain(field);
      const isUnknown = answer.code === 'unknown_field' || answer.detail.includes(`There is no field ${field}`);
      const value = isUnknown || answer.detail.includes('query parameter') ? undefined : repeated(field, sent);
      if (value !== undefined) expect(answer.detail.toLowerCase()).toContain(value.toLowerCase());
      for (const words of says) expect(answer.detail).toContain(TERMS[facade](words));
    },
  );
});

it.each(PATHS)('A path of another host is explained: %s %s', async (method, path, ...says) => {
  const { status, body } = await account.rest(method, path);
  expect(status).toBe(404);
  for (const words of says) expect(body.detail).toContain(words);
});

it('An SSH key is suggested by its whole name alone, which no other value begins with', async () => {
  const { body: key } = await account.rest('POST', '/v1/ssh-keys', { name: 's', public_key: PUBLIC_KEY });
  const order = async (id: string) =>
    (await account.rest('POST', '/v1/servers', { service_code: 'vps-1', ssh_key_ids: [id] })).body.detail;
  expect(await order('S')).toContain(`Did you mean ${key.id}?`);
  expect(await order('sshkey_00000000000000000000000000')).not.toContain('Did you mean');
  const gone = 'sshkey_11111111111111111111111111';
  await account.rest('POST', '/v1/ssh-keys', { name: gone, public_key: OTHER_PUBLIC_KEY });
  expect(await order(gone)).not.toContain('Did you mean');
});

it('A credential that stands where an id belongs does not come back whole', async () => {
  const { body: key } = await account.rest('POST', '/v1/auth/api-keys', { name: 'key', scope: 'full' });
  for (const path of ['auth/api-keys', 'auth/sessions', 'oauth/clients', 'ssh-keys']) {
    const { status, body } = await account.rest('DELETE', `/v1/${path}/${key.plaintext}`);
    expect([status, body.detail]).toEqual([404, expect.stringContaining('"svc_live_…"')]);
  }
  const refusals = [
    await account.rest('POST', '/v1/webhooks', { url: 'https://example.org', event_filter: key.plaintext }),
    await account.rest('POST', '/v1/servers', { service_code: 'vps-1', [key.plaintext]: 1 }),
    await account.rest('POST', '/v1/servers', { service_code: 'vps-1', labels: { [key.plaintext]: 'x' } }),
    await account.rest('GET', `/v1/servers?${key.plaintext}=1`),
  ];
  for (const { body } of refusals) expect(JSON.stringify(body)).not.toContain(key.plaintext);
});

it('There are at least 150 mistakes', () => {
  expect(MISTAKES.length + PATHS.length).toBeGreaterThanOrEqual(150);
});

it('A body that is no JSON names the place', async () => {
  const headers = { authorization: `Bearer ${account.accessToken}`, 'content-type': 'application/json' };
  const post = async (body: string) =>
    (await fetch(`${publicUrl}/v1/servers`, { method: 'POST', headers, body })).json();
  expect((await post('{"service_code": "vps-1",}')).detail).toBe('The body is not valid JSON at line 1 column 26.');
  expect((await post('{"service_code": "vps-1"')).detail).toMatch(/it ends too early|at line 1 column/);
});
