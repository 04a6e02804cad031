/** A change of how an account logs in ends its older sessions and pending logins. */
import { Secret, TOTP } from 'otpauth';
import { describe, expect, it } from 'vitest';
import { startFreehold, type TestAccount } from '../../setup/freehold.ts';
import { type RestClient, restClient } from '../../setup/spawn.ts';
import { oauthRequests } from '../oauth/requests.ts';

const { anonymous, newAccount, publicUrl, db } = await startFreehold({ LOGIN_FAILURES_MAX: '1000' });
const { newClient, requestToken } = oauthRequests(anonymous);
const NEW = 'another heron on the roof';

interface Tokens {
  access_token: string;
  refresh_token: string;
}
/** The proof that a change needs. */
type Change = (rest: RestClient) => Promise<{ status: number }>;

const login = async ({ email, password }: TestAccount, more: object = {}): Promise<Tokens> =>
  (await anonymous('POST', '/v1/auth/login', { email, password, ...more })).body.tokens;
const works = async (token: string) => (await restClient(publicUrl, token)('GET', '/v1/account')).status === 200;
const refreshes = async ({ refresh_token }: Tokens) =>
  (await anonymous('POST', '/v1/auth/token/refresh', { refresh_token })).status === 200;
const codeFor = async ({ id }: TestAccount, secret: string) => {
  await db.query('update totp set last_step = 0 where account_id = $1', [id]);
  return new TOTP({ secret: Secret.fromBase32(secret) }).generate();
};
const setup = async ({ rest, password }: TestAccount): Promise<string> =>
  (await rest('POST', '/v1/auth/totp/setup', { password })).body.secret;

/** Each prepares an account, and returns a function that makes the change with a credential. */
const CHANGES: Record<string, (account: TestAccount) => Promise<{ change: Change; code?: () => Promise<string> }>> = {
  'account.totp_enabled': async (account) => {
    const secret = await setup(account);
    return {
      change: async (rest) => rest('POST', '/v1/auth/totp/enable', { totp_code: await codeFor(account, secret) }),
    };
  },
  'account.totp_disabled': async (account) => {
    const secret = await setup(account);
    const code = () => codeFor(account, secret);
    await account.rest('POST', '/v1/auth/totp/enable', { totp_code: await code() });
    return { change: async (rest) => rest('POST', '/v1/auth/totp/disable', { totp_code: await code() }), code };
  },
  'account.password_changed': async ({ password }) => ({
    change: (rest) => rest('POST', '/v1/auth/password', { current_password: password, new_password: NEW }),
  }),
};

describe.each(Object.keys(CHANGES))('The change with the event %s', (type) => {
  it('ends all other sessions, OAuth clients included, but not the caller or API keys', async () => {
    const account = await newAccount();
    const { change, code } = await CHANGES[type]!(account);
    const other = await login(account, code && { totp_code: await code() });
    const grants = { grant_types: ['client_credentials', 'refresh_token'] };
    const client = await newClient(grants, account.rest);
    const ofClient = (await requestToken(client)).body as Tokens;
    const key = (await account.rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'read' })).body.plaintext;
    expect((await change(account.rest)).status).toBe(200);
    expect([await works(account.accessToken), await works(key)]).toEqual([true, true]);
    for (const tokens of [other, ofClient])
      expect([await works(tokens.access_token), await refreshes(tokens)]).toEqual([false, false]);
    expect(await works((await requestToken(client)).body.access_token)).toBe(true);
    const events = await db.query<{ type: string; data: object }>(
      `select type, data from event where account_id = $1 and type in ($2, 'session.revoked') order by id`,
      [account.id, type],
    );
    const revoked = { type: 'session.revoked', data: { reason: type.replace('account.', '') } };
    expect(events).toEqual([revoked, revoked, { type, data: { sessionsRevoked: 2 } }]);
    const { data } = (await account.rest('GET', '/v1/account/audit-log?action=session.revoked')).body;
    expect(data).toHaveLength(2);
  });

  it('ends all sessions when an API key makes it', async () => {
    const account = await newAccount();
    const { change } = await CHANGES[type]!(account);
    const key = (await account.rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'full' })).body.plaintext;
    expect((await change(restClient(publicUrl, key))).status).toBe(200);
    expect([await works(account.accessToken), await works(key)]).toEqual([false, true]);
  });

  it('ends no session when the service refuses it', async () => {
    const account = await newAccount();
    const { code } = await CHANGES[type]!(account);
    const other = await login(account, code && { totp_code: await code() });
    for (const path of ['/v1/auth/totp/enable', '/v1/auth/totp/disable'])
      expect((await account.rest('POST', path, { totp_code: 'aaaa-aaaa' })).status).not.toBe(200);
    expect(await works(other.access_token)).toBe(true);
  });

  it('ends pending logins', async () => {
    const account = await newAccount();
    const { change } = await CHANGES[type]!(account);
    await db.query(
      `insert into pending_login (id, account_id, digest, expires_at) values ($1::text, $1, convert_to($1, 'UTF8'), now() + interval '1 hour')`,
      [account.id],
    );
    expect((await change(account.rest)).status).toBe(200);
    expect(await db.query('select id from pending_login where account_id = $1', [account.id])).toEqual([]);
  });
});
