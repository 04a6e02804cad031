/** Groups of callers take turns. The work of these tests ends when they say so. */
import { describe, expect, it } from 'vitest';
import { type TurnLimits, Turns } from '../../entities/turns.ts';

/** A single place. Returns the order in which works begin, and ends them one after the other. */
function onePlace(limits: Partial<TurnLimits> = {}) {
  const turns = new Turns({ places: 1, waiting: 8, waitingOfGroup: 4, refusal: 'Too much waits.', ...limits });
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const ask = async (name: string, group = name.split(' ')[0]!, signal?: AbortSignal, rank?: number) => {
    const leave = await turns.enter(group, signal, rank);
    begun.push(name);
    await new Promise<void>((end) => ends.push(end));
    leave();
    return name;
  };
  const settled = () => new Promise(setImmediate);
  const end = async () => {
    await settled();
    ends.shift()?.();
    await settled();
  };
  return { ask, begun, end, settled };
}
const REFUSED = { code: 'rate_limited' };

describe('Work', () => {
  it('waits for one work of each other group, and for all of its own', async () => {
    const { ask, begun, end } = onePlace();
    const flood = ['a 1', 'a 2', 'a 3', 'a 4', 'b 1', 'b 2'].map((name) => ask(name));
    const other = ask('c 1');
    for (let i = 0; i < 7; i++) await end();
    expect(begun).toEqual(['a 1', 'a 2', 'b 1', 'c 1', 'a 3', 'b 2', 'a 4']);
    expect(await Promise.all([...flood, other])).toHaveLength(7);
    const later = ask('d 1');
    await end();
    expect(await later).toBe('d 1');
  });

  it('of a group without recent work goes before that of groups that always have some', async () => {
    const { ask, begun, end } = onePlace();
    const rare = ask('r 1');
    await end();
    await rare;
    const busy = ['a 1', 'b 1', 'c 1', 'a 2', 'b 2', 'c 2'].map((name) => ask(name));
    for (let i = 0; i < 2; i++) await end();
    const later = [ask('new'), ask('r 2')];
    for (let i = 0; i < 7; i++) await end();
    await Promise.all([...busy, ...later]);
    expect(begun).toEqual(['r 1', 'a 1', 'a 2', 'b 1', 'r 2', 'c 1', 'b 2', 'new', 'c 2']);
  });

  it('goes by its rank within its group, and each third turn by its arrival', async () => {
    const { ask, begun, end } = onePlace({ waitingOfGroup: 8 });
    const ranks = [0, 9, 3, 2, 1, 1, 1];
    const all = ranks.map((rank, n) => ask(`a ${n} of rank ${rank}`, 'a', undefined, rank));
    for (let i = 0; i < ranks.length; i++) await end();
    await Promise.all(all);
    const turns = begun.map((name) => Number(name.at(-1)));
    expect(turns).toEqual([0, 1, 1, 9, 1, 2, 3]);
  });

  it('takes the place of the highest rank of its group if too much waits', async () => {
    const { ask, end } = onePlace({ waitingOfGroup: 2 });
    const first = ask('a 0', 'a');
    const queued = [5, 4].map((rank) => ask(`a ${rank}`, 'a', undefined, rank).catch(({ code }) => code));
    const newer = ask('a 1', 'a', undefined, 1);
    await expect(ask('a 4 again', 'a', undefined, 4)).rejects.toMatchObject(REFUSED);
    for (let i = 0; i < 3; i++) await end();
    expect(await Promise.all([first, ...queued, newer])).toEqual(['a 0', 'rate_limited', 'a 4', 'a 1']);
  });

  it('leaves its own group in peace while the queue of another is the longest', async () => {
    const { ask, end } = onePlace({ waiting: 4, waitingOfGroup: 4 });
    const first = ask('a 0', 'a');
    const flood = [1, 2, 3].map((n) => ask(`a ${n}`, 'a').catch(({ code }) => code));
    const neighbour = ask('b 1', 'b', undefined, 7);
    const newcomer = ask('b 2', 'b');
    for (let i = 0; i < 5; i++) await end();
    expect(await Promise.all([first, ...flood, neighbour, newcomer])).toEqual([
      'a 0',
      'a 1',
      'a 2',
      'rate_limited',
      'b 1',
      'b 2',
    ]);
  });

  it('is refused if enough of its own group waits, while others still get their turn', async () => {
    const { ask, end } = onePlace();
    const waiting = ['a 1', 'a 2', 'a 3', 'a 4', 'a 5'].map((name) => ask(name));
    await expect(ask('a 6')).rejects.toMatchObject(REFUSED);
    const other = ask('b 1');
    for (let i = 0; i < 6; i++) await end();
    expect(await Promise.all([...waiting, other])).toHaveLength(6);
  });

  it('takes the place of the last of the longest queue if too many wait', async () => {
    const { ask, end } = onePlace({ waiting: 4, waitingOfGroup: 3 });
    const first = ask('a 1');
    const queued = ['a 2', 'a 3', 'a 4', 'b 1'].map((name) => ask(name).catch(({ code }) => code));
    const other = ask('c 1');
    expect(await queued[2]).toBe('rate_limited');
    await expect(ask('a 5')).rejects.toMatchObject(REFUSED);
    for (let i = 0; i < 5; i++) await end();
    expect(await Promise.all([first, ...queued, other])).toEqual(['a 1', 'a 2', 'a 3', 'rate_limited', 'b 1', 'c 1']);
  });

  it('may find a place among waiting groups of one work each, and keeps it only by chance', async () => {
    const { ask, end } = onePlace({ waiting: 4 });
    const first = ask('a');
    const asked = Array.from({ length: 200 }, (_, i) => ask(`${i}`).catch(({ code }) => code));
    for (let i = 0; i < 5; i++) await end();
    const results = await Promise.all(asked);
    expect(await first).toBe('a');
    const done = results.flatMap((result, i) => (result === `${i}` ? [i] : []));
    expect(done).toHaveLength(4);
    // A later one took the place of an earlier one.
    expect(done).not.toEqual([0, 1, 2, 3]);
    expect(results.filter((result) => result === 'rate_limited')).toHaveLength(196);
  });

  it('of one group leaves places free for other groups', async () => {
    const { ask, begun, end, settled } = onePlace({ places: 3, placesOfGroup: 2 });
    const all = ['a 1', 'a 2', 'a 3', 'b 1', 'c 1'].map((name) => ask(name));
    await settled();
    expect(begun).toEqual(['a 1', 'a 2', 'b 1']);
    for (let i = 0; i < 5; i++) await end();
    expect(begun).toEqual(['a 1', 'a 2', 'b 1', 'a 3', 'c 1']);
    expect(await Promise.all(all)).toHaveLength(5);
  });

  it('leaves the queue when its caller goes, and the others keep their turns', async () => {
    const { ask, begun, end, settled } = onePlace();
    const [first, caller] = [ask('a 1'), new AbortController()];
    const leaving = ask('a 2', 'a', caller.signal).catch(({ code }) => code);
    const others = [ask('a 3'), ask('b 1')];
    caller.abort();
    expect(await leaving).toBe('unavailable');
    expect(await ask('c 1', 'c', caller.signal).catch(({ code }) => code)).toBe('unavailable');
    for (let i = 0; i < 3; i++) await end();
    await settled();
    expect(begun).toEqual(['a 1', 'a 3', 'b 1']);
    expect(await Promise.all([first, ...others])).toHaveLength(3);
  });

  it('gives its place back when it fails', async () => {
    const turns = new Turns({ places: 1, waiting: 1, waitingOfGroup: 1, refusal: '' });
    const failing = turns.run('a', () => Promise.reject(new Error('no')));
    const next = turns.run('b', async () => 'done');
    await expect(failing).rejects.toThrow('no');
    expect(await next).toBe('done');
  });
});
