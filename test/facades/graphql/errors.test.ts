/** Tests that each refusal of the internal listener has a code, over HTTP, SSE and WebSocket. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { getIntrospectionQuery } from 'graphql';
import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { bearer } from '../../accounts/oauth/requests.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { withoutTable } from '../../setup/programs/outage.ts';

const freehold = await startFreehold({ ROLES: 'api' });
const { graphqlUrl, newAccount, operatorToken } = freehold;
const account = await newAccount();

interface Failure {
  message: string;
  path?: string[];
  extensions: Record<string, unknown>;
}
interface Operation {
  query: string;
  operationName?: string;
  variables?: Record<string, unknown>;
}

const deep = `{ ${'a { '.repeat(11)}b${' }'.repeat(11)} }`;
const many = (count: number) => Array.from({ length: count }, (_, i) => `a${i}: account { id }`).join(' ');
const REST = `fragment rest on Query { ${Array.from({ length: 11 }, (_, i) => `b${i}: account { id }`).join(' ')} }`;
const OPERATIONS: [what: string, operation: Operation, code: string][] = [
  ['a syntax error', { query: '{ account { id }' }, 'GRAPHQL_PARSE_FAILED'],
  ['an empty document', { query: '' }, 'GRAPHQL_PARSE_FAILED'],
  ['too many tokens', { query: `{ ${'id '.repeat(5_000)} }` }, 'GRAPHQL_PARSE_FAILED'],
  ['an unknown field', { query: '{ nothing }' }, 'GRAPHQL_VALIDATION_FAILED'],
  ['too much depth', { query: deep }, 'GRAPHQL_VALIDATION_FAILED'],
  ['too many root fields', { query: `{ ${many(21)} }` }, 'GRAPHQL_VALIDATION_FAILED'],
  [
    'too many root fields in a fragment',
    { query: `{ ...all } fragment all on Query { ${many(300)} }` },
    'GRAPHQL_VALIDATION_FAILED',
  ],
  [
    'too many root fields in two fragments',
    { query: `{ ... { ${many(11)} } ...rest } ${REST}` },
    'GRAPHQL_VALIDATION_FAILED',
  ],
  [
    'too many introspections',
    { query: `{ ${Array.from({ length: 21 }, (_, i) => `a${i}: __schema { queryType { name } }`).join(' ')} }` },
    'GRAPHQL_VALIDATION_FAILED',
  ],
  [
    'too much of the schema',
    {
      query: `{ __schema { ${Array.from({ length: 70 }, (_, i) => `a${i}: types { name fields { name } }`).join(' ')} } }`,
    },
    'GRAPHQL_VALIDATION_FAILED',
  ],
  [
    'too many names of types',
    { query: `{ account { ${Array.from({ length: 1_001 }, (_, i) => `a${i}: __typename`).join(' ')} } }` },
    'GRAPHQL_VALIDATION_FAILED',
  ],
  [
    'too many names of types within the schema',
    {
      query: `{ __schema { types { fields { ...f } } } } fragment f on __Field { ${Array.from({ length: 300 }, (_, i) => `a${i}: __typename`).join(' ')} }`,
    },
    'GRAPHQL_VALIDATION_FAILED',
  ],
  ['one field again and again', { query: `{ account { ${'id '.repeat(900)} } }` }, 'GRAPHQL_VALIDATION_FAILED'],
  [
    'one field again and again in inline fragments',
    { query: `{ account { ${'... { id } '.repeat(900)} } }` },
    'GRAPHQL_VALIDATION_FAILED',
  ],
  [
    'too many fields',
    { query: `{ account { ${Array.from({ length: 1_001 }, (_, i) => `a${i}: id`).join(' ')} } }` },
    'GRAPHQL_VALIDATION_FAILED',
  ],
  ['a missing variable', { query: 'query ($id: ID!) { server(orderNumber: $id) { status } }' }, 'BAD_USER_INPUT'],
  [
    'a variable of another type',
    { query: 'query ($limit: PageLimit!) { servers(limit: $limit) { hasMore } }', variables: { limit: 'x' } },
    'BAD_USER_INPUT',
  ],
  [
    'an unknown operation name',
    { query: 'query A { account { id } }', operationName: 'B' },
    'OPERATION_RESOLUTION_FAILURE',
  ],
  [
    'several operations and no name',
    { query: 'query A { account { id } } query B { account { id } }' },
    'OPERATION_RESOLUTION_FAILURE',
  ],
  ['an unknown server', { query: '{ server(orderNumber: "SRV-0000000000") { status } }' }, 'not_found'],
  ['an operation of the operator', { query: '{ hosts { name } }' }, 'insufficient_scope'],
  [
    'a subscription to an unknown server',
    { query: 'subscription { serverUpdated(orderNumber: "SRV-0000000000") { type } }' },
    'not_found',
  ],
];

const codesOf = (errors: Failure[]) => errors.map(({ extensions }) => extensions?.code);
/** For clients that accept only application/json, GraphQL over HTTP requires status 200 for some refusals. */
const ACCEPT = { accept: 'application/graphql-response+json' };
const send = (init: RequestInit & { headers?: Record<string, string> }, url = graphqlUrl) =>
  fetch(url, { method: 'POST', ...init, headers: { ...ACCEPT, ...bearer(account.accessToken), ...init.headers } });
