/** Compares the service with the descriptions and schemas of inputs in the OpenAPI document. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { describe, expect, it } from 'vitest';
import { EVENT_TYPES } from '../../../entities/history/event.ts';
import { oauthRequests } from '../../accounts/oauth/requests.ts';
import { startFreehold } from '../../setup/freehold.ts';
import type { Document } from '../../setup/openapi.ts';

const { anonymous, newAccount } = await startFreehold({ ROLES: 'api' });
const { newClient } = oauthRequests(anonymous);
const document: Document = (await anonymous('GET', '/v1/openapi.json')).body;
const account = await newAccount();

const ajv = new Ajv2020({ strict: false });
addFormats.default(ajv);
ajv.addSchema(document, 'document');
/** Whether a JSON body is valid by the document. */
function isStated(path: string, body: unknown): boolean {
  const pointer = `#/paths/${encodeURIComponent(path.replaceAll('/', '~1'))}/post/requestBody/content/application~1json/schema`;
  return ajv.validate(`document${pointer}`, body) as boolean;
}
const parameter = (path: string, name: string): Document =>
  document.paths[path].get.parameters.find((one: { name: string }) => one.name === name);

describe('A refused input', () => {
  it('of user_data has more than 64 KiB, counted in bytes', async () => {
    const refusalOf = async (user_data: string) =>
      (await account.rest('POST', '/v1/servers', { service_code: 'vps-1', os: 'none', user_data })).body;
    expect((await refusalOf('ü'.repeat(32_768))).code).toBe('unknown_os');
    const { code, errors } = await refusalOf(`${'ü'.repeat(32_768)}u`);
    expect([code, errors]).toEqual([
      'validation_failed',
      [{ field: 'user_data', code: 'wrong_format', message: 'user_data: The text has more than 64 KiB in UTF-8.' }],
    ]);
  });

  it.each([[['203.0.113.0/24', '203.0.113.0/33']], ['203.0.113.0/24, everybody']])(
    'of ip_allowlist names the field once, and the entry: %j',
    async (ip_allowlist) => {
      const { body } = await account.rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'read', ip_allowlist });
      expect(body.errors).toHaveLength(1);
      expect(body.detail).toMatch(/^ip_allowlist: Entry 2 is no network/);
      expect(body.detail.match(/ip_allowlist/g)).toHaveLength(1);
    },
  );
});

describe('An ip_allowlist without a network', () => {
  it.each(['', ',', ' , '])('as text is refused, because it would allow all networks: %j', async (ip_allowlist) => {
    const { status, body } = await account.rest('POST', '/v1/auth/api-keys', {
      name: 'k',
      scope: 'read',
      ip_allowlist,
    });
    expect([status, body.code]).toEqual([422, 'validation_failed']);
    expect(body.detail).toMatch(/^ip_allowlist: The text has no network\. Send \[\] to allow all networks\.$/);
  });

  it.each([[[]], [null]])('as a list or null allows all networks: %j', async (ip_allowlist) => {
    const { body } = await account.rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'read', ip_allowlist });
    expect(body.ip_allowlist).toEqual([]);
  });
});

describe('OAuth', () => {
  const EXTRA = { software_statement: 'x', 'x-of-mine': { deep: [1] } };
  it.each(['/v1/oauth/register', '/v1/oauth/token', '/v1/oauth/revoke', '/v1/oauth/introspect'])(
    'accepts unknown members at %s, as the document states',
    async (path) => {
      const { client_id, client_secret } = await newClient();
      const members = {
        '/v1/oauth/register': {},
        '/v1/oauth/token': { grant_type: 'client_credentials', client_id, client_secret },
        '/v1/oauth/revoke': { token: 'x', client_id, client_secret },
        '/v1/oauth/introspect': { token: 'x' },
      }[path];
      const body = { ...members, ...EXTRA };
      expect(isStated(path, body)).toBe(true);
      expect((await anonymous('POST', path, body)).status).toBe(path.endsWith('register') ? 201 : 200);
    },
  );

  it.each(['contacts', 'redirect_uris', 'grant_types', 'response_types'])(
    'registers %s as an array, never as a text',
    async (name) => {
      const value = name === 'redirect_uris' ? 'https://agent.example/' : 'client_credentials';
      const { status, body } = await anonymous('POST', '/v1/oauth/register', { [name]: value });
      expect([status, body.code, body.error]).toEqual([400, 'invalid_client_metadata', 'invalid_client_metadata']);
      expect(body.errors).toEqual([{ field: name, code: 'wrong_type', message: `${name} must be an array.` }]);
      expect(isStated('/v1/oauth/register', { [name]: value })).toBe(false);
      expect((await anonymous('POST', '/v1/oauth/register', { [name]: null })).status).toBe(201);
    },
  );

  it('is the exception: other endpoints refuse unknown members', async () => {
    const body = { amount_usd: 30, crypto: 'BTC', colour: 'red' };
    expect(isStated('/v1/billing/topups', body)).toBe(false);
    expect((await account.rest('POST', '/v1/billing/topups', body)).body.code).toBe('unknown_field');
  });
});

describe('The action of the audit log', () => {
  const LOG = '/v1/account/audit-log';
  const { description, schema } = parameter(LOG, 'action');

  it('is api.request or a type of event, and unknown actions have no entries', async () => {
    expect(description).toMatch(/api\.request/);
    expect(description).toMatch(/type of an event/);
    expect(description).toMatch(/unknown.*no entries/);
    for (const action of ['api.request', ...EVENT_TYPES, 'nothing.known'])
      expect(ajv.validate(schema, [action]), action).toBe(true);
    const { status, body } = await account.rest('GET', `${LOG}?action=nothing.known`);
    expect([status, body.data]).toEqual([200, []]);
  });

  it.each(['', 'Server', 'Server.Created', 'server.created.now', `server.${'x'.repeat(60)}`])(
    'is not %j, and the refusal says what it is',
    async (action) => {
      expect(ajv.validate(schema, [action])).toBe(false);
      const { status, body } = await account.rest('GET', `${LOG}?action=${action}`);
      expect([status, body.code, body.errors[0].field]).toEqual([400, 'invalid_query', 'action']);
    },
  );
});

describe('The crypto of a top-up', () => {
  const { description } = document.components.schemas.CreateTopUpInput.properties.crypto;

  it('is the code of a coin in any case, and the document names the list of coins', async () => {
    expect(description).toMatch(/\/v1\/billing\/coins/);
    expect(description).toMatch(/upper or lower case/);
    expect(description).toMatch(/required unless/i);
    for (const { code } of (await anonymous('GET', '/v1/billing/coins')).body.data)
      for (const crypto of [code, code.toLowerCase()])
        expect((await (await newAccount()).rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto })).status).toBe(
          200,
        );
  });

  it('is refused with unknown_coin if it is unknown, and the document names that code', async () => {
    expect(description).toMatch(/unknown_coin/);
    const { status, body } = await account.rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'DOGE' });
    expect([status, body.code]).toEqual([422, 'unknown_coin']);
  });
});
