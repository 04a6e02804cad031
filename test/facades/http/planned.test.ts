import { describe, expect, it } from 'vitest';
import { startFreehold } from '../../setup/freehold.ts';

const { anonymous, newAccount } = await startFreehold({ ROLES: 'api' });

describe('A planned endpoint', () => {
  it('says that it is planned, after the checks of credential and scope', async () => {
    const account = await newAccount();
    const { body: key } = await account.rest('POST', '/v1/auth/api-keys', { name: 'r', scope: 'read' });
    expect((await anonymous('PATCH', '/v1/account', {})).body.code).toBe('missing_credential');
    expect((await anonymous('PATCH', '/v1/account', {}, { authorization: `Bearer ${key.plaintext}` })).body.code).toBe(
      'insufficient_scope',
    );
    for (const answer of [
      await account.rest('PATCH', '/v1/account', { low_balance_alert_days: 3 }),
      await anonymous('POST', '/v1/auth/recover', { email: 'a@b.c' }),
    ]) {
      expect([answer.status, answer.body.code, answer.body.availability]).toEqual([404, 'endpoint_planned', 'PLANNED']);
    }
  });
});