const post = (body: unknown, headers: Record<string, string> = {}) =>
  send({
    body: typeof body === 'string' ? body : JSON.stringify(body),
    headers: { 'content-type': 'application/json', ...headers },
  });
const errorsOf = async (response: Response): Promise<Failure[]> =>
  ((await response.json()) as { errors: Failure[] }).errors;

/** The errors of one operation over a WebSocket, and whether the socket is still open afterwards. */
async function overWebSocket(payload: Operation, authorization = `Bearer ${account.accessToken}`) {
  const socket = new WebSocket(graphqlUrl.replace('http', 'ws'), 'graphql-transport-ws');
  await once(socket, 'open');
  const nextMessage = async () => JSON.parse(String((await once(socket, 'message'))[0]));
  socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization } }));
  expect(await nextMessage()).toMatchObject({ type: 'connection_ack' });
  socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload }));
  const message = await nextMessage();
  const isOpen = socket.readyState === WebSocket.OPEN;
  socket.close();
  return { errors: (message.type === 'error' ? message.payload : message.payload.errors) as Failure[], isOpen };
}

describe('An error has its code', () => {
  const overHttp = OPERATIONS.filter(([, { query }]) => !query.startsWith('subscription'));
  it.each(overHttp)('over HTTP: %s', async (_, operation, code) => {
    for (const accept of ['application/json', 'application/graphql-response+json']) {
      const errors = await errorsOf(await post(operation, { accept }));
      expect(new Set(codesOf(errors)), JSON.stringify(errors)).toEqual(new Set([code]));
    }
  });

  it.each(OPERATIONS)('over SSE: %s', async (_, operation, code) => {
    const text = await (await post(operation, { accept: 'text/event-stream' })).text();
    const [, data] = /^event: next\ndata: (.*)$/m.exec(text)!;
    const { errors } = JSON.parse(data!) as { errors: Failure[] };
    expect(new Set(codesOf(errors)), text).toEqual(new Set([code]));
  });

  it.each(OPERATIONS)('over a WebSocket, which stays open: %s', async (_, operation, code) => {
    const { errors, isOpen } = await overWebSocket(operation);
    expect(new Set(codesOf(errors)), JSON.stringify(errors)).toEqual(new Set([code]));
    expect(isOpen).toBe(true);
    for (const { extensions } of errors) expect(extensions).not.toHaveProperty('http');
  });

  it('after a fault of the service', async () => {
    const operation = { query: '{ sshKeys { hasMore } }' };
    const broken = { code: 'internal_error', status: 500, retryable: true };
    await withoutTable(freehold, 'ssh_key', async () => {
      const [overHttp] = await errorsOf(await post(operation));
      const { errors } = await overWebSocket(operation);
      for (const error of [overHttp, errors[0]])
        expect(error).toMatchObject({
          path: ['sshKeys'],
          extensions: broken,
          message: 'Something failed on our side.',
        });
      return undefined as never;
    });
  });
});

it('A tool may send the document alone', async () => {
  const response = await send({ body: '{ account { id } }', headers: { 'content-type': 'application/graphql' } });
  expect(await response.json()).toEqual({ data: { account: { id: account.id } } });
});

it('An answer has a limit, which aliases of few fields can exceed', async () => {
  const names = Array.from({ length: 200 }, (_, i) => `a${i}: description`).join(' ');
  const query = `{ __schema { types { fields { type { ofType { fields { type { ofType { ${names} } } } } } } } } }`;
  const errors = await errorsOf(await post({ query }));
  expect(errors[0]).toMatchObject({
    message: expect.stringContaining('too large'),
    extensions: { code: 'BAD_USER_INPUT' },
  });
  const overSocket = await overWebSocket({ query });
  expect(overSocket.errors[0]!.message).toContain('too large');
});

it('A credential that ends before the body has come reads and ends nothing', async () => {
  const owner = await newAccount();
  const { body: key } = await owner.rest('POST', '/v1/auth/api-keys', { name: 'stolen', scope: 'full' });
  const { body: other } = await owner.rest('POST', '/v1/auth/api-keys', { name: 'other', scope: 'full' });
  const document = `mutation { revokeApiKey(keyId: "${other.key_id}") { keyId } }`;
  const asks = ['{ account { id } }', document].map((query) => {
    const body = JSON.stringify({ query });
    const headers = { ...bearer(key.plaintext), 'content-type': 'application/json', 'content-length': body.length };
    const asked = request(graphqlUrl, { method: 'POST', headers });
    asked.write(body.slice(0, 10));
    return { asked, rest: body.slice(10) };
  });
  await new Promise((resolve) => setTimeout(resolve, 300));
  await owner.rest('DELETE', `/v1/auth/api-keys/${key.key_id}`);
  for (const { asked, rest } of asks) {
    asked.end(rest);
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    const text = Buffer.concat(await response.toArray()).toString();
    expect(codesOf(JSON.parse(text).errors)).toEqual(['revoked_credential']);
  }
  const { data } = (await owner.rest('GET', '/v1/auth/api-keys')).body;
  expect(data.find((one: { key_id: string }) => one.key_id === other.key_id).status).toBe('active');
});

