import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { readOperations } from '../../../facades/compile/read.ts';
import { compiled } from '../../../facades/compile/run.ts';
import { schema as realSchema } from '../../../schema/index.ts';
import { DOCUMENTS, folderOf } from '../sample-api.ts';
import { schema } from '../sample-schema.ts';

const HTTP = '@http(method: GET, path: "/v1/x")';

const read = (...documents: string[]) =>
  readOperations(schema, folderOf(Object.fromEntries(documents.map((text, i) => [`${'abc'[i]}.graphql`, text]))));
function refusal(...documents: string[]): string {
  try {
    read(...documents);
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('The reader accepted the documents.');
}

describe('An invalid document', () => {
  it('stops the start with its file, line and column, and a caret', () => {
    const message = refusal(`"Lists parts."\nquery Parts ${HTTP} {\n  parts { name price }\n}\n`);
    expect(message).toContain('Cannot query field "price" on type "Part".');
    expect(message).toContain('a.graphql:3:16');
    expect(message).toMatch(/3 \| {3}parts \{ name price \}\n {2}\| {16}\^/);
  });

  it.each([
    ['a syntax error', `query {`, /Syntax Error.*\n\na\.graphql:1:8/s],
    ['no description', `query Parts ${HTTP} { parts { name } }`, /Parts lacks a description.*a\.graphql:1:7/s],
    ['an operation without endpoint and tool', `"X." query Parts { parts { name } }`, /neither @http nor @tool/],
    [
      'a path parameter without a variable',
      `"X." query Parts @http(method: GET, path: "/v1/x/{id}") { parts { name } }`,
      /has no variable for \{id\}.*a\.graphql:1:12/s,
    ],
    [
      'an optional variable in the path',
      `"X." mutation X($key: KeyName) @http(method: POST, path: "/v1/x/{key}") { echo(key: $key) { args } }`,
      /\$key is in the path, so it must be required.*a\.graphql:1:17/s,
    ],
    [
      'a GET with an input object',
      `"X." mutation X($input: OrderThingInput!) ${HTTP} { orderThing(input: $input) { plaintext } }`,
      /X is a GET, so it cannot have an input object/,
    ],
    [
      'two input objects',
      `"X." mutation X($a: OrderThingInput!, $b: OrderThingInput!) @http(method: POST, path: "/v1/x") {
        a: orderThing(input: $a) { plaintext } b: orderThing(input: $b) { plaintext }
      }`,
      /one input object.*a\.graphql:1:39/s,
    ],
    [
      'a path with upper-case letters',
      `"X." query X @http(method: GET, path: "/v1/X") { number }`,
      /lower-case segments/,
    ],
    [
      'a name that is not snake_case',
      `"X." query X ${HTTP} { parts { Name: name } }`,
      /Name is not snake_case.*1:\d+/s,
    ],
    [
      '@include',
      `"X." query X($on: Boolean! = true) ${HTTP} { parts { name @include(if: $on) } }`,
      /Write another document/,
    ],
    [
      'two fields with the same name',
      `"X." query X ${HTTP} { parts { name weight name: color } }`,
      /Two fields of Part are called name/,
    ],
    [
      'a union with a type without selected fields',
      `"X." query X($id: ID!) @http(method: GET, path: "/v1/x/{id}") { something(thingId: $id) { ... on Part { name } } }`,
      /may be a Thing, but the document selects no field of it.*a\.graphql:1:\d+/s,
    ],
    [
      '@spread of a list',
      `"X." query X ${HTTP} { things { data @spread { color } hasMore } }`,
      /@spread needs an object, and data is not an object/,
    ],
    [
      'two members with the same name after @spread',
      `"X." mutation X($input: OrderThingInput!) @http(method: POST, path: "/v1/x") @tool(name: "x") {
        orderThing(input: $input) { thing @spread { plaintext: thingId } plaintext }
      }`,
      /Two members of the answer are called plaintext/,
    ],
    [
      'a tool whose answer is a number',
      `"X." query X @tool(name: "x") { number }`,
      /its answer must be an object or a list/,
    ],
    [
      'a planned tool',
      `"X." query X @http(method: GET, path: "/v1/x", status: PLANNED) @tool(name: "x") { parts { name } }`,
      /cannot be a tool yet/,
    ],
    [
      'a tool with a style of OAuth',
      `"X." query X @http(method: GET, path: "/v1/x", style: OAUTH) @tool(name: "x") { parts { name } }`,
      /X has a style of OAuth, so it cannot be a tool/,
    ],
    [
      'a scope for an operation that reads the header Authorization',
      `"X." mutation X($input: OrderThingInput!, $key: KeyName @header(name: "Authorization"))
      @http(method: POST, path: "/v1/x") { orderThing(input: $input) { plaintext } echo(key: $key) { args } }`,
      /X checks the credential itself, so it must be public/,
    ],
    [
      'two arguments with the same name',
      `"X." mutation X($color: Color @header(name: "X-Color"), $input: OrderThingInput!) @tool(name: "x") {
        orderThing(input: $input) { plaintext } echo(mode: $color) { args }
      }`,
      /two arguments called color/,
    ],
    [
      '@answer beside another field',
      `"X." query X ${HTTP} { things { data @answer { color } hasMore } }`,
      /@answer needs a field without siblings/,
    ],
    [
      'an unknown argument of a directive',
      `"X." query X @http(method: PUT, path: "/v1/x") { number }`,
      /does not exist in "HttpMethod"/,
    ],
    ['an unused fragment', `fragment A on Part { name } "X." query X ${HTTP} { number }`, /Fragment "A" is never used/],
  ])('stops the start: %s', (_, document, expected) => {
    expect(refusal(document)).toMatch(expected);
  });

  it('stops the start if two documents claim the same endpoint or tool, and the error shows both', () => {
    const one = '"X." query One @http(method: GET, path: "/v1/x/{code}") { refused(code: $code) { name } }'.replace(
      'One',
      'One($code: String!)',
    );
    const other = one.replace('One', 'Other').replaceAll('$code', '$other').replace('{code}', '{other}');
    const message = refusal(one, other);
    expect(message).toContain('Two documents claim GET /v1/x/{}.');
    expect(message).toContain('a.graphql:1:12');
    expect(message).toContain('b.graphql:1:12');
    expect(
      refusal('"X." query A @tool(name: "x") { parts { name } } "X." query B @tool(name: "x") { parts { name } }'),
    ).toContain('Two documents claim the tool x.');
  });

  it('does not hide the errors of others: one start reports all', () => {
    const message = refusal(`query A ${HTTP} { number }`, `query B @http(method: GET, path: "/v1/y") { number }`);
    expect(message).toContain('A lacks a description.');
    expect(message).toContain('B lacks a description.');
  });
});

describe('The documents of the service', () => {
  it('fit the schema', () => {
    const operations = readOperations(realSchema);
    expect(
      operations
        .filter(({ noun }) => noun === 'catalog')
        .map(({ http }) => http!.path)
        .sort(),
    ).toEqual([
      '/v1/catalog',
      '/v1/catalog/bastions',
      '/v1/catalog/dedicated',
      '/v1/catalog/images',
      '/v1/catalog/vps',
      '/v1/catalog/{code}',
    ]);
  });
});

describe('An operation', () => {
  it('has its scopes, and its parameters with their locations', () => {
    const operations = new Map(read(DOCUMENTS).map((operation) => [operation.name, operation]));
    expect(operations.get('OrderThing')).toMatchObject({ kind: 'mutation', scopes: ['servers'], noun: 'a' });
    expect(operations.get('Both')!.scopes).toEqual([]);
    const echo = operations.get('Echo')!.parameters;
    expect(echo).toMatchObject([
      { name: 'mode', in: 'header', header: 'X-Mode', description: 'The mode.' },
      { name: 'key', in: 'header', header: 'Idempotency-Key', description: 'Makes the request safe to repeat.' },
    ]);
    const [limit] = operations.get('ListThings')!.parameters;
    expect(limit).toMatchObject({ in: 'query', required: false, default: 50 });
  });
});

describe('The service', () => {
  it('can compile each of its documents at the first request', async () => {
    for (const operation of readOperations(realSchema)) expect(await compiled(operation)).toBeTypeOf('function');
  });

  it('has scalars whose JSON Schemas are valid', () => {
    const ajv = new Ajv2020({ strict: false });
    for (const { name, extensions } of Object.values(realSchema.getTypeMap()))
      if (extensions.jsonSchema) expect(ajv.validateSchema(extensions.jsonSchema), name).toBe(true);
  });
});
