/** Accounts take turns with large answers. Small ones wait for none. */
import { expect, it } from 'vitest';
import type { Context } from '../../../resolvers/context.ts';
import { atTurnOfAnswer } from '../../../resolvers/large-answers.ts';

const LARGE = { data: Array.from({ length: 200 }, (_, n) => ({ id: `${n}`, text: 'x'.repeat(1_000) })) };
const SMALL = { data: [{ id: '1', text: 'x' }] };

/** The callers of a test ask for a field of their own. They count the reads under way. */
function callers(field: string) {
  const order: string[] = [];
  const reading = { now: 0, most: 0 };
  const ask = async (accountId: string, answer: unknown = LARGE, signal = new AbortController().signal) => {
    const context = { viewer: { accountId, isUnpaid: false }, address: '192.0.2.1', signal } as unknown as Context;
    reading.most = Math.max(reading.most, 1 + reading.now);
    await atTurnOfAnswer(context, field, async () => {
      reading.most = Math.max(reading.most, ++reading.now);
      await new Promise(setImmediate);
      reading.now--;
      return answer;
    });
    order.push(accountId);
  };
  return { ask, order, reading };
}

it('A large answer waits for one of each other account, and for all of its own', async () => {
  const { ask, order } = callers('turns');
  await Promise.all([...Array.from({ length: 4 }, () => ask('a')), ask('b'), ask('c')]);
  expect(order.slice(0, 4).sort()).toEqual(['a', 'a', 'b', 'c']);
  expect(order.slice(4)).toEqual(['a', 'a']);
});

it('A small answer waits for no large one', async () => {
  const { ask, order } = callers('small');
  await Promise.all([...Array.from({ length: 20 }, () => ask('a')), ask('b', SMALL)]);
  expect(order.indexOf('b')).toBeLessThan(3);
});

it('The loop has rounds for others between two large answers, two for each millisecond', async () => {
  const { ask, order } = callers('rest');
  const busy = async () => {
    await ask('a');
    const until = performance.now() + 20;
    while (performance.now() < until);
  };
  const all = Promise.all([busy(), ask('b')]);
  let rounds = 0;
  for (; order.length < 2; rounds++) await new Promise(setImmediate);
  await all;
  expect(order).toEqual(['a', 'b']);
  expect(rounds).toBeGreaterThanOrEqual(40);
});

it('An account that had a large answer makes two reads of its field at once, also when its callers go', async () => {
  const { ask, reading } = callers('reads');
  await ask('a');
  reading.most = 0;
  const gone = new AbortController();
  const all = [ask('a'), ask('a'), ...Array.from({ length: 8 }, () => ask('a', LARGE, gone.signal))];
  const ends = Promise.allSettled(all);
  await new Promise(setImmediate);
  gone.abort();
  const refused = (await ends).filter(({ status }) => status === 'rejected');
  expect(refused).toHaveLength(8);
  expect(reading.most).toBeLessThanOrEqual(2);
});
