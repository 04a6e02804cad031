import { Secret, TOTP, URI } from 'otpauth';
import { describe, expect, it } from 'vitest';
import { sweepPendingLogins } from '../../../resolvers/accounts/auth/login.ts';
import { SecurityLog } from '../../../resolvers/accounts/security-log.ts';
import { eventually, startFreehold, type TestAccount } from '../../setup/freehold.ts';
import { restClient } from '../../setup/spawn.ts';

const { anonymous, newAccount, publicUrl, db } = await startFreehold({ LOGIN_FAILURES_MAX: '1000' });

interface Protected extends TestAccount {
  secret: string;
  recoveryCodes: string[];
  /** An unused code. */
  fresh(): Promise<string>;
}
const codeOf = (secret: string, timestamp = Date.now()) =>
  new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp });
const wrongCode = (secret: string) =>
  ['000000', '111111', '222222', '333333', '444444'].find(
    (code) => ![-30_000, 0, 30_000, 60_000].some((ms) => codeOf(secret, Date.now() + ms) === code),
  )!;

async function withTotp(): Promise<Protected> {
  const account = await newAccount();
  const { body: setup } = await account.rest('POST', '/v1/auth/totp/setup', { password: account.password });
  const enabled = await account.rest('POST', '/v1/auth/totp/enable', { totp_code: codeOf(setup.secret) });
  expect(enabled.status).toBe(200);
  const fresh = async () => {
    await db.query('update totp set last_step = 0 where account_id = $1', [account.id]);
    return codeOf(setup.secret);
  };
  return { ...account, secret: setup.secret, recoveryCodes: enabled.body.recovery_codes, fresh };
}
const login = ({ email, password }: TestAccount, more: object = {}) =>
  anonymous('POST', '/v1/auth/login', { email, password, ...more });
const complete = (login_token: string, totp_code: string) =>
  anonymous('POST', '/v1/auth/login/totp', { login_token, totp_code });
const pendingOf = async (account: TestAccount): Promise<string> => (await login(account)).body.login_token;

