import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { FastifyInstance } from 'fastify';
import { describe, expect, it } from 'vitest';
import { publicServer } from '../../../facades/http/listener.ts';
import { ERRORS } from '../../../schema/index.ts';
import { newDatabase } from '../../setup/database.ts';
import { atEnd } from '../../setup/end.ts';
import { neverEnds, openSampleApi } from '../sample-api.ts';

// biome-ignore lint/suspicious/noExplicitAny: a document of which the test knows the form
type Document = any;

const shop = await openSampleApi();
const db = await newDatabase();
const service = await publicServer({
  authenticate: async () => null,
  contextOf: (caller) => ({ ...caller, db, stopping: new AbortController().signal }) as never,
  publicUrl: 'https://api.example.org',
  newRequestId: () => 'req_test',
  onError: (line) => console.error(line),
  mcpSecrets: [Buffer.alloc(32)],
  onCredentialEnd: neverEnds,
});
atEnd(() => service.close());

const documentOf = async (app: FastifyInstance): Promise<Document> => (await app.inject('/v1/openapi.json')).json();
const shopDocument = await documentOf(shop.app);
const serviceDocument = await documentOf(service);

/** Validates answers against the document, by endpoint and status. */
function validator(document: Document) {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  ajv.addSchema(document, 'doc');
  return (path: string, method: string, status: number, body: unknown) => {
    const responses = document.paths[path][method].responses;
    const key = String(status);
    expect(Object.keys(responses)).toContain(key);
    const name = responses[key].$ref?.split('/').at(-1);
    const pointer = name
      ? `#/components/responses/${name}/content/application~1json/schema`
      : `#/paths/${encodeURIComponent(path.replaceAll('~', '~0').replaceAll('/', '~1'))}/${method}/responses/${key}/content/application~1json/schema`;
    const validate = ajv.getSchema(`doc${pointer}`)!;
    validate(body);
    expect(validate.errors ?? []).toEqual([]);
  };
}

