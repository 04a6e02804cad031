/** A credential that ends during a request. The caller sends the headers at once, and the body later. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, it, vi } from 'vitest';
import { Authenticator } from '../../../resolvers/accounts/auth/credential.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { restClient } from '../../setup/spawn.ts';

const { publicUrl, newAccount, operator } = await startFreehold();

/** Sends the head of a POST; `rest` sends the body, and reads the status and the code of the answer. */
async function begin(path: string, credential: string, body: object) {
  const { hostname, port } = new URL(publicUrl);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  const sent = JSON.stringify(body);
  const head = [
    `POST ${path} HTTP/1.1`,
    `host: ${hostname}`,
    `authorization: Bearer ${credential}`,
    'content-type: application/json',
    'accept: application/json, text/event-stream',
    `content-length: ${sent.length}`,
    'connection: close',
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n${sent.slice(0, 5)}`);
  return async () => {
    socket.write(sent.slice(5));
    const answer = await text(socket);
    return [answer.split(' ')[1], /"code":"(\w+)"/.exec(answer)?.[1]];
  };
}

it('A session that ends before the body arrives makes no API key, over REST and MCP', async () => {
  const account = await newAccount();
  const key = { name: 'stolen', scope: 'full' };
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'create_api_key', arguments: key } };
  const checked = vi.spyOn(Authenticator.prototype, 'fromHeader');
  const rests = [
    await begin('/v1/auth/api-keys', account.accessToken, key),
    await begin('/mcp', account.accessToken, call),
  ];
  // The service has read both heads, and accepted the credential.
  await expect.poll(() => checked.mock.settledResults.map(({ type }) => type)).toEqual(['fulfilled', 'fulfilled']);
  checked.mockRestore();
  const [{ token_id }] = (await account.rest('GET', '/v1/auth/sessions')).body.data;
  const { body: mine } = await account.rest('POST', '/v1/auth/api-keys', { name: 'mine', scope: 'full' });
  await account.rest('DELETE', `/v1/auth/sessions/${token_id}`);
  for (const rest of rests) expect(await rest()).toEqual(['401', 'revoked_credential']);
  const { body } = await restClient(publicUrl, mine.plaintext)('GET', '/v1/auth/api-keys');
  expect(body.data.map(({ name }: { name: string }) => name)).toEqual(['mine']);
});

it('An account that is suspended before the body arrives orders nothing', async () => {
  const account = await newAccount();
  await account.fund(50);
  const rest = await begin('/v1/servers', account.accessToken, { service_code: 'vps-1' });
  const suspend = 'mutation ($id: ID!) { suspendAccount(id: $id, reason: "test") { id } }';
  expect((await operator(suspend, { id: account.id })).errors).toBeUndefined();
  expect(await rest()).toEqual(['403', 'account_suspended']);
});
