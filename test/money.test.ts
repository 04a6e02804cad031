import { describe, expect, it } from 'vitest';
import {
  differenceMicros,
  hourlyMicros,
  lostRefundMicros,
  MICROS_PER_USD,
  microsFromUsd,
  PAID_HOURS,
  refundMicros,
  usdFromMicros,
} from '../entities/money.ts';

const random = (below: number) => Math.floor(Math.random() * below);
const atHour = (hours: number) => new Date(Date.UTC(2026, 0, 1) + hours * 3_600_000);

describe('US dollars', () => {
  it('survive the round trip, and are exact in micro-USD: 200,000 amounts below a billion', () => {
    for (let i = 0; i < 200_000; i++) {
      const whole = random(10 ** (1 + random(9)));
      const fraction = String(random(1_000_000)).padStart(6, '0').slice(0, random(7));
      const usd = Number(`${whole}.${fraction}`);
      const micros = microsFromUsd(usd);
      if (micros !== BigInt(whole) * MICROS_PER_USD + BigInt(fraction.padEnd(6, '0')) || usdFromMicros(micros) !== usd)
        throw new Error(`${usd} USD became ${micros} micro-USD and then ${usdFromMicros(micros)} USD`);
    }
  });

  it.each([
    [0, 0n],
    [0.000001, 1n],
    [0.1 + 0.2, 300_000n],
    [1.005, 1_005_000n],
    [19.99, 19_990_000n],
    [999_999_999.999999, 999_999_999_999_999n],
  ])('%d are the nearest micro-USD', (usd, micros) => {
    expect(microsFromUsd(usd)).toBe(micros);
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY])('are never %d', (usd) => {
    expect(() => microsFromUsd(usd)).toThrow();
  });
});

describe('The hourly rate', () => {
  it('is a 730th of the month, rounded down, so that its hours never exceed the month', () => {
    expect(hourlyMicros(7_300_000n)).toBe(10_000n);
    expect(hourlyMicros(6_000_000n)).toBe(8219n);
    for (let i = 0; i < 10_000; i++) {
      const month = BigInt(random(1e12));
      const hours = hourlyMicros(month) * BigInt(PAID_HOURS);
      if (hours > month || month - hours >= 730n) throw new Error(`${month} a month, ${hours} for its hours`);
    }
  });
});

describe('A refund', () => {
  it('covers the whole hours that are left', () => {
    expect(refundMicros(7_300_000n, atHour(10), atHour(0))).toBe(100_000n);
    expect(refundMicros(7_300_000n, atHour(10), atHour(0.01))).toBe(90_000n);
    expect(refundMicros(7_300_000n, atHour(1), atHour(0.001))).toBe(0n);
  });

  it('is zero when the time is over', () => {
    for (const late of [0, 0.5, 1, 10_000]) expect(refundMicros(7_300_000n, atHour(0), atHour(late))).toBe(0n);
  });

  it('is never negative, never more than the month, and never grows with time', () => {
    for (let i = 0; i < 20_000; i++) {
      const month = BigInt(random(10 ** (1 + random(11))));
      const [paidUntil, now] = [atHour(Math.random() * 2000), atHour(Math.random() * 2000)];
      const refund = refundMicros(month, paidUntil, now);
      const later = refundMicros(month, paidUntil, new Date(now.getTime() + random(7_200_000)));
      if (refund < 0n || refund > month || later > refund)
        throw new Error(
          `${refund} of ${month} until ${paidUntil.toISOString()} at ${now.toISOString()}, then ${later}`,
        );
    }
  });

  it('right after the payment is the price of the month, less at most one hour', () => {
    const month = 24_000_000n;
    const left = refundMicros(month, atHour(PAID_HOURS), atHour(0));
    expect(month - left).toBeLessThan(730n);
    expect(refundMicros(month, atHour(744), atHour(0))).toBe(month);
  });
});

describe('The difference of two months', () => {
  it('covers the hours that are left, with begun hours as whole, and is never negative', () => {
    const [month, next] = [6_000_000n, 24_000_000n];
    expect(differenceMicros(month, next, atHour(PAID_HOURS), atHour(0.01))).toBe(18_000_000n);
    expect(differenceMicros(month, next, atHour(365), atHour(0))).toBe(9_000_000n);
    expect(differenceMicros(next, month, atHour(365), atHour(0))).toBe(0n);
    expect(differenceMicros(month, next, atHour(0), atHour(1))).toBe(0n);
  });

  it('plus the old price is never less than the refund of a deletion', () => {
    for (let i = 0; i < 20_000; i++) {
      const month = BigInt(random(10 ** (1 + random(9))));
      const next = month + BigInt(random(10 ** (1 + random(9))));
      const [paidUntil, now] = [atHour(PAID_HOURS), atHour(Math.random() * PAID_HOURS)];
      const paid = month + differenceMicros(month, next, paidUntil, now);
      if (refundMicros(next, paidUntil, now) > paid) throw new Error(`${month} to ${next} at ${now.toISOString()}`);
    }
  });

  it('comes back at a lower price, so that two refunds are never more than one', () => {
    for (let i = 0; i < 20_000; i++) {
      const next = BigInt(random(10 ** (1 + random(9))));
      const month = next + BigInt(random(10 ** (1 + random(9))));
      const [paidUntil, now] = [atHour(PAID_HOURS), atHour(Math.random() * PAID_HOURS)];
      const back = lostRefundMicros(month, next, paidUntil, now);
      if (back + refundMicros(next, paidUntil, now) !== refundMicros(month, paidUntil, now))
        throw new Error(`${month} to ${next} at ${now.toISOString()}`);
      if (lostRefundMicros(next, month, paidUntil, now) !== 0n) throw new Error(`${next} to ${month} lost money.`);
    }
  });
});