describe('Two-factor authentication', () => {
  it('begins with the password, and a seed that authenticators can read', async () => {
    const { rest, password, email } = await newAccount();
    expect((await rest('POST', '/v1/auth/totp/setup', { password: 'not the password' })).body.code).toBe(
      'wrong_password',
    );
    const { status, body } = await rest('POST', '/v1/auth/totp/setup', { password });
    expect(status).toBe(200);
    expect(body).toMatchObject({ algorithm: 'SHA1', digits: 6, period: 30, expires_in: 600 });
    const peer = URI.parse(body.provisioning_uri) as TOTP;
    expect([peer.issuer, peer.label, peer.secret.base32, peer.digits, peer.period, peer.algorithm]).toEqual([
      'Freehold',
      email,
      body.secret,
      6,
      30,
      'SHA1',
    ]);
    expect((await rest('GET', '/v1/account')).body.totp_enabled).toBe(false);
    expect((await rest('POST', '/v1/auth/totp/enable', { totp_code: peer.generate() })).status).toBe(200);
    expect((await rest('GET', '/v1/account')).body.totp_enabled).toBe(true);
  });

  it('stays off without a right code, without a setup, and ten minutes after the setup', async () => {
    const { id, rest, password } = await newAccount();
    const enable = async (totp_code: string) => (await rest('POST', '/v1/auth/totp/enable', { totp_code })).body.code;
    expect(await enable('123456')).toBe('totp_setup_missing');
    const { secret } = (await rest('POST', '/v1/auth/totp/setup', { password })).body;
    expect(await enable(wrongCode(secret))).toBe('invalid_totp');
    expect(await enable('abcd-efgh')).toBe('invalid_totp');
    expect((await rest('POST', '/v1/auth/totp/enable', {})).status).toBe(422);
    await db.query('update totp set setup_expires_at = now() where account_id = $1', [id]);
    expect(await enable(codeOf(secret))).toBe('totp_setup_missing');
    expect((await rest('GET', '/v1/account')).body.totp_enabled).toBe(false);
    expect((await rest('POST', '/v1/auth/totp/disable', { totp_code: codeOf(secret) })).body.code).toBe(
      'totp_not_enabled',
    );
  });

  it('ends a setup that the old password began when the password changes', async () => {
    const { rest, password } = await newAccount();
    const { secret } = (await rest('POST', '/v1/auth/totp/setup', { password })).body;
    const change = { current_password: password, new_password: `${password} and more` };
    expect((await rest('POST', '/v1/auth/password', change)).status).toBe(200);
    expect((await rest('POST', '/v1/auth/totp/enable', { totp_code: codeOf(secret) })).body.code).toBe(
      'totp_setup_missing',
    );
  });

  it('begins no setup by the old password while the password changes', async () => {
    const { id, rest, password } = await newAccount();
    const waiting = (count: number) =>
      eventually(async () => {
        const locked = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
        return (await db.query(locked)).length === count;
      });
    const [changed, setup] = await db
      .transaction(async (tx) => {
        await tx.query('select from balance where account_id = $1 for update', [id]);
        const change = { current_password: password, new_password: `${password} and more` };
        const changed = rest('POST', '/v1/auth/password', change);
        await waiting(1);
        const setup = rest('POST', '/v1/auth/totp/setup', { password });
        await waiting(2);
        return [changed, setup];
      })
      .then((both) => Promise.all(both));
    expect([changed!.status, setup!.body.code]).toEqual([200, 'wrong_password']);
    expect(await db.query('select 1 from totp where account_id = $1', [id])).toEqual([]);
  });

  it('accepts no second setup while it is on, and no seed of an earlier setup', async () => {
    const account = await withTotp();
    const again = await account.rest('POST', '/v1/auth/totp/setup', { password: account.password });
    expect([again.status, again.body.code]).toEqual([422, 'totp_already_enabled']);
    const enable = await account.rest('POST', '/v1/auth/totp/enable', { totp_code: await account.fresh() });
    expect(enable.body.code).toBe('totp_already_enabled');
    const other = await newAccount();
    const [first, second] = [
      (await other.rest('POST', '/v1/auth/totp/setup', { password: other.password })).body.secret,
      (await other.rest('POST', '/v1/auth/totp/setup', { password: other.password })).body.secret,
    ];
    expect((await other.rest('POST', '/v1/auth/totp/enable', { totp_code: codeOf(first) })).body.code).toBe(
      'invalid_totp',
    );
    expect((await other.rest('POST', '/v1/auth/totp/enable', { totp_code: codeOf(second) })).status).toBe(200);
  });

  it('turns off with a code, and then a login needs no code', async () => {
    const account = await withTotp();
    const disable = (totp_code: string) => account.rest('POST', '/v1/auth/totp/disable', { totp_code });
    expect((await disable(wrongCode(account.secret))).body.code).toBe('invalid_totp');
    const { status, body } = await disable(await account.fresh());
    expect([status, body]).toEqual([200, { totp_enabled: false }]);
    expect((await login(account)).body.totp_required).toBe(false);
    const events = await db.query<{ type: string }>(
      `select type from event where account_id = $1 and type like 'account.%' order by id`,
      [account.id],
    );
    expect(events.map(({ type }) => type)).toEqual(['account.totp_enabled', 'account.totp_disabled']);
  });

  it('stores no seed, code or login token as plain text', async () => {
    const account = await withTotp();
    const login_token = await pendingOf(account);
    const [dump] = await db.query<{ rows: string }>(
      `select string_agg(t, '') as rows from (select totp::text as t from totp union all select pending_login::text from pending_login union all select event::text from event
        union all select audit_entry::text from audit_entry) all_rows`,
    );
    const secrets = [account.secret, login_token, ...account.recoveryCodes];
    for (const secret of secrets.flatMap((one) => [one, Buffer.from(one).toString('hex'), btoa(one)]))
      expect(dump!.rows).not.toContain(secret);
  });
});

