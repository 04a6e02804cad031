/** The service with a read-only database, as after a failover to a replica. Every facade answers alike. */
import { once } from 'node:events';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { WebSocket } from 'ws';
import { bearer, oauthRequests, type TestClient } from '../accounts/oauth/requests.ts';
import { atEnd } from '../setup/end.ts';
import { startFreehold } from '../setup/freehold.ts';
import { administer } from '../setup/postgres.ts';
import { callTool } from '../setup/tool.ts';

const { anonymous, db, graphqlUrl, newAccount, operatorToken, publicUrl } = await startFreehold({ ROLES: 'api' });
const { newClient, requestToken } = oauthRequests(anonymous);
const KEY = { 'idempotency-key': 'once' };
const PERSON = { email: 'person@example.org', password: 'a heron on the roof' };
const QUERY = 'mutation { updateCoin(code: "LTC", available: false) { code } }';

let client: TestClient;
/** A credential from before, which the service first sees while the database is read-only. */
let unseen: string;

const setWritable = async (yes: boolean) => {
  const [{ name }] = (await db.query<{ name: string }>('select current_database() as name')) as [{ name: string }];
  const url = inject('postgresUrl');
  await administer(url, `alter database ${name} set default_transaction_read_only = ${yes ? 'off' : 'on'}`);
  await administer(url, `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`);
  // The pool notices an ended connection when it uses it.
  for (let i = 0; i < 20; i++) await db.query('select 1').catch(() => {});
};

beforeAll(async () => {
  client = await newClient();
  unseen = (await newAccount()).accessToken;
  await setWritable(false);
});
atEnd(() => setWritable(true));

const UNAVAILABLE = { code: 'unavailable', status: 503, retryable: true };
const ADVICE = /Idempotency-Key/;

describe('While the database is read-only', () => {
  it.each([{}, KEY])(
    'REST answers 503 with Retry-After, and advises how to repeat the request: %j',
    async (headers) => {
      const answer = await anonymous('POST', '/v1/auth/register', PERSON, headers);
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1']);
      expect(answer.body).toMatchObject({ ...UNAVAILABLE, retry_after: 1, detail: expect.stringMatching(ADVICE) });
    },
  );

  it('OAuth answers temporarily_unavailable', async () => {
    const { status, body, headers } = await requestToken(client);
    expect([status, body.error, headers.get('retry-after')]).toEqual([503, 'temporarily_unavailable', '1']);
    expect(body.error_description).toMatch(ADVICE);
  });

  it('an MCP tool answers unavailable', async () => {
    const { isError, content } = await callTool(publicUrl, undefined, 'register_account', PERSON);
    expect(isError).toBe(true);
    expect(content).toMatchObject({ ...UNAVAILABLE, retry_after: 1, detail: expect.stringMatching(ADVICE) });
  });

  it.each([
    ['the operator', () => operatorToken],
    ['a credential that the service cannot check', () => unseen],
  ])('GraphQL answers unavailable to %s', async (_, credential) => {
    const response = await fetch(graphqlUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...bearer(credential()) },
      body: JSON.stringify({ query: QUERY }),
    });
    const { errors } = (await response.json()) as { errors: { message: string; extensions: object }[] };
    expect(errors[0]!.message).toMatch(ADVICE);
    expect(errors[0]!.extensions).toMatchObject({ ...UNAVAILABLE, retryAfter: 1 });
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1']);
  });

  it('a WebSocket with a credential that the service cannot check closes, so that its client tries again', async () => {
    const socket = new WebSocket(graphqlUrl.replace('http', 'ws'), 'graphql-transport-ws');
    await once(socket, 'open');
    socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${unseen}` } }));
    const [code] = await once(socket, 'close');
    expect(code).toBe(1013);
  });
});
