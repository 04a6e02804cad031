/** Validates the examples of the OpenAPI document, and checks its descriptions and limits. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { describe, expect, it } from 'vitest';
import { TOLD_EVENTS } from '../../../entities/webhooks/events.ts';
import { readOperations } from '../../../facades/compile/read.ts';
import { openapi } from '../../../facades/openapi/document.ts';
import { ERRORS, schema } from '../../../schema/index.ts';
import { closed, type Document } from '../../setup/openapi.ts';

const document: Document = JSON.parse(JSON.stringify(openapi(readOperations(schema), 'https://api.freehold.example')));
const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv);
ajv.addSchema(closed(document), 'document');

const operations: Document[] = Object.values<Document>(document.paths).flatMap((path) => Object.values<Document>(path));

/** The errors of an example. Unlike an answer, an example may not have further members. */
function problems(schema: Document, value: unknown): string[] {
  const validate = ajv.compile(JSON.parse(JSON.stringify(closed(schema)).replaceAll('"#/', '"document#/')));
  validate(value);
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

describe.each(operations.map((operation): [string, Document] => [operation.operationId, operation]))(
  'The examples of %s',
  (_, { parameters = [], requestBody, responses }) => {
    it('exist, and are valid by their schemas', () => {
      for (const { name, schema, example, $ref } of parameters)
        if (!$ref) expect([name, example, problems(schema, example)]).toEqual([name, expect.anything(), []]);
      const bodies = Object.entries<Document>(responses).flatMap(([status, { content }]) =>
        status.startsWith('2') ? [content['application/json']] : [],
      );
      expect(bodies).toHaveLength(1);
      for (const { schema, example } of [...bodies, ...Object.values<Document>(requestBody?.content ?? {})]) {
        expect(example).toBeTypeOf('object');
        expect(problems(schema, example)).toEqual([]);
      }
    });
  },
);

describe('The messages to webhooks', () => {
  it('are those of every event, with a valid example', () => {
    expect(Object.keys(document.webhooks)).toEqual(Object.keys(TOLD_EVENTS));
    for (const [type, { post }] of Object.entries<Document>(document.webhooks)) {
      const { schema, example } = post.requestBody.content['application/json'];
      expect([type, example.type, problems(schema, example)]).toEqual([type, type, []]);
    }
  });
});

describe('The examples of errors', () => {
  it('are valid, with the status of their code', () => {
    for (const [code, { value }] of Object.entries<Document>(document.components.examples)) {
      expect(value).toMatchObject({ code, status: ERRORS[code as keyof typeof ERRORS][0] });
      expect(problems(document.components.schemas.Error, value)).toEqual([]);
    }
  });
});

describe('The OpenAPI document', () => {
  it('describes each operation, parameter, header and tag', () => {
    for (const { operationId, description, parameters = [] } of operations) {
      expect([operationId, description]).toEqual([operationId, expect.stringMatching(/\w{3,}.*\.$/s)]);
      for (const { name, description, $ref } of parameters)
        if (!$ref) expect([operationId, name, description]).toEqual([operationId, name, expect.stringMatching(/\w/)]);
    }
    for (const { description } of Object.values<Document>(document.components.headers))
      expect(description).toMatch(/\w.*\.$/);
    for (const { name, description } of document.tags)
      expect([name, description]).toEqual([name, expect.not.stringContaining('The operations of')]);
  });

  it('describes each member of each object', () => {
    const undescribed: string[] = [];
    const walk = (value: Document, path: string): void => {
      if (typeof value !== 'object' || value === null) return;
      for (const [name, member] of Object.entries<Document>(value.type === 'object' ? (value.properties ?? {}) : {}))
        if (!/\w{3,}.*\.$/s.test(member.description ?? described(member.$ref))) undescribed.push(`${path}/${name}`);
      for (const [key, inner] of Object.entries(value)) if (!/^examples?$/.test(key)) walk(inner, `${path}/${key}`);
    };
    const described = (ref = '') => document.components.schemas[ref.split('/').at(-1)!]?.description ?? '';
    walk(document, '');
    expect(undescribed).toEqual([]);
  });

  it('limits every text, list and integer', () => {
    const unbounded: string[] = [];
    const walk = (value: Document, path: string): void => {
      if (typeof value !== 'object' || value === null) return;
      if (value.type === 'string' && !('maxLength' in value || 'enum' in value || 'const' in value))
        unbounded.push(path);
      if (value.type === 'array' && !('maxItems' in value)) unbounded.push(path);
      if (value.type === 'integer' && !('maximum' in value && 'minimum' in value && 'format' in value))
        unbounded.push(path);
      for (const [key, inner] of Object.entries(value)) if (!/^examples?$/.test(key)) walk(inner, `${path}/${key}`);
    };
    walk(document, '');
    expect(unbounded).toEqual([]);
  });
});
