/** Calls that wait: for their users, who may never answer, and beside many others of their caller. */
import { SdkError, SdkErrorCode } from '@modelcontextprotocol/server';
import { describe, expect, it } from 'vitest';
import { type Question, Questions } from '../../../facades/mcp/questions.ts';
import { startFreehold } from '../../setup/freehold.ts';
import { AGENTS } from './agents.ts';
import { call, INITIALIZE, of2025, rawClient, rpc, whenWaiting } from './raw-client.ts';

const freehold = await startFreehold({ SIMULATED_PROVISION_SECONDS: '600', POLL_SECONDS: '0.2' });
const url = `${freehold.publicUrl}/mcp`;

/** Lets an order fail now, which ends the waits for its server. */
const fail = (orderNumber: string) =>
  freehold.db.query('update task set deadline_at = now(), run_at = now() where subject = $1', [orderNumber]);

async function withServer() {
  const account = await freehold.newAccount();
  await account.fund(30);
  const { body } = await account.rest('POST', '/v1/servers', { service_code: 'vps-1' });
  return { ...account, order_number: body.order_number as string };
}

describe.each(AGENTS)('The client %s at %s', (_, __, connect) => {
  it('asks its user only about a server that exists and can be deleted', async () => {
    const { accessToken: credential, rest, order_number } = await withServer();
    const theirs = await withServer();
    await rest('PATCH', `/v1/servers/${order_number}`, { delete_protection: true });
    const asked: string[] = [];
    const user = (message: string) => {
      asked.push(message);
      return { action: 'accept', content: { confirm: true } };
    };
    const { call: tool } = await connect(new URL(url), { credential, user });
    const codes = [];
    for (const number of ['SRV-ABCDEFGHJK', theirs.order_number, order_number])
      codes.push((await tool('cancel_server', { order_number: number })).content.code);
    expect([codes, asked]).toEqual([['not_found', 'not_found', 'delete_protected'], []]);
  });
});

