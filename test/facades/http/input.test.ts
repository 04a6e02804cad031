import { describe, expect, it } from 'vitest';
import { openSampleApi } from '../sample-api.ts';

const { app, errors: logged } = await openSampleApi();
const SECRET = 'hunter2';

async function post(payload: string | Buffer, headers: Record<string, string> = {}, url = '/v1/echo') {
  const response = await app.inject({
    method: 'POST',
    url,
    headers: { 'content-type': 'application/json', ...headers },
    payload,
  });
  return { status: response.statusCode, text: response.body, body: response.json() };
}
const send = (body: object) => post(JSON.stringify({ service_code: 'vps-1', ...body }));
const nested = (depth: number) => `{"anything":${'['.repeat(depth)}${']'.repeat(depth)}}`;

describe('An unreadable body is 400', () => {
  it.each([
    ['malformed JSON', '{"service_code":', 'malformed_json'],
    ['a trailing comma', '{"service_code":"x",}', 'malformed_json'],
    ['two members with the same name', '{"service_code":"x","color":"red","service_code":"y"}', 'malformed_json'],
    ['two members with the same name, once escaped', '{"service_code":"x","service_cod\\u0065":"y"}', 'malformed_json'],
    ['eleven levels', nested(10), 'malformed_json'],
    ['thirty thousand levels', nested(30_000), 'malformed_json'],
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), 'malformed_json'],
    ['a byte order mark', '\ufeff{}', 'malformed_json'],
    ['more than 128 KiB', JSON.stringify({ free_text: 'x'.repeat(128 * 1024) }), 'body_too_large'],
  ])('%s', async (_, payload, code) => {
    const { status, body } = await post(payload);
    expect([status, body.code]).toEqual([400, code]);
  });

  it.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    '!',
  ])('%s', async (type) => {
    const { status, body } = await post('{}', { 'content-type': type });
    expect([status, body.code]).toEqual([400, 'unsupported_media_type']);
  });

  it('no content type', async () => {
    const response = await app.inject({ method: 'POST', url: '/v1/echo', payload: Buffer.from('{}') });
    expect([response.statusCode, response.json().code]).toEqual([400, 'unsupported_media_type']);
  });
});

describe('A readable body is accepted', () => {
  it.each([
    ['ten levels', nested(9)],
    ['any charset', '{"service_code":"x"}'],
    [
      'colons, quotes and backslashes in strings',
      '{"service_code":"x","free_text":"a:\\"b\\":\\\\","anything":{"\\":":":"}}',
    ],
  ])('%s', async (_, payload) => {
    const { status } = await post(payload.replace('{', '{"service_code":"x",').replace('"x","service_code":', ''), {
      'content-type': 'Application/JSON; charset=iso-8859-1',
    });
    expect(status).toBe(200);
  });
});

describe('A body that the service cannot store is 422, and the error names the field', () => {
  it.each([
    ['U+0000', '{"service_code":"x","free_text":"a\\u0000b"}', 'free_text'],
    ['a lone surrogate', '{"service_code":"x","anything":{"deep":["ok","\\ud800"]}}', 'anything.deep.1'],
    ['U+0000 in a name', '{"service_code":"x","anything":{"a\\u0000":1}}', 'anything.a�'],
    ['a number out of range', '{"service_code":"x","float":1e999}', 'float'],
    ['__proto__', '{"service_code":"x","anything":{"__proto__":{"admin":true}}}', 'anything.__proto__'],
    ['__proto__ at the top', '{"service_code":"x","__proto__":{"admin":true}}', '__proto__'],
  ])('%s', async (_, payload, field) => {
    const { status, body } = await post(payload);
    expect([status, body.code, body.errors[0].field]).toEqual([422, 'validation_failed', field]);
  });

  it.each(['[]', '"text"', '1', 'null', 'true'])('%s is not an object', async (payload) => {
    const { status, body } = await post(payload);
    expect([status, body.code]).toEqual([422, 'validation_failed']);
  });

  it('may have constructor and prototype as names within JSON', async () => {
    const { status, body } = await send({ anything: { constructor: { prototype: 1 } } });
    expect([status, body.args.input.anything]).toEqual([200, { constructor: { prototype: 1 } }]);
    expect((await send({ constructor: 1 })).body).toMatchObject({ code: 'unknown_field' });
  });
});

