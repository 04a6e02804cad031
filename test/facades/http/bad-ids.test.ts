/**
 * Sends invalid ids in paths, queries, bodies, tools and GraphQL. Each answer is 400, 404 or 422 of the catalogue, never
 * 5xx, and the service writes nothing.
 */
import { getNamedType } from 'graphql';
import { beforeAll, describe, expect, it } from 'vitest';
import { ERRORS, type ErrorCode } from '../../../entities/errors.ts';
import { readOperations } from '../../../facades/compile/read.ts';
import { openapi } from '../../../facades/openapi/document.ts';
import { schema } from '../../../schema/index.ts';
import { atEnd } from '../../setup/end.ts';
import { ALL_ENDPOINTS } from '../../setup/endpoints.ts';
import { startFreehold, type TestAccount } from '../../setup/freehold.ts';
import type { Document } from '../../setup/openapi.ts';
import { type Answer, restClient } from '../../setup/spawn.ts';
import { callTool } from '../../setup/tool.ts';

const { anonymous, db, newAccount, publicUrl } = await startFreehold({ ROLES: 'api' });

const INVALID_IDS = [
  ...[
    '',
    '.',
    '..',
    '%00',
    '\0',
    '0',
    '-1',
    '12345678901234567890',
    'null',
    'undefined',
    'true',
    '[]',
    '{}',
    '*',
    '%',
    '_',
  ],
  ...['__proto__', 'constructor', 'toString', "' or '1'='1", '1; drop table account', '$1', '../../etc/passwd', '🦀'],
  ...[
    'x'.repeat(300),
    'acct_',
    'key_00000000000000000000000000',
    'sshkey_🦀',
    'SRV-AAAAAAAAAA',
    'srv-0000000000',
    'ſſhkey_',
  ],
  ...[
    '00000000-0000-0000-0000-000000000000',
    '\ud800',
    'tok_\u202e',
    ' SRV-0000000000',
    'SRV-0000000000\n',
    'NaN',
    '1e999',
  ],
];

let account: TestAccount;
const rowCounts = () =>
  db.query('select (select count(*)::int from event) as events, (select count(*)::int from account) as accounts');
let before: unknown;
beforeAll(async () => {
  account = await newAccount();
  before = await rowCounts();
});
atEnd(async () => {
  expect(await rowCounts()).toEqual(before);
  expect((await account.rest('GET', '/v1/account')).status).toBe(200);
});

const expectRefusal = ({ status, body }: Answer, allowed: number[]) => {
  expect(allowed, JSON.stringify(body)).toContain(status);
  expect(ERRORS[body.code as ErrorCode][0]).toBe(status);
};
const { paths }: Document = JSON.parse(JSON.stringify(openapi(readOperations(schema), publicUrl)));
const bodyOf = (method: string, path: string) =>
  paths[path][method.toLowerCase()].requestBody?.content['application/json'].example;
const encoded = (id: string) => encodeURIComponent(id.isWellFormed() ? id : id.toWellFormed());

