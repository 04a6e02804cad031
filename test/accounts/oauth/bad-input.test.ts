/** Refusals of the OAuth endpoints: the flat error object, with the members that OAuth clients read. */
import { describe, expect, it } from 'vitest';
import { startFreehold } from '../../setup/freehold.ts';

const { anonymous, newAccount, operatorToken } = await startFreehold({ ROLES: 'api' });
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
const { body: client } = await anonymous('POST', '/v1/oauth/register', { scope: 'servers' });
const { body: other } = await anonymous('POST', '/v1/oauth/register', {});
const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` });
const auth = basic(`${client.client_id}:${client.client_secret}`);
const GRANT = 'grant_type=client_credentials';
const SECRET = client.client_secret as string;
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

type Case = [
  what: string,
  body: unknown,
  status: number,
  code: string,
  error: string,
  headers?: Record<string, string>,
];

async function refused(method: string, path: string, [, sent, status, code, error, headers]: Case) {
  const answer = await anonymous(method, path, sent, headers);
  const { body } = answer;
  expect([answer.status, body.code, body.error]).toEqual([status, code, error]);
  expect(body).toMatchObject({ status, request_id: expect.stringMatching(/^req_/), type: expect.any(String) });
  // The allowed characters of a description (RFC 6749, section 5.2).
  expect(body.error_description).toMatch(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/);
  expect(answer.headers.get('cache-control')).toBe('no-store');
  expect(JSON.stringify(body)).not.toContain(SECRET.slice(7));
  return answer;
}

describe('Registration refuses', () => {
  const invalid = (what: string, body: unknown): Case => [
    what,
    body,
    400,
    'invalid_client_metadata',
    'invalid_client_metadata',
  ];
  it.each<Case>([
    invalid('the authorization code grant', { grant_types: ['authorization_code', 'refresh_token'] }),
    invalid('the password grant', { grant_types: ['password'] }),
    invalid('the response type code', { response_types: ['code'] }),
    invalid('no grant', { grant_types: [] }),
    invalid('refresh_token without client_credentials', { grant_types: ['refresh_token'] }),
    invalid('a client without a secret', { token_endpoint_auth_method: 'none' }),
    invalid('a signed assertion', { token_endpoint_auth_method: 'private_key_jwt' }),
    invalid('an unknown scope', { scope: 'read admin' }),
    invalid('the scope public', { scope: 'public' }),
    invalid('the scope of the operator', { scope: 'operator' }),
    invalid('a scope with two spaces', { scope: 'read  servers' }),
    invalid('a name of another type', { client_name: { first: 'A' } }),
    invalid('a name that is too long', { client_name: 'x'.repeat(255) }),
    invalid('a malformed address', { client_uri: 'not a uri' }),
    invalid('eleven redirect addresses', { redirect_uris: Array(11).fill('https://a.example/') }),
    invalid('a redirect address of 2,049 characters', { redirect_uris: [`https://a.example/${'x'.repeat(2031)}`] }),
    invalid('eleven contacts', { contacts: Array(11).fill('ada@example.org') }),
    invalid('metadata of more than 8 KiB', { redirect_uris: Array(9).fill(`https://a.example/${'x'.repeat(1000)}`) }),
    invalid('a redirect address of another type', { redirect_uris: [7] }),
    invalid('a list for a body', [{}]),
    ['malformed JSON', '{', 400, 'malformed_json', 'invalid_request'],
    ['a form', 'scope=read', 400, 'unsupported_media_type', 'invalid_request', FORM],
    ['a character that cannot be stored', { client_name: 'a\0b' }, 422, 'validation_failed', 'invalid_request'],
    ['a body that is too large', { x: 'x'.repeat(140_000) }, 400, 'body_too_large', 'invalid_request'],
    ['a client secret as credential', {}, 401, 'invalid_credential', 'invalid_token', auth],
  ])('%s', async (...row) => {
    await refused('POST', '/v1/oauth/register', row);
  });

  it('an invalid field by its name', async () => {
    const { body } = await anonymous('POST', '/v1/oauth/register', { contacts: ['a', 5], software_id: '' });
    expect(body.errors.map(({ field }: { field: string }) => field)).toEqual(['contacts.1', 'software_id']);
  });

  it("the operator's token, which the public listener does not know", async () => {
    const { status } = await anonymous('POST', '/v1/oauth/register', {}, bearer(operatorToken));
    expect(status).toBe(401);
  });
});

