/** An operator lets an owner in again who has lost the password or the second factor. */
import { Secret, TOTP } from 'otpauth';
import { describe, expect, it } from 'vitest';
import { newId } from '../../entities/ids.ts';
import { startFreehold, type TestAccount } from '../setup/freehold.ts';

const { anonymous, db, newAccount, operator } = await startFreehold();

const PROOF = 'Signed a transaction of its top-up.';
const RESET_PASSWORD = `mutation ($id: ID!) { resetPassword(id: $id, proof: "${PROOF}") { password sessionsRevoked } }`;
const RESET_FACTOR = `mutation ($id: ID!) { resetSecondFactor(id: $id, proof: "${PROOF}") { totpEnabled } }`;
const login = async ({ email }: TestAccount, password: string) =>
  (await anonymous('POST', '/v1/auth/login', { email, password })).body;
const notesOf = async (id: string) =>
  (await operator('query ($id: ID!) { customer(id: $id) { notes { text } } }', { id })).data.customer.notes;
const told = async (id: string, type: string) =>
  (await db.query('select from event where account_id = $1 and type = $2', [id, type])).length;
const beginSetup = async ({ rest, password }: TestAccount): Promise<string> =>
  (await rest('POST', '/v1/auth/totp/setup', { password })).body.secret;

describe('A new password', () => {
  it('replaces the old one, ends sessions and a begun setup, and keeps API keys', async () => {
    const account = await newAccount();
    const key = (await account.rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'read' })).body.plaintext;
    await beginSetup(account);
    const { password, sessionsRevoked } = (await operator(RESET_PASSWORD, { id: account.id })).data.resetPassword;
    expect(sessionsRevoked).toBe(1);
    expect((await account.rest('GET', '/v1/account')).status).toBe(401);
    expect((await login(account, account.password)).code).toBe('invalid_login');
    expect((await login(account, password)).tokens.access_token).toEqual(expect.any(String));
    const byKey = await anonymous('GET', '/v1/account', undefined, { authorization: `Bearer ${key}` });
    expect(byKey.status).toBe(200);
    expect(await db.query('select from totp where account_id = $1', [account.id])).toEqual([]);
    expect(await told(account.id, 'account.password_reset')).toBe(1);
    expect(await notesOf(account.id)).toEqual([{ text: `Password reset. Proof: ${PROOF}` }]);
  });

  it('is refused for an account without a password, and for one that does not exist', async () => {
    const { id } = await newAccount();
    await db.query('update account set password_hash = null where id = $1', [id]);
    expect((await operator(RESET_PASSWORD, { id })).errors[0].message).toMatch(/resetClient/);
    expect((await operator(RESET_PASSWORD, { id: newId('acct') })).errors[0].extensions.code).toBe('not_found');
    expect(await notesOf(id)).toEqual([]);
  });

  it('is for the operator alone', async () => {
    const { id, graphql } = await newAccount();
    for (const mutation of [RESET_PASSWORD, RESET_FACTOR])
      expect((await graphql(mutation, { id })).errors[0].extensions.code).toBe('insufficient_scope');
  });
});

describe('A lost second factor', () => {
  it('is turned off, and the password alone opens the account', async () => {
    const account = await newAccount();
    const totp = new TOTP({ secret: Secret.fromBase32(await beginSetup(account)) });
    await account.rest('POST', '/v1/auth/totp/enable', { totp_code: totp.generate() });
    expect((await login(account, account.password)).tokens).toBeFalsy();
    expect((await operator(RESET_FACTOR, { id: account.id })).data.resetSecondFactor).toEqual({ totpEnabled: false });
    expect((await account.rest('GET', '/v1/account')).status).toBe(401);
    expect((await login(account, account.password)).tokens.access_token).toEqual(expect.any(String));
    expect(await told(account.id, 'account.totp_reset')).toBe(1);
    expect(await notesOf(account.id)).toEqual([{ text: `Second factor reset. Proof: ${PROOF}` }]);
    expect((await operator(RESET_FACTOR, { id: account.id })).errors[0].extensions.code).toBe('totp_not_enabled');
  });
});
