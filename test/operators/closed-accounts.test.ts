/** An operator closes an account: no server and no credential is left, and the balance stays. */
import { describe, expect, it } from 'vitest';
import { newId } from '../../entities/ids.ts';
import { eventually, startFreehold } from '../setup/freehold.ts';

const { anonymous, db, newAccount, operator } = await startFreehold();

const CLOSE = `mutation ($id: ID!, $refund: Boolean!) { closeAccount(id: $id, refund: $refund, reason: "Fraud") {
  account { suspendedFor } serversDeleted refundedUsd sessionsRevoked apiKeysRevoked } }`;
const close = (id: string, refund = false) => operator(CLOSE, { id, refund });
async function customer() {
  const account = await newAccount();
  await account.fund(60);
  const order = async () => (await account.rest('POST', '/v1/servers', { service_code: 'vps-1' })).body.order_number;
  const orders: string[] = [await order(), await order()];
  const isRunning = async (number: string) =>
    (await account.rest('GET', `/v1/servers/${number}`)).body.status === 'running';
  for (const number of orders) await eventually(() => isRunning(number));
  return { ...account, orders };
}
const balanceOf = async (id: string) =>
  (await operator('query ($id: ID!) { customer(id: $id) { balance { balanceUsd } } }', { id })).data.customer.balance
    .balanceUsd as number;

describe('Closing an account', () => {
  it('deletes its servers, also protected ones, and ends its credentials; its owner can still log in and read', async () => {
    const { id, email, password, rest, orders } = await customer();
    await rest('PATCH', `/v1/servers/${orders[0]}`, { delete_protection: true });
    await rest('POST', '/v1/auth/api-keys', { name: 'k', scope: 'read' });
    const before = await balanceOf(id);
    expect((await close(id)).data.closeAccount).toEqual({
      ...{ account: { suspendedFor: 'Fraud' }, serversDeleted: 2, refundedUsd: 0 },
      ...{ sessionsRevoked: 1, apiKeysRevoked: 1 },
    });
    expect((await rest('GET', '/v1/account')).status).toBe(401);
    await eventually(async () => {
      const left = await db.query(`select from server where account_id = $1 and status <> 'DELETED'`, [id]);
      return left.length === 0;
    });
    expect(await balanceOf(id)).toBe(before);
    const { body } = await anonymous('POST', '/v1/auth/login', { email, password });
    const headers = { authorization: `Bearer ${body.tokens.access_token}` };
    expect((await anonymous('GET', '/v1/account/balance', undefined, headers)).body.balance_usd).toBe(before);
    expect((await anonymous('POST', '/v1/servers', { service_code: 'vps-1' }, headers)).body.code).toBe(
      'account_suspended',
    );
  });

  it('refunds the unused hours by choice, once', async () => {
    const { id } = await customer();
    const before = await balanceOf(id);
    const [first, second] = [(await close(id, true)).data.closeAccount, (await close(id, true)).data.closeAccount];
    expect(first.refundedUsd).toBeGreaterThan(11);
    expect(second).toMatchObject({ serversDeleted: 0, refundedUsd: 0 });
    expect(await balanceOf(id)).toBeCloseTo(before + first.refundedUsd, 6);
  });

  it('is for the operator alone, and for accounts that exist', async () => {
    const { id, graphql } = await newAccount();
    expect((await graphql(CLOSE, { id, refund: true })).errors[0].extensions.code).toBe('insufficient_scope');
    expect((await close(newId('acct'))).errors[0].extensions.code).toBe('not_found');
  });
});