it('A fragment that no operation uses has the same limits, before other rules read it', async () => {
  const query = `{ __typename } fragment unused on Query { account { ${'id '.repeat(980)} } }`;
  const { errors } = (await (
    await send({ body: JSON.stringify({ query }), headers: { 'content-type': 'application/json' } })
  ).json()) as {
    errors: Failure[];
  };
  expect(errors.map(({ message }) => message)).toEqual([
    'The document is too large: it repeats a field or fragments 980 times, and may 20 times.',
  ]);
});

it('A tool reads the whole schema by the query of graphql-js', async () => {
  const response = await post({ query: getIntrospectionQuery() });
  expect(Object.keys(((await response.json()) as { data: object }).data)).toEqual(['__schema']);
});

describe('A request without an operation has an error with a code', () => {
  const JSON_BODY = { 'content-type': 'application/json' };
  const query = '{ account { id } }';
  const REQUESTS: [what: string, ask: () => Promise<Response>, status: number, code: string][] = [
    ['another method', () => send({ method: 'PUT', body: '{}', headers: JSON_BODY }), 405, 'BAD_REQUEST'],
    [
      'a mutation by GET',
      () => send({ method: 'GET' }, `${graphqlUrl}?query=${encodeURIComponent('mutation { createWebhook { id } }')}`),
      405,
      'BAD_REQUEST',
    ],
    [
      'variables of a GET that are not JSON',
      () => send({ method: 'GET' }, `${graphqlUrl}?query={a}&variables={`),
      400,
      'BAD_REQUEST',
    ],
    [
      'a form, which browsers send from any page',
      () => send({ body: 'query={a}', headers: { 'content-type': 'application/x-www-form-urlencoded' } }),
      415,
      'BAD_REQUEST',
    ],
    ['a GET without a query', () => send({ method: 'GET' }), 400, 'BAD_REQUEST'],
    ['malformed JSON', () => post('{'), 400, 'BAD_REQUEST'],
    ['no body', () => post(''), 400, 'BAD_REQUEST'],
    ['JSON that is not an object', () => post('7'), 400, 'BAD_REQUEST'],
    ['null', () => post('null'), 400, 'BAD_REQUEST'],
    ['a batch', () => post([{ query }, { query }]), 400, 'BAD_REQUEST'],
    ['a query that is not a text', () => post({ query: 7 }), 400, 'BAD_REQUEST'],
    ['variables that are not an object', () => post({ query, variables: [1] }), 400, 'BAD_REQUEST'],
    ['an unknown member', () => post({ query, colour: 'red' }), 400, 'BAD_REQUEST'],
    ['another content type', () => post(query, { 'content-type': 'text/plain' }), 415, 'BAD_REQUEST'],
    ['a multipart body', () => post('x', { 'content-type': 'multipart/form-data; boundary=b' }), 415, 'BAD_REQUEST'],
    ['a body above the limit', () => post({ query: 'x'.repeat(200_000) }), 413, 'REQUEST_ENTITY_TOO_LARGE'],
    [
      'a large body without a credential',
      () => post('x'.repeat(200_000), { authorization: '' }),
      401,
      'invalid_credential',
    ],
    ['no credential', () => post({ query }, { authorization: '' }), 401, 'invalid_credential'],
    ['an unknown credential', () => post({ query }, bearer('nonsense')), 401, 'invalid_credential'],
  ];
  it.each(REQUESTS)('%s', async (_, ask, status, code) => {
    const response = await ask();
    const errors = await errorsOf(response);
    expect(codesOf(errors), JSON.stringify(errors)).toEqual([code]);
    expect(response.status).toBe(status);
  });

  it('no credential at all', async () => {
    const response = await fetch(graphqlUrl, { method: 'POST', body: JSON.stringify({ query }), headers: JSON_BODY });
    expect([response.status, codesOf(await errorsOf(response))]).toEqual([401, ['missing_credential']]);
  });

  it('has the path of the failed field', async () => {
    const [error] = await errorsOf(await post({ query: '{ mine: server(orderNumber: "x") { status } }' }));
    expect(error).toMatchObject({ path: ['mine'], extensions: { code: 'not_found' } });
  });

  it('differs from a valid request, which gets its answer', async () => {
    const response = await post({ query: '{ account { id } }' }, bearer(account.accessToken));
    expect(await response.json()).toEqual({ data: { account: { id: account.id } } });
    expect((await post({ query: '{ hosts { name } }' }, bearer(operatorToken))).status).toBe(200);
  });
});
