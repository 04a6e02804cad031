/** Changes of an account, and its recovery by codes. */
import { generateKey, readMessage } from 'openpgp';
import { describe, expect, it } from 'vitest';
import { eventually, startFreehold, type TestAccount } from '../../setup/freehold.ts';
import { totpCode } from '../../setup/totp.ts';

const { anonymous, newAccount, db } = await startFreehold({
  FEATURES: 'account-update,recovery',
  LOGIN_FAILURES_MAX: '4',
});
const plain = await startFreehold();
const NEW = 'a new heron on the roof';
const RECOVER = '/v1/auth/recover';

const change = (account: TestAccount, body: object) =>
  account.rest('PATCH', '/v1/account', { current_password: account.password, ...body });
const recover = (body: object) => anonymous('POST', RECOVER, body);
const login = (email: string, password: string) => anonymous('POST', '/v1/auth/login', { email, password });
/** Turns on the second factor. @returns its recovery codes */
async function turnOnTotp(account: TestAccount): Promise<{ recoveryCodes: string[] }> {
  const { body } = await account.rest('POST', '/v1/auth/totp/setup', { password: account.password });
  const enabled = await account.rest('POST', '/v1/auth/totp/enable', { totp_code: totpCode(body.secret) });
  return { recoveryCodes: enabled.body.recovery_codes };
}
const withCodes = async () => {
  const account = await newAccount();
  const { body } = await change(account, { recovery_codes: true });
  return { account, codes: body.recovery_codes as string[] };
};
const eventsOf = async (account: TestAccount, type: string) =>
  (
    await db.query<{ data: object }>('select data from event where account_id = $1 and type = $2', [account.id, type])
  ).map(({ data }) => data);

describe('Without its feature', () => {
  it('a change of the account and a recovery are planned, and registration makes no codes', async () => {
    const account = await plain.newAccount();
    for (const answer of [
      await account.rest('PATCH', '/v1/account', { low_balance_alert_days: 3 }),
      await plain.anonymous('POST', RECOVER, { email: account.email }),
    ])
      expect([answer.status, answer.body.code, answer.body.availability]).toEqual([404, 'endpoint_planned', 'PLANNED']);
    const mutation = 'mutation { updateAccount(input: { lowBalanceAlertDays: 3 }) { account { id } } }';
    expect((await account.graphql(mutation)).errors[0].extensions.code).toBe('endpoint_planned');
    const body = { email: 'codes@example.org', password: 'a heron on the roof', recovery_codes: true };
    const refused = await plain.anonymous('POST', '/v1/auth/register', body);
    expect([refused.status, refused.body.errors[0].field]).toEqual([422, 'recovery_codes']);
  });

  it('the OpenAPI document says so, and with it that they are live', async () => {
    const availability = async (client: typeof anonymous) => {
      const { paths } = (await client('GET', '/v1/openapi.json')).body;
      return [paths['/v1/account'].patch['x-availability'], paths[RECOVER].post['x-availability']];
    };
    expect(await availability(plain.anonymous)).toEqual(['PLANNED', 'PLANNED']);
    expect(await availability(anonymous)).toEqual(['LIVE', 'LIVE']);
  });
});

describe('A change of the account', () => {
  it('sets the days of balance.low without the password', async () => {
    const account = await newAccount();
    const { status, body } = await account.rest('PATCH', '/v1/account', { low_balance_alert_days: 0 });
    expect([status, body.low_balance_alert_days, 'recovery_codes' in body]).toEqual([200, 0, false]);
    expect((await account.rest('GET', '/v1/account')).body.low_balance_alert_days).toBe(0);
    expect(await eventsOf(account, 'account.updated')).toEqual([{ changed: ['low_balance_alert_days'] }]);
  });

  it('moves the login to another email, with the password', async () => {
    const account = await newAccount();
    const email = `new-${account.email}`;
    const missing = await account.rest('PATCH', '/v1/account', { email });
    expect([missing.status, missing.body.errors[0].field]).toEqual([422, 'current_password']);
    const wrong = await account.rest('PATCH', '/v1/account', { email, current_password: 'wrong password' });
    expect(wrong.body.code).toBe('wrong_password');
    expect((await change(account, { email: (await newAccount()).email })).body.code).toBe('email_taken');
    expect((await change(account, { email: email.toUpperCase() })).body.email).toBe(email);
    expect((await login(account.email, account.password)).body.code).toBe('invalid_login');
    expect((await login(email, account.password)).status).toBe(200);
  });

  it('needs the second factor of an account that has one', async () => {
    const account = await newAccount();
    const { recoveryCodes } = await turnOnTotp(account);
    expect((await change(account, { recovery_codes: true })).body.code).toBe('invalid_totp');
    const { status, body } = await change(account, { recovery_codes: true, totp_code: recoveryCodes[0] });
    expect([status, body.recovery_codes.length]).toEqual([200, 8]);
  });

  it('refuses what is no key', async () => {
    const account = await newAccount();
    const refused = await change(account, { pgp_public_key: 'ssh-ed25519 AAAA' });
    expect([refused.status, refused.body.code]).toEqual([422, 'invalid_public_key']);
    const secret = await change(account, { pgp_public_key: '-----BEGIN PGP PRIVATE KEY BLOCK-----' });
    expect(secret.body.code).toBe('private_key_rejected');
    expect(JSON.stringify(secret.body)).not.toContain('BEGIN');
  });
});

