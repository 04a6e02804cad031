import { describe, expect, it } from 'vitest';
import { openSampleApi } from '../sample-api.ts';

const { app } = await openSampleApi();

async function call(method: string, url: string, body?: unknown, headers: Record<string, string> = {}) {
  const response = await app.inject({
    method: method as 'GET',
    url,
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { payload: JSON.stringify(body) }),
  });
  return { status: response.statusCode, headers: response.headers, body: response.body && JSON.parse(response.body) };
}
const as = (scopes: string) => ({ authorization: `Bearer ${scopes}` });

const ONE = {
  thing_id: 'one',
  color: 'dark_blue',
  other_colors: ['red', 'dark_blue'],
  labels: { STATUS: 'RUNNING', color: 'DARK_BLUE' },
  price_usd: 1.5,
  made_at: null,
  weight: null,
  parts: [{ name: 'lid', color: 'red', weight: 1.5 }],
};

describe('An answer', () => {
  it('is the single root field, in snake_case, with enum values in lower case and JSON unchanged', async () => {
    const { status, body } = await call('GET', '/v1/things/one', undefined, as('read'));
    expect(status).toBe(200);
    expect(body).toEqual(ONE);
  });

  it('is an object of several root fields', async () => {
    const { body } = await call('GET', '/v1/both');
    expect(body).toEqual({
      parts: [{ name: 'lid', color: null, weight: 1 }],
      the_number: 7,
      colors: ['red', 'dark_blue'],
    });
  });

  it('has the members of an object with @spread beside the others', async () => {
    const { body } = await call('POST', '/v1/things', { service_code: 'vps-1' }, as('servers'));
    expect(body).toEqual({ ...ONE, thing_id: 'new', plaintext: 'shown once' });
  });

  it('is a page even for a whole list', async () => {
    const { body } = await call('GET', '/v1/parts');
    expect(body).toEqual({
      data: [{ name: 'lid', color: null, weight: 1 }],
      next_cursor: null,
      has_more: false,
    });
  });

  it('may be of several types', async () => {
    expect((await call('GET', '/v1/something/part')).body).toEqual({ name: 'lid', color: 'red', weight: 2 });
    expect((await call('GET', '/v1/something/one')).body).toEqual(ONE);
  });

  it('is 404 if the root field is null', async () => {
    const { status, body } = await call('GET', '/v1/things/none', undefined, as('read'));
    expect([status, body.code]).toEqual([404, 'not_found']);
  });

  it('may be a bare value', async () => {
    expect((await call('GET', '/v1/number')).body).toBe(7);
  });
});

describe('Parameters', () => {
  it('of the query have the type of their variable, enum values in lower case, and lists in both notations', async () => {
    for (const query of ['color=red&color=dark_blue', 'color=red,dark_blue']) {
      const { body } = await call('GET', `/v1/things?limit=3&heavy=true&${query}`, undefined, as('read'));
      expect(body.data[0].labels).toEqual({ limit: 3, heavy: true, color: ['RED', 'DARK_BLUE'] });
    }
  });

  it('have the default of their argument if they are absent', async () => {
    const { body } = await call('GET', '/v1/things', undefined, as('read'));
    expect(body.data[0].labels).toEqual({ limit: 50 });
  });

  it('of headers have names without regard to case', async () => {
    const { body } = await call('POST', '/v1/echo', undefined, { 'x-mode': 'dark_blue', 'Idempotency-KEY': 'k1' });
    expect(body.args).toMatchObject({ mode: 'DARK_BLUE', key: 'k1' });
  });
});

