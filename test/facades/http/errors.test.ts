/**
 * Provokes every code of the catalogue in the running service, by one request for each code. A code without a request
 * fails the test. Tests of the nouns provoke the codes in other ways.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import { ERRORS, type ErrorCode } from '../../../entities/errors.ts';
import { mintCredential } from '../../../entities/secrets.ts';
import { oauthRequests } from '../../accounts/oauth/requests.ts';
import { sign, version2 } from '../../payments/x402/clients.ts';
import { eventually, type Freehold, startFreehold, type TestAccount } from '../../setup/freehold.ts';
import { withoutDatabase, withoutTable } from '../../setup/programs/outage.ts';
import { type Answer, restClient } from '../../setup/spawn.ts';
import { turnOnTotp } from '../../setup/totp.ts';

const ordinary = await startFreehold();
const { anonymous, db, newAccount, operator, publicUrl } = ordinary;
const LIMITS = ['API_KEYS', 'SERVERS', 'SSH_KEYS', 'WEBHOOKS', 'PENDING_TOPUPS', 'AGENT_ENTRIES', 'SESSIONS'];
/** A service that allows one resource of each type, and one wrong password. */
const tight = await startFreehold({
  ...Object.fromEntries(LIMITS.map((name) => [`LIMIT_${name}`, '1'])),
  LOGIN_FAILURES_MAX: '1',
  WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
});
const hurried = await startFreehold({ ROLES: 'api', RATE_LIMIT_KEY_PER_MINUTE: '2' });
const broken = await startFreehold({ ROLES: 'api', REGISTRATIONS_PER_MINUTE: '1' });

const { form, newClient, requestToken } = oauthRequests(anonymous);
const PUBLIC_KEYS = [
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILZo0JzYJEHChHBt6zG/B6cGUZpbFXeUqaufc1ki+RX/',
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKkm4o3AUy9jM9UwkKx6CTVn0hlpPpAZYSbY9mNu7SYv',
];
/** RSA of 1024 bits. */
const WEAK_KEY = `ssh-rsa ${Buffer.concat(
  [
    Buffer.from('ssh-rsa'),
    Buffer.from([1, 0, 1]),
    Buffer.concat([Buffer.from([0, 0xc1]), Buffer.alloc(127, 0x5b)]),
  ].map((part) => Buffer.concat([Buffer.from([0, 0, 0, part.length]), part])),
).toString('base64')}`;

let account: TestAccount;
let server: string;
beforeAll(async () => {
  account = await newAccount();
  await account.fund(200);
  const { body } = await account.rest('POST', '/v1/servers', { service_code: 'vps-1', region: 'ams' });
  server = `/v1/servers/${body.order_number}`;
  await eventually(async () => (await account.rest('GET', server)).body.status === 'running');
  // The tests set the states of the server from now on.
  await db.query(`delete from task where subject = $1`, [body.order_number]);
});

const post = (path: string, body: unknown, headers?: Record<string, string>) =>
  account.rest('POST', path, body, headers);
const order = (more: object = {}, headers?: Record<string, string>) =>
  post('/v1/servers', { service_code: 'vps-1', ...more }, headers);
const X402 = { 'x-payment-mode': 'x402' };
const topUp = (more: object = {}) => post('/v1/billing/topups', { amount_usd: 30, crypto: 'BTC', ...more });
const key = async (more: object = {}) => (await post('/v1/auth/api-keys', { name: 'k', scope: 'full', ...more })).body;
const withKey = async (more: object, path = '/v1/account') =>
  restClient(publicUrl, (await key(more)).plaintext)('GET', path);
const patchIn = async (status: string, patch: object): Promise<Answer> => {
  await db.query('update server set status = $2, delete_protection = false where order_number = $1', [
    server.slice(12),
    status,
  ]);
  return account.rest('PATCH', server, patch);
};
const login = (password: string, { anonymous, email }: Pick<TestAccount, 'email'> & Pick<Freehold, 'anonymous'>) =>
  anonymous('POST', '/v1/auth/login', { email, password });
