/** Creating credentials needs the second factor again, unless the login is recent. */
import { Resolver } from 'node:dns/promises';
import { Secret, TOTP } from 'otpauth';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { startFreehold } from '../../setup/freehold.ts';
import { type Answer, graphqlClient, type RestClient, restClient } from '../../setup/spawn.ts';
import { callTool } from '../../setup/tool.ts';
import { oauthRequests } from '../oauth/requests.ts';

const { anonymous, db, graphqlUrl, newAccount, publicUrl } = await startFreehold({
  LOGIN_FAILURES_MAX: '3',
  WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
});
const { newClient, tokenOf } = oauthRequests(anonymous);

/** An account with a second factor, and an access token of a login with it. */
async function withTotp() {
  const account = await newAccount();
  const { secret } = (await account.rest('POST', '/v1/auth/totp/setup', { password: account.password })).body;
  const totp = new TOTP({ secret: Secret.fromBase32(secret) });
  const code = async () => {
    await db.query('update totp set last_step = 0 where account_id = $1', [account.id]);
    return totp.generate();
  };
  const enabled = await account.rest('POST', '/v1/auth/totp/enable', { totp_code: await code() });
  const { email, password } = account;
  const login = await anonymous('POST', '/v1/auth/login', { email, password, totp_code: await code() });
  const { access_token: accessToken, refresh_token: refreshToken } = login.body.tokens;
  const rest = restClient(publicUrl, accessToken);
  return { ...account, accessToken, refreshToken, rest, code, recoveryCodes: enabled.body.recovery_codes as string[] };
}
/** Makes all logins of an account sixteen minutes older. */
const age = ({ id }: { id: string }) =>
  db.query(
    `update session set created_at = created_at - interval '16 minutes', family_expires_at = family_expires_at - interval '16 minutes'
      where account_id = $1`,
    [id],
  );
const refusal = ({ status, body }: Answer) => [status, body.code];

const SSH_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILZo0JzYJEHChHBt6zG/B6cGUZpbFXeUqaufc1ki+RX/';
const CREATIONS: [what: string, create: (rest: RestClient, more?: object) => Promise<Answer>][] = [
  ['an API key', (rest, more) => rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'read', ...more })],
  ['an OAuth client', (rest, more) => rest('POST', '/v1/oauth/register', { scope: 'read', ...more })],
  ['an SSH key', (rest, more) => rest('POST', '/v1/ssh-keys', { public_key: SSH_KEY, ...more })],
  ['a webhook', (rest, more) => rest('POST', '/v1/webhooks', { url: 'http://127.0.0.1:9009/', ...more })],
  [
    'a new secret of a webhook',
    async (rest, more) => {
      // An old login makes no webhook, and a client has only its own.
      const own = await rest('POST', '/v1/webhooks', { url: 'http://127.0.0.1:9009/' });
      const id = own.body.id ?? (await rest('GET', '/v1/webhooks')).body.data[0].id;
      return rest('POST', `/v1/webhooks/${id}/rotate-secret`, more);
    },
  ],
];

describe.each(CREATIONS)('Creating %s', (_, create) => {
  it('needs a code when the login is older than fifteen minutes, and no earlier', async () => {
    const account = await withTotp();
    expect([200, 201]).toContain((await create(account.rest)).status);
    await age(account);
    const refused = await create(account.rest);
    expect(refusal(refused)).toEqual([403, 'step_up_required']);
    expect(refused.body.detail).toContain('Send totp_code, or log in again.');
    expect(refusal(await create(account.rest, { totp_code: 'abcd-efgh' }))).toEqual([401, 'invalid_totp']);
    expect([200, 201]).toContain((await create(account.rest, { totp_code: await account.code() })).status);
    expect(refusal(await create(account.rest))).toEqual([403, 'step_up_required']);
    const recovery = { totp_code: account.recoveryCodes[0] };
    expect([200, 201]).toContain((await create(account.rest, recovery)).status);
    expect(refusal(await create(account.rest, recovery))).toEqual([401, 'invalid_totp']);
  });

  it('needs no code from accounts without a second factor, API keys and OAuth tokens', async () => {
    const [plain, account] = [await newAccount(), await withTotp()];
    const key = (await account.rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'full' })).body.plaintext;
    const token = await tokenOf(await newClient({ scope: 'full' }, account.rest));
    for (const { id } of [plain, account]) await age({ id });
    for (const rest of [plain.rest, restClient(publicUrl, key), restClient(publicUrl, token)])
      expect([200, 201]).toContain((await create(rest)).status);
  });
});

