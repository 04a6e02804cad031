import { describe, expect, it } from 'vitest';
import { agreedRate, peggedRate } from '../../entities/payments/coin.ts';
import { formatUnits, microsOf, parseUnits, unitsOf } from '../../provisioning/payments/top-ups/amount.ts';

describe('An amount of micro-USD', () => {
  it.each([
    [30_000_000n, 60_000_000_000n, 8, '0.0005'],
    [100_000_000n, 3_000_000n, 8, '33.33333334'],
    [30_000_000n, 1_000_000n, 6, '30'],
    [1n, 60_000_000_000n, 8, '0.00000001'],
    [10_000_000_000n, 2_500_000_000n, 18, '4'],
  ])(
    '%d at %d for one is, with %d decimals, %s: rounded up, and without needless zeros',
    (micros, rate, decimals, amount) => {
      const units = unitsOf(micros, rate, decimals);
      expect(formatUnits(units, decimals)).toBe(amount);
      expect(parseUnits(amount, decimals)).toBe(units);
      expect(microsOf(units, rate, decimals)).toBeGreaterThanOrEqual(micros);
    },
  );

  it.each(['', '-1', '1.', '.5', '1e3', '0.123456789'])('is not %j, with eight decimals', (text) => {
    expect(() => parseUnits(text, 8)).toThrow();
  });
});

describe('Sources of exchange rates', () => {
  it('agree on their median if two of them are close to each other', () => {
    expect(agreedRate([])).toBeNull();
    expect(agreedRate([100n])).toBeNull();
    expect(agreedRate([100n, 102n])).toBe(101n);
    expect(agreedRate([100n, 104n])).toBeNull();
    expect(agreedRate([101n, 99n, 100n])).toBe(100n);
    expect(agreedRate([0n, 0n])).toBeNull();
  });

  it('may deviate by two cents for a coin that is pegged to the dollar', () => {
    expect(peggedRate(1_020_000n)).toBe(1_000_000n);
    expect(peggedRate(979_999n)).toBeNull();
    expect(peggedRate(null)).toBeNull();
  });
});
