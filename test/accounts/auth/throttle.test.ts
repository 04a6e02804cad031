import { describe, expect, it } from 'vitest';
import { ApiError } from '../../../entities/errors.ts';
import { newDatabase } from '../../setup/database.ts';
import { eventually } from '../../setup/freehold.ts';
import { newLoginThrottle } from '../../setup/shop.ts';
import { codeOf, wrong } from './login-attempts.ts';

const db = await newDatabase();
/** Waits for the results of logins, which come after their answers, and moves the clock of all counts. */
async function pass(seconds: number): Promise<void> {
  await eventually(async () => !(await db.query('select from login_tally where cardinality(under_way) > 0')).length);
  await db.query('update login_tally set failures = array(select one - $1::int from unnest(failures) as one)', [
    seconds,
  ]);
}

describe('The throttle of logins', () => {
  it('lets ten fail for a name from all networks, and forgets them after fifteen minutes', async () => {
    const throttle = newLoginThrottle(db);
    const from = (i: number) => ({ name: 'ada@example.org', address: `203.0.113.${i}` });
    for (let i = 0; i < 10; i++) {
      expect(await codeOf(throttle.attempt(from(i), wrong))).toBe('invalid_login');
      await pass(60);
    }
    const refused = await throttle.attempt(from(99), async () => 'in').catch((error) => error);
    expect(refused.code).toBe('login_throttled');
    expect(Math.ceil(refused.extras.retryAfter / 60)).toBe(5);
    await pass(5 * 60);
    expect(await throttle.attempt(from(99), async () => 'in')).toBe('in');
  });

  it('lets ten fail from a network with any names: an IPv4 address, or an IPv6 /64', async () => {
    for (const address of [
      (i: number) => (i % 2 ? '203.0.113.9' : '::ffff:203.0.113.9'),
      (i: number) => `2001:db8:1:2:${i}::7`,
    ]) {
      const throttle = newLoginThrottle(db);
      for (let i = 0; i < 10; i++)
        await codeOf(throttle.attempt({ name: `${i}@example.org`, address: address(i) }, wrong));
      expect(await codeOf(throttle.attempt({ name: 'x@example.org', address: address(50) }, wrong))).toBe(
        'login_throttled',
      );
      const elsewhere = { name: 'x@example.org', address: '2001:db8:1:3::7' };
      expect(await codeOf(throttle.attempt(elsewhere, wrong))).toBe('invalid_login');
    }
  });

  it('counts exactly when a thousand try at once, and lets logins with the right password wait', async () => {
    const throttle = newLoginThrottle(db);
    const slowly = <T>(work: () => Promise<T>) => new Promise((resume) => setTimeout(resume, 1)).then(work);
    const trier = { name: 'ada@example.org', address: '203.0.113.9' };
    const right = Array.from({ length: 200 }, () => throttle.attempt(trier, () => slowly(async () => 'in')));
    expect(new Set(await Promise.all(right))).toEqual(new Set(['in']));
    let tried = 0;
    const guess = () => {
      tried++;
      return slowly(wrong);
    };
    const guesses = Array.from({ length: 1000 }, () => codeOf(throttle.attempt(trier, guess)));
    expect((await Promise.all(guesses)).filter((code) => code === 'invalid_login')).toHaveLength(10);
    expect(tried).toBe(10);
  });

  it('does not lock out an owner on a known network, and limits that pair too', async () => {
    const throttle = newLoginThrottle(db);
    const home = { name: 'ada@example.org', address: '203.0.113.9' };
    await throttle.remember(home);
    for (let i = 0; i < 30; i++) await codeOf(throttle.attempt({ ...home, address: `198.51.100.${i}` }, wrong));
    expect(await codeOf(throttle.attempt({ ...home, address: '198.51.100.77' }, wrong))).toBe('login_throttled');
    const tries = [];
    for (let i = 0; i < 12; i++) tries.push(await codeOf(throttle.attempt(home, wrong)));
    expect(tries.filter((code) => code === 'invalid_login')).toHaveLength(10);
  });

  it('counts each proof apart, and apart again on each known network', async () => {
    const throttle = newLoginThrottle(db);
    const home = { name: 'ada@example.org', address: '203.0.113.9', proof: 'password' } as const;
    await throttle.remember(home);
    const away = { ...home, address: '198.51.100.1' };
    for (let i = 0; i < 12; i++) await codeOf(throttle.attempt(away, wrong));
    expect(await codeOf(throttle.attempt({ ...away, address: '198.51.100.2' }, wrong))).toBe('login_throttled');
    for (const other of [home, { ...away, proof: 'login tok_1' as const }, { ...away, proof: 'login tok_2' as const }])
      expect(await throttle.attempt(other, async () => 'in')).toBe('in');
  });

  it('lets fifty fail for a name in all, and fifty more among the first three of each count', async () => {
    const throttle = newLoginThrottle(db);
    const failed: string[] = [];
    for (let i = 0; i < 60; i++) {
      const home = { name: 'ada@example.org', address: `203.0.113.${i}` };
      await throttle.remember(home);
      for (const proof of [undefined, 'password', `login tok_${i}`] as const)
        for (let k = 0; k < 10; k++)
          if ((await codeOf(throttle.attempt({ ...home, proof }, wrong))) === 'invalid_login')
            failed.push(`${i} ${proof}`);
    }
    expect(failed).toHaveLength(100);
    const counts = Map.groupBy(failed, (count) => count);
    expect([...counts.values()].map(({ length }) => length)).toEqual([...Array(5).fill(10), ...Array(16).fill(3), 2]);
  });

  it('keeps three tries for the owner when a thief on other known networks has used the fifty', async () => {
    const throttle = newLoginThrottle(db);
    const homeOf = (i: number) => ({ name: 'ada@example.org', address: `203.0.113.${i}` });
    for (let i = 0; i < 6; i++) await throttle.remember(homeOf(i));
    for (let i = 1; i < 6; i++) for (let k = 0; k < 12; k++) await codeOf(throttle.attempt(homeOf(i), wrong));
    const tries = [];
    for (let i = 0; i < 4; i++) tries.push(await codeOf(throttle.attempt(homeOf(0), wrong)));
    expect(tries).toEqual([...Array(3).fill('invalid_login'), 'login_throttled']);
    const own = { ...homeOf(0), proof: 'login tok_own' as const };
    expect(await throttle.attempt(own, async () => 'in')).toBe('in');
  });

  it('does the work once, even if the work itself is throttled', async () => {
    const throttle = newLoginThrottle(db);
    let runs = 0;
    const work = () => {
      runs++;
      return Promise.reject(new ApiError('login_throttled'));
    };
    await codeOf(throttle.attempt({ name: 'ada@example.org', address: null }, work));
    expect(runs).toBe(1);
  });

  it('does not count errors other than wrong passwords and codes', async () => {
    const throttle = newLoginThrottle(db, 1);
    const trier = { name: 'ada@example.org', address: null };
    for (const error of [new ApiError('rate_limited'), new ApiError('totp_not_enabled'), new Error('broken')])
      await codeOf(throttle.attempt(trier, () => Promise.reject(error)));
    expect(await throttle.attempt(trier, async () => 'in')).toBe('in');
  });
});
