/** A guessable idempotency key shows a stranger no credential of somebody else. */
import { Secret, TOTP } from 'otpauth';
import { describe, expect, it } from 'vitest';
import { startFreehold } from '../../setup/freehold.ts';
import { type Answer, restClient } from '../../setup/spawn.ts';
import { totpCode } from '../../setup/totp.ts';

const { anonymous, publicUrl } = await startFreehold({ ROLES: 'api' });
const KEY = { 'idempotency-key': '1' };
const PASSWORD = 'a heron on the roof';
const isReplayed = ({ headers }: Answer) => headers.get('idempotency-replayed') === 'true';

const refused = ({ status, body }: Answer) => {
  expect([status, body.code, body.tokens]).toEqual([422, 'idempotency_key_reused', undefined]);
  expect(body.detail).toContain('has changed its login');
};

let people = 0;
async function registered() {
  const person = { email: `guessed-${++people}@example.org`, password: PASSWORD };
  const register = (changes: object = {}) => anonymous('POST', '/v1/auth/register', { ...person, ...changes }, KEY);
  const first = await register();
  expect(first.status).toBe(200);
  return { person, register, first, rest: restClient(publicUrl, first.body.tokens.access_token) };
}

describe('A stranger who guesses the key of a registration', () => {
  it('gets nothing without its password', async () => {
    const { register } = await registered();
    for (const changes of [{ password: 'another heron on it' }, { email: 'guessed@example.org' }])
      expect(isReplayed(await register(changes))).toBe(false);
    const answer = await register({ password: 'another heron on it' });
    expect([answer.status, answer.body.code, answer.body.tokens]).toEqual([422, 'email_taken', undefined]);
  });

  it('gets no tokens by the password after the owner turned on a second factor', async () => {
    const { register, rest, first } = await registered();
    expect((await register()).body).toEqual(first.body);
    const { secret } = (await rest('POST', '/v1/auth/totp/setup', { password: PASSWORD })).body;
    const totp_code = new TOTP({ secret: Secret.fromBase32(secret) }).generate();
    expect((await rest('POST', '/v1/auth/totp/enable', { totp_code })).status).toBe(200);
    refused(await register());
  });

  it('gets no tokens by the old password after the owner changed it', async () => {
    const { register, rest } = await registered();
    const changed = await rest('POST', '/v1/auth/password', {
      current_password: PASSWORD,
      new_password: 'another heron on it',
    });
    expect(changed.status).toBe(200);
    refused(await register());
  });
});

it('A stranger with a spent refresh token gets no new pair after the owner changed the login', async () => {
  const { first, rest } = await registered();
  const { refresh_token } = first.body.tokens;
  const refresh = () => anonymous('POST', '/v1/auth/token/refresh', { refresh_token }, KEY);
  const { tokens } = (await refresh()).body;
  expect((await refresh()).body.tokens).toEqual(tokens);
  const renewed = restClient(publicUrl, tokens.access_token);
  const { secret } = (await renewed('POST', '/v1/auth/totp/setup', { password: PASSWORD })).body;
  const totp_code = new TOTP({ secret: Secret.fromBase32(secret) }).generate();
  expect((await renewed('POST', '/v1/auth/totp/enable', { totp_code })).status).toBe(200);
  refused(await refresh());
  expect((await rest('GET', '/v1/account')).status).toBe(401);
});

describe('An endpoint that needs no credential', () => {
  it('repeats a refresh whose own access token is the Bearer, which the refresh ends', async () => {
    const { first, rest } = await registered();
    const { refresh_token } = first.body.tokens;
    const refresh = (by = rest) => by('POST', '/v1/auth/token/refresh', { refresh_token }, KEY);
    const answers = [...(await Promise.all([refresh(), refresh()])), await refresh(), await refresh(anonymous)];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(new Set(answers.map(({ body }) => body.tokens.access_token)).size).toBe(1);
    const renewed = restClient(publicUrl, answers[0]!.body.tokens.access_token);
    expect((await renewed('GET', '/v1/account')).status).toBe(200);
  });

  it('refuses an ended Bearer, but for a refresh and for OAuth', async () => {
    const { first, rest, person } = await registered();
    await rest('DELETE', `/v1/auth/sessions/${first.body.tokens.token_id}`);
    for (const path of ['/v1/auth/login', '/v1/auth/register', '/v1/oauth/register'])
      expect((await rest('POST', path, person)).body.code, path).toBe('revoked_credential');
    expect((await rest('POST', '/v1/auth/token/refresh', { refresh_token: 'x' })).body.code).toBe('invalid_credential');
    expect((await rest('POST', '/v1/oauth/revoke', {})).status).toBe(200);
  });
});

it('A refresh with an API key repeats no tokens after the owner changed the password', async () => {
  const { first, rest } = await registered();
  const { refresh_token } = first.body.tokens;
  const { plaintext } = (await rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'full' })).body;
  const byKey = restClient(publicUrl, plaintext);
  const refresh = () => byKey('POST', '/v1/auth/token/refresh', { refresh_token }, KEY);
  const { tokens } = (await refresh()).body;
  expect((await refresh()).body.tokens).toEqual(tokens);
  const other = (await byKey('POST', '/v1/auth/api-keys', { name: 'o', scope: 'read' })).body;
  const end = () => byKey('DELETE', `/v1/auth/api-keys/${other.key_id}`, undefined, KEY);
  const ended = await end();
  const renewed = restClient(publicUrl, tokens.access_token);
  const change = { current_password: PASSWORD, new_password: 'another heron on it' };
  expect((await renewed('POST', '/v1/auth/password', change)).status).toBe(200);
  refused(await refresh());
  expect((await end()).body).toEqual(ended.body);
});

describe('A stranger who guesses the key of an authenticated request', () => {
  it('gets nothing from another account, by another body, or without a credential', async () => {
    const [mine, theirs] = [await registered(), await registered()];
    const create = (rest: typeof mine.rest, name = 'k') =>
      rest('POST', '/v1/auth/api-keys', { name, scope: 'full' }, KEY);
    const { plaintext } = (await create(mine.rest)).body;
    expect((await create(theirs.rest)).body.plaintext).not.toBe(plaintext);
    expect((await create(mine.rest, 'other')).body.code).toBe('idempotency_key_reused');
    expect((await create(anonymous)).status).toBe(401);
  });
});

it('A guess at the password with the idempotency key of a kept answer counts as any other', async () => {
  const { rest } = await registered();
  const change = { new_password: 'another heron on it' };
  const guess = (password: string) => rest('POST', '/v1/auth/password', { current_password: password, ...change }, KEY);
  expect((await guess(PASSWORD)).status).toBe(200);
  expect(isReplayed(await guess(PASSWORD))).toBe(true);
  for (let i = 0; i < 10; i++) expect((await guess(`guess ${i}`)).body.code).toBe('wrong_password');
  expect((await guess('guess 10')).body.code).toBe('login_throttled');
});

it('A second factor takes no idempotency key, so no kept answer shows its seed or its recovery codes', async () => {
  const { rest } = await registered();
  const setUp = () => rest('POST', '/v1/auth/totp/setup', { password: PASSWORD }, KEY);
  const [first, second] = [await setUp(), await setUp()];
  expect([isReplayed(second), second.body.secret === first.body.secret]).toEqual([false, false]);
  const enable = () => rest('POST', '/v1/auth/totp/enable', { totp_code: totpCode(second.body.secret) }, KEY);
  expect((await enable()).status).toBe(200);
  expect((await enable()).body.code).toBe('totp_already_enabled');
});
