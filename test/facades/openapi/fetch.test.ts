/** The check of answers finds differences from the OpenAPI document. */
import { describe, expect, it } from 'vitest';
import { readOperations } from '../../../facades/compile/read.ts';
import { openapi } from '../../../facades/openapi/document.ts';
import { schema } from '../../../schema/index.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { checkerOf, type Reply } from '../../setup/openapi.ts';

const { publicUrl, newAccount } = await startFreehold({ ROLES: 'api' });
const account = await newAccount();
const check = checkerOf(openapi(readOperations(schema), publicUrl));

async function answerOf(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Reply> {
  const authorization = `Bearer ${account.accessToken}`;
  const response = await fetch(publicUrl + path, { method, headers: { authorization, ...headers } });
  return { status: response.status, headers: response.headers, text: await response.text() };
}
const real = await answerOf('/v1/account');
const changed = (change: object, headers: Record<string, string | null> = {}): Reply => {
  const own = new Headers(real.headers);
  for (const [name, value] of Object.entries(headers)) value === null ? own.delete(name) : own.set(name, value);
  return { ...real, headers: own, text: JSON.stringify({ ...JSON.parse(real.text), ...change }) };
};

describe('An answer that fits the document', () => {
  it.each([
    ['GET', '/v1/account', {}],
    ['HEAD', '/v1/account', {}],
    ['GET', '/v1/catalog', {}],
    ['GET', '/v1/catalog', { 'if-none-match': '*' }],
    ['GET', '/v1/account', { authorization: 'Bearer x' }],
    ['GET', '/v1/account', { authorization: 'Bearer x', accept: 'application/problem+json' }],
    ['GET', '/v1/nowhere', {}],
    ['PUT', '/v1/account', {}],
    ['GET', '/v1/servers/%zz', {}],
    ['OPTIONS', '/v1/account', {}],
  ] as const)('passes: %s %s %o', async (method, path, headers) => {
    check(method, path, await answerOf(path, headers, method));
  });
});

describe('The check rejects an answer that differs from the document', () => {
  const cases: [what: string, reply: Reply, says: RegExp][] = [
    ['a member that nobody knows', changed({ secret: 1 }), /additional properties.*"secret"/],
    ['one deep within', changed({ limits: { ...JSON.parse(real.text).limits, secrets: 1 } }), /limits must NOT have/],
    ['a member that is missing', changed({ email: undefined }), /must have required property 'email'/],
    ['a member of another type', changed({ totp_enabled: 'no' }), /totp_enabled must be boolean/],
    ['a value that is not in the enumeration', changed({ kind: 'cat' }), /kind must be equal to one of/],
    ['a time that is none', changed({ created_at: 'today' }), /created_at must match format "date-time"/],
    ['a body that is no JSON', { ...real, text: 'OK' }, /the body is no JSON/],
    ['an error with the status of a success', { ...real, text: '{"code":"x"}' }, /must have required property 'id'/],
    ['a status', { ...real, status: 201 }, /the endpoint has no status 201/],
    ['a content type', changed({}, { 'content-type': 'text/html' }), /content type text\/html is not documented/],
    ['a header that is missing', changed({}, { 'x-request-id': null }), /the header X-Request-Id is missing/],
    ['a header that nobody knows', changed({}, { 'x-powered-by': 'x' }), /the header x-powered-by is not documented/],
    ['a header of another form', changed({}, { ratelimit: '5' }), /the header RateLimit: the value must match pattern/],
  ];
  it.each(cases)('%s', (_, reply, says) => {
    expect(() => check('GET', '/v1/account', reply)).toThrow(says);
  });

  it('a success without an endpoint', () => {
    expect(() => check('GET', '/v1/nowhere', real)).toThrow(/a path without an endpoint has no status 200/);
    expect(() => check('PUT', '/v1/account', real)).toThrow(/a path without an endpoint has no status 200/);
  });
});