describe('The second factor of a request', () => {
  it('is not spared by refreshing the tokens', async () => {
    const account = await withTotp();
    await age(account);
    const { body } = await anonymous('POST', '/v1/auth/token/refresh', { refresh_token: account.refreshToken });
    const rest = restClient(publicUrl, body.tokens.access_token);
    expect(refusal(await CREATIONS[0]![1](rest))).toEqual([403, 'step_up_required']);
  });

  it('is an argument over MCP and GraphQL', async () => {
    const account = await withTotp();
    await age(account);
    const args = { name: 'k', scope: 'read' };
    const asked = await callTool(publicUrl, account.accessToken, 'create_api_key', args);
    expect([asked.isError, asked.content.code]).toEqual([true, 'step_up_required']);
    const given = { ...args, totp_code: await account.code() };
    expect((await callTool(publicUrl, account.accessToken, 'create_api_key', given)).isError).toBe(false);
    const CREATE = 'mutation ($input: CreateWebhookInput!) { createWebhook(input: $input) { webhook { id } } }';
    const graphql = graphqlClient(graphqlUrl, account.accessToken);
    const { errors } = await graphql(CREATE, { input: { url: 'http://127.0.0.1:9009/' } });
    expect(errors[0].extensions.code).toBe('step_up_required');
  });

  it('guards a kept answer, too', async () => {
    const account = await withTotp();
    const create = (body: object, rest = account.rest) =>
      rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'read', ...body }, { 'idempotency-key': 'laptop' });
    const { plaintext } = (await create({})).body;
    expect((await create({})).body.plaintext).toBe(plaintext);
    await age(account);
    expect(refusal(await create({}))).toEqual([403, 'step_up_required']);
    expect(refusal(await create({ totp_code: 'abcd-efgh' }))).toEqual([401, 'invalid_totp']);
    expect((await create({ totp_code: await account.code() })).body.plaintext).toBe(plaintext);
    expect((await create({ code: await account.code() })).body.plaintext).toBe(plaintext);
  });

  it('lets a request with a right code repeat, and accepts no wrong one from a recent login', async () => {
    const account = await withTotp();
    const create = (totp_code: string) =>
      account.rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'read', totp_code }, { 'idempotency-key': 'k' });
    expect(refusal(await create('abcd-efgh'))).toEqual([401, 'invalid_totp']);
    await age(account);
    const code = await account.code();
    const { plaintext } = (await create(code)).body;
    expect((await create(code)).body.plaintext).toBe(plaintext);
  });

  it('is throttled like a login', async () => {
    const account = await withTotp();
    await age(account);
    const create = () => CREATIONS[0]![1](account.rest, { totp_code: 'abcd-efgh' });
    for (let i = 0; i < 3; i++) expect((await create()).body.code).toBe('invalid_totp');
    expect((await create()).body.code).toBe('login_throttled');
  });
});

it('The code of a kept answer is not to be guessed', async () => {
  const account = await withTotp();
  await age(account);
  const create = (totp_code: string) =>
    account.rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'read', totp_code }, { 'idempotency-key': 'k' });
  const code = await account.code();
  expect((await create(code)).status).toBe(200);
  for (let i = 0; i < 3; i++) expect(refusal(await create('abcd-efgh'))).toEqual([401, 'invalid_totp']);
  expect(refusal(await create(code))).toEqual([429, 'login_throttled']);
});

describe('A webhook with a code and an idempotency key', () => {
  it('lets other changes of the account go on while a slow nameserver answers', async () => {
    const account = await withTotp();
    const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
    const { promise: answer, resolve: letGo } = Promise.withResolvers<string[]>();
    const slow = vi.spyOn(Resolver.prototype, 'resolve4').mockImplementation((async () => {
      ask();
      return answer;
    }) as () => Promise<never>);
    onTestFinished(() => slow.mockRestore());
    const body = { url: 'https://hooks.example.org/', totp_code: await account.code() };
    const created = account.rest('POST', '/v1/webhooks', body, { 'idempotency-key': 'slow' });
    await asked;
    const other = account.rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'read' });
    expect((await other).status).toBe(200);
    letGo(['93.184.215.14']);
    expect((await created).status).toBe(200);
  });

  it('asks no nameserver without a code that the request needs', async () => {
    const account = await withTotp();
    await age(account);
    const asked = vi.spyOn(Resolver.prototype, 'resolve4').mockResolvedValue([] as never);
    onTestFinished(() => asked.mockRestore());
    const refused = await account.rest('POST', '/v1/webhooks', { url: 'https://hooks.example.org/' });
    expect(refusal(refused)).toEqual([403, 'step_up_required']);
    expect(asked).not.toHaveBeenCalled();
  });

  it('uses up no code for a URL that the service refuses', async () => {
    const account = await withTotp();
    await age(account);
    const totp_code = await account.code();
    const create = (url: string) => account.rest('POST', '/v1/webhooks', { url, totp_code });
    expect(refusal(await create('https://10.0.0.1/'))).toEqual([422, 'url_not_allowed']);
    expect((await create('http://127.0.0.1:9009/')).status).toBe(200);
  });
});

describe('New recovery codes', () => {
  it('need a code, and replace the old ones', async () => {
    const account = await withTotp();
    const renew = (body: object) => account.rest('POST', '/v1/auth/totp/recovery-codes', body);
    expect((await renew({})).status).toBe(422);
    expect(refusal(await renew({ totp_code: 'abcd-efgh' }))).toEqual([401, 'invalid_totp']);
    const [old, other] = account.recoveryCodes;
    const { status, body } = await renew({ totp_code: old });
    expect([status, new Set(body.recovery_codes).size]).toEqual([200, 10]);
    expect(body.recovery_codes).not.toContain(other);
    expect(refusal(await renew({ totp_code: other }))).toEqual([401, 'invalid_totp']);
    expect((await renew({ totp_code: body.recovery_codes[0] })).status).toBe(200);
  });

  it('do not exist without a second factor', async () => {
    const { rest } = await newAccount();
    expect(refusal(await rest('POST', '/v1/auth/totp/recovery-codes', { totp_code: '123456' }))).toEqual([
      422,
      'totp_not_enabled',
    ]);
  });
});
