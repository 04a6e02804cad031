/** Recovery codes of operators, each of which replaces a code of the authenticator once. */
import { describe, expect, it } from 'vitest';
import { eventually, startFreehold } from '../setup/freehold.ts';
import { graphqlClient, signInClient } from '../setup/spawn.ts';
import { totpCode } from '../setup/totp.ts';

const { db, graphqlUrl, internalUrl, operator } = await startFreehold();
const PASSWORD = 'a heron on the roof';

const post = signInClient(internalUrl);
/** Invites a person, who accepts. */
async function join(name: string) {
  const INVITE = `mutation { inviteOperator(input: { name: "${name}", role: READ_ONLY }) { code operator { id } } }`;
  const { code, operator: invited } = (await operator(INVITE)).data.inviteOperator;
  const { secret } = (await post('openInvitation', { code })).data.openInvitation;
  const acceptance = { code, password: PASSWORD, totpCode: totpCode(secret) };
  const { token, recoveryCodes } = (await post('acceptInvitation', acceptance)).data.acceptInvitation;
  return {
    ...{ id: invited.id as string, name, secret: secret as string, call: graphqlClient(graphqlUrl, token) },
    codes: recoveryCodes as string[],
  };
}
const signIn = (name: string, code: string) => post('signIn', { name, password: PASSWORD, totpCode: code });
const codeOf = ({ errors }: { errors?: { extensions: { code: string } }[] }) => errors?.[0]?.extensions.code;
const RENEW = 'mutation ($code: TotpCode!) { renewOperatorRecoveryCodes(totpCode: $code) { recoveryCodes } }';
const eventsOf = async (id: string) =>
  (
    await db.query<{ type: string; data: object }>(
      `select type, data from event where account_id = 'operator' and subject = $1 order by id`,
      [id],
    )
  ).map(({ type, data }) => [type, data]);

describe('A recovery code', () => {
  it('comes with the acceptance of the invitation, and signs in once in place of a code', async () => {
    const { id, name, codes } = await join('ana');
    expect(codes).toHaveLength(10);
    const [first, second] = codes as [string, string];
    expect((await signIn(name, first.toUpperCase())).data.signIn.token).toMatch(/^svc_os_/);
    expect(codeOf(await signIn(name, first))).toBe('invalid_login');
    expect(codeOf(await signIn(name, second))).toBeUndefined();
    const signIns = (await eventsOf(id)).filter(([type]) => type === 'operator.signed_in');
    expect(signIns.slice(1)).toEqual([
      ['operator.signed_in', { session: expect.any(String), by: 'recovery_code', codesLeft: 9 }],
      ['operator.signed_in', { session: expect.any(String), by: 'recovery_code', codesLeft: 8 }],
    ]);
  });

  it('ends when its operator gets new ones, or is invited again', async () => {
    const { id, name, codes, call } = await join('bo');
    const { recoveryCodes } = (await call(RENEW, { code: codes[0] })).data.renewOperatorRecoveryCodes;
    expect(codeOf(await signIn(name, codes[1]!))).toBe('invalid_login');
    expect(codeOf(await signIn(name, recoveryCodes[0]))).toBeUndefined();
    expect(await eventsOf(id)).toContainEqual(['operator.updated', { renewed: 'recovery_codes' }]);
    await operator('mutation ($id: ID!) { renewInvitation(id: $id) { code } }', { id });
    expect(codeOf(await signIn(name, recoveryCodes[1]))).toBe('invalid_login');
  });
});

describe('New recovery codes', () => {
  it('need a code, and wrong ones count as attempts to sign in', async () => {
    const { name, secret, call } = await join('cy');
    expect(codeOf(await call(RENEW, { code: '0000-0000' }))).toBe('invalid_totp');
    await eventually(async () => codeOf(await call(RENEW, { code: '0000-0000' })) === 'login_throttled');
    expect(codeOf(await signIn(name, totpCode(secret)))).toBe('login_throttled');
  });

  it('are for an operator who signs in', async () => {
    const { errors } = await operator(RENEW, { code: '000000' });
    expect(errors[0].message).toMatch(/act by a token/);
  });
});
