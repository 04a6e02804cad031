/** An operator sets the limits of one account. */
import { describe, expect, it } from 'vitest';
import { startFreehold, type TestAccount } from '../setup/freehold.ts';

const { anonymous, db, newAccount, operator } = await startFreehold();

const SET = `mutation ($id: ID!, $input: SetAccountLimitsInput!) {
  setAccountLimits(id: $id, input: $input) { limits { servers webhooks } ownLimits { servers webhooks } } }`;
const set = (id: string, input: object) => operator(SET, { id, input });
const addHook = ({ rest }: TestAccount) => rest('POST', '/v1/webhooks', { url: 'https://hooks.example.org/' });
const addKey = ({ rest }: TestAccount) => rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'read' });
const limitsOf = async ({ rest }: TestAccount) => (await rest('GET', '/v1/account')).body.limits;

describe('The limits of an account', () => {
  it('hold at once, for that account alone, and the refusal names them', async () => {
    const [account, other] = [await newAccount(), await newAccount()];
    await account.fund(50);
    const answer = await set(account.id, { servers: 1, webhooks: 1, apiKeys: 1 });
    expect(answer.data.setAccountLimits).toMatchObject({
      ...{ limits: { servers: 1, webhooks: 1 }, ownLimits: { servers: 1, webhooks: 1 } },
    });
    expect(await limitsOf(account)).toMatchObject({ servers: 1, webhooks: 1, ssh_keys: 50 });
    expect(await limitsOf(other)).toMatchObject({ servers: 25, webhooks: 10 });
    for (const [add, code] of [
      [addHook, 'webhook_limit_reached'],
      [addKey, 'api_key_limit_reached'],
      [({ rest }: TestAccount) => rest('POST', '/v1/servers', { service_code: 'vps-1' }), 'server_limit_reached'],
    ] as const) {
      expect((await add(account)).status).toBe(200);
      const { body } = await add(account);
      expect([body.code, body.detail]).toEqual([
        code,
        expect.stringMatching(/limit of this account is 1\.|1 of 1 servers\./),
      ]);
    }
    expect((await addHook(other)).status).toBe(200);
    expect((await addHook(other)).status).toBe(200);
  });

  it('are those of the configuration again where the operator leaves them out', async () => {
    const account = await newAccount();
    await set(account.id, { servers: 100, webhooks: 0 });
    expect((await addHook(account)).body.detail).toContain('The limit of this account is 0.');
    const { data } = await set(account.id, { servers: 100, webhooks: null });
    expect(data.setAccountLimits).toEqual({
      limits: { servers: 100, webhooks: 10 },
      ownLimits: { servers: 100, webhooks: null },
    });
    expect((await addHook(account)).status).toBe(200);
  });

  it('hold for logins, which have no credential yet', async () => {
    const account = await newAccount();
    await set(account.id, { sessions: 2 });
    const { email, password } = account;
    for (let n = 0; n < 3; n++) await anonymous('POST', '/v1/auth/login', { email, password });
    const open = await db.query('select from session where account_id = $1 and revoked_at is null', [account.id]);
    expect(open).toHaveLength(2);
    expect((await set(account.id, { sessions: 0 })).errors[0].message).toContain('Suspend it instead');
  });

  it.each(['unpaidTopupsPerDay', 'agentChangesPerHour'])('are at least one %s', async (name) => {
    const { id } = await newAccount();
    expect((await set(id, { [name]: 0 })).errors[0].message).toContain('The least is 1');
    expect((await set(id, { [name]: 1 })).errors).toBeUndefined();
  });

  it('are in the log of the account, and need the right', async () => {
    const account = await newAccount();
    await set(account.id, { servers: 30 });
    const [event] = await db.query<{ data: object }>(
      `select data from event where account_id = $1 and type = 'account.limits_changed'`,
      [account.id],
    );
    expect(event!.data).toEqual({ servers: 30 });
    const { body } = await account.rest('GET', '/v1/account/audit-log?action=account.limits_changed');
    expect(body.data[0].actor).toEqual({ type: 'operator', id: 'operator', name: 'operator' });
    const own = await account.graphql(SET, { id: account.id, input: { servers: 900 } });
    expect(own.errors[0].extensions.code).toBe('insufficient_scope');
    for (const servers of [-1, 1.5, 2_000_000])
      expect((await set(account.id, { servers })).errors[0].extensions.code).toBe('BAD_USER_INPUT');
  });
});
