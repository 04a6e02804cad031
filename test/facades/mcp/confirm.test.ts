import { describe, expect, it } from 'vitest';
import { startFreehold } from '../../setup/freehold.ts';
import { AGENTS, NEWEST } from './agents.ts';

const freehold = await startFreehold({ SIMULATED_PROVISION_SECONDS: '600', POLL_SECONDS: '0.2' });
const url = new URL(`${freehold.publicUrl}/mcp`);

async function withServer() {
  const account = await freehold.newAccount();
  await account.fund(30);
  const { body } = await account.rest('POST', '/v1/servers', { service_code: 'vps-1' });
  const { order_number } = body;
  const status = async () => (await account.rest('GET', `/v1/servers/${order_number}`)).body.status as string;
  return { ...account, credential: account.accessToken, order_number: order_number as string, status };
}

describe.each(AGENTS)('The deletion of a server by the client %s at %s', (_, __, connect) => {
  it('asks the user, and follows the answer', async () => {
    const { credential, order_number, status } = await withServer();
    const asked: string[] = [];
    const answers = [{ action: 'decline' }, { action: 'accept', content: { confirm: false } }, { action: 'cancel' }];
    const user = (message: string) => {
      asked.push(message);
      return answers.shift() ?? { action: 'accept', content: { confirm: true } };
    };
    const { call } = await connect(url, { credential, user });
    for (let refusals = 0; refusals < 3; refusals++) {
      const { isError, content } = await call('cancel_server', { order_number });
      expect([isError, content.code, content.errors[0].field]).toEqual([true, 'validation_failed', 'confirm']);
      expect(await status()).toMatch(/pending|provisioning/);
    }
    expect((await call('cancel_server', { order_number })).content).toMatchObject({ status: 'deleting' });
    expect(asked).toHaveLength(4);
    expect(asked[0]).toContain(order_number);
  });

  it('asks the user also if the client confirms by itself', async () => {
    const { credential, order_number, status } = await withServer();
    const asked: string[] = [];
    const user = (message: string) => {
      asked.push(message);
      return { action: 'decline' };
    };
    const { call } = await connect(url, { credential, user });
    for (const confirm of [order_number, 'SRV-0000000000', ''])
      expect((await call('cancel_server', { order_number, confirm })).content.code).toBe('validation_failed');
    expect(asked).toHaveLength(3);
    expect(await status()).toMatch(/pending|provisioning/);
  });

  it('refuses an unknown server without a question', async () => {
    const asked: string[] = [];
    const user = (message: string) => {
      asked.push(message);
      return { action: 'accept', content: { confirm: true } };
    };
    const { call } = await connect(url, { credential: (await freehold.newAccount()).accessToken, user });
    for (const args of [{}, { order_number: null }, { order_number: 7 }, { order_number: 'x', nothing: 1 }])
      expect(await call('cancel_server', args)).toMatchObject({ isError: true, content: { status: 422 } });
    expect(asked).toEqual([]);
  });

  it('requires the order number again if the client cannot ask the user', async () => {
    const { credential, order_number, status } = await withServer();
    const { call } = await connect(url, { credential });
    for (const confirm of [undefined, null, '', true, 'SRV-0000000000']) {
      const { isError, content } = await call('cancel_server', {
        order_number,
        ...(confirm !== undefined && { confirm }),
      });
      expect([isError, content.code, content.errors[0].field]).toEqual([true, 'validation_failed', 'confirm']);
      expect(content.detail + content.errors[0].message).toContain('confirm');
    }
    expect(await status()).toMatch(/pending|provisioning/);
    expect((await call('cancel_server', { order_number, confirm: order_number })).content.status).toBe('deleting');
  });
});

describe('A question that comes back through the client', () => {
  const META = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
  };
  const post = async (credential: string, params: Record<string, unknown>) => {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${credential}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': 'cancel_server',
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'cancel_server', _meta: META, ...params },
      }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: the test checks the answer
    return (await response.json()) as any;
  };
  const inputResponses = { confirm: { action: 'accept', content: { confirm: true } } };

  it('is refused if it was changed or made up, or if it belongs to another server or account', async () => {
    const [mine, other, theirs] = [await withServer(), await withServer(), await withServer()];
    const asked = async ({ credential, order_number }: typeof mine) =>
      (await post(credential, { arguments: { order_number } })).result.requestState as string;
    const state = await asked(mine);
    expect(state).toMatch(/^v1\./);
    const args = { arguments: { order_number: mine.order_number }, inputResponses };
    for (const requestState of [`${state}x`, 'v1.e30.x', 'nonsense', state.replace(/\.[^.]+\./, '.e30.')])
      expect((await post(mine.credential, { ...args, requestState })).error?.code).toBe(-32_602);
    // With the state of another question, the service asks again and deletes nothing.
    for (const requestState of [await asked(other), await asked(theirs), undefined])
      expect((await post(mine.credential, { ...args, requestState })).result.resultType).toBe('input_required');
    expect(await mine.status()).toMatch(/pending|provisioning/);
    const { result } = await post(mine.credential, { ...args, requestState: state });
    expect(result.structuredContent.status).toBe('deleting');
  });

  it('grants no more than the scope of the credential', async () => {
    const { rest, order_number } = await withServer();
    const { body } = await rest('POST', '/v1/auth/api-keys', { name: 'r', scope: 'read' });
    const asked: string[] = [];
    const user = (message: string) => {
      asked.push(message);
      return { action: 'accept', content: { confirm: true } };
    };
    const { call } = await NEWEST(url, { credential: body.plaintext, user });
    expect((await call('cancel_server', { order_number })).content.code).toBe('insufficient_scope');
    expect(asked).toEqual([]);
  });
});
