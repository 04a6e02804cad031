/** The places of a host, which the accounts share. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { HostPlaces } from '../../provisioning/outbound/host-places.ts';

/** Holds places until their ends. */
function holder(places: HostPlaces) {
  const held: { account: string; end: () => void }[] = [];
  /** The work, or the seconds of a rest. */
  const hold = (account: string, url = 'https://shared.example/') =>
    places.during<string | number>(
      { url, account },
      () => new Promise((end) => held.push({ account, end: () => end('done') })),
      (seconds) => seconds,
    );
  /** Whether the account gets a place, which it then holds. */
  const gets = (account: string, url?: string): boolean => {
    const before = held.length;
    void hold(account, url);
    return held.length > before;
  };
  return { held, hold, gets };
}
const settled = () => new Promise(setImmediate);

describe('The places of a host', () => {
  it('go to an account four times, under all ports of the host, and come back', async () => {
    const { held, hold, gets } = holder(new HostPlaces(10));
    const running = [1, 2, 3, 4].map((i) => hold('ada', `https://shared.example:${2000 + i}/`));
    expect(await hold('ada')).toBe(1);
    expect(gets('ada', 'https://other.example/')).toBe(true);
    for (const { end } of held) end();
    expect(await Promise.all(running)).toEqual(Array(4).fill('done'));
    expect(gets('ada')).toBe(true);
  });

  it('are eight for accounts that have one, and a newcomer still finds one', () => {
    const { gets } = holder(new HostPlaces(10));
    for (const account of ['ada', 'bob']) for (let i = 0; i < 4; i++) expect(gets(account)).toBe(true);
    expect(gets('ada')).toBe(false);
    expect(gets('eve')).toBe(true);
    expect(gets('eve')).toBe(false);
    expect(gets('kim')).toBe(true);
  });

  it('go in turn to the accounts that wait, after the last is taken', async () => {
    const { held, gets } = holder(new HostPlaces(2));
    expect([gets('ada'), gets('bob'), gets('eve'), gets('kim')]).toEqual([true, true, false, false]);
    held[0]!.end();
    await settled();
    expect([gets('ada'), gets('kim'), gets('eve')]).toEqual([false, false, true]);
    held[1]!.end();
    await settled();
    expect([gets('bob'), gets('ada'), gets('kim')]).toEqual([false, false, true]);
  });

  it('let a task without one ask again after a second, or later while many wait, at any host', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const { hold, gets } = holder(new HostPlaces(1));
    for (const host of ['one', 'two']) expect(gets('ada', `https://${host}.example/`)).toBe(true);
    const urls = Array.from({ length: 3000 }, (_, i) => `https://${i % 2 ? 'one' : 'two'}.example/`);
    const rests = (await Promise.all(urls.map((url, i) => hold(`account ${i}`, url)))) as number[];
    const inSecond = (second: number) => rests.filter((rest) => Math.floor(rest) === second).length;
    expect(inSecond(0)).toBe(0);
    expect(Array.from({ length: 12 }, (_, i) => inSecond(i + 3))).toEqual(Array(12).fill(200));
  });

  it('stay for an account until it asks again, however long its rest is', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const { held, hold, gets } = holder(new HostPlaces(2));
    expect([gets('ada'), gets('bob')]).toEqual([true, true]);
    for (let i = 0; i < 20_000; i++) void hold('ada');
    expect(await hold('eve')).toBe(60);
    held[0]!.end();
    await settled();
    vi.advanceTimersByTime(60_000);
    expect([gets('kim'), gets('eve')]).toEqual([false, true]);
  });
});