describe('An invalid id', () => {
  it.each(ALL_ENDPOINTS.filter(([, path]) => path.includes('{')))(
    'in the path of %s %s is not found',
    async (method, path) => {
      for (const id of INVALID_IDS)
        for (const segment of new Set([encoded(id), /^[\w.%-]+$/.test(id) ? id : encoded(id)])) {
          // An empty segment, or one of dots, makes another path.
          if (/^\.*$/.test(segment)) continue;
          const answer = await account.rest(method, path.replace(/\{\w+\}/, segment), bodyOf(method, path));
          expectRefusal(answer, [400, 404]);
        }
    },
  );

  const lists = readOperations(schema).filter(({ http }) => http?.method === 'GET' && http.style === 'PLAIN');
  const parameters = lists.flatMap(({ http, parameters }) =>
    parameters.flatMap(({ name, in: location }) => (location === 'query' ? [[http!.path, name] as const] : [])),
  );
  it.each(parameters)('in the query of GET %s as %s causes no fault', async (path, name) => {
    for (const value of INVALID_IDS) {
      const answer = await account.rest('GET', `${path.replace(/\{\w+\}/, 'x')}?${name}=${encoded(value)}`);
      expect(answer.status, JSON.stringify([value, answer.body])).toBeLessThan(500);
      if (answer.status !== 200) expectRefusal(answer, [400, 404]);
      const codes = ['invalid_cursor', 'invalid_query', ...(path.includes('{') ? ['not_found'] : [])];
      if (name === 'cursor' && value) expect(codes).toContain(answer.body.code);
    }
  });

  it('in a body is 422, for keys, coins, tiers, images and scopes', async () => {
    for (const [path, body] of [
      ['/v1/servers', (id: string) => ({ service_code: 'vps-1', ssh_key_ids: [id] })],
      ['/v1/servers', (id: string) => ({ service_code: id })],
      ['/v1/servers', (id: string) => ({ service_code: 'vps-1', region: id })],
      ['/v1/servers', (id: string) => ({ service_code: 'vps-1', os: id })],
      ['/v1/billing/topups', (id: string) => ({ amount_usd: 30, crypto: id })],
      ['/v1/auth/api-keys', (scope: string) => ({ name: 'k', scope })],
    ] as const)
      for (const id of INVALID_IDS) expectRefusal(await account.rest('POST', path, body(id)), [422]);
  });

  it('is refused as a credential, a client and a token', async () => {
    for (const text of INVALID_IDS) {
      const form = { grant_type: 'client_credentials', client_id: text, client_secret: text };
      expectRefusal(await anonymous('POST', '/v1/oauth/token', form), [400, 401, 422]);
      const { status, body } = await anonymous('GET', `/v1/oauth/introspect?token=${encoded(text)}`);
      if (status === 200) expect(body).toEqual({ active: false });
      else expect(status).toBe(400);
      expectRefusal(await anonymous('POST', '/v1/auth/token/refresh', { refresh_token: text }), [401, 422]);
      if (/^[\x21-\x7e]+$/.test(text)) expectRefusal(await restClient(publicUrl, text)('GET', '/v1/account'), [401]);
    }
  });

  it('is refused as a scope of an OAuth client and of a token', async () => {
    const { body: client } = await account.rest('POST', '/v1/oauth/register', {});
    for (const scope of ['__proto__', 'constructor', 'toString', 'operator', 'public', 'read __proto__']) {
      expectRefusal(await anonymous('POST', '/v1/oauth/register', { scope }), [400]);
      const { client_id, client_secret } = client;
      const form = { grant_type: 'client_credentials', client_id, client_secret, scope };
      expect((await anonymous('POST', '/v1/oauth/token', form)).body.code).toBe('invalid_scope');
    }
    before = await rowCounts();
  });

  const tools = readOperations(schema).flatMap(({ tool, parameters }) => {
    const id = parameters.find(({ type }) => getNamedType(type).name === 'ID');
    return tool && id ? [[tool.name, id.name] as const] : [];
  });
  it('in a call of a tool is not found, or an invalid argument', async () => {
    expect(tools.length).toBeGreaterThan(8);
    for (const [name, argument] of tools)
      for (const id of ['', '__proto__', "' or '1'='1", '🦀', 'x'.repeat(300), '-1', 'SRV-AAAAAAAAAA']) {
        const { isError, content } = await callTool(publicUrl, account.accessToken, name, {
          [argument]: id,
          ...(name === 'wait_for_server' && { status: 'running' }),
        });
        expect([isError, ['not_found', 'validation_failed'].includes(content.code)], JSON.stringify(content)).toEqual([
          true,
          true,
        ]);
      }
  });

  it('in GraphQL is not found', async () => {
    for (const id of INVALID_IDS) {
      const query =
        'query ($id: ID!) { server(orderNumber: $id) { status } topUp(orderNumber: $id) { status } sshKey(id: $id) { name } }';
      const { errors } = await account.graphql(query, { id });
      expect(errors.length).toBeGreaterThan(0);
      for (const { extensions } of errors) expect(['not_found', undefined]).toContain(extensions?.code);
    }
  });
});