describe('A login with a second factor', () => {
  it('waits for the code, and completes with it', async () => {
    const account = await withTotp();
    const { status, body } = await login(account);
    expect(status).toBe(200);
    expect(body).toEqual({ totp_required: true, login_token: expect.stringMatching(/^svc_lt_/), expires_in: 300 });
    const done = await complete(body.login_token, await account.fresh());
    expect(done.body).toMatchObject({ totp_required: false, account: { id: account.id, totp_enabled: true } });
    expect(Object.keys(done.body)).toEqual(['totp_required', 'account', 'tokens']);
    expect((await restClient(publicUrl, done.body.tokens.access_token)('GET', '/v1/account')).status).toBe(200);
    expect((await complete(body.login_token, await account.fresh())).body.code).toBe('login_token_expired');
  });

  it('accepts the code together with the password, also as the member code', async () => {
    const account = await withTotp();
    expect((await login(account, { totp_code: await account.fresh() })).body.tokens).toBeDefined();
    expect((await login(account, { code: await account.fresh() })).body.tokens).toBeDefined();
    const wrong = await login(account, { totp_code: wrongCode(account.secret) });
    expect([wrong.status, wrong.body.code]).toEqual([401, 'invalid_totp']);
    const both = await login({ ...account, password: 'not the password' }, { totp_code: await account.fresh() });
    expect(both.body.code).toBe('invalid_login');
  });

  it('ends after five wrong codes: even the right sixth code is refused', async () => {
    const account = await withTotp();
    const token = await pendingOf(account);
    for (let i = 0; i < 5; i++)
      expect((await complete(token, wrongCode(account.secret))).body.code).toBe('invalid_totp');
    const { status, body } = await complete(token, await account.fresh());
    expect([status, body.code]).toEqual([401, 'login_token_expired']);
    expect((await complete(await pendingOf(account), await account.fresh())).status).toBe(200);
  });

  it('accepts at most five wrong codes when fifty come at once', async () => {
    const account = await withTotp();
    const token = await pendingOf(account);
    const answers = await Promise.all(Array.from({ length: 50 }, () => complete(token, wrongCode(account.secret))));
    expect(answers.filter(({ body }) => body.code === 'invalid_totp')).toHaveLength(5);
    expect(answers.filter(({ body }) => body.code === 'login_token_expired')).toHaveLength(45);
  });

  it('ends after five minutes, and does not exist for other tokens', async () => {
    const account = await withTotp();
    const token = await pendingOf(account);
    await db.query('update pending_login set expires_at = now() where account_id = $1', [account.id]);
    for (const one of [token, account.accessToken, 'svc_lt_nonsense', 'x'])
      expect((await complete(one, await account.fresh())).body.code).toBe('login_token_expired');
    expect((await restClient(publicUrl, token)('GET', '/v1/account')).body.code).toBe('invalid_credential');
  });

  it('accepts a code once when fifty pending logins use it at once', async () => {
    const account = await withTotp();
    const pending = await Promise.all(Array.from({ length: 25 }, () => pendingOf(account)));
    const code = await account.fresh();
    const answers = await Promise.all([
      ...pending.map((token) => complete(token, code)),
      ...pending.map(() => login(account, { totp_code: code })),
    ]);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ body }) => body.code === 'invalid_totp')).toHaveLength(49);
  });

  it('accepts no step before an accepted one', async () => {
    const account = await withTotp();
    await db.query('update totp set last_step = $2 where account_id = $1', [
      account.id,
      Math.floor(Date.now() / 30_000) + 1,
    ]);
    for (const ms of [-30_000, 0])
      expect((await login(account, { totp_code: codeOf(account.secret, Date.now() + ms) })).body.code).toBe(
        'invalid_totp',
      );
  });

  it.each(['12345', '1234567', 'abcdef', '１２３４５６', '', 123456, null, ['123456'], 'abcd_efgh'])(
    'refuses the code %j',
    async (totp_code) => {
      const { status } = await anonymous('POST', '/v1/auth/login/totp', { login_token: 'x', totp_code });
      expect(status).toBe(422);
    },
  );
});

