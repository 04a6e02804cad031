/** The pace of the pages while changes pour in, by a clock of the test. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { paced } from '../../../facades/console/src/pace.ts';

describe('Paced work', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('runs at once for the first call, and once after the rest for all calls that came meanwhile', async () => {
    const work = vi.fn(async () => {});
    const ask = paced(work, () => 10_000);
    for (let second = 0; second < 30; second++) {
      ask();
      await vi.advanceTimersByTimeAsync(1_000);
      expect(work).toHaveBeenCalledTimes(1 + Math.floor((second + 1) / 10));
    }
  });

  it('runs for the last call, also when a run fails', async () => {
    const work = vi.fn(() => Promise.reject(new Error('No answer.')));
    const ask = paced(work, () => 10_000);
    ask();
    ask();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(work).toHaveBeenCalledTimes(2);
    ask();
    expect(work).toHaveBeenCalledTimes(3);
  });

  it('starts no run before the one before it has ended', async () => {
    let end = () => {};
    const work = vi.fn(
      () =>
        new Promise<void>((resolve) => {
          end = resolve;
        }),
    );
    const ask = paced(work, () => 0);
    ask();
    ask();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(work).toHaveBeenCalledTimes(1);
    end();
    await vi.advanceTimersByTimeAsync(0);
    expect(work).toHaveBeenCalledTimes(2);
  });
});
