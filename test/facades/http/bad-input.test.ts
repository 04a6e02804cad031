/** Sends bad input. Each answer is 400 or 422 of the catalogue, never 5xx, and the service writes nothing. */
import { beforeAll, describe, expect, it } from 'vitest';
import { ERRORS } from '../../../entities/errors.ts';
import { atEnd } from '../../setup/end.ts';
import { startFreehold, type TestAccount } from '../../setup/freehold.ts';
import { checkedFetch } from '../../setup/openapi.ts';

const freehold = await startFreehold();
const { db, newAccount, publicUrl } = freehold;
let account: TestAccount;
let before: unknown;

const rowCounts = () =>
  db.query(`select (select count(*)::int from account) as accounts, (select count(*)::int from api_key) as keys, (select count(*)::int from ssh_key) as ssh_keys,
    (select count(*)::int from server) as servers, (select count(*)::int from top_up) as top_ups, (select count(*)::int from transfer) as transfers`);

beforeAll(async () => {
  account = await newAccount();
  before = await rowCounts();
});
atEnd(async () => {
  expect(await rowCounts()).toEqual(before);
});

const POSTS = [
  '/v1/auth/register',
  '/v1/auth/login',
  '/v1/auth/api-keys',
  '/v1/billing/topups',
  '/v1/servers',
  '/v1/ssh-keys',
];
const deep = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;

/** Bodies that no endpoint can accept. */
const BODIES: [name: string, body: string | Buffer, contentType?: string][] = [
  ['a single brace', '{'],
  ['a trailing comma', '{"a":1,}'],
  ['an array', '[]'],
  ['null', 'null'],
  ['a number', '1'],
  ['a string', '"x"'],
  ['a number out of range', '{"amount_usd":1e999,"crypto":"BTC"}'],
  ['a NUL in a value', '{"name":"a\\u0000b","scope":"read","email":"a\\u0000@b.c","password":"long enough\\u0000"}'],
  ['a NUL in a name', '{"a\\u0000b":1}'],
  ['a lone surrogate', '{"name":"\\ud800","scope":"read","email":"\\ud800@b.c","password":"long enough \\ud800"}'],
  ['__proto__', '{"__proto__":{"admin":true}}'],
  ['constructor', '{"constructor":{"prototype":{"admin":true}}}'],
  ['unknown fields', '{"nonsense":true}'],
  [
    'arrays for everything',
    '{"email":[],"password":[],"name":[],"scope":[],"amount_usd":[30],"crypto":[],"service_code":[],"public_key":[]}',
  ],
  [
    'numbers for everything',
    '{"email":1,"password":1,"name":1,"scope":1,"amount_usd":"30","crypto":1,"service_code":1,"public_key":1}',
  ],
  [
    'objects for everything',
    '{"email":{},"password":{},"name":{},"scope":{},"amount_usd":{},"crypto":{},"service_code":{},"public_key":{}}',
  ],
  [
    'nulls for everything',
    '{"email":null,"password":null,"name":null,"scope":null,"amount_usd":null,"crypto":null,"service_code":null,"public_key":null}',
  ],
  ['thirty thousand levels', deep(30_000)],
  ['eleven levels', deep(11)],
  ['more than 128 KiB', JSON.stringify({ name: 'x'.repeat(130 * 1024) })],
  ['text/plain', '{"a":1}', 'text/plain'],
  ['a form', 'a=1', 'application/x-www-form-urlencoded'],
  ['bytes that are not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d])],
  ['the same name twice', '{"scope":"read","scope":"full","scope":1,"name":"x"}'],
];

describe.each(POSTS)('POST %s', (path) => {
  it.each(BODIES)('refuses %s', async (_, body, contentType = 'application/json') => {
    const response = await checkedFetch(publicUrl + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${account.accessToken}`, 'content-type': contentType },
      body: typeof body === 'string' ? body : new Uint8Array(body),
    });
    const answer = (await response.json()) as {
      code: keyof typeof ERRORS;
      status: number;
      request_id: string;
      type: string;
    };
    expect([400, 422]).toContain(response.status);
    expect(ERRORS[answer.code][0]).toBe(response.status);
    expect(answer.request_id).toBe(response.headers.get('x-request-id'));
    expect(answer.type).toBe(`${publicUrl}/docs/errors#${answer.code}`);
  });
});

describe('A top-up', () => {
  it.each([
    '29.99',
    '10000.01',
    '-30',
    '0',
    '"30"',
    '[30]',
    '30.001',
    'null',
    '1e-400',
    '9007199254740993',
    'true',
    '{}',
  ])('of %s is refused', async (amount) => {
    const { status, body } = await account.rest(
      'POST',
      '/v1/billing/topups',
      `{"amount_usd":${amount},"crypto":"BTC"}`,
    );
    expect(status).toBe(422);
    expect(['amount_too_low', 'amount_too_high', 'validation_failed']).toContain(body.code);
  });

  it.each(['NaN', 'Infinity', '030', '+30', '0x1e'])('of %s is refused, because it is not JSON', async (amount) => {
    const { status, body } = await account.rest(
      'POST',
      '/v1/billing/topups',
      `{"amount_usd":${amount},"crypto":"BTC"}`,
    );
    expect([status, body.code]).toEqual([400, 'malformed_json']);
  });

  it('in an unknown coin is refused', async () => {
    const { status, body } = await account.rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'DOGECOIN' });
    expect([status, body.code]).toEqual([422, 'unknown_coin']);
  });
});