describe('The OpenAPI document', () => {
  it('is cacheable for a minute, and has an ETag', async () => {
    const { headers } = await service.inject('/v1/openapi.json');
    expect(headers).toMatchObject({ 'cache-control': 'public, max-age=60', etag: expect.stringMatching(/^W\/".+"$/) });
    const again = await service.inject({
      url: '/v1/openapi.json',
      headers: { 'if-none-match': headers.etag as string },
    });
    expect([again.statusCode, again.body]).toEqual([304, '']);
  });

  it('has every endpoint with its scope, its availability and its id', () => {
    expect(serviceDocument).toMatchObject({
      openapi: expect.stringMatching(/^3\.1\./),
      info: { version: '1.0.0' },
      servers: [{ url: 'https://api.example.org' }],
    });
    expect(serviceDocument.paths['/v1/catalog/{code}'].get).toMatchObject({
      operationId: 'GetCatalogItem',
      tags: ['catalog'],
      'x-scope': 'public',
      'x-availability': 'LIVE',
      security: [],
      parameters: [{ name: 'code', in: 'path', required: true, description: 'A code of the catalog.' }],
    });
    expect(shopDocument.paths['/v1/things'].post).toMatchObject({
      'x-scope': 'servers',
      security: [{ bearer: ['servers'] }],
      requestBody: {
        required: true,
        content: { 'application/json': { schema: { $ref: '#/components/schemas/OrderThingInput' } } },
      },
    });
    expect(shopDocument.paths['/v1/pairs'].post).toMatchObject({ 'x-availability': 'PLANNED' });
    const ids = Object.values<Document>(shopDocument.paths).flatMap((path) =>
      Object.values<Document>(path).map(({ operationId }) => operationId),
    );
    expect(new Set(ids).size).toBe(shop.operations.filter(({ http }) => http).length);
  });

  it('has fragments and inputs as components, and refers to them', () => {
    const { schemas } = shopDocument.components;
    expect(Object.keys(schemas)).toEqual(['Error', 'InnerInput', 'OrderThingInput', 'Part', 'Thing']);
    expect(schemas.Thing.properties.parts.items).toEqual({ $ref: '#/components/schemas/Part' });
    expect(schemas.Thing.description).toBe('A thing, as its callers see it.');
    expect(schemas.Part.properties.color).toEqual({
      anyOf: [{ type: 'string', enum: ['red', 'dark_blue'] }, { type: 'null' }],
    });
    expect(schemas.OrderThingInput).toMatchObject({
      required: ['service_code'],
      additionalProperties: false,
      properties: {
        service_code: { type: 'string', maxLength: 32, description: 'The code of a tier.' },
        color: { enum: ['red', 'dark_blue'] },
        auto_renew: { default: true },
      },
    });
    const { schema } = shopDocument.paths['/v1/something/{thing_id}'].get.responses['200'].content['application/json'];
    expect(schema.anyOf).toEqual([{ $ref: '#/components/schemas/Thing' }, expect.objectContaining({ type: 'object' })]);
  });

  it('has the receipt of a payment in its success, and in each refusal that may follow a settled payment', () => {
    const receipts = ['PAYMENT-RESPONSE', 'X-PAYMENT-RESPONSE'];
    const { responses } = serviceDocument.paths['/v1/servers'].post;
    expect(Object.keys(responses[200].headers)).toEqual(expect.arrayContaining(receipts));
    for (const status of [403, 422]) {
      const { [responses[status].$ref.split('/').at(-1)]: refusal } = serviceDocument.components.responses;
      expect(Object.keys(refusal.headers)).toEqual(expect.arrayContaining(receipts));
    }
  });

  it('has the parameters with their types and defaults', () => {
    expect(shopDocument.paths['/v1/things'].get.parameters).toEqual([
      {
        name: 'limit',
        in: 'query',
        required: false,
        description: 'The number of things.',
        schema: { type: 'integer', format: 'int32', minimum: 1, maximum: 200, default: 50 },
        example: 50,
      },
      {
        name: 'color',
        in: 'query',
        required: false,
        description: 'Only things of these colors.',
        schema: { type: 'array', maxItems: 100, items: { type: 'string', enum: ['red', 'dark_blue'] } },
        example: ['red'],
      },
      {
        name: 'heavy',
        in: 'query',
        required: false,
        description: 'Only heavy things.',
        schema: { type: 'boolean' },
        example: false,
      },
    ]);
    expect(
      shopDocument.paths['/v1/echo'].post.parameters.map((parameter: Document) => [parameter.in, parameter.name]),
    ).toEqual([
      ['header', 'X-Mode'],
      ['header', 'Idempotency-Key'],
    ]);
  });

  it('names every error for an operation that can answer it, but those of operators and browsers', () => {
    const text = Object.values<Document>(serviceDocument.components.responses)
      .map(({ description }) => description)
      .join(' ');
    const unnamed = Object.keys(ERRORS).filter((code) => !text.includes(code));
    expect(unnamed).toEqual(['approval_needed', 'browser_authorization_unavailable']);
    expect(Object.keys(serviceDocument.components.examples)).toHaveLength(Object.keys(ERRORS).length - unnamed.length);
  });

  it('lists for an operation only the errors that it can answer', () => {
    const codesOf = (path: string, method: string, status: number): string[] => {
      const { $ref } = serviceDocument.paths[path][method].responses[status];
      const response = serviceDocument.components.responses[$ref.split('/').at(-1)];
      return Object.keys(response.content['application/json'].examples);
    };
    expect(codesOf('/v1/catalog', 'get', 400)).toEqual(['invalid_query']);
    expect(codesOf('/v1/servers/{order_number}', 'delete', 422)).toEqual([
      ...['validation_failed', 'unknown_field', 'delete_protected'],
      ...['idempotency_key_reused', 'idempotency_in_progress'],
    ]);
    expect(serviceDocument.paths['/v1/catalog'].get.responses).not.toHaveProperty('402');
    expect(codesOf('/v1/servers', 'post', 402)).toContain('insufficient_balance');
  });

  it('has a target for every reference', () => {
    for (const document of [shopDocument, serviceDocument])
      for (const [, pointer] of JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g))
        expect(pointer!.split('/').reduce((at, key) => at?.[key], document)).toBeDefined();
  });
});

