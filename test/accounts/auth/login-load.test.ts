/** Many logins at once, from many addresses. */
import { describe, expect, it } from 'vitest';
import { startFreehold } from '../../setup/freehold.ts';

const { newAccount, anonymous } = await startFreehold({ TRUSTED_PROXY_CIDRS: '127.0.0.0/8' });

describe('A flood of logins', () => {
  it('from all networks of one IPv6 site leaves others their login', async () => {
    const { email, password } = await newAccount();
    const login = async (name: string, address: string) =>
      (await anonymous('POST', '/v1/auth/login', { email: name, password }, { 'x-forwarded-for': address })).status;
    const flood = Array.from({ length: 300 }, (_, i) => login(`stranger-${i}@example.org`, `2001:db8:7:${i}::1`));
    // The first refusal proves that the queue is full.
    await Promise.race(flood.map(async (one) => (await one) === 429 || new Promise(() => {})));
    const victims = Array.from({ length: 5 }, (_, i) => login(email, `198.51.100.${i + 1}`));
    expect(await Promise.all(victims)).toEqual(Array(5).fill(200));
    expect(await Promise.all(flood)).toContain(401);
  });
});