describe('An unknown field', () => {
  it('is named in the error, with a similar field', async () => {
    const { status, body } = await account.rest('POST', '/v1/servers', { service_code: 'vps-1', hostnam: 'web' });
    expect([status, body.code]).toEqual([422, 'unknown_field']);
    expect(body.errors[0]).toMatchObject({ field: 'hostnam', code: 'unknown_field' });
    expect(body.errors[0].message).toContain('hostname');
  });
});

describe('SSH keys', () => {
  it('must be public keys, and the error never repeats the input', async () => {
    const secret = '-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n-----END OPENSSH PRIVATE KEY-----';
    const { status, body } = await account.rest('POST', '/v1/ssh-keys', { public_key: secret });
    expect([status, body.code]).toEqual([422, 'private_key_rejected']);
    expect(JSON.stringify(body)).not.toContain('b3BlbnNzaC1rZXk');
    for (const public_key of ['ssh-ed25519 AAAA', 'hello', 'ssh-dss AAAAB3NzaC1kc3MAAA==']) {
      expect((await account.rest('POST', '/v1/ssh-keys', { public_key })).status).toBe(422);
    }
  });
});

describe('An unknown path or method', () => {
  it.each([
    ['GET', '/v1'],
    ['GET', '/v1/nothing'],
    ['GET', '/v1/servers/'],
    ['GET', '/v1//servers'],
    ['PUT', '/v1/servers'],
    ['GET', '/v1/%2e%2e/servers'],
    ['GET', '/v1/servers/%zz'],
    ['POST', '/v1/catalog'],
    ['DELETE', '/v1/account'],
  ])('%s %s is 404 or 400 of the catalogue', async (method, path) => {
    const { status, body } = await account.rest(method, path);
    expect([400, 404]).toContain(status);
    expect(ERRORS[body.code as keyof typeof ERRORS][0]).toBe(status);
  });

  it('is answered with the methods of the path', async () => {
    const { status, headers, body } = await account.rest('PUT', '/v1/servers');
    expect(status).toBe(404);
    expect(body.detail).toBe('The path does not have this method. It has GET, HEAD, POST.');
    expect((await account.rest('GET', '/v1/nothing')).body.detail).toBe('There is no such path. See /docs.');
    expect(headers.get('allow')).toContain('GET');
    expect(headers.get('allow')).toContain('POST');
  });
});

describe('A request', () => {
  it('with too large headers is refused', async () => {
    const response = await fetch(`${publicUrl}/v1/catalog`, { headers: { 'x-padding': 'x'.repeat(20_000) } });
    expect(response.status).toBe(400);
    expect(((await response.json()) as { code: string }).code).toBe('invalid_header');
  });
});
