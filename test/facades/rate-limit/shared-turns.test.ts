/** Counts in the database cost a statement each. */
import { expect, it } from 'vitest';
import { onBehalfOfStranger } from '../../../entities/caller.ts';
import { takeRateLimits } from '../../../entities/rate-limit.ts';
import { RateLimits } from '../../../facades/rate-limit/rate-limit.ts';
import { newDatabase } from '../../setup/database.ts';
import { atEnd } from '../../setup/end.ts';

it('A stranger counts in the database at the turn of its site, while another site gets its count', async () => {
  const db = await newDatabase(atEnd, { poolSize: 5 });
  const quotas = {
    ...{ keyPerMinute: 60, keyPerHour: 600, accountPerMinute: 60, accountPerHour: 600 },
    ...{ publicPerMinute: 60, pagesPerMinute: 60, onionPerMinute: 60, unpaidPerHour: 60 },
  };
  const shared = { take: takeRateLimits.bind(undefined, db) };
  const faults: unknown[] = [];
  const onError = (fault: unknown) => void faults.push(fault);
  const limits = new RateLimits({ quotas, shared, secret: Buffer.alloc(32), isPayer: async () => true, onError });
  const ended: string[] = [];
  const note = async (name: string, work: Promise<unknown>) => work.then(() => ended.push(name));
  const slow = () => onBehalfOfStranger('198.51.100.7', () => db.query('select pg_sleep(2)'));
  await Promise.all([
    ...Array.from({ length: 6 }, () => note('slow', slow())),
    note('count of the site', limits.take(null, '198.51.100.7')),
    note('count of another', limits.take(null, '203.0.113.7')),
  ]);
  expect(ended.slice(0, 2)).toEqual(['count of another', 'slow']);
  expect(faults).toEqual([]);
});
