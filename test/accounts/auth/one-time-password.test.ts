import { Secret, TOTP } from 'otpauth';
import { describe, expect, it } from 'vitest';
import { codeOf, newSeed, seedBytes, stepAt, stepOf } from '../../../resolvers/accounts/auth/one-time-password.ts';

const SEED = Buffer.from('12345678901234567890');

describe('A one-time password', () => {
  it.each([
    [59, '94287082'],
    [1111111109, '07081804'],
    [1111111111, '14050471'],
    [1234567890, '89005924'],
    [2000000000, '69279037'],
    [20000000000, '65353130'],
  ])('matches the vector of RFC 6238, appendix B, at second %i', (seconds, code) => {
    expect(codeOf(SEED, stepAt(seconds * 1000), 8)).toBe(code);
    expect(codeOf(SEED, stepAt(seconds * 1000))).toBe(code.slice(2));
  });

  it('equals the code of another implementation, for many seeds and times', () => {
    for (let i = 0; i < 200; i++) {
      const seed = newSeed();
      const timestamp = Math.floor(Math.random() * 4e12);
      const peer = new TOTP({ secret: Secret.fromBase32(seed), algorithm: 'SHA1', digits: 6, period: 30 });
      expect(codeOf(seedBytes(seed), stepAt(timestamp))).toBe(peer.generate({ timestamp }));
    }
  });

  it('is accepted one step early and one step late, and no further', () => {
    const now = 1_700_000_000_000;
    const accepted = [-2, -1, 0, 1, 2].map((off) => stepOf(SEED, codeOf(SEED, stepAt(now) + off), now));
    expect(accepted).toEqual([undefined, stepAt(now) - 1, stepAt(now), stepAt(now) + 1, undefined]);
  });

  it.each(['', '12345', '1234567', 'abcdef', '１２３４５６', '12345\n'])('is not %j', (code) => {
    expect(stepOf(SEED, code)).toBeUndefined();
  });

  it('has a seed of 160 bits that survives base32', () => {
    expect(newSeed()).toMatch(/^[A-Z2-7]{32}$/);
    expect(seedBytes('GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ').equals(SEED)).toBe(true);
  });
});
