/** The accounts share the time of the thread of outbound calls. */
import { setImmediate as nextRound, setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished, vi } from 'vitest';
import { ThreadTime } from '../../provisioning/outbound/thread-time.ts';

/** Keeps the thread busy, as a costly certificate does. */
const busy = (ms: number) => {
  const begun = process.threadCpuUsage();
  for (let spentMs = 0; spentMs < ms; ) {
    const { user, system } = process.threadCpuUsage(begun);
    spentMs = (user + system) / 1000;
  }
};

/** Reads that note their accounts in their order. */
function reading() {
  const [time, order]: [ThreadTime, string[]] = [new ThreadTime(), []];
  const read = (account: string, ms: number) =>
    time.atTurn(account, () => {
      busy(ms);
      order.push(account);
    });
  const drained = async (count: number) => {
    while (order.length < count) await nextRound();
  };
  return { order, read, drained };
}

it('Accounts with costly receivers delay each read of another account by one read', async () => {
  const [time, order]: [ThreadTime, string[]] = [new ThreadTime(), []];
  const costly = () => {
    busy(8);
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

// A pause of the garbage collector makes a usual read a costly one.
it('An account with many usual reads comes before one with costly reads, and takes turns with new ones', {
  retry: 3,
}, async () => {
  const { order, read, drained } = reading();
  for (let i = 0; i < 20; i++) read('usual', 1);
  read('costly', 10);
  await drained(21);
  for (const account of ['costly', 'new', 'usual']) for (let i = 0; i < 2; i++) read(account, 0);
  await drained(27);
  expect(order.slice(-6)).toEqual(['new', 'usual', 'new', 'usual', 'costly', 'costly']);
});

it('An account that was costly gets its turns again later', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const { order, read, drained } = reading();
  read('costly', 100);
  await drained(1);
  // Each of these reads comes in a minute of its own.
  for (let minute = 0; minute < 8; minute++) {
    vi.advanceTimersByTime(61_000);
    read('other', 0);
    await drained(2 + minute);
  }
  read('lately', 10);
  await drained(10);
  read('lately', 0);
  read('costly', 0);
  await drained(12);
  expect(order.slice(-2)).toEqual(['costly', 'lately']);
});