/** Sends two requests in a new account of the service that allows one resource of each type. */
const twice = async (
  path: string,
  bodies: [unknown, unknown],
  prepare?: (account: TestAccount) => Promise<unknown>,
) => {
  const account = await tight.newAccount();
  await prepare?.(account);
  expect((await account.rest('POST', path, bodies[0])).status).toBe(200);
  return account.rest('POST', path, bodies[1]);
};
const withTotp = async (): Promise<TestAccount> => turnOnTotp(await newAccount());
const agent = (slug: string) => ({
  ...{ slug, name: 'A', description: 'D', url: 'https://a.example', skills: [] },
  endpoints: [{ protocol: 'mcp', url: 'https://a.example/mcp' }],
});

type Provoke = () => Promise<Answer>;
const READING: Partial<Record<ErrorCode, Provoke>> = {
  malformed_json: () => anonymous('POST', '/v1/auth/login', '{'),
  unsupported_media_type: () => anonymous('POST', '/v1/auth/login', 'x', { 'content-type': 'text/plain' }),
  body_too_large: () => anonymous('POST', '/v1/auth/login', `"${'x'.repeat(200_000)}"`),
  invalid_query: () => account.rest('GET', '/v1/servers?limit=0'),
  invalid_cursor: () => account.rest('GET', '/v1/servers?cursor=bm90aGluZw'),
  invalid_header: () => post('/v1/billing/topups', {}, { 'idempotency-key': 'ü' }),
  not_found: () => anonymous('GET', '/v1/nowhere'),
  endpoint_planned: () => anonymous('POST', '/v1/auth/recover', {}),
  validation_failed: () => order({ hostname: '-' }),
  unknown_field: () => order({ colour: 'red' }),
  idempotency_key_reused: async () => {
    await topUp().then(() => post('/v1/billing/topups', { amount_usd: 31, crypto: 'BTC' }, { 'idempotency-key': 'k' }));
    return post('/v1/billing/topups', { amount_usd: 32, crypto: 'BTC' }, { 'idempotency-key': 'k' });
  },
  idempotency_in_progress: async () => {
    const { id, rest } = await newAccount();
    const ask = () =>
      rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'BTC' }, { 'idempotency-key': 'slow' });
    return db.transaction(async (tx) => {
      await tx.query('select from balance where account_id = $1 for update', [id]);
      return Promise.race([ask(), ask()]);
    });
  },
};
const OAUTH: Partial<Record<ErrorCode, Provoke>> = {
  invalid_request: () => form('/v1/oauth/token', {}),
  unsupported_grant_type: async () => requestToken(await newClient(), { grant_type: 'password' }),
  invalid_scope: async () => requestToken(await newClient(), { scope: 'full' }),
  invalid_grant: async () =>
    requestToken(await newClient({ grant_types: ['client_credentials', 'refresh_token'] }), {
      ...{ grant_type: 'refresh_token', refresh_token: mintCredential('rt') },
    }),
  invalid_target: async () => requestToken(await newClient(), { resource: 'https://elsewhere.example' }),
  invalid_client_metadata: () => anonymous('POST', '/v1/oauth/register', { grant_types: ['password'] }),
  invalid_client: () =>
    form('/v1/oauth/token', { grant_type: 'client_credentials', client_id: 'x', client_secret: 'y' }),
  browser_authorization_unavailable: () => anonymous('GET', '/v1/oauth/authorize'),
};
const CREDENTIALS: Partial<Record<ErrorCode, Provoke>> = {
  missing_credential: () => anonymous('GET', '/v1/account'),
  invalid_credential: () => restClient(publicUrl, 'nonsense')('GET', '/v1/account'),
  expired_credential: async () => {
    const { key_id, plaintext } = await key();
    await db.query(`update api_key set expires_at = now() - interval '1 hour' where id = $1`, [key_id]);
    return restClient(publicUrl, plaintext)('GET', '/v1/account');
  },
  revoked_credential: async () => {
    const { key_id, plaintext } = await key();
    await account.rest('DELETE', `/v1/auth/api-keys/${key_id}`);
    return restClient(publicUrl, plaintext)('GET', '/v1/account');
  },
  invalid_login: () => login('not the password', { anonymous, email: account.email }),
  invalid_totp: async () => {
    const { email, password } = await withTotp();
    return anonymous('POST', '/v1/auth/login', { email, password, totp_code: 'aaaa-aaaa' });
  },
  login_token_expired: () =>
    anonymous('POST', '/v1/auth/login/totp', { login_token: mintCredential('lt'), totp_code: '000000' }),
  refresh_token_reused: async () => {
    const { email, password } = await newAccount();
    const { refresh_token } = (await login(password, { anonymous, email })).body.tokens;
    await anonymous('POST', '/v1/auth/token/refresh', { refresh_token });
    return anonymous('POST', '/v1/auth/token/refresh', { refresh_token });
  },
  step_up_required: async () => {
    const { id, rest } = await withTotp();
    await db.query(
      `update session set family_expires_at = family_expires_at - interval '1 hour' where account_id = $1`,
      [id],
    );
    return rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'read' });
  },
  insufficient_scope: () => withKey({ scope: 'read' }, '/v1/auth/sessions'),
  ip_not_allowed: () => withKey({ ip_allowlist: ['203.0.113.7'] }),
  spend_limit_exceeded: async () => {
    const { plaintext } = await key({ spend_limit_usd: 1 });
    return restClient(publicUrl, plaintext)('POST', '/v1/servers', { service_code: 'vps-1' });
  },
  account_suspended: async () => {
    const { id, rest } = await newAccount();
    await operator('mutation ($id: ID!) { suspendAccount(id: $id, reason: "Spam.") { id } }', { id });
    return rest('POST', '/v1/servers', { service_code: 'vps-1' });
  },
  email_taken: () => anonymous('POST', '/v1/auth/register', { email: account.email, password: 'a heron on the roof' }),
  weak_password: () => anonymous('POST', '/v1/auth/register', { email: 'weak@example.org', password: 'password' }),
  wrong_password: () => post('/v1/auth/totp/setup', { password: 'not the password' }),
  totp_already_enabled: async () => {
    const { rest, password } = await withTotp();
    return rest('POST', '/v1/auth/totp/setup', { password });
  },
  totp_not_enabled: () => post('/v1/auth/totp/disable', { totp_code: '000000' }),
  totp_setup_missing: () => post('/v1/auth/totp/enable', { totp_code: '000000' }),
  rate_limited: async () => {
    const { rest } = await hurried.newAccount();
    for (let i = 0; i < 6; i++) await rest('GET', '/v1/account');
    return rest('GET', '/v1/account');
  },
  login_throttled: async () => {
    const { email } = await tight.newAccount();
    for (let i = 0; i < 2; i++) await login('not the password', { ...tight, email });
    return login('not the password', { ...tight, email });
  },
};
const MONEY: Partial<Record<ErrorCode, Provoke>> = {
  payment_required: async () => order({}, X402),
  invalid_payment: async () => order({}, { 'x-payment': 'nonsense' }),
  payment_rejected: async () =>
    order({}, version2(await sign(await order({}, X402), { change: (asked) => ({ ...asked, amount: '1' }) }))),
  payment_nonce_used: async () => {
    const payment = version2(await sign(await order({}, X402)));
    await order({}, payment);
    return order({ hostname: 'another' }, payment);
  },
  insufficient_balance: async () => (await newAccount()).rest('POST', '/v1/servers', { service_code: 'vps-1' }),
  amount_too_low: () => topUp({ amount_usd: 29.99 }),
  amount_too_high: () => topUp({ amount_usd: 10_000.01 }),
  unknown_coin: () => topUp({ crypto: 'DOGE' }),
  coin_unavailable: async () => {
    await operator('mutation { updateCoin(code: "LTC", available: false) { code } }');
    return topUp({ crypto: 'LTC' });
  },
  topup_not_cancellable: async () => {
    const { order_number } = (await topUp()).body;
    await eventually(
      async () => (await account.rest('GET', `/v1/billing/topups/${order_number}`)).body.status === 'confirmed',
    );
    return post(`/v1/billing/topups/${order_number}/cancel`, undefined);
  },
};
const SERVERS: Partial<Record<ErrorCode, Provoke>> = {
  unknown_service_code: () => order({ service_code: 'vps-99' }),
  unknown_region: () => order({ region: 'moon' }),
  unknown_os: () => order({ os: 'plan9' }),
  unknown_ssh_key: () => order({ ssh_key_ids: ['sshkey_00000000000000000000000000'] }),
  out_of_stock: () => order({ service_code: 'ded-3', region: 'buh' }),
  price_exceeds_max: () => order({ max_price_usd: 1 }),
  server_busy: () => patchIn('REBOOTING', { action: 'reboot' }),
  server_not_stopped: () => patchIn('RUNNING', { service_code: 'vps-2' }),
  server_suspended: () => patchIn('SUSPENDED', { action: 'reboot' }),
  resize_not_possible: () => patchIn('STOPPED', { service_code: 'vps-1' }),
  delete_protected: async () => {
    await patchIn('RUNNING', { delete_protection: true });
    return account.rest('DELETE', server);
  },
  one_operation_per_request: () => patchIn('RUNNING', { action: 'reboot', power_state: 'off' }),
  invalid_public_key: () => post('/v1/ssh-keys', { public_key: 'ssh-ed25519 nonsense' }),
  private_key_rejected: () => post('/v1/ssh-keys', { public_key: '-----BEGIN OPENSSH PRIVATE KEY-----' }),
  key_too_weak: () => post('/v1/ssh-keys', { public_key: WEAK_KEY }),
  invalid_url: () => post('/v1/webhooks', { url: 'nonsense' }),
  url_not_allowed: () => post('/v1/webhooks', { url: 'https://169.254.169.254/' }),
  unknown_event: () => post('/v1/webhooks', { url: 'https://example.org/', event_filter: 'server.exploded' }),
};
const LIMITS_REACHED: Partial<Record<ErrorCode, Provoke>> = {
  api_key_limit_reached: () =>
    twice('/v1/auth/api-keys', Array(2).fill({ name: 'k', scope: 'read' }) as [object, object]),
  server_limit_reached: () =>
    twice('/v1/servers', [{ service_code: 'vps-1' }, { service_code: 'vps-1' }], ({ fund }) => fund(50)),
  ssh_key_limit_reached: () => twice('/v1/ssh-keys', [{ public_key: PUBLIC_KEYS[0] }, { public_key: PUBLIC_KEYS[1] }]),
  webhook_limit_reached: () =>
    twice('/v1/webhooks', [{ url: 'http://127.0.0.1:9009/a' }, { url: 'http://127.0.0.1:9009/b' }]),
  topup_limit_reached: async () => {
    const { rest } = await tight.newAccount();
    const answers = await Promise.all(
      [1, 2, 3, 4].map(() => rest('POST', '/v1/billing/topups', { amount_usd: 30, crypto: 'BTC' })),
    );
    return answers.find(({ status }) => status !== 200)!;
  },
  agent_limit_reached: () => twice('/v1/agents/directory', [agent('one-agent'), agent('two-agents')]),
  proof_of_work_required: () => broken.newAccount().then(() => broken.anonymous('POST', '/v1/oauth/register', {})),
  session_limit_reached: async () => {
    const { rest } = await tight.newAccount();
    const own = oauthRequests(tight.anonymous);
    return own.requestToken(await own.newClient({}, rest));
  },
};
const FAULTS: Partial<Record<ErrorCode, Provoke>> = {
  internal_error: () => withoutTable(broken, 'catalog_item', () => broken.anonymous('GET', '/v1/catalog/vps')),
  unavailable: () => withoutDatabase(broken, () => broken.anonymous('GET', '/v1/catalog/vps')),
};
const PROVOKED: Partial<Record<ErrorCode, Provoke>> = {
  ...READING,
  ...OAUTH,
  ...CREDENTIALS,
  ...MONEY,
  ...SERVERS,
  ...LIMITS_REACHED,
  ...FAULTS,
};

describe('The catalogue of errors', () => {
  it('has a test for every code', () => {
    // Only operators get it: test/operators/proposals.test.ts.
    expect((Object.keys(ERRORS) as ErrorCode[]).filter((code) => !PROVOKED[code])).toEqual(['approval_needed']);
  });

  it.each(Object.keys(PROVOKED) as ErrorCode[])(
    'has %s, which the service sends with the status of the catalogue',
    async (code) => {
      const { status, body, headers } = await PROVOKED[code]!();
      expect([body.code, status, body.status]).toEqual([code, ERRORS[code][0], ERRORS[code][0]]);
      expect(body).toMatchObject({
        type: expect.stringMatching(new RegExp(`/docs/errors#${code}$`)),
        title: expect.any(String),
        detail: expect.stringMatching(/\.$/),
        request_id: headers.get('x-request-id'),
        retryable: (ERRORS[code] as readonly unknown[])[2] === 'retryable',
      });
    },
  );
});
