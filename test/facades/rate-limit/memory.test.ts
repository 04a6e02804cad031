/** A process remembers the counts of some callers. */
import { beforeEach, expect, it } from 'vitest';
import { MemoryRateLimits } from '../../../facades/rate-limit/memory.ts';

const HOUR = 3_600_000;

let now: number;
let rates: MemoryRateLimits;
beforeEach(() => {
  now = 500_000 * HOUR;
  rates = new MemoryRateLimits(() => now);
});

/** Counts a call under one name. */
const takeOne = async (name: string, perMinute: number, perHour: number) =>
  (await rates.take([{ name, perMinute, perHour }]))[0]!;

it('forgets callers whose calls have faded', async () => {
  for (let i = 0; i < 100; i++) await takeOne(`ip:${i}`, 30, 2 ** 31 - 1);
  expect(rates.size).toBeGreaterThanOrEqual(100);
  now += 3 * HOUR;
  await takeOne('last', 1, 1);
  expect(rates.size).toBe(1);
});

it('limits the number of addresses in memory, and does not forget credentials for them', async () => {
  for (let i = 0; i < 10; i++) await takeOne('key_one', 10, 100);
  for (let i = 0; i < 250_000; i++) await takeOne(`ip:${i}`, 30, 2 ** 31 - 1);
  expect(rates.size).toBeLessThanOrEqual(100_010);
  expect((await takeOne('key_one', 10, 100)).allowed).toBe(false);
});

it('limits the number of credentials in memory, and keeps the counts of one that calls on', async () => {
  for (let i = 0; i < 450_000; i++) {
    if (i % 45_000 === 0) await takeOne('key_one', 10, 100);
    await takeOne(`key_${i}`, 10, 100);
  }
  expect(rates.size).toBeLessThanOrEqual(200_000);
  expect((await takeOne('key_one', 10, 100)).allowed).toBe(false);
});
