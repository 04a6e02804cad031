import { describe, expect, it } from 'vitest';
import { startFreehold } from '../../setup/freehold.ts';
import { posterAt } from './login-attempts.ts';

const { newAccount, publicUrl, db } = await startFreehold();

const post = posterAt(publicUrl);
const login = (address: string, email: string, password = 'not the password') =>
  post(address, '/v1/auth/login', { email, password });

describe('Guessing a login', () => {
  it('stops after ten failures for an account, known or unknown', async () => {
    const { email } = await newAccount();
    for (const [name, net] of [
      [email, 2],
      ['nobody@example.org', 3],
    ]) {
      const from = (i: number) => `127.0.${net}.${i + 1}`;
      for (let i = 0; i < 10; i++) expect((await login(from(i), String(name))).body.code).toBe('invalid_login');
      const { status, retryAfter, body } = await login(from(50), String(name));
      expect([status, body.code, body.retryable]).toEqual([429, 'login_throttled', true]);
      expect(Number(retryAfter)).toBe(body.retry_after);
      expect(body.retry_after).toBeGreaterThan(800);
      expect(body.retry_after).toBeLessThanOrEqual(900);
    }
  });

  it('stops after exactly ten failures when fifty attempts come at once', async () => {
    const { email } = await newAccount();
    const replies = await Promise.all(Array.from({ length: 50 }, (_, i) => login(`127.0.4.${i + 1}`, email)));
    expect(replies.filter(({ body }) => body.code === 'invalid_login')).toHaveLength(10);
    expect(replies.filter(({ body }) => body.code === 'login_throttled')).toHaveLength(40);
  });

  it('stops after ten failures from a network, but not for other networks', async () => {
    const { email, password } = await newAccount();
    for (let i = 0; i < 10; i++) await login('127.0.5.1', `guess-${i}@example.org`);
    expect((await login('127.0.5.1', email, password)).status).toBe(429);
    expect((await login('127.0.5.2', email, password)).status).toBe(200);
  });

  it('does not lock the owner out: a known network still logs in, and credentials work', async () => {
    const { email, password, rest } = await newAccount();
    for (let i = 0; i < 12; i++) await login(`127.0.6.${i + 1}`, email);
    expect((await login('127.0.6.99', email, password)).status).toBe(429);
    expect((await login('127.0.0.1', email, password)).status).toBe(200);
    expect((await rest('GET', '/v1/account')).status).toBe(200);
  });

  it('lets sixty-four logins with the right password succeed at once', async () => {
    const { email, password } = await newAccount();
    const replies = await Promise.all(Array.from({ length: 64 }, () => login('127.0.7.1', email, password)));
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(64);
  });

  it('counts guesses of the password with a stolen token', async () => {
    const { accessToken } = await newAccount();
    const codes = [];
    for (let i = 0; i < 11; i++) {
      const wrong = { password: 'not the password' };
      codes.push((await post('127.0.8.1', '/v1/auth/totp/setup', wrong, accessToken)).body.code);
    }
    expect(codes).toEqual([...Array(10).fill('wrong_password'), 'login_throttled']);
  });

  it('leaves no address in any table', async () => {
    const tables = await db.query<{ name: string }>(
      `select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace and relname <> 'address'`,
    );
    for (const { name } of tables) {
      const [found] = await db.query(`select 1 from ${name} t where t::text like '%127.0.%' limit 1`);
      expect([name, found]).toEqual([name, undefined]);
    }
  });
});
