/** Recovery by PGP. The keys are those of the real gpg. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateKey, PublicKey } from 'openpgp';
import { describe, expect, it } from 'vitest';
import { atEnd } from '../../setup/end.ts';
import { startFreehold, type TestAccount } from '../../setup/freehold.ts';
import { totpCode } from '../../setup/totp.ts';
import { forgedKey, longKey, slowKey, uselessKey } from './crafted-keys.ts';

const { anonymous, newAccount, db } = await startFreehold({ FEATURES: 'account-update,recovery' });
const NEW = 'a new heron on the roof';

const home = mkdtempSync(join(tmpdir(), 'gpg-'));
atEnd(() => rmSync(home, { recursive: true, force: true }));
const gpg = (args: string[], input = ''): string =>
  execFileSync('gpg', ['--homedir', home, '--batch', '--quiet', '--pinentry-mode', 'loopback', ...args], {
    input,
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'ignore'],
  });
function hasGpg(): boolean {
  try {
    return Boolean(gpg(['--version']));
  } catch {
    console.log('Skipped: recovery by PGP needs gpg (Debian: gnupg).');
    return false;
  }
}
atEnd(() => {
  try {
    execFileSync('gpgconf', ['--homedir', home, '--kill', 'all']);
  } catch {
    // There is no agent to end.
  }
});
/** Makes a key pair of gpg, and returns its armored public part. */
function gpgKey(name: string, algorithm: string, usage = 'default'): string {
  gpg(['--passphrase', '', '--quick-generate-key', name, algorithm, usage, '1y']);
  return gpg(['--armor', '--export', name]);
}
/** The message does not name its key. gpg tries all of them, and fails for each wrong one before the right one. */
const decrypted = (message: string, name: string): string => gpg(['--try-secret-key', name, '--decrypt'], message);

const change = (account: TestAccount, body: object) =>
  account.rest('PATCH', '/v1/account', { current_password: account.password, ...body });
const recover = (body: object) => anonymous('POST', '/v1/auth/recover', body);
const login = (email: string, password: string) => anonymous('POST', '/v1/auth/login', { email, password });
/** Turns on the second factor. @returns its recovery codes */
async function turnOnTotp(account: TestAccount): Promise<{ recoveryCodes: string[] }> {
  const { body } = await account.rest('POST', '/v1/auth/totp/setup', { password: account.password });
  const enabled = await account.rest('POST', '/v1/auth/totp/enable', { totp_code: totpCode(body.secret) });
  return { recoveryCodes: enabled.body.recovery_codes };
}
const eventsOf = async (account: TestAccount, type: string) =>
  (
    await db.query<{ data: object }>('select data from event where account_id = $1 and type = $2', [account.id, type])
  ).map(({ data }) => data);