describe('A recovery of an unknown email', () => {
  it('begins as one of an account does, and never ends', async () => {
    const account = await newAccount();
    const answers = [await recover({ email: 'nobody@example.org' }), await recover({ email: account.email })];
    for (const { status, body } of answers) {
      expect([status, Object.keys(body)]).toEqual([200, ['challenge_id', 'encrypted_challenge', 'expires_in']]);
      expect(body.encrypted_challenge).toMatch(/^-----BEGIN PGP MESSAGE-----/);
      const answer = { challenge_id: body.challenge_id, challenge_response: 'guess', new_password: NEW };
      expect((await recover(answer)).body.code).toBe('invalid_login');
    }
  });

  it("has the type and the length of a challenge to GnuPG's default key", async () => {
    const key = await generateKey({ type: 'ecc', curve: 'curve25519Legacy', userIDs: [{ name: 'Ada' }] });
    const account = await newAccount();
    expect((await change(account, { pgp_public_key: key.publicKey })).status).toBe(200);
    const shapes = [];
    for (const email of ['unknown@example.org', account.email]) {
      const { encrypted_challenge: armoredMessage } = (await recover({ email })).body;
      const { packets } = await readMessage({ armoredMessage });
      const [session] = packets as unknown as { publicKeyAlgorithm: number }[];
      shapes.push([session!.publicKeyAlgorithm, armoredMessage.length]);
    }
    expect(shapes[0]).toEqual(shapes[1]);
  });

  it('works for the owner while a stranger fails all the time, and tells the owner', async () => {
    const { account, codes } = await withCodes();
    const wrong = { email: account.email, recovery_code: 'xxxxx-xxxxx', new_password: NEW };
    for (let i = 0; i < 6; i++) expect((await recover(wrong)).body.code).toBe('invalid_login');
    expect((await recover({ email: account.email })).status).toBe(200);
    expect((await recover({ ...wrong, recovery_code: codes[0] })).status).toBe(200);
    await eventually(async () => (await eventsOf(account, 'session.login_failed')).length > 0);
  });

  it('is throttled after too many wrong codes of the second factor', async () => {
    const { account, codes } = await withCodes();
    const [code, again] = [codes[0], codes[1]];
    await turnOnTotp(account);
    const guess = { email: account.email, new_password: NEW, totp_code: '000000' };
    for (let i = 0; i < 4; i++)
      expect((await recover({ ...guess, recovery_code: code })).body.code).toBe('invalid_totp');
    expect((await recover({ ...guess, recovery_code: again })).body.code).toBe('login_throttled');
  });

  it('says which fields belong together', async () => {
    const { status, body } = await recover({ new_password: NEW });
    expect([status, body.code]).toEqual([422, 'validation_failed']);
    expect(body.detail).toContain('email alone');
  });
});