describe('The token endpoint refuses', () => {
  const request = (what: string, body: unknown, headers: Record<string, string> = { ...FORM, ...auth }): Case => [
    what,
    body,
    400,
    'invalid_request',
    'invalid_request',
    headers,
  ];
  const stranger = (what: string, headers: Record<string, string>, body: unknown = GRANT): Case => [
    what,
    body,
    401,
    'invalid_client',
    'invalid_client',
    { ...FORM, ...headers },
  ];
  const grant = (what: string, more: string, code: string): Case => [
    what,
    `${GRANT}&${more}`,
    400,
    code,
    code,
    { ...FORM, ...auth },
  ];
  it.each<Case>([
    request('no body', undefined),
    request('no grant type', 'scope=read'),
    request('a grant type without a value', 'grant_type=&scope=read'),
    request('a parameter that is sent twice', `${GRANT}&scope=read&scope=servers`),
    request('a character that cannot be stored', `${GRANT}&scope=%00`),
    request('a parameter that is too long', `${GRANT}&scope=${'read+'.repeat(1000)}`),
    request('a list of scopes', { grant_type: 'client_credentials', scope: ['read'] }, auth),
    request('a list for a body', [], auth),
    ['malformed JSON', '{', 400, 'malformed_json', 'invalid_request', auth],
    ['text', GRANT, 400, 'unsupported_media_type', 'invalid_request', { ...auth, 'content-type': 'text/plain' }],
    ['a larger form', 'x='.padEnd(140_000, 'x'), 400, 'body_too_large', 'invalid_request', { ...FORM, ...auth }],
    stranger('no client', {}),
    stranger('an id without a secret', {}, `${GRANT}&client_id=${client.client_id}`),
    stranger('a wrong secret', basic(`${client.client_id}:svc_cs_wrong`)),
    stranger('the secret of another client', basic(`${client.client_id}:${other.client_secret}`)),
    stranger('a malformed id', basic(`' or 1=1 --:${SECRET}`)),
    stranger('Basic without a colon', basic('cl_x')),
    stranger('Basic without base64', { authorization: 'Basic %%%' }),
    stranger('Basic with a broken escape', basic(`${client.client_id}:%zz`)),
    stranger('Basic alone', { authorization: 'Basic' }),
    stranger('a token for a secret', { authorization: `Bearer ${SECRET}` }),
    grant('a wider scope', 'scope=full', 'invalid_scope'),
    grant('a scope that it did not register', 'scope=servers+billing', 'invalid_scope'),
    grant('an unknown scope', 'scope=everything', 'invalid_scope'),
    grant('the resource of another service', 'resource=https%3A%2F%2Fevil.example', 'invalid_target'),
    [
      'the password grant',
      'grant_type=password',
      400,
      'unsupported_grant_type',
      'unsupported_grant_type',
      { ...FORM, ...auth },
    ],
    [
      'a grant type that it did not register',
      'grant_type=refresh_token&refresh_token=x',
      400,
      'unsupported_grant_type',
      'unsupported_grant_type',
      { ...FORM, ...auth },
    ],
  ])('%s', async (...row) => {
    const { status, headers } = await refused('POST', '/v1/oauth/token', row);
    if (status === 401) expect(headers.get('www-authenticate')).toBe('Basic realm="svc"');
  });
});

describe('Revocation and introspection refuse', () => {
  it.each<Case>([
    ['no client', 'token=x', 401, 'invalid_client', 'invalid_client', FORM],
    ['a wrong secret', 'token=x', 401, 'invalid_client', 'invalid_client', { ...FORM, ...basic('cl_x:y') }],
    ['a client without a token', undefined, 400, 'invalid_request', 'invalid_request', auth],
    [
      'a Bearer token that names another token',
      'token=x',
      401,
      'invalid_client',
      'invalid_client',
      { ...FORM, ...bearer('y') },
    ],
  ])('to revoke for %s', async (...row) => {
    await refused('POST', '/v1/oauth/revoke', row);
  });

  it('to revoke an API key, which still works', async () => {
    const { rest } = await newAccount();
    const { body: key } = await rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'read' });
    const row: Case = ['', undefined, 400, 'invalid_request', 'invalid_request', bearer(key.plaintext)];
    await refused('POST', '/v1/oauth/revoke', row);
    expect((await anonymous('GET', '/v1/account', undefined, bearer(key.plaintext))).status).toBe(200);
  });

  it('to introspect without a token', async () => {
    const row: Case = ['', undefined, 400, 'invalid_request', 'invalid_request'];
    for (const method of ['GET', 'POST']) await refused(method, '/v1/oauth/introspect', row);
    await refused('GET', '/v1/oauth/introspect?token=a&token=b', row);
  });

  it('forms at endpoints that take only JSON', async () => {
    const { body } = await anonymous('POST', '/v1/auth/login', 'email=a%40example.org&password=b', FORM);
    expect([body.code, body.error]).toEqual(['unsupported_media_type', undefined]);
  });

  it('unknown methods and unknown paths', async () => {
    const row: Case = ['', undefined, 404, 'not_found', 'invalid_request'];
    const { headers } = await refused('PUT', '/v1/oauth/token', row);
    expect(headers.get('allow')).toBe('POST');
    await refused('GET', '/v1/oauth/nothing', row);
  });
});
