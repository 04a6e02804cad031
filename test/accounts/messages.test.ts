/** The channel between the operator and customers. The service sends no mail. */
import { describe, expect, it } from 'vitest';
import { SYSTEM } from '../../entities/history/audit.ts';
import { newId } from '../../entities/ids.ts';
import { circularTask, messageProcess } from '../../provisioning/accounts/messages.ts';
import type { LeasedTask } from '../../provisioning/tasks/tasks.ts';
import { atEnd } from '../setup/end.ts';
import { eventually, startFreehold, type TestAccount } from '../setup/freehold.ts';
import { startReceiver } from '../setup/receiver.ts';
import { restClient } from '../setup/spawn.ts';
import { callTool } from '../setup/tool.ts';

const { anonymous, db, newAccount, operator, publicUrl } = await startFreehold({ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' });
const receiver = await startReceiver();
atEnd(() => receiver.close());

const PATH = '/v1/account/messages';
const TEXT = { subject: 'Maintenance', body: 'Your server moves.\nIt is off for a minute.' };
const SEND = 'mutation ($input: SendMessageInput!) { sendMessage(input: $input) { id message { id accountId } } }';
const LIST = `query ($accountId: ID, $paid: Boolean, $unread: Boolean) {
  messages(accountId: $accountId, paid: $paid, unread: $unread) { data { id accountId from subject readAt } } }`;
const READ = 'mutation ($id: ID!) { markMessageRead(id: $id) { id readAt } }';

const send = async (input: object): Promise<string> =>
  (await operator(SEND, { input: { ...TEXT, ...input } })).data.sendMessage.id;
const inbox = async ({ rest }: TestAccount, query = '') => (await rest('GET', `${PATH}${query}`)).body.data;
const ask = ({ rest }: TestAccount, more: object = {}) =>
  rest('POST', PATH, { subject: 'Why?', body: 'It is off.', ...more });
/** The account by a new login. */
const loginOf = async (account: TestAccount) => {
  const { email, password } = account;
  const { tokens } = (await anonymous('POST', '/v1/auth/login', { email, password })).body;
  return { ...account, refreshToken: tokens.refresh_token, rest: restClient(publicUrl, tokens.access_token) };
};
/** The messages that the operator sees. */
const seen = async (filter: object) => (await operator(LIST, filter)).data.messages.data;
const withServer = async (region: string) => {
  const account = await newAccount();
  await account.fund(30);
  const { body } = await account.rest('POST', '/v1/servers', { service_code: 'vps-1', region });
  return { account, orderNumber: body.order_number as string };
};

describe('The operator', () => {
  it.each(['one account', 'all accounts'])(
    'sends a message to %s once for a key, and no other by that key',
    async (to) => {
      const account = await newAccount();
      const input = { ...TEXT, ...(to === 'all accounts' ? { all: true } : { accountId: account.id }) };
      const SEND_ONCE =
        'mutation ($input: SendMessageInput!, $key: Line) { sendMessage(input: $input, key: $key) { id } }';
      const sendOnce = (given: object) =>
        operator(SEND_ONCE, { input: { ...input, ...given }, key: `answer to ${to}` });
      const first = await sendOnce({});
      expect(await sendOnce({})).toEqual(first);
      expect((await sendOnce({ subject: 'Another' })).errors[0].extensions.code).toBe('idempotency_key_reused');
      await expect.poll(async () => (await inbox(account)).length).toBe(1);
    },
  );

  it('sends a message to one account, which reads it and marks it as read', async () => {
    const [account, other] = [await newAccount(), await newAccount()];
    const id = await send({ accountId: account.id });
    const message = {
      ...{ id, from: 'operator', ...TEXT, created_at: expect.any(String), read_at: null, related: null },
    };
    expect(await inbox(account, '?unread=true')).toEqual([message]);
    expect(await inbox(other)).toEqual([]);
    const { body: read } = await account.rest('POST', `${PATH}/${id}/read`);
    expect(read).toEqual({ ...message, read_at: expect.any(String) });
    expect((await account.rest('POST', `${PATH}/${id}/read`)).body).toEqual(read);
    expect([await inbox(account, '?unread=true'), await inbox(account)]).toEqual([[], [read]]);
  });

  it('sends a message to the customers of a bastion, and to no others', async () => {
    const [here, there] = [await withServer('ams'), await withServer('zrh')];
    const stranger = await newAccount();
    const COUNT = '{ ams: messageRecipients(region: "ams") kef: messageRecipients(region: "kef") }';
    const counted = (await operator(COUNT)).data;
    expect([counted.ams > 0, counted.kef]).toEqual([true, 0]);
    await send({ region: 'ams' });
    await eventually(async () => (await inbox(here.account)).length);
    expect([await inbox(there.account), await inbox(stranger)]).toEqual([[], []]);
  });

  it('sends a message to all accounts, once to each, and hears of the end', async () => {
    const accounts = [await newAccount(), await newAccount(), await newAccount()];
    const id = await send({ all: true, subject: 'News' });
    const [told] = await eventually(async () => {
      const told = await db.query(`select data from event where type = 'message.sent' and subject = $1`, [id]);
      return told.length > 0 && told;
    });
    const [{ count }] = (await db.query('select count(*)::int as count from account')) as [{ count: number }];
    expect(told).toEqual({ data: { accounts: count, region: null } });
    for (const account of accounts) expect(await inbox(account)).toMatchObject([{ subject: 'News' }]);
  });

  it('reaches many accounts in small transactions, and each account once although a worker dies', async () => {
    const recipients = [await newAccount(), await newAccount(), await newAccount()].map(({ id }) => id);
    const { start } = messageProcess(db, 2).steps;
    const letter = { title: 'Slow news', body: 'Hello.', relatedType: null, relatedId: null };
    const { data: first } = circularTask(newId('msg'), { ...letter, region: null, actor: SYSTEM });
    const steps: number[] = [];
    for (let data = first as Record<string, unknown>; ; ) {
      const task = { subject: 'circular', data, createdAt: new Date(Date.now() + 60_000) } as LeasedTask;
      const outcome = await start!(task);
      // The worker died before its commit, so another one does the step again.
      const repeated = await start!(task);
      expect(repeated.data).toEqual(outcome.data);
      await db.transaction((tx) => repeated.commit!(tx));
      if (repeated.kind === 'done') break;
      data = { ...data, ...repeated.data };
      steps.push(data.sent as number);
    }
    expect(steps.every((sent, i) => sent - (steps[i - 1] ?? 0) <= 2)).toBe(true);
    const written = await db.query(`select account_id as id from message where title = 'Slow news' order by 1`);
    expect(written).toEqual(await db.query('select id from account order by 1'));
    expect(written).toEqual(expect.arrayContaining(recipients.map((id) => ({ id }))));
  });

  it.each([
    [{}, 'validation_failed'],
    [{ all: true, region: 'ams' }, 'validation_failed'],
    [{ region: 'moon' }, 'unknown_region'],
    [{ accountId: newId('acct') }, 'not_found'],
    [{ all: true, related: { type: 'SERVER', id: 'SRV-AAAAAAAAAA' } }, 'validation_failed'],
  ])('cannot send to %j', async (input, code) => {
    const { errors } = await operator(SEND, { input: { ...TEXT, ...input } });
    expect(errors[0].extensions.code).toBe(code);
  });

  it('finds the unread messages of customers, and marks them as read', async () => {
    const account = await newAccount();
    const { body } = await ask(account);
    await send({ accountId: account.id });
    const filter = { accountId: account.id, unread: true };
    expect(await seen(filter)).toEqual([
      { id: body.id, accountId: account.id, from: 'CUSTOMER', subject: 'Why?', readAt: null },
    ]);
    await operator(READ, { id: body.id });
    expect(await seen(filter)).toEqual([]);
    expect((await inbox(account)).find(({ id }: { id: string }) => id === body.id).read_at).toEqual(expect.any(String));
  });

  it.each(['\0', 'acct_', 'bogus'])('finds no messages of %j, which is no id of an account', async (accountId) => {
    expect((await operator(LIST, { accountId })).errors[0].extensions.code).toBe('not_found');
  });

  it('lists the messages of accounts that have paid apart from those of others', async () => {
    const [stranger, payer] = [await newAccount(), await newAccount()];
    await payer.fund(30);
    for (const account of [stranger, payer]) await ask(account);
    const authors = async (filter: object) =>
      new Set((await seen({ unread: true, ...filter })).map(({ accountId }: { accountId: string }) => accountId));
    const [paid, unpaid] = [await authors({ paid: true }), await authors({ paid: false })];
    expect([paid.has(payer.id), paid.has(stranger.id)]).toEqual([true, false]);
    expect([unpaid.has(payer.id), unpaid.has(stranger.id)]).toEqual([false, true]);
    expect(await authors({ paid: true, accountId: stranger.id })).toEqual(new Set());
    expect(await authors({ paid: false, accountId: stranger.id })).toEqual(new Set([stranger.id]));
  });

  it('marks all messages of one account as read, and none of others', async () => {
    const [loud, other] = [await newAccount(), await newAccount()];
    for (const account of [loud, loud, other]) await ask(account);
    await send({ accountId: loud.id });
    const read = 'mutation ($id: ID!) { markMessagesRead(accountId: $id) }';
    expect((await operator(read, { id: loud.id })).data).toEqual({ markMessagesRead: 2 });
    expect((await operator(read, { id: loud.id })).data).toEqual({ markMessagesRead: 0 });
    expect(await seen({ accountId: loud.id, unread: true })).toEqual([]);
    expect(await seen({ accountId: other.id, unread: true })).toHaveLength(1);
    expect((await inbox(loud, '?unread=true')).length).toBeGreaterThan(0);
    const { errors } = await operator(read, { id: newId('acct') });
    expect(errors[0].extensions.code).toBe('not_found');
  });

  it('leaves an entry in the audit log when it reads the messages of an account', async () => {
    const account = await newAccount();
    await ask(account);
    await seen({ accountId: account.id });
    await eventually(async () => {
      const { data } = await operator('{ auditLog(action: "api.request") { data { path resource { id } } } }');
      return data.auditLog.data.some(
        (entry: { path: string; resource: { id: string } | null }) =>
          entry.path === '/graphql#messages' && entry.resource?.id === account.id,
      );
    });
  });
});

describe('A customer', () => {
  it('writes about its own server, over REST and over MCP, and about nothing of others', async () => {
    const { account, orderNumber } = await withServer('ams');
    const related = { type: 'server', id: orderNumber };
    expect((await ask(account, { related })).body).toMatchObject({ from: 'customer', related });
    const tool = (name: string, args: Record<string, unknown>) => callTool(publicUrl, account.accessToken, name, args);
    expect((await tool('send_message', { subject: 'Why?', body: 'It is off.', related })).content.related).toEqual(
      related,
    );
    expect((await tool('list_messages', {})).content.data).toHaveLength(2);
    const stranger = await newAccount();
    expect((await ask(stranger, { related })).body).toMatchObject({ status: 422, errors: [{ field: 'related' }] });
  });

  it('marks messages of the operator through MCP, and no message of its own', async () => {
    const account = await newAccount();
    const { body: own } = await ask(account);
    const id = await send({ accountId: account.id });
    const mark = (id: string) => callTool(publicUrl, account.accessToken, 'mark_message_read', { id });
    expect((await mark(id)).content.read_at).toEqual(expect.any(String));
    expect((await mark(own.id)).content).toMatchObject({ code: 'validation_failed' });
  });

  it.each([
    ['a control character', { body: 'a\u0007b' }],
    ['a carriage return', { body: 'a\r\nb' }],
    ['a newline in the subject', { subject: 'a\nb' }],
    ['too long a subject', { subject: 'a'.repeat(121) }],
    ['too long a body', { body: 'a'.repeat(4001) }],
    ['an empty body', { body: '' }],
  ])('cannot send %s', async (_, input) => {
    expect((await ask(await newAccount(), input)).body).toMatchObject({ status: 422, code: 'validation_failed' });
  });

  it('sends five messages a day before its first payment, and twenty after it', async () => {
    const account = await newAccount();
    const next = await loginOf(account);
    const sent = async (by: TestAccount) => {
      for (let count = 0; ; count++) {
        const { status, body } = await ask(by);
        if (status !== 200) return { count, body };
      }
    };
    expect(await sent(account)).toMatchObject({
      count: 4,
      body: { code: 'rate_limited', retry_after: expect.any(Number), detail: expect.stringMatching(/first payment/) },
    });
    expect(await sent(next)).toMatchObject({ count: 1 });
    await account.fund(30);
    expect(await sent(account)).toMatchObject({ count: 13, body: { code: 'rate_limited' } });
    expect(await sent(next)).toMatchObject({ count: 2 });
    await db.query(`update message set created_at = now() - interval '1 day' where account_id = $1`, [account.id]);
    expect((await ask(account)).status).toBe(200);
  });

  it('still writes after an API key used up its part of the day, and the operator sees which wrote what', async () => {
    const account = await newAccount();
    const { body: key } = await account.rest('POST', '/v1/auth/api-keys', { name: 'stolen', scope: 'full' });
    const thief = { ...account, rest: restClient(publicUrl, key.plaintext) };
    for (let i = 0; i < 3; i++) expect((await ask(thief)).status).toBe(200);
    expect((await ask(thief)).body).toMatchObject({
      ...{ code: 'rate_limited', detail: expect.stringContaining('logins'), retry_after: expect.any(Number) },
    });
    for (const login of [account, await loginOf(account)]) expect((await ask(login)).status).toBe(200);
    expect((await ask(account)).body.code).toBe('rate_limited');
    const { data } = await operator(
      `query ($accountId: ID) { messages(accountId: $accountId) { data { credentialId } } }`,
      { accountId: account.id },
    );
    const wrote = data.messages.data.map(({ credentialId }: { credentialId: string }) => credentialId);
    const login = expect.stringMatching(/^tok_/);
    expect(wrote).toEqual([login, login, key.key_id, key.key_id, key.key_id]);
  });

  it.each(['keys', 'login'])(
    'still writes by a new login after a thief of one used up its part, first by its %s',
    async (first) => {
      const account = await newAccount();
      const { body: key } = await account.rest('POST', '/v1/auth/api-keys', { name: 'of the thief', scope: 'full' });
      const stolen = await loginOf(account);
      expect((await ask(stolen)).status).toBe(200);
      const renewed = await anonymous('POST', '/v1/auth/token/refresh', { refresh_token: stolen.refreshToken });
      const tokens = [key.plaintext, renewed.body.tokens.access_token];
      for (const token of first === 'keys' ? tokens : tokens.toReversed()) {
        const rest = restClient(publicUrl, token);
        for (let status = 200; status === 200; ) status = (await ask({ ...account, rest })).status;
      }
      expect((await ask(await loginOf(account))).status).toBe(200);
    },
  );

  it('may write and read messages while the account is suspended', async () => {
    const account = await newAccount();
    await operator(`mutation { suspendAccount(id: "${account.id}", reason: "Spam was sent.") { id } }`);
    const id = await send({ accountId: account.id });
    expect((await ask(account)).status).toBe(200);
    expect((await account.rest('POST', `${PATH}/${id}/read`)).status).toBe(200);
  });

  it('gets each message by its webhook', async () => {
    const account = await newAccount();
    await account.rest('POST', '/v1/webhooks', { url: receiver.url, event_filter: 'message.created' });
    const id = await send({ accountId: account.id });
    const { body } = await eventually(async () => receiver.received[0]);
    expect(body).toMatchObject({ type: 'message.created', account_id: account.id, data: { object: { id, ...TEXT } } });
  });
});