describe('Answers match the document', () => {
  it.each(['vps', 'dedicated', 'bastions', 'images'])('of /v1/catalog/%s, over the real database', async (group) => {
    const response = await service.inject(`/v1/catalog/${group}`);
    expect(response.statusCode).toBe(200);
    expect(response.json()).toMatchObject({ next_cursor: null, has_more: false });
    expect(response.json().data.length).toBeGreaterThan(2);
    validator(serviceDocument)(`/v1/catalog/${group}`, 'get', 200, response.json());
  });

  it('of the whole catalog and of each of its items', async () => {
    const check = validator(serviceDocument);
    const catalog = (await service.inject('/v1/catalog')).json();
    check('/v1/catalog', 'get', 200, catalog);
    expect(Object.keys(catalog)).toEqual(['vps', 'dedicated', 'bastions', 'images']);
    expect(catalog.vps[0]).toMatchObject({
      code: 'vps-1',
      kind: 'vps',
      memory_mb: 2048,
      price_month_usd: 6,
      regions: expect.arrayContaining([{ code: 'ams', stock: expect.stringMatching(/^(available|low|none)$/) }]),
    });
    for (const item of Object.values<Document[]>(catalog).flat()) {
      const response = await service.inject(`/v1/catalog/${item.code}`);
      expect(response.json()).toEqual(item);
      check('/v1/catalog/{code}', 'get', 200, response.json());
    }
    const missing = await service.inject('/v1/catalog/vps-99');
    check('/v1/catalog/{code}', 'get', 404, missing.json());
  });

  it('of the sample schema: successes and errors', async () => {
    const check = validator(shopDocument);
    const authorization = 'Bearer read servers billing full';
    const cases: [method: 'GET' | 'POST' | 'DELETE', path: string, url: string, body?: object, headers?: object][] = [
      ['GET', '/v1/things/{thing_id}', '/v1/things/one'],
      ['GET', '/v1/things/{thing_id}', '/v1/things/none'],
      ['GET', '/v1/things', '/v1/things'],
      ['GET', '/v1/things', '/v1/things?limit=0'],
      ['POST', '/v1/things', '/v1/things', { service_code: 'x' }],
      ['POST', '/v1/things', '/v1/things', { service_cod: 'x' }],
      ['POST', '/v1/things', '/v1/things', {}, { authorization: 'Bearer read' }],
      ['POST', '/v1/things', '/v1/things', {}, { authorization: 'no' }],
      ['DELETE', '/v1/things/{thing_id}', '/v1/things/one'],
      ['GET', '/v1/something/{thing_id}', '/v1/something/part'],
      ['GET', '/v1/parts', '/v1/parts'],
      ['GET', '/v1/both', '/v1/both'],
      ['GET', '/v1/number', '/v1/number'],
      ['GET', '/v1/broken', '/v1/broken'],
      ['GET', '/v1/refused/{code}', '/v1/refused/rate_limited'],
      ['POST', '/v1/pairs', '/v1/pairs', {}],
    ];
    for (const [method, path, url, payload, headers] of cases) {
      const response = await shop.app.inject({
        method,
        url,
        headers: { authorization, ...headers },
        ...(payload && { payload }),
      });
      check(path, method.toLowerCase(), response.statusCode, response.json());
    }
  });
});

it('Summaries are titles of less than sixty characters, and descriptions use the words of the wire', () => {
  const operations = Object.values(serviceDocument.paths).flatMap((endpoints) => Object.values(endpoints as object));
  const summaries: string[] = operations.map(({ summary }) => summary);
  expect(summaries.filter((one) => one.length >= 60 || one.includes('\n'))).toEqual([]);
  const descriptions = [...JSON.stringify(serviceDocument).matchAll(/"description":"((?:[^"\\]|\\.)*)"/g)].map(
    ([, text]) => text!,
  );
  const names = descriptions.flatMap((text) => text.replaceAll('\\n', ' ').match(/\b[a-z]+[A-Z][a-z]+\w*\b/g) ?? []);
  // The card of an agent, on the agent's own host, has the member publicKey.
  expect(names.filter((name) => name !== 'publicKey')).toEqual([]);
});
