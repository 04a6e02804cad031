/** Callers behind one address, such as that of an onion service. All requests of these tests come from 127.0.0.1. */
import { beforeEach, describe, expect, it } from 'vitest';
import { eventually, startFreehold, type TestAccount } from '../../setup/freehold.ts';

const { newAccount, anonymous } = await startFreehold();
const limited = await startFreehold({ RATE_LIMIT_PUBLIC_PER_MINUTE: '12' });

/** Begins no test at the end of a minute, because a new window would allow more requests. */
beforeEach(() => eventually(async () => Date.now() % 60_000 < 45_000, 20), 30_000);

const wrong = { password: 'not the password' };
const guess = (email: string) => anonymous('POST', '/v1/auth/login', { email, ...wrong });
async function lockOut({ email }: TestAccount): Promise<void> {
  for (let i = 0; i < 10; i++) expect((await guess(email)).body.code).toBe('invalid_login');
  expect((await guess(email)).body.code).toBe('login_throttled');
}

describe('A stranger behind the address of the owner', () => {
  it('does not lock out the owner, who sends another credential of the account with the login', async () => {
    const owner = await newAccount();
    const { email, password, rest } = owner;
    const { body: key } = await rest('POST', '/v1/auth/api-keys', { name: 'laptop', scope: 'full' });
    await lockOut(owner);
    expect((await anonymous('POST', '/v1/auth/login', { email, password })).body.code).toBe('login_throttled');
    const headers = { authorization: `Bearer ${key.plaintext}` };
    expect((await anonymous('POST', '/v1/auth/login', { email, password }, headers)).status).toBe(200);
    expect((await rest('POST', '/v1/auth/login', { email, password })).status).toBe(200);
  });

  it('does not keep the owner from changing the password', async () => {
    const owner = await newAccount();
    await lockOut(owner);
    const change = { current_password: owner.password, new_password: 'another horse battery staple' };
    expect((await owner.rest('POST', '/v1/auth/password', change)).status).toBe(200);
  });

  it('gains no guesses by credentials of other accounts, and ten by all those of the same one', async () => {
    const [owner, stranger] = [await newAccount(), await newAccount()];
    await lockOut(owner);
    const { email, rest } = owner;
    expect((await stranger.rest('POST', '/v1/auth/login', { email, ...wrong })).body.code).toBe('login_throttled');
    const codes = [];
    for (let i = 0; i < 12; i++) {
      const { body: key } = await rest('POST', '/v1/auth/api-keys', { name: `k${i}`, scope: 'full' });
      const headers = key.plaintext && { authorization: `Bearer ${key.plaintext}` };
      codes.push((await anonymous('POST', '/v1/auth/login', { email, ...wrong }, headers)).body.code);
    }
    expect(codes).toEqual([...Array(10).fill('invalid_login'), ...Array(2).fill('login_throttled')]);
  });

  it.each(['read', 'full'])(
    'does not keep the owner from changing the password by a stolen key with the scope %s',
    async (scope) => {
      const owner = await newAccount();
      const { email, password, rest } = owner;
      const { body: key } = await rest('POST', '/v1/auth/api-keys', { name: 'stolen', scope });
      const headers = { authorization: `Bearer ${key.plaintext}` };
      for (let i = 0; i < 11; i++) await anonymous('POST', '/v1/auth/login', { email, ...wrong }, headers);
      expect((await anonymous('POST', '/v1/auth/login', { email, password }, headers)).body.code).toBe(
        'login_throttled',
      );
      expect((await rest('POST', '/v1/auth/totp/setup', { password })).status).toBe(200);
      const change = { current_password: password, new_password: 'another horse battery staple' };
      expect((await rest('POST', '/v1/auth/password', change)).status).toBe(200);
    },
  );

  it('does not use up the quota of logins by reading the catalog', async () => {
    const { email, password } = await limited.newAccount();
    const read = () => limited.anonymous('GET', '/v1/catalog/vps');
    const answers = await Promise.all(Array.from({ length: 36 }, read));
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(24);
    expect((await limited.anonymous('POST', '/v1/auth/login', { email, password })).status).toBe(200);
  });

  it('does not use up the quota of refreshes for the owner who sends the access token, too', async () => {
    const { email, password } = await limited.newAccount();
    const { tokens } = (await limited.anonymous('POST', '/v1/auth/login', { email, password })).body;
    const refresh = (refresh_token: string, headers = {}) =>
      limited.anonymous('POST', '/v1/auth/token/refresh', { refresh_token }, headers);
    const answers = await Promise.all(Array.from({ length: 20 }, () => refresh('x')));
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(8);
    expect((await refresh(tokens.refresh_token)).status).toBe(429);
    const headers = { authorization: `Bearer ${tokens.access_token}` };
    expect((await refresh(tokens.refresh_token, headers)).status).toBe(200);
  });
});