describe('A question to the user', () => {
  it('gives its session to a newcomer while the others work, and the service changes nothing', async () => {
    const { accessToken, rest, order_number } = await withServer();
    const workers = [await withServer(), await withServer()];
    const { send, usual } = rawClient(url, accessToken);
    const open = () => send({ body: rpc('initialize', { ...INITIALIZE, capabilities: { elicitation: {} } }) });
    const headersOf = (session: string | null) => ({ ...of2025('2025-11-25'), 'mcp-session-id': session! });
    const { session } = await open();
    const body = JSON.stringify(call('cancel_server', { order_number }));
    const response = await fetch(url, { method: 'POST', headers: { ...usual, ...headersOf(session) }, body });
    const others = await Promise.all(Array.from({ length: 49 }, async () => (await open()).session));
    const works = await whenWaiting(freehold.db, () =>
      others.map((one, i) => {
        const { accessToken: access_token, order_number: number } = workers[i % 2]!;
        const args = { order_number: number, status: 'failed', timeout: 25, access_token };
        return send({ headers: headersOf(one), body: call('wait_for_server', args) });
      }),
    );
    expect((await open()).status).toBe(200);
    expect(await response.text()).toMatch(
      /the service changed nothing.*"code":"unavailable"|"code":"unavailable".*the service changed nothing/,
    );
    for (const worker of workers) await fail(worker.order_number);
    for (const { messages } of await Promise.all(works)) expect(messages[0].result.isError).toBeFalsy();
    expect((await rest('GET', `/v1/servers/${order_number}`)).body.status).toMatch(/pending|provisioning/);
  });

  it('takes the answer to no other question, such as an earlier one of a reopened session', async () => {
    const { accessToken, rest, order_number } = await withServer();
    const { send, usual } = rawClient(url, accessToken);
    const { session } = await send({ body: rpc('initialize', { ...INITIALIZE, capabilities: { elicitation: {} } }) });
    const headers = { ...of2025('2025-11-25'), 'mcp-session-id': session! };
    const body = JSON.stringify(call('cancel_server', { order_number }));
    const response = await fetch(url, { method: 'POST', headers: { ...usual, ...headers }, body });
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (!text.includes('elicitation/create')) text += (await reader.read()).value;
    const asked = JSON.parse(/^data: (.*elicitation\/create.*)$/m.exec(text)![1]!);
    const yes = (id: unknown) =>
      send({ headers, body: { jsonrpc: '2.0', id, result: { action: 'accept', content: { confirm: true } } } });
    expect((await yes(0)).status).toBe(400);
    const both = [asked.id, 0].map((id) => ({ jsonrpc: '2.0', id, result: { action: 'decline' } }));
    expect((await send({ headers, body: both })).status).toBe(400);
    expect((await rest('GET', `/v1/servers/${order_number}`)).body.status).not.toMatch(/delet/);
    expect((await yes(asked.id)).status).toBe(202);
    for (let read = await reader.read(); !read.done; read = await reader.read()) text += read.value;
    expect(text).toContain(`"order_number":"${order_number}"`);
    expect((await yes(asked.id)).status).toBe(400);
  });

  it.each([
    ['its argument', true],
    ['its header', false],
  ])(
    'of a call whose credential in %s ends meanwhile gets an answer, and the service changes nothing',
    async (_, isArgument) => {
      const { rest, order_number } = await withServer();
      const { body: key } = await rest('POST', '/v1/auth/api-keys', { name: 'stolen', scope: 'servers' });
      const { send, usual } = rawClient(url, isArgument ? '' : key.plaintext);
      const without = isArgument ? ['authorization'] : [];
      const { session } = await send({
        without,
        body: rpc('initialize', { ...INITIALIZE, capabilities: { elicitation: {} } }),
      });
      const own = Object.fromEntries(Object.entries(usual).filter(([name]) => !without.includes(name)));
      const headers = { ...of2025('2025-11-25'), 'mcp-session-id': session! };
      const args = { order_number, ...(isArgument && { access_token: key.plaintext }) };
      const body = JSON.stringify(call('cancel_server', args));
      const response = await fetch(url, { method: 'POST', headers: { ...own, ...headers }, body });
      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
      let text = '';
      while (!text.includes('elicitation/create')) text += (await reader.read()).value;
      const asked = JSON.parse(/^data: (.*elicitation\/create.*)$/m.exec(text)![1]!);
      await rest('DELETE', `/v1/auth/api-keys/${key.key_id}`);
      const result = { action: 'accept', content: { confirm: true } };
      await send({ without, headers, body: { jsonrpc: '2.0', id: asked.id, result } });
      for (let read = await reader.read(); !read.done; read = await reader.read()) text += read.value;
      if (isArgument) expect(text).toContain('revoked_credential');
      expect((await rest('GET', `/v1/servers/${order_number}`)).body.status).toMatch(/pending|provisioning/);
    },
  );

  const ASKER = { group: 'a', ofSession: undefined, call: new AbortController().signal };

  it('has an end, and says so', async () => {
    const late = async () => {
      throw new SdkError(SdkErrorCode.RequestTimeout, 'late');
    };
    await expect(new Questions().ask(ASKER, late)).rejects.toThrow('did not answer within 120 seconds');
    const broken = async () => {
      throw new Error('broken');
    };
    await expect(new Questions().ask(ASKER, broken)).rejects.toMatchObject({ code: 'validation_failed' });
  });

  it('of the caller with most gives room in a full process, the oldest first', async () => {
    const questions = new Questions();
    const ends: string[] = [];
    const ask = (name: string, group: string, ofSession = new Set<Question>()) =>
      questions
        .ask(
          { ...ASKER, group, ofSession },
          (signal) => new Promise((_, fail) => signal.addEventListener('abort', () => fail(signal))),
        )
        .catch(({ code }) => ends.push(`${name} ${code} ${ofSession.size}`));
    for (let i = 0; i < 60; i++) void ask(`small ${i}`, `group ${i}`);
    for (let i = 0; i < 196; i++) void ask(`large ${i}`, 'large');
    await Promise.resolve();
    expect(ends).toEqual([]);
    void ask('new', 'newcomer');
    void ask('next', 'newcomer');
    await expect.poll(() => ends).toEqual(['large 0 unavailable 0', 'large 1 unavailable 0']);
  });
});

it('A caller has 32 tool calls under way, which are no limit for another', async () => {
  const [one, other] = [await withServer(), await withServer()];
  const { send } = rawClient(url, '');
  const wait = ({ order_number, accessToken }: typeof one) =>
    send({
      headers: of2025('2025-11-25'),
      without: ['authorization'],
      body: call('wait_for_server', { order_number, status: 'failed', timeout: 25, access_token: accessToken }),
    }).then(({ messages }) => {
      const answer = messages[0].result.structuredContent;
      if (answer.code) codes.push(answer.code);
      return answer;
    });
  const codes: string[] = [];
  const waits = Promise.all([...Array.from({ length: 35 }, () => wait(one)), wait(other)]);
  await expect.poll(() => codes.length).toBe(3);
  for (const { order_number } of [one, other]) await fail(order_number);
  const answers = await waits;
  expect(codes).toEqual(['rate_limited', 'rate_limited', 'rate_limited']);
  expect(answers.at(-1).order_number).toBe(other.order_number);
  expect((await wait(one)).order_number).toBe(one.order_number);
});
