import { Secret, TOTP } from 'otpauth';
import { expect } from 'vitest';
import type { TestAccount } from './freehold.ts';

/** The code of an authenticator at this moment. */
export const totpCode = (secret: string): string => new TOTP({ secret: Secret.fromBase32(secret) }).generate();

/** Turns on the second factor of an account. @returns the account */
export async function turnOnTotp<T extends TestAccount>(account: T): Promise<T> {
  const { body } = await account.rest('POST', '/v1/auth/totp/setup', { password: account.password });
  expect((await account.rest('POST', '/v1/auth/totp/enable', { totp_code: totpCode(body.secret) })).status).toBe(200);
  return account;
}