describe('A recovery code', () => {
  it('comes with the registration, and replaces the password once', async () => {
    const email = 'ada-codes@example.org';
    const registered = await anonymous('POST', '/v1/auth/register', {
      ...{ email, password: 'a heron on the roof', recovery_codes: true },
    });
    const { account, tokens, recovery_codes } = registered.body;
    expect(recovery_codes).toHaveLength(8);
    expect(recovery_codes[0]).toMatch(/^([0-9a-z]{5}-){4}[0-9a-z]{5}$/);
    const stored = await db.query('select to_jsonb(recovery_code) as row from recovery_code where account_id = $1', [
      account.id,
    ]);
    for (const code of recovery_codes) expect(JSON.stringify(stored)).not.toContain(code);

    const weak = await recover({ email, recovery_code: recovery_codes[0], new_password: 'password1' });
    expect(weak.body).toMatchObject({ code: 'weak_password', errors: [{ field: 'new_password' }] });
    const recovery_code = recovery_codes[0].toUpperCase().replaceAll('-', ' ');
    const done = await recover({ email, recovery_code, new_password: NEW });
    expect([done.status, Object.keys(done.body)]).toEqual([200, ['tokens']]);
    const authorization = `Bearer ${tokens.access_token}`;
    expect((await anonymous('GET', '/v1/account', undefined, { authorization })).body.code).toBe('revoked_credential');
    expect((await login(email, NEW)).status).toBe(200);
    const again = await recover({ email, recovery_code, new_password: NEW });
    expect([again.status, again.body.code]).toEqual([401, 'invalid_login']);
    expect((await recover({ email, recovery_code: recovery_codes[1], new_password: NEW })).status).toBe(200);
  });

  it('works once for many callers at the same time', async () => {
    const { account, codes } = await withCodes();
    const answers = await Promise.all(
      [1, 2, 3].map(() => recover({ email: account.email, recovery_code: codes[0], new_password: NEW })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401]);
  });

  it('opens no account of another email, and does not replace the second factor', async () => {
    const { account, codes } = await withCodes();
    const other = await newAccount();
    const stolen = { recovery_code: codes[0], new_password: NEW };
    expect((await recover({ email: other.email, ...stolen })).body.code).toBe('invalid_login');
    const { recoveryCodes } = await turnOnTotp(account);
    expect((await recover({ email: account.email, ...stolen })).body.code).toBe('invalid_totp');
    const done = await recover({ email: account.email, ...stolen, totp_code: recoveryCodes[0] });
    expect(done.status).toBe(200);
    expect((await login(account.email, NEW)).body.totp_required).toBe(true);
    expect(await eventsOf(account, 'account.recovered')).toMatchObject([{ by: 'code' }]);
  });

  it('ends with new codes, and with a revocation of everything', async () => {
    const { account, codes } = await withCodes();
    const { recovery_codes } = (await change(account, { recovery_codes: true })).body;
    const body = { email: account.email, new_password: NEW };
    expect((await recover({ ...body, recovery_code: codes[0] })).body.code).toBe('invalid_login');
    const passwords = { current_password: account.password, new_password: 'another heron there', revoke: 'everything' };
    expect((await account.rest('POST', '/v1/auth/password', passwords)).status).toBe(200);
    expect((await recover({ ...body, recovery_code: recovery_codes[0] })).body.code).toBe('invalid_login');
  });
});

it('A registration repeats neither tokens nor recovery codes after a recovery', async () => {
  const person = { email: 'repeated@example.org', password: 'a heron on the roof', recovery_codes: true };
  const key = { 'idempotency-key': 'first-registration' };
  const register = () => anonymous('POST', '/v1/auth/register', person, key);
  const [recovery_code] = (await register()).body.recovery_codes;
  expect((await register()).body.recovery_codes).toContain(recovery_code);
  const done = await recover({ email: person.email, recovery_code, new_password: NEW });
  expect(done.status).toBe(200);
  const { status, body } = await register();
  expect([status, body.code, body.recovery_codes]).toEqual([422, 'idempotency_key_reused', undefined]);
});

it('A recovery opens a session also after a thief of the password has opened all that an hour allows', async () => {
  const hasty = await startFreehold({ FEATURES: 'account-update,recovery', RATE_LIMIT_UNPAID_PER_HOUR: '5' });
  const account = await hasty.newAccount();
  const { body } = await change(account, { recovery_codes: true });
  const { email, password } = account;
  const logIn = () => hasty.anonymous('POST', '/v1/auth/login', { email, password });
  await eventually(async () => (await logIn()).status === 429);
  const [recovery_code] = body.recovery_codes;
  const { status } = await hasty.anonymous('POST', RECOVER, { email, recovery_code, new_password: NEW });
  expect(status).toBe(200);
});
