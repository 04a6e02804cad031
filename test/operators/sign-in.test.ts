/** Operators who sign in: invitations, the second factor, sessions and their ends. */
import { createClient } from 'graphql-ws';
import { describe, expect, it, onTestFinished } from 'vitest';
import WebSocket from 'ws';
import { eventually, startFreehold } from '../setup/freehold.ts';
import { graphqlClient, signInClient } from '../setup/spawn.ts';
import { totpCode } from '../setup/totp.ts';

const { db, graphqlUrl, internalUrl, operator } = await startFreehold({ WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' });
const PASSWORD = 'a heron on the roof';

type Answer = { errors?: { message: string; extensions: { code: string } }[] };
const codeOf = ({ errors }: Answer) => errors?.[0]?.extensions.code;
const post = signInClient(internalUrl);

const INVITE = `mutation ($input: InviteOperatorInput!) { inviteOperator(input: $input) { code operator { id state } } }`;
async function invite(name: string, role = 'SUPPORT') {
  const { code, operator: invited } = (await operator(INVITE, { input: { name, role } })).data.inviteOperator;
  return { code: code as string, id: invited.id as string };
}
const open = async (code: string) => (await post('openInvitation', { code })).data.openInvitation;
/** Invites a person, who accepts. */
async function join(name: string, role = 'SUPPORT') {
  const { code, id } = await invite(name, role);
  const { secret } = await open(code);
  const used = totpCode(secret);
  const { data } = await post('acceptInvitation', { code, password: PASSWORD, totpCode: used });
  const { token } = data.acceptInvitation;
  return { id, used, secret: secret as string, token: token as string, call: graphqlClient(graphqlUrl, token) };
}
/** Lets the authenticator show a code that was not used yet. */
const forgetSteps = (id: string) => db.query('update totp set last_step = 0 where account_id = $1', [id]);
const signIn = (name: string, totp: string, password = PASSWORD) => post('signIn', { name, password, totpCode: totp });
/** Watches the events of operators over a WebSocket. `closed`: the code of its end. */
async function watch(token: string) {
  const [begun, closed] = [Promise.withResolvers<void>(), Promise.withResolvers<number>()];
  const client = createClient({
    url: graphqlUrl.replace('http', 'ws'),
    webSocketImpl: WebSocket,
    connectionParams: { authorization: `Bearer ${token}` },
    retryAttempts: 0,
    on: { closed: (event) => closed.resolve((event as { code: number }).code) },
  });
  onTestFinished(() => void client.dispose());
  const sink = { next: () => begun.resolve(), error: () => {}, complete: () => {} };
  client.subscribe({ query: 'subscription { operatorEvent { id } }' }, sink);
  await begun.promise;
  return { closed: closed.promise };
}
const WHO = '{ currentOperator { name role } }';
const END = 'mutation ($id: ID!) { endOperator(id: $id) { state } }';
const SET = 'mutation ($id: ID!) { setOperatorRole(id: $id, role: READ_ONLY) { role } }';
const AGAIN = 'mutation ($id: ID!) { renewInvitation(id: $id) { code operator { state } } }';
const actsOf = async (id: string) =>
  (
    await db.query<{ action: string }>(
      `select action from audit_entry where account_id = 'operator' and resource_id = $1 order by id`,
      [id],
    )
  ).map(({ action }) => action);

describe('An invitation', () => {
  it('lets a person choose a password and a second factor once, and then sign in', async () => {
    const { code, id } = await invite('Ana');
    const { name, secret, provisioningUri } = await open(code);
    expect([name, provisioningUri]).toEqual(['Ana', expect.stringContaining(`secret=${secret}`)]);
    const acceptance = { code, password: PASSWORD, totpCode: totpCode(secret) };
    const { token } = (await post('acceptInvitation', acceptance)).data.acceptInvitation;
    expect((await graphqlClient(graphqlUrl, token)(WHO)).data.currentOperator).toEqual({
      name: 'Ana',
      role: 'SUPPORT',
    });
    expect(codeOf(await post('acceptInvitation', acceptance))).toBe('not_found');
    expect(codeOf(await post('openInvitation', { code }))).toBe('not_found');
    await forgetSteps(id);
    const again = (await signIn('ana', totpCode(secret))).data.signIn;
    expect(again.token).toMatch(/^svc_os_/);
    await eventually(async () => (await actsOf(id)).includes('operator.invitation_opened'));
    const acts = (await actsOf(id)).filter((act) => act !== 'operator.invitation_opened');
    expect(acts).toEqual(['operator.updated', 'operator.signed_in', 'operator.signed_in']);
  });

  it('refuses a wrong code of the authenticator and a common password, and stays', async () => {
    const { code } = await invite('bo');
    const { secret } = await open(code);
    const accept = (password: string, totp: string) => post('acceptInvitation', { code, password, totpCode: totp });
    expect(codeOf(await accept(PASSWORD, '000000'))).toBe('invalid_totp');
    expect(codeOf(await accept('password1', totpCode(secret)))).toBe('weak_password');
    expect((await accept(PASSWORD, totpCode(secret))).data.acceptInvitation.token).toEqual(expect.any(String));
  });

  it('has the same seed each time, until it is accepted or another one replaces it', async () => {
    const { code, id } = await invite('mo');
    const first = await open(code);
    const again = await open(code);
    expect([again.secret, again.provisioningUri]).toEqual([first.secret, first.provisioningUri]);
    // An authenticator that read the seed yesterday still has the right one.
    await db.query(
      `update operator set invitation_expires_at = invitation_expires_at - interval '1 day' where id = $1`,
      [id],
    );
    await db.query(`update totp set setup_expires_at = setup_expires_at - interval '1 day' where account_id = $1`, [
      id,
    ]);
    expect((await open(code)).secret).toBe(first.secret);
    const renewed = (await operator(AGAIN, { id })).data.renewInvitation.code;
    const { secret } = await open(renewed);
    expect(secret).not.toBe(first.secret);
    const accepted = await post('acceptInvitation', { code: renewed, password: PASSWORD, totpCode: totpCode(secret) });
    expect(accepted.data.acceptInvitation.token).toEqual(expect.any(String));
  });

  it('expires, and gives way to a new one', async () => {
    const { code, id } = await invite('cy');
    await db.query(`update operator set invitation_expires_at = now() - interval '1 second' where id = $1`, [id]);
    expect(codeOf(await post('openInvitation', { code }))).toBe('not_found');
    const renewed = (await operator(AGAIN, { id })).data.renewInvitation.code;
    expect((await open(renewed)).name).toBe('cy');
    expect(codeOf(await post('openInvitation', { code }))).toBe('not_found');
  });

  it('ends with the operator', async () => {
    const { code, id } = await invite('di');
    await operator(END, { id });
    expect(codeOf(await post('openInvitation', { code }))).toBe('not_found');
  });

  it('is for owners alone, and its name is taken', async () => {
    const { call } = await join('ed', 'BILLING');
    expect(codeOf(await call(INVITE, { input: { name: 'eve', role: 'OWNER' } }))).toBe('insufficient_scope');
    for (const name of ['ED', 'operator'])
      expect(codeOf(await operator(INVITE, { input: { name, role: 'OWNER' } }))).toBe('validation_failed');
  });
});

describe('A sign-in', () => {
  it('does not tell which of name, password and code was wrong, takes each code once, and is noted', async () => {
    const { id, used } = await join('fay');
    const refused = [
      await signIn('An unknown name', used),
      await signIn('fay', used, 'a wrong password'),
      await signIn('fay', used),
      await signIn('fay', '000000'),
    ].map(({ errors }) => [errors[0].extensions.code, errors[0].message]);
    expect(new Set(refused.map(String))).toEqual(
      new Set(['invalid_login,The name, the password or the code is wrong.']),
    );
    await eventually(async () => (await actsOf(id)).includes('operator.refused'));
  });

  it('is noted under the name of an operator who has ended', async () => {
    const { id, used } = await join('fox');
    await operator(END, { id });
    expect(codeOf(await signIn('fox', used))).toBe('invalid_login');
    await eventually(async () => (await actsOf(id)).includes('operator.refused'));
  });

  it('is throttled for the name and the network, and the token in DATA_DIR is not', async () => {
    const { secret } = await join('gus');
    for (let n = 0; n < 10; n++) await signIn(n % 2 ? 'gus' : 'GUS', '000000', 'wrong password');
    expect(codeOf(await signIn('gus', totpCode(secret)))).toBe('login_throttled');
    expect((await operator(WHO)).data.currentOperator.name).toBe('operator');
  });

  it('takes no large body, no form and no other operation', async () => {
    const send = (headers: Record<string, string>, body: string) =>
      fetch(`${internalUrl}/sign-in`, { method: 'POST', headers, body });
    const json = { 'content-type': 'application/json' };
    const operation = JSON.stringify({ operationName: 'signIn', variables: {} });
    expect((await send({ 'content-type': 'text/plain' }, operation)).status).toBe(400);
    expect((await send(json, `"${'x'.repeat(5_000)}"`)).status).toBe(400);
    expect((await fetch(`${internalUrl}/sign-in`)).status).toBe(400);
    expect((await post('endOperator', {})).errors).toHaveLength(1);
  });
});

describe('The session of an operator', () => {
  it('ends after twelve hours, or half an hour without a use', async () => {
    const { id, call } = await join('hal');
    const set = (column: string, ago: string) =>
      db.query(`update operator_session set ${column} = now() - interval '${ago}' where operator_id = $1`, [id]);
    await set('used_at', '29 minutes');
    expect(codeOf(await call(WHO))).toBeUndefined();
    // The use counted.
    const [{ recent }] = (await db.query(
      `select used_at > now() - interval '1 minute' as recent from operator_session where operator_id = $1`,
      [id],
    )) as [{ recent: boolean }];
    expect(recent).toBe(true);
    await set('used_at', '31 minutes');
    expect(codeOf(await call(WHO))).toBe('expired_credential');
    await set('used_at', '0 minutes');
    await set('expires_at', '1 second');
    expect(codeOf(await call(WHO))).toBe('expired_credential');
  });

  it('ends by itself alone when the operator signs out', async () => {
    const { id, secret, call } = await join('ida');
    await forgetSteps(id);
    const { token } = (await signIn('ida', totpCode(secret))).data.signIn;
    const other = graphqlClient(graphqlUrl, token);
    const { operatorSessions } = (await call('{ operatorSessions { id name isCurrent } }')).data;
    expect(operatorSessions.map(({ isCurrent }: { isCurrent: boolean }) => isCurrent)).toEqual([false, true]);
    expect((await call('mutation { endOperatorSession }')).data.endOperatorSession).toBe(true);
    expect(codeOf(await call(WHO))).toBe('invalid_credential');
    expect(codeOf(await other(WHO))).toBeUndefined();
    expect((await actsOf(id)).at(-1)).toBe('operator.signed_out');
  });

  it('belongs to its operator, and an owner ends it, too', async () => {
    const [ivo, owner] = [await join('ivo'), await join('jan', 'OWNER')];
    const { operatorSessions } = (await owner.call('{ operatorSessions { id name } }')).data;
    const idOf = (name: string) => operatorSessions.find((one: { name: string }) => one.name === name).id;
    const END_ONE = 'mutation ($id: ID!) { endOperatorSession(id: $id) }';
    expect(codeOf(await ivo.call(END_ONE, { id: idOf('jan') }))).toBe('not_found');
    expect((await ivo.call('{ operatorSessions { name } }')).data.operatorSessions).toEqual([{ name: 'ivo' }]);
    expect((await owner.call(END_ONE, { id: idOf('ivo') })).data.endOperatorSession).toBe(true);
    expect(codeOf(await ivo.call(WHO))).toBe('invalid_credential');
  });

  it.each([
    ['ends', 'kai', END],
    ['gets another role', 'leo', SET],
    ['is invited again', 'mia', AGAIN],
  ])('ends at once when its operator %s, with the open WebSockets', async (_, name, mutation) => {
    const { id, token, call } = await join(name, 'OWNER');
    const { closed } = await watch(token);
    expect((await operator(mutation, { id })).errors).toBeUndefined();
    expect(await closed).toBeGreaterThan(4000);
    expect(codeOf(await call(WHO))).toBe('invalid_credential');
  });

  it('takes the open WebSockets along when it ends by itself', async () => {
    const { id, token } = await join('quinn');
    const { closed } = await watch(token);
    await db.query(`update operator_session set used_at = now() - interval '31 minutes' where operator_id = $1`, [id]);
    await db.query(`update task set run_at = now() where subject = 'cron:operator-sessions'`);
    expect(await closed).toBeGreaterThan(4000);
  });

  it('hands no end to a webhook, which ends with the operator', async () => {
    const { id, call } = await join('noa', 'OWNER');
    const CREATE =
      'mutation { createWebhook(input: { url: "http://127.0.0.1:20009/" }) { webhook { id status expiresAt } } }';
    const { webhook } = (await call(CREATE)).data.createWebhook;
    expect(webhook).toMatchObject({ status: 'ENABLED', expiresAt: null });
    await operator(END, { id });
    const { data } = (await operator('{ webhooks(accountId: "operator") { data { id status } } }')).data.webhooks;
    expect(data).toContainEqual({ id: webhook.id, status: 'DISABLED' });
  });
});

describe('An operator who is invited again', () => {
  it('has no password, code or token any more, and chooses new ones', async () => {
    const { id, secret } = await join('oli');
    const { code, operator: invited } = (await operator(AGAIN, { id })).data.renewInvitation;
    expect(invited.state).toBe('INVITED');
    expect(await db.query('select from totp where account_id = $1', [id])).toEqual([]);
    expect(codeOf(await signIn('oli', totpCode(secret)))).toBe('invalid_login');
    const fresh = await open(code);
    const password = 'an otter in the sink';
    expect(
      codeOf(await post('acceptInvitation', { code, password, totpCode: totpCode(fresh.secret) })),
    ).toBeUndefined();
    await forgetSteps(id);
    expect(codeOf(await signIn('oli', totpCode(fresh.secret), password))).toBeUndefined();
  });

  it('has no token to renew', async () => {
    const { id } = await join('pam');
    const RENEW = 'mutation ($id: ID!) { renewOperatorToken(id: $id) { token } }';
    expect((await operator(RENEW, { id })).errors[0].message).toContain('renewInvitation');
  });
});

it('Attempts by the id of an operator, which colleagues read, do not lock that operator out', async () => {
  const { id, secret } = await join('gil');
  for (let n = 0; n < 10; n++) await signIn(id, '000000');
  await forgetSteps(id);
  expect((await signIn('gil', totpCode(secret))).data.signIn.token).toBeTruthy();
});