describe('A body', () => {
  const echoed = async (body: unknown) => (await call('POST', '/v1/echo', body)).body.args.input;

  it('is mapped at all depths: names and enum values, lists and single values, but not JSON', async () => {
    const labels = { 'some-key': 'red' };
    expect(
      await echoed({
        service_code: 'vps-1',
        color: 'dark_blue',
        other_colors: ['red'],
        inner: { inner_color: 'red', count: 1 },
        labels,
        anything: { inner_color: 'red', deep: [1] },
      }),
    ).toEqual({
      serviceCode: 'vps-1',
      color: 'DARK_BLUE',
      otherColors: ['RED'],
      autoRenew: true,
      inner: { innerColor: 'RED', count: 1 },
      labels,
      anything: { inner_color: 'red', deep: [1] },
    });
    expect(await echoed({ service_code: 'x', other_colors: 'red', color: null })).toMatchObject({
      otherColors: ['RED'],
      color: null,
    });
  });

  it.each(['code', 'plan'])('may have %s in place of service_code', async (alias) => {
    expect(await echoed({ [alias]: 'vps-2', location: 'ams' })).toMatchObject({ serviceCode: 'vps-2', region: 'ams' });
  });

  it('may not have an alias beside its field', async () => {
    const { status, body } = await call('POST', '/v1/echo', { service_code: 'a', plan: 'b' });
    expect([status, body.code, body.errors[0].field]).toEqual([422, 'unknown_field', 'plan']);
    expect((await call('POST', '/v1/echo', { plan: 'a', code: 'b' })).body.code).toBe('unknown_field');
  });

  it('may be absent or empty if nothing is required, also with a content type', async () => {
    for (const payload of [undefined, ''])
      for (const headers of [{}, { 'content-type': 'application/json; charset=utf-8' }]) {
        const { statusCode } = await app.inject({
          method: 'DELETE',
          url: '/v1/things/one',
          headers: { ...headers, ...as('full') },
          ...(payload !== undefined && { payload }),
        });
        expect(statusCode).toBe(200);
      }
  });

  it('must be empty for an operation without input', async () => {
    expect((await call('DELETE', '/v1/things/one', {}, as('full'))).status).toBe(200);
    const { status, body } = await call('DELETE', '/v1/things/one', { force: true }, as('full'));
    expect([status, body.code, body.errors[0].field]).toEqual([422, 'unknown_field', 'force']);
  });
});

describe('The order of checks', () => {
  const nonsense = { nonsense: true };

  it('is route, credential, scope, availability, body, validation', async () => {
    const code = async (...args: Parameters<typeof call>) => {
      const { status, body } = await call(...args);
      return `${status} ${body.code}`;
    };
    expect(await code('POST', '/v1/nowhere', nonsense, { authorization: 'bad' })).toBe('404 not_found');
    expect(await code('PUT', '/v1/things', nonsense, { authorization: 'bad' })).toBe('404 not_found');
    expect(await code('POST', '/v1/things', nonsense)).toBe('401 missing_credential');
    expect(await code('POST', '/v1/things', nonsense, { authorization: 'bad' })).toBe('401 invalid_credential');
    expect(await code('POST', '/v1/things', nonsense, as('read'))).toBe('403 insufficient_scope');
    expect(await code('POST', '/v1/pairs', nonsense)).toBe('401 missing_credential');
    expect(await code('POST', '/v1/pairs', nonsense, as('read'))).toBe('403 insufficient_scope');
    expect(await code('POST', '/v1/pairs', nonsense, as('servers'))).toBe('404 endpoint_planned');
    expect(await code('POST', '/v1/things?x=1', nonsense, as('servers'))).toBe('400 invalid_query');
    expect(await code('POST', '/v1/things', nonsense, as('servers'))).toBe('422 validation_failed');
  });

  it('puts the credential before the body', async () => {
    for (const payload of ['{', 'x'.repeat(200_000)]) {
      const response = await app.inject({
        method: 'POST',
        url: '/v1/things',
        headers: { 'content-type': 'text/plain' },
        payload,
      });
      expect(response.json().code).toBe('missing_credential');
    }
  });

  it('includes the credential of a public endpoint', async () => {
    const { status, body } = await call('GET', '/v1/parts', undefined, { authorization: 'Basic abc' });
    expect([status, body.code]).toEqual([401, 'invalid_credential']);
  });
});

describe('A planned endpoint', () => {
  it('answers that it is planned', async () => {
    const { body } = await call('POST', '/v1/pairs', {}, as('servers'));
    expect(body).toMatchObject({ status: 404, code: 'endpoint_planned', availability: 'PLANNED' });
  });
});