describe('An invalid field is 422', () => {
  it.each<[string, object, object]>([
    ['missing', { service_code: undefined }, { field: 'service_code', code: 'required' }],
    ['null though required', { service_code: null }, { field: 'service_code', code: 'wrong_type' }],
    ['of another type', { free_text: { a: SECRET } }, { field: 'free_text', code: 'wrong_type' }],
    ['a list for a text', { free_text: [SECRET] }, { field: 'free_text', code: 'wrong_type' }],
    ['a text for a boolean', { auto_renew: 'true' }, { field: 'auto_renew', code: 'wrong_type' }],
    ['an unknown enum value', { color: SECRET }, { field: 'color', code: 'not_allowed' }],
    ['an enum value in upper case', { color: 'RED' }, { field: 'color', code: 'not_allowed' }],
    [
      'a list of more than a hundred',
      { other_colors: Array(101).fill('red') },
      { field: 'other_colors', code: 'too_many', limit: 100 },
    ],
    ['an item of a list', { other_colors: ['red', SECRET] }, { field: 'other_colors.1', code: 'not_allowed' }],
    ['deep within', { inner: { count: 'x' } }, { field: 'inner.count', code: 'wrong_type' }],
    ['a fraction', { inner: { count: 1.5 } }, { field: 'inner.count', code: 'wrong_type' }],
    ['an integer of 33 bits', { inner: { count: 3e9 } }, { field: 'inner.count' }],
    ['missing deep within', { inner: {} }, { field: 'inner.count', code: 'required' }],
    ['too long', { region: 'x'.repeat(33) }, { field: 'region', code: 'too_long', limit: 32 }],
    ['too short', { region: '' }, { field: 'region', code: 'too_short', limit: 1 }],
    ['of another format', { hostname: '-bad-' }, { field: 'hostname', code: 'wrong_format' }],
    ['an invalid email', { email: SECRET }, { field: 'email', code: 'wrong_format' }],
    [
      'too many',
      { labels: Object.fromEntries(Array.from({ length: 21 }, (_, i) => [`k${i}`, 'v'])) },
      { code: 'too_many', limit: 20 },
    ],
    ['an invalid name of a label', { labels: { 'NOT ok': 'v' } }, { field: 'labels.NOT ok', code: 'wrong_format' }],
    ['a value of a label', { labels: { ok: 1 } }, { field: 'labels.ok', code: 'wrong_type' }],
    ['more than two decimals', { amount_usd: 30.001 }, { field: 'amount_usd' }],
  ])('%s', async (_, body, error) => {
    const { status, body: answer } = await send(body);
    expect([status, answer.code]).toEqual([422, 'validation_failed']);
    expect(answer.errors).toEqual([expect.objectContaining(error)]);
  });

  it('is repeated in the error, cut if it is long, unless it has parts', async () => {
    const messageOf = async (body: object) => (await send(body)).body.errors[0].message;
    expect(await messageOf({ color: 'blue' })).toBe('color "blue" must be one of red, dark_blue.');
    expect(await messageOf({ inner: { count: 1.5 } })).toBe('inner.count 1.5 must be an integer.');
    expect(await messageOf({ region: 'x'.repeat(50) })).toBe(
      `region "${'x'.repeat(40)}…" must have at most 32 characters.`,
    );
    expect(await messageOf({ free_text: [SECRET] })).toBe('free_text must be a string.');
  });

  it.each([
    [
      'a time',
      { made_at: 'tomorrow' },
      'made_at',
      /^made_at "tomorrow" has the wrong format\. .*RFC 3339.* Example: 2026-/,
    ],
    [
      'an email',
      { email: SECRET },
      'email',
      /^email ".*" has the wrong format\. Expected: An email address\. Example: /,
    ],
    ['a name of a label', { labels: { 'NOT ok': 'v' } }, 'labels.NOT ok', /is not an allowed name\. .*lower-case keys/],
  ])('names the expected form of %s, not the purpose of the field', async (_, body, field, sentence) => {
    const { body: answer } = await send(body);
    expect(answer.errors).toEqual([{ field, code: 'wrong_format', message: expect.stringMatching(sentence) }]);
  });

  it('is named in the error if it is unknown, with the most similar name', async () => {
    const { status, body } = await send({ hostnme: 'x' });
    expect([status, body.code]).toEqual([422, 'unknown_field']);
    expect(body.errors).toEqual([
      { field: 'hostnme', code: 'unknown_field', message: 'There is no field hostnme. Did you mean hostname?' },
    ]);
    expect((await send({ serviceCode: 'x' })).body.errors[0].message).toContain('Did you mean service_code?');
    expect((await send({ inner: { count: 1, innerColor: 'red' } })).body).toMatchObject({
      code: 'unknown_field',
      errors: [{ field: 'inner.innerColor', message: expect.stringContaining('Did you mean inner_color?') }],
    });
    expect((await send({ zzzzzzzzz: 1 })).body.errors[0].message).toBe('There is no field zzzzzzzzz.');
  });

  it('has the code of its scalar if it is the only error', async () => {
    expect((await send({ amount_usd: 29 })).body).toMatchObject({
      code: 'amount_too_low',
      detail: 'amount_usd 29 must be at least 30.',
      errors: [{ field: 'amount_usd', code: 'amount_too_low', limit: 30 }],
    });
    expect((await send({ amount_usd: 10_001 })).body.code).toBe('amount_too_high');
    expect((await send({ password: 'short' })).body.code).toBe('weak_password');
    const both = (await send({ password: 'short', hostnme: 'x' })).body;
    expect(both.code).toBe('validation_failed');
    expect(both.errors.map(({ code }: { code: string }) => code).sort()).toEqual(['unknown_field', 'weak_password']);
  });

  it('may be null, or a single value in place of a list', async () => {
    const { body } = await send({ color: null, other_colors: 'red', inner: null, hostnme: 1 });
    expect(body.errors.map(({ field }: { field: string }) => field)).toEqual(['hostnme']);
  });

  it('is one of at most fifty in the error', async () => {
    const { body } = await send(Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`unknown${i}`, 1])));
    expect(body.errors).toHaveLength(50);
  });
});