describe('Recovery codes', () => {
  it('are ten, and each works once in place of a code', async () => {
    const account = await withTotp();
    const [one, two, three, four] = account.recoveryCodes as [string, string, string, string];
    expect(new Set(account.recoveryCodes).size).toBe(10);
    expect(account.recoveryCodes.every((code) => /^[0-9a-z]{4}-[0-9a-z]{4}$/.test(code))).toBe(true);
    expect((await login(account, { totp_code: one })).body.tokens).toBeDefined();
    expect((await login(account, { totp_code: one })).body.code).toBe('invalid_totp');
    expect((await complete(await pendingOf(account), two.toUpperCase())).status).toBe(200);
    const change = { current_password: account.password, new_password: 'another heron on the roof' };
    const changed = await account.rest('POST', '/v1/auth/password', { ...change, totp_code: three });
    expect(changed.status).toBe(200);
    expect((await account.rest('POST', '/v1/auth/totp/disable', { totp_code: four })).status).toBe(200);
  });

  it('work once when twenty logins use one at once, and never for another account', async () => {
    const [mine, theirs] = [await withTotp(), await withTotp()];
    const code = mine.recoveryCodes[0]!;
    expect((await login(theirs, { totp_code: code })).body.code).toBe('invalid_totp');
    const answers = await Promise.all(Array.from({ length: 20 }, () => login(mine, { totp_code: code })));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  });

  it('works once, also for a login with an idempotency key', async () => {
    const account = await withTotp();
    const [code, other] = account.recoveryCodes as [string, string];
    const key = { 'idempotency-key': 'guessable' };
    const { email, password } = account;
    const log = () => anonymous('POST', '/v1/auth/login', { email, password, totp_code: code }, key);
    expect((await log()).status).toBe(200);
    expect((await log()).body.code).toBe('invalid_totp');
    const pending = { login_token: await pendingOf(account), totp_code: other };
    expect((await anonymous('POST', '/v1/auth/login/totp', pending, key)).status).toBe(200);
    expect((await anonymous('POST', '/v1/auth/login/totp', pending, key)).body.code).toBe('login_token_expired');
  });
});

it('The owner reads of a login with the right password to which no code came, once it has expired', async () => {
  const [unused, tried, completed, waiting] = await Promise.all([withTotp(), withTotp(), withTotp(), withTotp()]);
  for (const account of [unused, unused, waiting]) await pendingOf(account);
  expect((await complete(await pendingOf(tried), wrongCode(tried.secret))).body.code).toBe('invalid_totp');
  expect((await complete(await pendingOf(completed), await completed.fresh())).status).toBe(200);
  const overs = [unused, tried, completed].map(({ id }) => id);
  await db.query('update pending_login set expires_at = now() where account_id = any($1)', [overs]);
  const security = new SecurityLog(db, async () => {});
  await sweepPendingLogins(db, security);
  await security.flush();
  const entries = async ({ rest }: TestAccount) =>
    (await rest('GET', '/v1/account/audit-log?action=session.code_failed')).body.data.length;
  for (const account of [unused, tried]) await eventually(async () => (await entries(account)) === 1);
  expect(await Promise.all([completed, waiting].map(entries))).toEqual([0, 0]);
  const left = await db.query('select account_id from pending_login where account_id = any($1)', [
    [...overs, waiting.id],
  ]);
  expect(left).toEqual([{ accountId: waiting.id }]);
});
