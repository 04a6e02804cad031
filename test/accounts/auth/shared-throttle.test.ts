/** The throttle of logins with counts that processes share. The tests move the time in the database. */
import { describe, expect, it } from 'vitest';
import { beginLogin, sweepLogins } from '../../../entities/accounts/login-attempt.ts';
import { onBehalfOf } from '../../../entities/caller.ts';
import { LoginAttempts } from '../../../resolvers/accounts/auth/login-attempts.ts';
import { LoginThrottle } from '../../../resolvers/accounts/auth/throttle.ts';
import { newDatabase } from '../../setup/database.ts';
import { eventually } from '../../setup/freehold.ts';
import { codeOf, wrong } from './login-attempts.ts';

const db = await newDatabase();
const KEY = Buffer.alloc(32, 7);
const faults: unknown[] = [];
/** One throttle for each process. They share only the database. */
const processes = Array.from(
  { length: 3 },
  () => new LoginThrottle(10, new LoginAttempts(db, (e) => faults.push(e)), KEY),
);

const tryAll = (
  n: number,
  trier: (i: number) => { name: string; address: string | null },
  work: () => Promise<unknown>,
) => Promise.all(Array.from({ length: n }, (_, i) => codeOf(processes[i % 3]!.attempt(trier(i), work))));
const count = (codes: string[], code: string) => codes.filter((one) => one === code).length;

describe('The throttle of logins of several processes', () => {
  it('lets exactly ten fail for a name in all processes, when ninety try at once', async () => {
    const codes = await tryAll(90, (i) => ({ name: 'ada@example.org', address: `203.0.113.${i}` }), wrong);
    expect([count(codes, 'invalid_login'), count(codes, 'login_throttled')]).toEqual([10, 80]);
  });

  it('lets ten fail from a network in all processes, and ten at the next network', async () => {
    const codes = await tryAll(40, (i) => ({ name: `${i}@example.org`, address: '198.51.100.1' }), wrong);
    expect(count(codes, 'invalid_login')).toBe(10);
    const next = await tryAll(12, (i) => ({ name: `${i}@example.net`, address: '198.51.100.2' }), wrong);
    expect(count(next, 'invalid_login')).toBe(10);
  });

  it('tells logins apart that begin in the same moment, so that the end of one ends no other', async () => {
    const begun = await Promise.all(
      Array.from({ length: 4_000 }, (_, i) =>
        beginLogin(db, { pair: 'pair', paired: 'pair', apart: [`${i}`], max: 10, windowSeconds: 900 }),
      ),
    );
    const marks = new Set(begun.map((login) => 'begun' in login && login.begun.mark));
    expect(marks.size).toBe(begun.length);
  });

  it('lets logins with the right password wait, and refuses none', async () => {
    const trier = () => ({ name: 'right@example.org', address: '198.51.100.3' });
    expect(count(await tryAll(40, trier, async () => 'in'), 'ok')).toBe(40);
  });

  it('names the seconds to wait, and forgets after fifteen minutes', async () => {
    const trier = { name: 'later@example.org', address: null };
    await tryAll(10, () => trier, wrong);
    const refusal = () => processes[1]!.attempt(trier, async () => 'in').catch((error) => error);
    const refused = await refusal();
    expect(refused.code).toBe('login_throttled');
    expect(refused.extras.retryAfter).toBeGreaterThan(800);
    expect(refused.extras.retryAfter).toBeLessThanOrEqual(900);
    await db.query('update login_tally set failures = array(select one - 890 from unnest(failures) as one)');
    expect((await refusal()).extras.retryAfter).toBeLessThanOrEqual(10);
    await db.query('update login_tally set failures = array(select one - 10 from unnest(failures) as one)');
    expect(await refusal()).toBe('in');
  });

  it('shares known pairs of name and network, so strangers cannot lock an owner out', async () => {
    const home = { name: 'owner@example.org', address: '203.0.113.9' };
    await processes[0]!.remember(home);
    await tryAll(20, (i) => ({ ...home, address: `198.51.100.${100 + i}` }), wrong);
    const elsewhere = { ...home, address: '198.51.100.200' };
    expect(await codeOf(processes[2]!.attempt(elsewhere, async () => 'in'))).toBe('login_throttled');
    expect(await codeOf(processes[2]!.attempt(home, async () => 'in'))).toBe('ok');
    const proven = { ...home, proof: 'password' as const };
    const guesses = await tryAll(12, (i) => ({ ...proven, address: `198.51.100.${100 + i}` }), wrong);
    expect(count(guesses, 'invalid_login')).toBe(10);
    expect(await codeOf(processes[2]!.attempt(proven, async () => 'in'))).toBe('ok');
    expect(count(await tryAll(12, () => proven, wrong), 'invalid_login')).toBe(10);
    expect(await codeOf(processes[2]!.attempt(home, async () => 'in'))).toBe('ok');
  });

  it('counts failures whose caller has filled the queue of the database', async () => {
    const asThief = <T>(work: () => Promise<T>) => onBehalfOf({ kind: 'account', group: 'acct_thief' }, work);
    const gate = Promise.withResolvers<void>();
    const guess = () => gate.promise.then(wrong);
    const trier = { name: 'flooded@example.org', address: null };
    const guesses = Array.from({ length: 10 }, () => asThief(() => codeOf(processes[0]!.attempt(trier, guess))));
    await eventually(async () => {
      const [row] = await db.query<{ most: number }>('select max(cardinality(under_way)) as most from login_tally');
      return row!.most === 10;
    });
    const flood = Array.from({ length: 210 }, () => asThief(() => db.query('select pg_sleep(0.01)')).catch(() => {}));
    gate.resolve();
    await Promise.all([...guesses, ...flood]);
    expect(await codeOf(processes[1]!.attempt(trier, async () => 'in'))).toBe('login_throttled');
  });

  it('stops counting a login under way whose process was killed', async () => {
    const trier = { name: 'killed@example.org', address: null };
    for (let i = 0; i < 10; i++) void processes[0]!.attempt(trier, () => new Promise(() => {}));
    await eventually(async () => {
      const [row] = await db.query<{ most: number }>('select max(cardinality(under_way)) as most from login_tally');
      return row!.most === 10;
    });
    const waiting = processes[1]!.attempt(trier, async () => 'in');
    await db.query('update login_tally set under_way = array(select one - 60 from unnest(under_way) as one)');
    expect(await waiting).toBe('in');
  });

  it('stores no emails and no addresses, and deletes rows that no longer count', async () => {
    const rows = await db.query<{ text: string }>('select t::text as text from login_tally as t');
    expect(rows.length).toBeGreaterThan(10);
    for (const { text } of rows) expect(text).not.toMatch(/example|\d+\.\d+\.\d+\.\d+/);
    await db.query('update login_tally set forget_at = forget_at - 1020');
    await sweepLogins(db);
    const kept = await db.query<{ known: boolean }>('select known_until > 0 as known from login_tally');
    expect(kept).toEqual([{ known: true }]);
    expect(faults).toEqual([]);
  });
});
