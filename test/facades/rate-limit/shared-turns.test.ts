/** Counts in the database cost a statement each. */
import { expect, it, onTestFinished } from 'vitest';
import { onBehalfOfStranger } from '../../../entities/caller.ts';
import { takeRateLimits } from '../../../entities/rate-limit.ts';
import { RateLimits } from '../../../facades/rate-limit/rate-limit.ts';
import { newDatabase } from '../../setup/database.ts';

/** Limits that count in a database of few connections, and their faults. */
async function sharedLimits() {
  const db = await newDatabase(onTestFinished, { poolSize: 5 });
  const quotas = {
    ...{ keyPerMinute: 60, keyPerHour: 600, accountPerMinute: 60, accountPerHour: 600 },
    ...{ publicPerMinute: 60, pagesPerMinute: 60, onionPerMinute: 60, unpaidPerHour: 60 },
  };
  const shared = { take: takeRateLimits.bind(undefined, db) };
  const faults: unknown[] = [];
  const onError = (fault: unknown) => void faults.push(fault);
  const limits = new RateLimits({ quotas, shared, secret: Buffer.alloc(32), isPayer: async () => true, onError });
  const slow = () => onBehalfOfStranger('198.51.100.7', () => db.query('select pg_sleep(2)'));
  return { limits, faults, slow };
}

it('A stranger counts in the database at the turn of its site, while another site gets its count', async () => {
  const { limits, faults, slow } = await sharedLimits();
  const ended: string[] = [];
  const note = async (name: string, work: Promise<unknown>) => work.then(() => ended.push(name));
  await Promise.all([
    ...Array.from({ length: 6 }, () => note('slow', slow())),
    note('count of the site', limits.take(null, '198.51.100.7')),
    note('count of another', limits.take(null, '203.0.113.7')),
  ]);
  expect(ended.slice(0, 2)).toEqual(['count of another', 'slow']);
  expect(faults).toEqual([]);
});

it('A stranger with too many calls under way is refused, and the process counts the others in the database', async () => {
  const { limits, faults, slow } = await sharedLimits();
  const held = [slow(), slow()];
  const takes = await Promise.allSettled(Array.from({ length: 250 }, () => limits.take(null, '198.51.100.7')));
  const refused = takes.flatMap((take) => (take.status === 'rejected' ? [take.reason.code] : []));
  expect(new Set(refused)).toEqual(new Set(['rate_limited']));
  expect(faults).toEqual([]);
  await Promise.all(held);
});
