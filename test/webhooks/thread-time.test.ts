/** The accounts share the time of the thread of outbound calls. */
import { setImmediate as nextRound, setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished, vi } from 'vitest';
import { ThreadTime } from '../../provisioning/outbound/thread-time.ts';

/** Keeps the thread busy, as a costly certificate does. */
const busy = (ms: number) => {
  for (const end = performance.now() + ms; performance.now() < end; );
};

it('Accounts with costly receivers delay each read of another account by one read', async () => {
  const [time, order]: [ThreadTime, string[]] = [new ThreadTime(), []];
  const costly = () => {
    busy(3);
    order.push('costly');
  };
  for (const account of ['a', 'b', 'c', 'd']) for (let i = 0; i < 30; i++) time.atTurn(account, costly);
  // Each of the four has used some time by now.
  while (order.length < 8) await nextRound();
  const before = order.length;
  for (let i = 0; i < 5; i++) await new Promise<void>((read) => time.atTurn('other', read));
  expect(order.length - before).toBeLessThanOrEqual(5);
  while (order.length < 120) await nextRound();
});

it('The reads of an account keep their order', async () => {
  const [time, order]: [ThreadTime, number[]] = [new ThreadTime(), []];
  for (let i = 0; i < 20; i++) time.atTurn(i % 2 ? 'a' : 'b', () => order.push(i));
  await sleep(20);
  const ofParity = (parity: number) => order.filter((i) => i % 2 === parity);
  expect([ofParity(0), ofParity(1)]).toEqual([0, 1].map((parity) => ofParity(parity).toSorted((a, b) => a - b)));
  expect(order).toHaveLength(20);
});

it('An account that was costly gets its turns again later', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const [time, order]: [ThreadTime, string[]] = [new ThreadTime(), []];
  const spend = (account: string, ms: number) =>
    time.atTurn(account, () => {
      vi.advanceTimersByTime(ms);
      order.push(account);
    });
  const drained = async (count: number) => {
    while (order.length < count) await nextRound();
  };
  spend('costly', 100);
  spend('usual', 1);
  await drained(2);
  // Each of these reads comes in a minute of its own.
  for (let minute = 0; minute < 8; minute++) {
    vi.advanceTimersByTime(61_000);
    spend('other', 1);
    await drained(3 + minute);
  }
  spend('usual', 50);
  await drained(11);
  spend('usual', 1);
  spend('costly', 1);
  await drained(13);
  expect(order.slice(-2)).toEqual(['costly', 'usual']);
});
