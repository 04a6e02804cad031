import { afterEach, describe, expect, it, vi } from 'vitest';

// A separate copy of the module: these tests change its clock, and other files share the process.
const { isId, isOrderNumber, newId, newOrderNumber, randomText } = (await import(
  `../entities/ids.ts?${'own'}`
)) as typeof import('../entities/ids.ts');

afterEach(() => void vi.restoreAllMocks());
const newIds = (count: number) => Array.from({ length: count }, () => newId('srv'));

describe('An id', () => {
  it('has its prefix and 26 Crockford characters', () => {
    for (const prefix of ['acct', 'tok', 'key', 'sshkey', 'evt', 'aud', 'req'] as const) {
      const id = newId(prefix);
      expect(id).toMatch(new RegExp(`^${prefix}_[0-9a-hjkmnp-tv-z]{26}$`));
      expect(isId(prefix, id)).toBe(true);
    }
  });

  it('differs from 100,000 others, and sorts by creation', () => {
    const ids = newIds(100_000);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.toSorted()).toEqual(ids);
  });

  it('sorts by creation within a millisecond, and while the clock goes back', () => {
    const clock = vi.spyOn(Date, 'now');
    const start = Date.now() + 1000;
    const ids = [0, 0, 0, -50, -5000, 1, 1, -590_000, 2].flatMap((ms) => {
      clock.mockReturnValue(start + ms);
      return newIds(2000);
    });
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.toSorted()).toEqual(ids);
  });

  it('follows a clock that goes back by more than ten minutes', () => {
    const clock = vi.spyOn(Date, 'now');
    const start = Date.UTC(2060, 0, 1);
    const timeOfIdAt = (ms: number) => {
      clock.mockReturnValue(ms);
      return newId('xfr').slice(4, 14);
    };
    const before = timeOfIdAt(start);
    expect(timeOfIdAt(start + 86_400_000) > before).toBe(true);
    expect(timeOfIdAt(start)).toBe(before);
  });

  it('begins with the time', () => {
    const late = Date.UTC(2100, 0, 1);
    vi.spyOn(Date, 'now').mockReturnValue(late);
    const digits = newId('evt').slice(4, 14);
    const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';
    expect(Array.from(digits).reduce((ms, digit) => ms * 32 + alphabet.indexOf(digit), 0)).toBe(late);
  });

  it.each([
    ['nothing', ''],
    ['another prefix', newId('key')],
    ['a character too few', newId('srv').slice(0, -1)],
    ['a character too many', `${newId('srv')}0`],
    ['capitals', newId('srv').toUpperCase()],
    ['a letter that Crockford leaves out', newId('srv').replace(/.$/, 'u')],
    ['a line break at its end', `${newId('srv')}\n`],
  ])('is distinguished from %s', (_, text) => {
    expect(isId('srv', text)).toBe(false);
  });
});

describe('An order number', () => {
  const numbers = Array.from({ length: 20_000 }, () => newOrderNumber('SRV'));

  it('is easy to read aloud: SRV- or TOP-, and ten characters without I, L, O and U', () => {
    for (const number of numbers) if (!/^SRV-[0-9A-HJKMNP-TV-Z]{10}$/.test(number)) throw new Error(number);
    expect(newOrderNumber('TOP')).toMatch(/^TOP-[0-9A-HJKMNP-TV-Z]{10}$/);
    expect(isOrderNumber('SRV', numbers[0]!)).toBe(true);
    expect(isOrderNumber('TOP', numbers[0]!)).toBe(false);
    expect(isOrderNumber('SRV', numbers[0]!.toLowerCase())).toBe(false);
  });

  it('is random: all differ, and each of 32 characters is equally frequent at each place', () => {
    expect(new Set(numbers).size).toBe(numbers.length);
    for (let place = 4; place < 14; place++) {
      const counts = Map.groupBy(numbers, (number) => number[place]);
      expect(counts.size).toBe(32);
      // The mean is 625, and the standard deviation 25.
      for (const { length } of counts.values()) expect(Math.abs(length - 625)).toBeLessThan(250);
    }
  });
});

it('A short name is valid in a host name', () => {
  expect(`srv-${randomText(6)}`).toMatch(/^srv-[0-9a-z]{6}$/);
});