describe.skipIf(!hasGpg())('A recovery by PGP', () => {
  it('ends with the key, which an empty text and the password remove', async () => {
    const account = await newAccount();
    await change(account, { pgp_public_key: gpgKey(account.email, 'future-default') });
    const { status, body } = await change(account, { pgp_public_key: '' });
    expect([status, body.pgp_fingerprint]).toEqual([200, null]);
    expect(await eventsOf(account, 'account.updated')).toMatchObject([
      { changed: ['pgp_public_key'] },
      { changed: ['pgp_public_key'] },
    ]);
    const withoutPassword = await account.rest('PATCH', '/v1/account', { pgp_public_key: '' });
    expect(withoutPassword.body.errors[0].field).toBe('current_password');
  });

  it.each(['default', 'future-default'])('lets only the owner of a gpg key %s in', async (algorithm) => {
    const account = await newAccount();
    const key = gpgKey(account.email, algorithm);
    const { status, body } = await change(account, { pgp_public_key: key });
    expect([status, body.pgp_fingerprint]).toEqual([200, expect.stringMatching(/^[0-9A-F]{40}$/)]);
    expect(gpg(['--list-keys', '--with-colons'])).toContain(body.pgp_fingerprint);
    await turnOnTotp(account);
    const { body: apiKey } = await account.rest('POST', '/v1/auth/api-keys', { name: 'stays', scope: 'read' });

    const started = await recover({ email: account.email.toUpperCase() });
    expect([started.status, started.body.expires_in]).toEqual([200, 900]);
    const answer = { challenge_id: started.body.challenge_id, new_password: NEW };
    const wrong = await recover({ ...answer, challenge_response: 'guessed' });
    expect([wrong.status, wrong.body.code]).toEqual([401, 'invalid_login']);
    const challenge_response = decrypted(started.body.encrypted_challenge, account.email);
    const done = await recover({ ...answer, challenge_response });
    expect([done.status, Object.keys(done.body)]).toEqual([200, ['tokens']]);

    const authorization = `Bearer ${done.body.tokens.access_token}`;
    const shown = (await anonymous('GET', '/v1/account', undefined, { authorization })).body;
    expect(shown).toMatchObject({ id: account.id, totp_enabled: false });
    expect((await account.rest('GET', '/v1/account')).body.code).toBe('revoked_credential');
    const kept = { authorization: `Bearer ${apiKey.plaintext}` };
    expect((await anonymous('GET', '/v1/account', undefined, kept)).status).toBe(200);
    expect((await login(account.email, account.password)).body.code).toBe('invalid_login');
    expect((await login(account.email, NEW)).body.totp_required).toBe(false);
    expect((await recover({ ...answer, challenge_response })).body.code).toBe('invalid_login');
    expect(await eventsOf(account, 'account.recovered')).toMatchObject([{ by: 'pgp' }]);
  });

  it.each(['another key', 'everything'])('ends the challenges of a key after %s', async (after) => {
    const account = await newAccount();
    await change(account, { pgp_public_key: gpgKey(account.email, 'future-default') });
    const { challenge_id, encrypted_challenge } = (await recover({ email: account.email })).body;
    const passwords = { current_password: account.password, new_password: NEW };
    const { status } =
      after === 'everything'
        ? await account.rest('POST', '/v1/auth/password', { ...passwords, revoke: 'everything' })
        : await change(account, { pgp_public_key: gpgKey(`other-${account.email}`, 'future-default') });
    expect(status).toBe(200);
    const challenge_response = decrypted(encrypted_challenge, account.email);
    const refused = await recover({ challenge_id, challenge_response, new_password: 'a third heron on it' });
    expect(refused.status).toBeGreaterThanOrEqual(400);
    if (after === 'everything') {
      const { challenge_id: next, encrypted_challenge: text } = (await recover({ email: account.email })).body;
      expect(next).toBeDefined();
      expect(() => decrypted(text, account.email)).toThrow();
    }
  });

  it('refuses a key whose numbers encrypt nothing', async () => {
    const account = await newAccount();
    const { status, body } = await change(account, { pgp_public_key: await uselessKey() });
    expect([status, body.code]).toEqual([422, 'invalid_public_key']);
  });

  it('refuses a key of many packets, which take long to read', async () => {
    const account = await newAccount();
    expect((await change(account, { pgp_public_key: await longKey(90) })).status).toBe(200);
    const { status, body } = await change(account, { pgp_public_key: await longKey(5_000) });
    expect([status, body.code]).toEqual([422, 'invalid_public_key']);
  });

  it('refuses a key of large numbers at once', async () => {
    const account = await newAccount();
    const { status, body } = await change(account, { pgp_public_key: slowKey(1024, 1024) });
    expect([status, body.code, body.detail]).toEqual([
      422,
      'invalid_public_key',
      expect.stringContaining('neither RSA of 8192 bits at most'),
    ]);
  });

  it('refuses a key of a curve that the runtime does not compute', async () => {
    const account = await newAccount();
    const { status, body } = await change(account, { pgp_public_key: await forgedKey('curve448', 1) });
    expect([status, body.code, body.errors[0].field]).toEqual([422, 'invalid_public_key', 'pgp_public_key']);
  });

  it('refuses a key whose subkey the primary key did not sign, after three tries', async () => {
    const account = await newAccount();
    const { publicKey } = await generateKey({ type: 'curve25519', userIDs: [{ name: 'a' }], format: 'object' });
    const { publicKey: other } = await generateKey({ type: 'curve25519', userIDs: [{ name: 'b' }], format: 'object' });
    const packets = publicKey.toPacketList();
    packets.splice(packets.length - 2, 2, ...other.toPacketList().slice(-2));
    const { status, body } = await change(account, { pgp_public_key: new PublicKey(packets).armor() });
    expect([status, body.code]).toEqual([422, 'invalid_public_key']);
  });

  it('needs one valid signature of the subkey, and stores none', async () => {
    const account = await newAccount();
    const key = await forgedKey('curve25519', 20);
    expect((await change(account, { pgp_public_key: key })).status).toBe(200);
    const [stored] = await db.query<{ key: string }>('select pgp_public_key as key from account where id = $1', [
      account.id,
    ]);
    expect(stored!.key.length).toBeLessThan(key.length / 4);
    const { body } = await recover({ email: account.email });
    expect(body.encrypted_challenge).toMatch(/^-----BEGIN PGP MESSAGE-----/);
  });

  it('gives a challenge three tries', async () => {
    const account = await newAccount();
    await change(account, { pgp_public_key: gpgKey(account.email, 'future-default') });
    const { challenge_id, encrypted_challenge } = (await recover({ email: account.email })).body;
    for (const challenge_response of ['one', 'two', 'three'])
      expect((await recover({ challenge_id, challenge_response, new_password: NEW })).body.code).toBe('invalid_login');
    const challenge_response = decrypted(encrypted_challenge, account.email);
    const late = await recover({ challenge_id, challenge_response, new_password: NEW });
    expect(late.body.detail).toContain('The challenge has ended');
  });

  it('refuses a key that only signs', async () => {
    const account = await newAccount();
    const { body } = await change(account, { pgp_public_key: gpgKey(account.email, 'ed25519', 'sign') });
    expect([body.code, body.errors[0].field]).toEqual(['invalid_public_key', 'pgp_public_key']);
  });
});