describe('An invalid parameter', () => {
  const get = async (url: string) => {
    const response = await app.inject({ url, headers: { authorization: 'Bearer read' } });
    return { status: response.statusCode, body: response.json() };
  };

  it('of the query names 50 unknown parameters at most', async () => {
    const { status, body } = await get(`/v1/things?${Array.from({ length: 900 }, (_, i) => `a${i}`).join('&')}`);
    expect([status, body.errors.length]).toEqual([400, 50]);
  });

  it.each<[string, object]>([
    ['limit=0', { field: 'limit', code: 'too_low', limit: 1 }],
    ['limit=201', { field: 'limit', code: 'too_high', limit: 200 }],
    ['limit=ten', { field: 'limit', code: 'wrong_type' }],
    ['limit=', { field: 'limit', code: 'wrong_type' }],
    ['limit=1&limit=2', { field: 'limit', code: 'wrong_type' }],
    ['color=RED', { field: 'color', code: 'not_allowed' }],
    ['heavy=yes', { field: 'heavy', code: 'wrong_type' }],
    [
      'limt=1',
      { field: 'limt', code: 'unknown_field', message: 'There is no query parameter limt. Did you mean limit?' },
    ],
    ['__proto__=1', { field: '__proto__', code: 'unknown_field' }],
  ])('of the query is 400: %s', async (query, error) => {
    const { status, body } = await get(`/v1/things?${query}`);
    expect([status, body.code]).toEqual([400, 'invalid_query']);
    expect(body.errors).toEqual([expect.objectContaining(error)]);
  });

  it('of a header is 400', async () => {
    const invalid: Record<string, string>[] = [{ 'x-mode': 'RED' }, { 'idempotency-key': 'x'.repeat(121) }];
    for (const headers of invalid) {
      const { status, body } = await post('{"service_code":"x"}', headers);
      expect([status, body.code]).toEqual([400, 'invalid_header']);
    }
    const { body } = await post('{}', { 'x-mode': 'blue' });
    expect(body.errors).toEqual([
      { field: 'X-Mode', code: 'not_allowed', message: 'X-Mode "blue" must be one of red, dark_blue.' },
    ]);
  });

  it.each(['%00', '%ff', '%', 'x'.repeat(300), '%2e%2e%2f'])('of the path is 404 or a text: %s', async (id) => {
    const { status } = await get(`/v1/things/${id}`);
    expect(status).toBe(id === '%2e%2e%2f' ? 200 : 404);
  });
});

describe('Bad input', () => {
  it('causes no fault in the log', () => {
    expect(logged).toEqual([]);
  });
});
