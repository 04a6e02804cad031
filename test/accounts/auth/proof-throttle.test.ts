/** A thief who knows the password or has a credential of the account, and the attempts of its owner. */
import { Secret, TOTP } from 'otpauth';
import { describe, expect, it } from 'vitest';
import { startFreehold } from '../../setup/freehold.ts';
import { posterAt } from './login-attempts.ts';

const { newAccount, publicUrl, db } = await startFreehold();
const post = posterAt(publicUrl);
/** The owner registered from there. */
const HOME = '127.0.0.1';
const next = { current_password: '', new_password: 'another horse battery staple', revoke: 'everything' };

/** An account with a second factor, and a login from home that waits for its code. */
async function withTotp() {
  const account = await newAccount();
  const { email, password, rest } = account;
  const { secret } = (await rest('POST', '/v1/auth/totp/setup', { password })).body;
  const totp = new TOTP({ secret: Secret.fromBase32(secret) });
  const code = async () => {
    await db.query('update totp set last_step = 0 where account_id = $1', [account.id]);
    return totp.generate();
  };
  await rest('POST', '/v1/auth/totp/enable', { totp_code: await code() });
  const pending = async (address: string) =>
    (await post(address, '/v1/auth/login', { email, password })).body.login_token as string;
  const complete = async (address: string, login_token: string, totp_code: string, credential?: string) =>
    (await post(address, '/v1/auth/login/totp', { login_token, totp_code }, credential)).body;
  return { ...account, code, pending, complete };
}
type Protected = Awaited<ReturnType<typeof withTotp>>;

/** Guesses codes by the password, at most twenty-five. @returns the codes of the answers */
async function guess({ pending, complete }: Protected, address: string, credential?: string): Promise<string[]> {
  const codes = [];
  for (let i = 0; i < 5; i++) {
    const token = await pending(address);
    for (let k = 0; token && k < 5; k++) codes.push((await complete(address, token, 'aaaa-aaaa', credential)).code);
  }
  return codes;
}
const wrongOf = (codes: string[]) => codes.filter((code) => code === 'invalid_totp').length;

describe('A thief who knows the password', () => {
  it('guesses ten codes, and does not keep the owner out at a known address', async () => {
    const owner = await withTotp();
    expect(wrongOf(await guess(owner, '127.0.30.1'))).toBe(10);
    expect((await owner.complete('127.0.30.2', await owner.pending('127.0.30.2'), await owner.code())).code).toBe(
      'login_throttled',
    );
    expect((await owner.complete(HOME, await owner.pending(HOME), await owner.code())).totp_required).toBe(false);
  });

  it('does not keep the owner out who sends an access token or a key of the account', async () => {
    const owner = await withTotp();
    const { plaintext } = (await owner.rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'full' })).body;
    expect(wrongOf(await guess(owner, '127.0.31.1'))).toBe(10);
    for (const credential of [owner.accessToken, plaintext]) {
      const token = await owner.pending('127.0.31.2');
      const done = await owner.complete('127.0.31.2', token, await owner.code(), credential);
      expect(done.totp_required).toBe(false);
    }
  });

  it('gains no guesses by the token of another account', async () => {
    const [owner, other] = [await withTotp(), await newAccount()];
    expect(wrongOf(await guess(owner, '127.0.32.1'))).toBe(10);
    expect(wrongOf(await guess(owner, '127.0.32.1', other.accessToken))).toBe(0);
  });
});

describe('A thief with an access token', () => {
  it('guesses ten codes of a setup that the owner began', async () => {
    const { rest, password } = await newAccount();
    const { secret } = (await rest('POST', '/v1/auth/totp/setup', { password })).body;
    const right = new TOTP({ secret: Secret.fromBase32(secret) }).generate();
    const wrong = right === '000000' ? '000001' : '000000';
    const codes = [];
    for (let i = 0; i < 11; i++)
      codes.push((await rest('POST', '/v1/auth/totp/enable', { totp_code: wrong })).body.code);
    expect(codes).toEqual([...Array(10).fill('invalid_totp'), 'login_throttled']);
  });

  it('does not keep the owner from changing the password by another login, or at a known address', async () => {
    for (const [ownToken, address] of [
      [true, '127.0.33.2'],
      [false, HOME],
    ] as const) {
      const { email, password, accessToken: stolen } = await newAccount();
      const { tokens } = (await post(HOME, '/v1/auth/login', { email, password })).body;
      const change = (from: string, current_password: string, token: string) =>
        post(from, '/v1/auth/password', { ...next, current_password }, token);
      const codes = [];
      for (let i = 0; i < 12; i++) codes.push((await change('127.0.33.1', 'not the password', stolen)).body.code);
      expect(codes).toEqual([...Array(10).fill('wrong_password'), ...Array(2).fill('login_throttled')]);
      expect((await change(address, password, ownToken ? tokens.access_token : stolen)).status).toBe(200);
    }
  });
});
