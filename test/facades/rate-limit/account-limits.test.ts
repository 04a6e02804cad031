/** A thief uses up the calls of an account, and its owner still ends the thief's credential. */
import { beforeEach, describe, expect, it } from 'vitest';
import { oauthRequests } from '../../accounts/oauth/requests.ts';
import { newDatabaseUrl } from '../../setup/database.ts';
import { eventually, startFreehold } from '../../setup/freehold.ts';
import { fundAccount } from '../../setup/shop.ts';
import { restClient } from '../../setup/spawn.ts';
import { callTool } from '../../setup/tool.ts';

const url = await newDatabaseUrl();
/** Makes the accounts. */
const generous = await startFreehold({ DATABASE_URL: url, RATE_LIMIT_STORE: 'memory' });
const { publicUrl, anonymous } = await startFreehold({
  DATABASE_URL: url,
  ROLES: 'api',
  RATE_LIMIT_STORE: 'memory',
  RATE_LIMIT_KEY_PER_MINUTE: '20',
  RATE_LIMIT_ACCOUNT_PER_MINUTE: '40',
});
const { newClient, tokenOf } = oauthRequests(generous.anonymous);

/** Begins no test at the end of a minute, because a new window would allow more requests. */
beforeEach(() => eventually(async () => Date.now() % 60_000 < 40_000, 20), 60_000);

/** An account without any calls left, the login of its owner, and a key that used them up. */
async function exhausted() {
  const { rest, email, password } = await generous.newPayer();
  const keys = [];
  for (let i = 0; i < 3; i++)
    keys.push((await rest('POST', '/v1/auth/api-keys', { name: `k${i}`, scope: 'full' })).body);
  const login = await anonymous('POST', '/v1/auth/login', { email, password });
  const token = login.body.tokens.access_token as string;
  const owner = restClient(publicUrl, token);
  for (const { plaintext } of keys) {
    const call = () => restClient(publicUrl, plaintext)('GET', '/v1/account');
    await Promise.all(Array.from({ length: 20 }, call));
  }
  expect((await owner('GET', '/v1/account')).body.detail).toContain('"account"');
  return { owner, token, keys, password, email };
}

describe('A login whose account has no calls left', () => {
  it('still revokes a key, ends a session and changes the password, and counts that by itself', async () => {
    const { owner, keys, password, email } = await exhausted();
    const revoked = await owner('DELETE', `/v1/auth/api-keys/${keys[0].key_id}`);
    expect([revoked.status, revoked.headers.get('ratelimit-policy')]).toEqual([
      200,
      '"minute";q=20;w=60, "hour";q=1000000;w=3600, "urgent";q=10;w=60, "urgent_hour";q=100;w=3600, ' +
        '"urgent_account";q=200;w=60, "urgent_account_hour";q=2000;w=3600',
    ]);
    expect((await owner('DELETE', '/v1/oauth/clients/cl_01m7z3eaymx8r1n4b6tq0c5d2h')).status).toBe(404);
    expect((await owner('POST', '/v1/auth/login', { email, password })).status).toBe(200);
    expect((await owner('POST', '/v1/ssh-keys', {})).body.code).toBe('rate_limited');
    const change = { current_password: password, new_password: 'another horse battery staple', revoke: 'everything' };
    expect((await owner('POST', '/v1/auth/password', change)).status).toBe(200);
    const calls = Array.from({ length: 30 }, () => owner('DELETE', '/v1/auth/api-keys/nothing'));
    const answers = (await Promise.all(calls)).map(({ status }) => status);
    expect(answers.filter((status) => status === 404)).toHaveLength(6);
    expect(answers.filter((status) => status === 429)).toHaveLength(24);
  });

  it('still revokes a key over MCP, by a credential in the header or as an argument', async () => {
    const { token, keys } = await exhausted();
    const revoke = (credential: string | undefined, i: number, more = {}) =>
      callTool(publicUrl, credential, 'revoke_api_key', { key_id: keys[i].key_id, ...more });
    expect((await revoke(undefined, 0, { access_token: token })).content.status).toBe('revoked');
    expect((await revoke(token, 1)).content.status).toBe('revoked');
    const read = await callTool(publicUrl, token, 'list_api_keys');
    expect(read.content.code).toBe('rate_limited');
  });

  it('revokes a key over MCP in a large message', async () => {
    const { token, keys } = await exhausted();
    const params = {
      name: 'revoke_api_key',
      arguments: { key_id: keys[0].key_id },
      _meta: { 'x/note': 'x'.repeat(9_000) },
    };
    const answer = await fetch(`${publicUrl}/mcp`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    });
    expect(answer.status).not.toBe(429);
  });

  it('has ten such calls a minute, and all logins of the account together have 200', async () => {
    const { email, password } = await exhausted();
    const answers = await Promise.all(
      Array.from({ length: 22 }, async () => {
        const { body } = await generous.anonymous('POST', '/v1/auth/login', { email, password });
        const rest = restClient(publicUrl, body.tokens.access_token);
        const calls = Array.from({ length: 12 }, () => rest('DELETE', '/v1/ssh-keys/nothing'));
        return (await Promise.all(calls)).filter(({ status }) => status === 404).length;
      }),
    );
    expect(Math.max(...answers)).toBe(10);
    expect(answers.reduce((one, other) => one + other)).toBe(200);
  });

  it('gives API keys no such calls', async () => {
    const { keys } = await exhausted();
    const answer = await restClient(publicUrl, keys[2].plaintext)('DELETE', `/v1/auth/api-keys/${keys[0].key_id}`);
    expect(answer.status).toBe(429);
  });
});

describe('The client of an agent without a password', () => {
  it('ends a key although keys and another token of it used up all calls', async () => {
    const client = await newClient({ scope: 'full' });
    const [{ accountId }] = (await generous.db.query<{ accountId: string }>(
      'select account_id from oauth_client where id = $1',
      [client.client_id],
    )) as [{ accountId: string }];
    await fundAccount(generous.db, accountId, 1_000_000n);
    const stolen = await tokenOf(client);
    const make = { name: 'stolen', scope: 'full' };
    const { body: key } = await restClient(generous.publicUrl, stolen)('POST', '/v1/auth/api-keys', make);
    for (const credential of [stolen, key.plaintext]) {
      const call = () => restClient(publicUrl, credential)('GET', '/v1/account');
      await Promise.all(Array.from({ length: 20 }, call));
    }
    const agent = restClient(publicUrl, await tokenOf(client));
    expect((await agent('GET', '/v1/account')).body.detail).toContain('"account"');
    expect((await agent('DELETE', `/v1/auth/api-keys/${key.key_id}`)).status).toBe(200);
  });
});

describe('An OAuth client', () => {
  it('has one count for all its tokens', async () => {
    const { rest } = await generous.newPayer();
    const client = await newClient({ scope: 'read' }, rest);
    const tokens = [await tokenOf(client), await tokenOf(client)];
    const calls = tokens.flatMap((token) =>
      Array.from({ length: 15 }, () => restClient(publicUrl, token)('GET', '/v1/account')),
    );
    const answers = (await Promise.all(calls)).map(({ status }) => status);
    expect(answers.filter((status) => status === 200)).toHaveLength(20);
  });
});
