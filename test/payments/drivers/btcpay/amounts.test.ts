import { describe, expect, it } from 'vitest';
import { roundedUp, unitsIn } from '../../../../provisioning/payments/drivers/btcpay/amounts.ts';

describe("BTCPay's decimals", () => {
  it.each([
    ['0.001', 8, 100_000n],
    ['0.00100000123', 8, 100_000n],
    ['21000000', 8, 2_100_000_000_000_000n],
    ['1.5', 0, 1n],
    ['0.000000000000000001', 18, 1n],
  ])('%s with %i decimals are %i units', (amount, decimals, units) => {
    expect(unitsIn(amount, decimals)).toBe(units);
  });

  it.each(['', '-1', '1e-8', '1.', '.5', 'NaN', ' 1'])('%j is no amount', (amount) => {
    expect(() => unitsIn(amount, 8)).toThrow('is not an amount');
  });

  it.each([
    ['0.001', 8, '0.001'],
    ['0.00100000', 8, '0.001'],
    ['0.00100000001', 8, '0.00100001'],
    ['0.99999999999', 8, '1'],
    ['12', 0, '12'],
    ['12.1', 0, '13'],
  ])('%s is asked for as no less, with %i decimals: %s', (amount, decimals, asked) => {
    expect(roundedUp(amount, decimals)).toBe(asked);
  });
});
